-- Erasure and retention (AUD-5): what may be deleted, and after which event of the session's own chain.
--
-- Reports are encrypted like contents from here on; the seal holds the hash of the stored bytes. Older code cannot read
-- them: it goes on with the sessions that it began itself. A data key and what it opens goes after CONTENT_ERASED, and
-- events, windows and reports go after a later TRUNCATED. Who writes such an event needs the session's key to make it verify.

ALTER TABLE windows ADD COLUMN sealed_report_hash TEXT NOT NULL DEFAULT '';

CREATE INDEX events_content_erased ON events (session_id, sequence) WHERE event_type = 'CONTENT_ERASED';
CREATE INDEX events_truncated ON events (session_id, sequence) WHERE event_type = 'TRUNCATED';

DROP TRIGGER events_no_delete;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events
WHEN NOT EXISTS (
    SELECT 1 FROM events AS mark
    WHERE mark.session_id = OLD.session_id AND mark.event_type = 'TRUNCATED' AND mark.sequence > OLD.sequence
)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

DROP TRIGGER windows_no_delete;
CREATE TRIGGER windows_no_delete BEFORE DELETE ON windows
WHEN NOT EXISTS (SELECT 1 FROM events AS mark WHERE mark.session_id = OLD.session_id AND mark.event_type = 'TRUNCATED')
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

DROP TRIGGER reports_no_delete;
CREATE TRIGGER reports_no_delete BEFORE DELETE ON reports
WHEN NOT EXISTS (
    SELECT 1 FROM windows AS w JOIN events AS mark ON mark.session_id = w.session_id
    WHERE w.window_id = OLD.window_id AND mark.event_type = 'CONTENT_ERASED'
) AND NOT EXISTS (
    SELECT 1 FROM windows AS w JOIN events AS mark ON mark.session_id = w.session_id
    WHERE w.window_id = OLD.window_id AND mark.event_type = 'TRUNCATED'
)
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER content_keys_no_delete BEFORE DELETE ON content_keys
WHEN NOT EXISTS (SELECT 1 FROM events AS mark WHERE mark.session_id = OLD.session_id AND mark.event_type = 'CONTENT_ERASED')
    AND NOT EXISTS (SELECT 1 FROM events AS mark WHERE mark.session_id = OLD.session_id AND mark.event_type = 'TRUNCATED')
BEGIN
    SELECT RAISE(ABORT, 'a data key goes with a CONTENT_ERASED event');
END;
