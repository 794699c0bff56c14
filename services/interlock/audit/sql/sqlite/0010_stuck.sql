-- Compensations of kernels that wait for a person: an index of the log, for those who ask which ones there are.
--
-- It is written with the record that says so. It is no part of the chain, and nothing is decided by it. Old code does not read this table.

CREATE TABLE stuck (
    kernel_id TEXT NOT NULL,
    execution TEXT NOT NULL,
    job TEXT NOT NULL,
    stuck_ms INTEGER NOT NULL,
    left_json TEXT NOT NULL,
    PRIMARY KEY (kernel_id, execution)
) STRICT, WITHOUT ROWID;

CREATE INDEX stuck_by_time ON stuck (stuck_ms, kernel_id, execution);
