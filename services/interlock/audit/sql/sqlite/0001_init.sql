-- The audit log: events and window seals per session, and the reports whose hashes the seals hold (SPEC-011).
--
-- Append-only in the database itself (SPEC-011 §6): UPDATE and DELETE are refused, and so is an INSERT onto a key that
-- exists, because INSERT OR REPLACE deletes without asking a DELETE trigger. The tables have no rowid, so that no second
-- way leads to a row. STRICT keeps every value the type that was sealed.

CREATE TABLE events (
    session_id TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence >= 1),
    window_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    severity INTEGER NOT NULL CHECK (severity BETWEEN 1 AND 5),
    timestamp TEXT NOT NULL,
    data_json TEXT NOT NULL,
    key_version INTEGER NOT NULL,
    hmac TEXT NOT NULL,
    PRIMARY KEY (session_id, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE windows (
    window_id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    window_number INTEGER NOT NULL CHECK (window_number >= 1),
    parent_ids TEXT NOT NULL,
    response_hash TEXT NOT NULL,
    report_hash TEXT NOT NULL,
    risk_level INTEGER NOT NULL CHECK (risk_level BETWEEN 1 AND 4),
    charge_micros INTEGER NOT NULL CHECK (charge_micros BETWEEN 0 AND 500000),
    status TEXT NOT NULL CHECK (status IN ('COMPLETED', 'HALTED', 'HELD')),
    settle_json TEXT NOT NULL,
    trail_id TEXT NOT NULL UNIQUE,
    request_hash TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    key_version INTEGER NOT NULL,
    hmac TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX windows_by_session ON windows (session_id, window_number);

CREATE TABLE reports (
    window_id TEXT NOT NULL PRIMARY KEY REFERENCES windows (window_id),
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER windows_no_update BEFORE UPDATE ON windows BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER windows_no_delete BEFORE DELETE ON windows BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER reports_no_update BEFORE UPDATE ON reports BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER reports_no_delete BEFORE DELETE ON reports BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

CREATE TRIGGER events_in_sequence BEFORE INSERT ON events
WHEN NEW.sequence <> (SELECT COALESCE(MAX(sequence), 0) + 1 FROM events WHERE session_id = NEW.session_id)
BEGIN
    SELECT RAISE(ABORT, 'events follow one another without gaps');
END;

CREATE TRIGGER windows_no_replace BEFORE INSERT ON windows
WHEN EXISTS (SELECT 1 FROM windows WHERE window_id = NEW.window_id OR trail_id = NEW.trail_id)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER reports_no_replace BEFORE INSERT ON reports
WHEN EXISTS (SELECT 1 FROM reports WHERE window_id = NEW.window_id)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
