-- The Merkle log over all sessions (AUD-6): every event has a position, 0, 1, 2 and so on, and the hash of its leaf.
--
-- Older code inserts events without leaves. A trigger notes them in the order in which they were written, and newer code
-- gives them positions before anything else; that is also how the events get theirs that were there before this migration.
-- Newer code writes the leaf first, so that the trigger finds it. Leaves have no foreign key: they outlive their events.

CREATE TABLE leaves (
    position INTEGER NOT NULL PRIMARY KEY CHECK (position >= 0),
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence >= 1),
    leaf_hash BLOB NOT NULL CHECK (length(leaf_hash) = 32),
    UNIQUE (session_id, sequence)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER leaves_no_update BEFORE UPDATE ON leaves BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER leaves_no_delete BEFORE DELETE ON leaves BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

CREATE TRIGGER leaves_in_order BEFORE INSERT ON leaves
WHEN NEW.position <> (SELECT COALESCE(MAX(position) + 1, 0) FROM leaves)
    OR EXISTS (SELECT 1 FROM leaves WHERE session_id = NEW.session_id AND sequence = NEW.sequence)
BEGIN
    SELECT RAISE(ABORT, 'positions follow one another without gaps: the audit log is append-only');
END;

CREATE TABLE unlogged (
    number INTEGER NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL
) STRICT;

CREATE TRIGGER unlogged_no_delete BEFORE DELETE ON unlogged
WHEN NOT EXISTS (SELECT 1 FROM leaves WHERE session_id = OLD.session_id AND sequence = OLD.sequence)
BEGIN
    SELECT RAISE(ABORT, 'an event keeps its place until it has a position');
END;

CREATE TRIGGER events_unlogged AFTER INSERT ON events
WHEN NOT EXISTS (SELECT 1 FROM leaves WHERE session_id = NEW.session_id AND sequence = NEW.sequence)
BEGIN
    INSERT INTO unlogged (session_id, sequence) VALUES (NEW.session_id, NEW.sequence);
END;

-- By time, but never an event before an earlier one of its own session.
INSERT INTO unlogged (session_id, sequence)
SELECT session_id, sequence
FROM (
    SELECT session_id, sequence, MAX(timestamp) OVER (PARTITION BY session_id ORDER BY sequence) AS not_before
    FROM events
)
ORDER BY not_before, session_id, sequence;

-- Hashes of complete subtrees of 2^8 and 2^16 leaves, so that a proof reads few hashes.
CREATE TABLE merkle_nodes (
    level INTEGER NOT NULL CHECK (level IN (8, 16)),
    number INTEGER NOT NULL CHECK (number >= 0),
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (level, number)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER merkle_nodes_no_update BEFORE UPDATE ON merkle_nodes
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER merkle_nodes_no_delete BEFORE DELETE ON merkle_nodes
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER merkle_nodes_no_replace BEFORE INSERT ON merkle_nodes
WHEN EXISTS (SELECT 1 FROM merkle_nodes WHERE level = NEW.level AND number = NEW.number)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TABLE checkpoints (
    number INTEGER NOT NULL PRIMARY KEY,
    size INTEGER NOT NULL CHECK (size >= 0),
    note TEXT NOT NULL
) STRICT;

CREATE TRIGGER checkpoints_no_update BEFORE UPDATE ON checkpoints
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER checkpoints_no_delete BEFORE DELETE ON checkpoints
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER checkpoints_no_replace BEFORE INSERT ON checkpoints
WHEN EXISTS (SELECT 1 FROM checkpoints WHERE number = NEW.number)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
