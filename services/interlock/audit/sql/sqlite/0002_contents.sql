-- What windows said, so that later windows can be compared with them. Encrypted under a data key per session, which is
-- itself wrapped by a key derived from the master key: deleting a session's data key makes all of its contents
-- unreadable, while the chain, which holds only the hash of the encrypted bytes, goes on verifying.
--
-- Nothing here can be changed; contents can be dropped. What is missing without a CONTENT_DROPPED event is noticed.

ALTER TABLE windows ADD COLUMN content_hash TEXT NOT NULL DEFAULT '';

CREATE TABLE content_keys (
    session_id TEXT NOT NULL PRIMARY KEY,
    key_version INTEGER NOT NULL,
    wrapped BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE contents (
    window_id TEXT NOT NULL PRIMARY KEY REFERENCES windows (window_id),
    session_id TEXT NOT NULL,
    sealed BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX contents_by_session ON contents (session_id);

CREATE TRIGGER content_keys_no_update BEFORE UPDATE ON content_keys
BEGIN
    SELECT RAISE(ABORT, 'a data key is written once');
END;

CREATE TRIGGER content_keys_no_replace BEFORE INSERT ON content_keys
WHEN EXISTS (SELECT 1 FROM content_keys WHERE session_id = NEW.session_id)
BEGIN
    SELECT RAISE(ABORT, 'a data key is written once');
END;

CREATE TRIGGER contents_no_update BEFORE UPDATE ON contents
BEGIN
    SELECT RAISE(ABORT, 'a content is written once');
END;

CREATE TRIGGER contents_no_replace BEFORE INSERT ON contents
WHEN EXISTS (SELECT 1 FROM contents WHERE window_id = NEW.window_id)
BEGIN
    SELECT RAISE(ABORT, 'a content is written once');
END;
