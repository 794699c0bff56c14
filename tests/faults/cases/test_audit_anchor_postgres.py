"""The Merkle log's checkpoints, anchor and fence over a real PostgreSQL: a standby that lost its newest records."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from interlock.audit.merkle.checkpoint_key import load_checkpoint_key
from interlock.audit.merkle.examination import examine_log
from interlock.audit.store.opening import open_reader
from tests.support.audit.audit import session_id
from tests.support.audit.auditors import audited, settings_of

pytestmark = pytest.mark.req("AUD-6")


async def test_a_promoted_standby_without_the_newest_records_is_noticed_at_once(tmp_path, postgres_url):
    """The log is signed, published and whole; then its tail vanishes under the running service: writes are refused."""
    settings = settings_of(tmp_path, audit_url=postgres_url)
    async with audited(settings) as audit:
        await audit.seal()
        await audit.seal(session=2)
        await audit.notary.round()
        assert audit.notary.unanchored == 0
        with closing(open_reader(settings)) as log:
            found = examine_log(log, load_checkpoint_key(settings).verifier(), settings.audit_anchor)
        assert (found.verdict, found.anchored) == ("VALID", 6)
        _lose_session(postgres_url, session_id(2))

        refused = (await audit.seal(session=3)).refusal
        assert (refused.reason, refused.metadata["kept"]) == ("CHAIN_TRUNCATED", "3")
        assert "CHAIN_TRUNCATED" in str(await audit.service.unready_dependencies())


def _lose_session(url: str, session: str) -> None:
    """Do to the database what a failover with loss does: as a superuser without triggers."""
    with psycopg.connect(url, user="postgres") as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET search_path = interlock_audit")
        for table in ("reports", "windows", "events", "leaves"):
            where = (
                "window_id IN (SELECT window_id FROM windows WHERE session_id = %s)"
                if table == "reports"
                else "session_id = %s"
            )
            connection.execute(f"DELETE FROM {table} WHERE {where}", (session,))
        connection.execute("DELETE FROM checkpoints")
