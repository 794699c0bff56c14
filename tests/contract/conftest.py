"""Every audit log there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from interlock.audit.store.log import AuditLog
from interlock.audit.store.log_postgres import PostgresLog
from interlock.audit.store.log_sql import SqliteLog


@pytest.fixture(params=["sqlite", "postgres"])
def log(request: pytest.FixtureRequest) -> Iterator[AuditLog]:
    """An empty log of each kind."""
    made: AuditLog
    match request.param:
        case "sqlite":
            made = SqliteLog(request.getfixturevalue("tmp_path") / "audit.db")
        case _:
            made = PostgresLog(request.getfixturevalue("postgres_url"))
    made.commit([])
    yield made
    made.close()
