-- What a later request may go on from: a released answer with what it answered, encrypted under its session's data key.
--
-- It is no part of the chain: its caller may delete it, and it goes when its time is over or its session is erased. Old code does
-- not read this table.

CREATE TABLE kept (
    window_id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    previous_id TEXT NOT NULL,
    sealed BLOB NOT NULL,
    expires_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX kept_by_session ON kept (session_id);
CREATE INDEX kept_by_expiry ON kept (expires_at);

CREATE TRIGGER kept_no_update BEFORE UPDATE ON kept BEGIN SELECT RAISE(ABORT, 'an answer is kept once'); END;
CREATE TRIGGER kept_no_replace BEFORE INSERT ON kept
WHEN EXISTS (SELECT 1 FROM kept WHERE window_id = NEW.window_id)
BEGIN
    SELECT RAISE(ABORT, 'an answer is kept once');
END;
