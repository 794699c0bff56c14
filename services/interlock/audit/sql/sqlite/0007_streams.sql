-- How far each receiver of events has got, and what it would not take. These alone change: they say nothing of what happened.

CREATE TABLE cursors (
    sink TEXT NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL CHECK (position >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE dead_letters (
    sink TEXT NOT NULL,
    first INTEGER NOT NULL CHECK (first >= 0),
    last INTEGER NOT NULL CHECK (last >= first),
    reason TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (sink, first)
) STRICT, WITHOUT ROWID;
