-- Sessions are searched by when they began and by what became of them, and would-haves are listed by time.
--
-- Indexes alone: older code neither needs them nor minds them, and nothing that was sealed is touched.

CREATE INDEX events_session_began ON events (timestamp, session_id) WHERE event_type = 'SESSION_CREATED';
CREATE INDEX events_session_ended ON events (session_id) WHERE event_type = 'SESSION_TERMINATED';
CREATE INDEX events_would_have ON events (timestamp, session_id, sequence) WHERE event_type = 'WOULD_HAVE';
CREATE INDEX windows_halted ON windows (session_id) WHERE status = 'HALTED';
