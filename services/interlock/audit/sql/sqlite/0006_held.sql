-- Responses held for a reviewer: what they would be released as, encrypted, who decided, and that they left, once.
--
-- The bytes can be dropped; that a response was held, decided and handed out stays until its session is truncated.

CREATE TABLE held (
    window_id TEXT NOT NULL PRIMARY KEY REFERENCES windows (window_id),
    session_id TEXT NOT NULL,
    held_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    policy_hash TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX held_by_time ON held (held_at, window_id);
CREATE INDEX held_by_session ON held (session_id, held_at);
CREATE INDEX held_by_expiry ON held (expires_at);

CREATE TABLE held_contents (
    window_id TEXT NOT NULL PRIMARY KEY REFERENCES held (window_id),
    session_id TEXT NOT NULL,
    sealed BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX held_contents_by_session ON held_contents (session_id);

CREATE TABLE decisions (
    window_id TEXT NOT NULL PRIMARY KEY REFERENCES held (window_id),
    approved INTEGER NOT NULL CHECK (approved IN (0, 1)),
    reviewer_id TEXT NOT NULL,
    approval_id TEXT NOT NULL UNIQUE,
    token TEXT NOT NULL,
    decided_at TEXT NOT NULL,
    expires_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE handouts (
    window_id TEXT NOT NULL PRIMARY KEY REFERENCES held (window_id),
    handed_out_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER held_no_update BEFORE UPDATE ON held BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER held_no_replace BEFORE INSERT ON held
WHEN EXISTS (SELECT 1 FROM held WHERE window_id = NEW.window_id)
BEGIN
    SELECT RAISE(ABORT, 'a held response is written once');
END;
CREATE TRIGGER held_no_delete BEFORE DELETE ON held
WHEN NOT EXISTS (SELECT 1 FROM events AS mark WHERE mark.session_id = OLD.session_id AND mark.event_type = 'TRUNCATED')
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER held_contents_no_update BEFORE UPDATE ON held_contents
BEGIN
    SELECT RAISE(ABORT, 'a held response is written once');
END;
CREATE TRIGGER held_contents_no_replace BEFORE INSERT ON held_contents
WHEN EXISTS (SELECT 1 FROM held_contents WHERE window_id = NEW.window_id)
BEGIN
    SELECT RAISE(ABORT, 'a held response is written once');
END;

CREATE TRIGGER decisions_no_update BEFORE UPDATE ON decisions BEGIN SELECT RAISE(ABORT, 'a decision is made once'); END;
CREATE TRIGGER decisions_no_replace BEFORE INSERT ON decisions
WHEN EXISTS (SELECT 1 FROM decisions WHERE window_id = NEW.window_id OR approval_id = NEW.approval_id)
BEGIN
    SELECT RAISE(ABORT, 'a decision is made once');
END;
CREATE TRIGGER decisions_no_delete BEFORE DELETE ON decisions
WHEN NOT EXISTS (
    SELECT 1 FROM held AS h JOIN events AS mark ON mark.session_id = h.session_id
    WHERE h.window_id = OLD.window_id AND mark.event_type = 'TRUNCATED'
)
BEGIN
    SELECT RAISE(ABORT, 'a decision is made once');
END;

CREATE TRIGGER handouts_no_update BEFORE UPDATE ON handouts BEGIN SELECT RAISE(ABORT, 'a response leaves once'); END;
CREATE TRIGGER handouts_no_replace BEFORE INSERT ON handouts
WHEN EXISTS (SELECT 1 FROM handouts WHERE window_id = NEW.window_id)
BEGIN
    SELECT RAISE(ABORT, 'a response leaves once');
END;
CREATE TRIGGER handouts_no_delete BEFORE DELETE ON handouts
WHEN NOT EXISTS (
    SELECT 1 FROM held AS h JOIN events AS mark ON mark.session_id = h.session_id
    WHERE h.window_id = OLD.window_id AND mark.event_type = 'TRUNCATED'
)
BEGIN
    SELECT RAISE(ABORT, 'a response leaves once');
END;
