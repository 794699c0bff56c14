-- The sessions of an agent tree are found by what their SESSION_CREATED says, without reading every event there is.
--
-- An index alone: older code neither needs it nor minds it, and nothing that was sealed is touched.

CREATE INDEX events_session_created ON events (session_id) WHERE event_type = 'SESSION_CREATED';
