-- Kernels and experiments are found by their first records, without reading every event there is.
--
-- Indexes alone: older code neither needs them nor minds them, and nothing that was sealed is touched.

CREATE INDEX events_kernel_opened ON events (timestamp, session_id) WHERE event_type = 'KERNEL_OPENED';
CREATE INDEX events_decision_opened ON events (timestamp, session_id) WHERE event_type = 'DECISION_OPENED';
