"""Trees of which a session was erased or truncated: what is left of the tree verifies, and the whole says TRUNCATED."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.erasure.erasure import erase, truncate
from interlock.audit.store.log_sql import SqliteLog
from tests.support.audit.audit import Attacker, Service, serving, session_id
from tests.support.audit.trails import HELPER, LEGAL, ROOT, TAX, grow

pytestmark = pytest.mark.req("PRV-4", "AUD-5")


@pytest_asyncio.fixture
async def service(tmp_path) -> AsyncIterator[Service]:
    """The service over a grown tree: a root, two children, and a grandchild."""
    log = SqliteLog(tmp_path / "audit.db")
    log.commit([])
    async with serving(log) as made:
        await grow(made)
        yield made


async def tree(service: Service) -> tuple[str, list[tuple[str, str]], int]:
    found = await service.stub.VerifyTree(audit_pb2.VerifyTreeRequest(session_id=session_id(ROOT)))
    faults = [(link.kind, link.fault) for link in found.links if link.fault]
    return common_pb2.ChainIntegrity.Name(found.integrity).removeprefix("CHAIN_INTEGRITY_"), faults, len(found.sessions)


async def remove(service: Service, how, *sessions: int) -> None:
    for session in sessions:
        await service.appender.submit(partial(how, sealer=service.sealer, session_id=session_id(session)))


@pytest.mark.parametrize("session", [ROOT, LEGAL, TAX, HELPER])
async def test_a_tree_with_an_erased_session_is_truncated(service, session):
    """Its reports are gone, so what they covered is taken from its signed events; no link counts as broken."""
    await remove(service, partial(erase, reason="RETENTION"), session)

    assert await tree(service) == ("TRUNCATED", [], 4)


@pytest.mark.parametrize(
    ("sessions", "left"),
    [((HELPER,), 4), ((TAX,), 4), ((LEGAL,), 3), ((ROOT,), 4), ((ROOT, LEGAL, TAX, HELPER), 1)],
    ids=["grandchild", "child", "child with a child", "root", "all"],
)
async def test_a_tree_with_a_truncated_session_is_truncated(service, sessions, left):
    """Marks stand for what retention removed, whichever of the tree's sessions it came to first."""
    await remove(service, truncate, *sessions)

    verdict, faults, walked = await tree(service)

    assert (verdict, faults) == ("TRUNCATED", [])
    assert walked >= left


async def test_a_fault_beside_an_erased_session_is_broken(service, tmp_path):
    """An erasure excuses its own session only."""
    await remove(service, partial(erase, reason="RETENTION"), LEGAL)
    with Attacker(tmp_path / "audit.db") as attacker:
        attacker("UPDATE windows SET charge_micros = 7 WHERE session_id = ?", session_id(TAX))

    assert (await tree(service))[0] == "BROKEN"
