"""When trees are swept, and which: nothing is asked twice that a call saw to, and no tree stands in another's way."""

from __future__ import annotations

import asyncio
import time

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.runtime.rpc.peers import AuditPeer, SessionPeer
from interlock.sidecar.settlement import sweep
from interlock.sidecar.settlement.sweep import Sweep

BAD = "bad"


class Services:
    """An audit log and a session service that take everything, and tell what they were asked."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.restored: list[str] = []

    async def GetTreeRecords(self, request, timeout):
        del timeout
        self.batches.append(list(request.root_session_ids))
        steps = [[audit_pb2.TreeStep(session_id=root)] for root in request.root_session_ids]
        return audit_pb2.GetTreeRecordsResponse(records=[{"steps": each} for each in steps])

    async def RestoreTrees(self, request, timeout):
        del timeout
        self.restored += [tree.root_session_id for tree in request.trees]
        return session_pb2.RestoreTreesResponse(results=[{"verified": 1}] * len(request.trees))


def restoring(record):
    """What a tree is rebuilt from; one of them is not as anybody expected."""
    root = record.steps[0].session_id
    if root == BAD:
        raise KeyError(root)
    return session_pb2.RestoreTreeRequest(root_session_id=root)


@pytest.fixture
def services() -> Services:
    return Services()


@pytest.fixture
async def swept(services):
    made = Sweep(60, AuditPeer(services, 5), SessionPeer(services, 5), restoring=restoring, busy={"busy"})
    for name in ("one", "two", "three"):
        made.verified(name, time.monotonic() - 1)
    yield made
    await made.close()


async def calm() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_the_trees_that_were_used_are_swept_the_latest_first_and_once(swept, services):
    """Not the one that is rebuilt by a call, nor one whose last token has run out."""
    swept.verified("ended", time.monotonic() - 61)
    swept.verified("busy", time.monotonic() - 1)
    swept.refused("busy", time.monotonic())
    await calm()

    assert services.batches == [["three", "two", "one"]]


async def test_a_record_that_trips_us_costs_its_own_tree_alone(swept, services):
    """The others of its batch are rebuilt."""
    swept.verified(BAD, time.monotonic() - 1)
    swept.refused("one", time.monotonic())
    await calm()

    assert services.restored == ["three", "two", "one"]


async def test_a_refusal_that_is_no_news_starts_no_sweep(swept, services):
    """A tree that was never served here, or that was verified while the call was on its way, tells nothing of the others."""
    since = time.monotonic() - 2
    swept.refused("foreign", time.monotonic())
    swept.refused("one", since)
    await calm()

    assert services.batches == []


async def test_a_second_change_has_it_made_again_after_a_rest(swept, services, monkeypatch):
    """A store that is another one again and again takes a part of the time only."""
    monkeypatch.setattr(sweep, "RESTING", 100)
    swept.refused("one", time.monotonic())
    await calm()
    swept.refused("two", time.monotonic())
    await calm()
    resting = len(services.batches)
    async with asyncio.timeout(10):
        while len(services.batches) < 2:
            await asyncio.sleep(0.01)

    assert (resting, services.batches[1]) == (1, ["three", "two", "one"])


async def test_trees_go_out_in_batches(swept, services, monkeypatch):
    """Of so many at most."""
    monkeypatch.setattr(sweep, "BATCH", 2)
    swept.refused("one", time.monotonic())
    await calm()

    assert sorted(map(len, services.batches)) == [1, 2]
