"""A log that lost its end under a running service stays closed until a reviewer accepts that (A-27, I4)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.domain.errors import Refused
from tests.support.audit.audit import session_id
from tests.support.audit.auditors import Audited, audited, settings_of

pytestmark = pytest.mark.req("AUD-3", "AUD-6")


@pytest.mark.parametrize("anchored", [True, False], ids=["behind the anchor", "without an anchor"])
async def test_what_was_acknowledged_and_is_gone_is_not_forgotten_by_the_next_round(tmp_path, anchored):
    """The lost windows were durable and not published yet: the anchor misses nothing, and this process still does."""
    settings = settings_of(tmp_path) if anchored else settings_of(tmp_path, audit_anchor=None)
    async with audited(settings) as audit:
        await audit.seal()
        await audit.notary.round()
        assert not (await audit.seal(session=2)).HasField("refusal")
        _lose(tmp_path / "state" / "audit.db", session_id(2))

        assert await _reason(audit, 3) == "CHAIN_TRUNCATED"
        for _ in range(2):
            with contextlib.suppress(Refused):
                await audit.notary.round()
            assert await _reason(audit, 4) == "CHAIN_TRUNCATED"
        assert audit.notary.fence.lost is not None
        assert audit.notary.fence.lost.size == 6


async def test_a_published_entry_that_changes_under_the_leader_closes_the_log(tmp_path):
    """What can be signed no more is compared with the anchor all the same: nothing is added to another log than it knows."""
    async with audited(settings_of(tmp_path)) as audit:
        await audit.seal()
        await audit.notary.round()
        with _opened(tmp_path / "state" / "audit.db") as database:
            database.execute("UPDATE leaves SET leaf_hash = randomblob(32) WHERE position = 0")

        with pytest.raises(Refused) as refused:
            await audit.notary.round()
        assert refused.value.reason == "LOG_FORKED"
        assert await _reason(audit, 2) == "LOG_FORKED"
        assert "LOG_FORKED" in str(await audit.service.unready_dependencies())


async def _reason(audit: Audited, session: int) -> str:
    return (await audit.seal(session=session)).refusal.reason


def _lose(database: Path, session: str) -> None:
    """Do to the database what a restore of a backup does."""
    of_windows = "DELETE FROM reports WHERE window_id IN (SELECT window_id FROM windows WHERE session_id = ?)"
    with _opened(database) as connection:
        connection.execute(of_windows, (session,))
        for table in ("content_keys", "contents", "windows", "events", "leaves"):
            connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session,))


@contextlib.contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection]:
    """Lend a connection to a database whose triggers are gone."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
