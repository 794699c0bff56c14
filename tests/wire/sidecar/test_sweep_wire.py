"""The store is another server than before: one call, and the other trees are verified beside it, many at a time."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.audit.tree import record
from interlock.domain.errors import unavailable
from interlock.session.store.redis import key_of
from interlock.sidecar.settlement import sweep
from interlock.sidecar.settlement.recovery import restoring
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import Hooked, reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import Merger, budget, onward

running = answering.running

COUNT = 5


class Gate:
    """Stands before GetTreeRecords: counts what is asked, and does what a test says first."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.first = None

    async def __call__(self, request: audit_pb2.GetTreeRecordsRequest) -> None:
        self.asked.append(list(request.root_session_ids))
        if self.first is not None:
            await self.first()


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def sidecar(tmp_path, running, redis_url, gate):
    running.provider.reset()
    running.provider.by_question = {"A?": "It is HIGH."}

    def wrap(services):
        return {**services, "audit": Hooked(services["audit"], GetTreeRecords=gate)}

    async with running_sidecar(
        tmp_path, upstream=running.base_url, dpe=Merger(), wrap=wrap, redis_url=redis_url
    ) as one:
        yield one


def root_of(response) -> str:
    return response.headers["crp-context-session-id"]


def key(response) -> str:
    return key_of(*[root_of(response)] * 2)


class World:
    """Some sessions of a sidecar, and their store, which can come up as another server."""

    def __init__(self, sidecar, valkey, firsts) -> None:
        self.sidecar, self.valkey, self.firsts = sidecar, valkey, firsts
        self.epoch = self.epochs()[0]

    @classmethod
    async def made(cls, sidecar, valkey):
        return cls(sidecar, valkey, [await sidecar.chat("A?") for _ in range(COUNT)])

    def epochs(self) -> list[bytes | None]:
        with self.valkey.client() as client:
            return [client.hget(key(first), "epoch") for first in self.firsts]

    def changed(self, *numbers: int) -> None:
        with self.valkey.client() as client:
            for number in numbers or range(COUNT):
                client.hset(key(self.firsts[number]), "epoch", "another")

    async def call(self, number: int):
        first = self.firsts[number]
        return await self.sidecar.chat("B?", token=token_of(first), headers=onward(first))

    async def look(self, number: int):
        first = self.firsts[number]
        return await self.sidecar.client.get(
            f"/crp/v3/session/{root_of(first)}", headers={"crp-session-token": token_of(first)}
        )

    async def until(self, *numbers: int) -> None:
        """Wait until those sessions are verified."""
        async with asyncio.timeout(10):
            while any(self.epochs()[number] != self.epoch for number in numbers):
                await asyncio.sleep(0.02)


@pytest.fixture
async def world(sidecar, valkey):
    return await World.made(sidecar, valkey)


async def calm(seconds: float = 0.4) -> None:
    """Leave a sweep the time that it would need."""
    await asyncio.sleep(seconds)


@pytest.mark.req("BUD-4", "BUD-9")
async def test_one_call_has_the_other_sessions_verified_and_the_lost_one_brought_back(world, gate):
    """Nobody asks for them: each is verified under the server of now, and the one that is gone is back with what it had spent."""
    world.changed()
    with world.valkey.client() as client:
        client.delete(key(world.firsts[2]))
    served = await world.call(0)
    await world.until(*range(COUNT))
    with world.valkey.client() as client:
        back = client.hget(key(world.firsts[2]), "budget")

    assert served.status_code == 200, served.text
    assert back == b"850000"
    assert sum(map(len, gate.asked)) == COUNT - 1
    onwards = await world.call(2)
    assert (onwards.status_code, await budget(world.sidecar, onwards)) == (200, 850_000), onwards.text


@pytest.mark.req("BUD-4", "BUD-9")
async def test_without_the_sweep_each_session_waits_for_its_own_call(world, monkeypatch):
    """What the tests here see is the sweep's doing: where it never begins, only the tree that was asked for is verified."""
    monkeypatch.setattr(sweep.Sweep, "refused", lambda *_: None)
    world.changed()
    served = await world.call(0)
    await calm()

    assert served.status_code == 200, served.text
    assert world.epochs() == [world.epoch, *[b"another"] * (COUNT - 1)]


@pytest.mark.req("BUD-4", "BUD-9")
async def test_a_broken_chain_keeps_no_other_tree_from_being_verified(world, gate, tmp_path):
    """It stays as it is and is refused when it is asked for, which starts no further sweep."""
    broken = root_of(world.firsts[1])
    with contextlib.closing(sqlite3.connect(tmp_path / "state" / "audit.db")) as database:
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute("UPDATE windows SET charge_micros = 0 WHERE session_id = ?", (broken,))
        database.commit()
    world.changed()
    await world.call(0)
    await world.until(0, 2, 3, 4)
    await calm(0.1)
    asked = len(gate.asked)
    refused = await world.call(1)
    await calm(0.1)

    assert world.epochs()[1] == b"another"
    assert (refused.status_code, reason_of(refused)) == (409, "CHAIN_BROKEN")
    assert len(gate.asked) == asked


@pytest.mark.req("BUD-9")
async def test_a_change_during_a_sweep_has_it_made_over_again(world, gate):
    """A tree that was verified and is refused again says that there was another change: all of them are asked for once more."""
    held = asyncio.Event()
    gate.first = held.wait
    world.changed()
    await world.call(0)
    world.changed(0)
    looked = await world.look(0)
    held.set()
    async with asyncio.timeout(10):
        while len(gate.asked) < 2:
            await asyncio.sleep(0.02)
    await world.until(*range(COUNT))

    assert looked.status_code == 200, looked.text
    assert [len(batch) for batch in gate.asked] == [COUNT - 1, COUNT - 1]


@pytest.mark.req("BUD-9", "SVC-9")
async def test_a_sweep_ends_where_the_log_cannot_be_read_and_the_next_refusal_begins_it_again(world, gate):
    """A call that finds its tree unverified is served either way."""

    async def away():
        raise unavailable("AUDIT_UNAVAILABLE", "x")

    gate.first = away
    world.changed()
    first = await world.call(0)
    await calm()
    meanwhile, asked = world.epochs(), len(gate.asked)
    gate.first = None
    second = await world.call(1)
    await world.until(*range(COUNT))

    assert (first.status_code, second.status_code) == (200, 200)
    assert (meanwhile[1:], asked) == ([b"another"] * (COUNT - 1), 1)
    assert [len(batch) for batch in gate.asked] == [COUNT - 1, COUNT - 2]


@pytest.mark.req("SVC-9")
async def test_a_sweep_that_waits_ends_with_its_process(tmp_path, running, redis_url, valkey, gate):
    """Shutting down waits for no answer of the log."""

    def wrap(services):
        return {**services, "audit": Hooked(services["audit"], GetTreeRecords=gate)}

    gate.first = asyncio.Event().wait
    async with asyncio.timeout(20):
        async with running_sidecar(
            tmp_path, upstream=running.base_url, dpe=Merger(), wrap=wrap, redis_url=redis_url
        ) as one:
            world = await World.made(one, valkey)
            world.changed()
            served = await world.call(0)

    assert (served.status_code, len(gate.asked)) == (200, 1)


async def test_only_so_many_trees_are_remembered(sidecar, valkey, monkeypatch):
    """The ones that were served longest ago are left to their own calls."""
    monkeypatch.setattr(sweep, "REMEMBERED", 3)
    world = await World.made(sidecar, valkey)
    world.changed()
    await world.call(4)
    await world.until(2, 3, 4)
    await calm(0.1)

    assert world.epochs()[:2] == [b"another"] * 2


async def test_what_did_not_fit_into_an_answer_is_asked_for_again(world, gate, monkeypatch):
    """A batch is as many trees as the log has room for."""
    alone = await world.sidecar.mesh.audit.GetTreeRecord(
        audit_pb2.GetTreeRecordRequest(root_session_id=root_of(world.firsts[0]))
    )
    monkeypatch.setattr(record, "MOST_RECORD_BYTES", alone.ByteSize() * 2 + 100)
    world.changed()
    await world.call(0)
    await world.until(*range(COUNT))

    assert [len(batch) for batch in gate.asked] == [4, 2]


# The two calls that it makes


async def told(sidecar, *roots: str, timeout: float | None = 10):
    request = audit_pb2.GetTreeRecordsRequest(root_session_ids=roots)
    return await sidecar.mesh.audit.GetTreeRecords(request, timeout=timeout)


@pytest.mark.req("BUD-9")
async def test_each_record_comes_in_its_place_or_with_its_own_refusal(world):
    """What GetTreeRecord would say of each, in the order in which they were asked for."""
    first, second = map(root_of, world.firsts[:2])
    answer = await told(world.sidecar, first, "crp_sess_" + "7" * 32, "x", second)
    alone = await world.sidecar.mesh.audit.GetTreeRecord(audit_pb2.GetTreeRecordRequest(root_session_id=first))

    assert answer.records[0] == alone
    assert [one.refusal.reason for one in answer.records] == ["", "SESSION_NOT_FOUND", "INVALID_ID", ""]
    assert {step.session_id for step in answer.records[3].steps} == {second}


async def test_an_answer_with_records_is_bounded(world, monkeypatch):
    """What fits into none is to be asked for alone, what had no room in this one may be asked for again; the first has room."""
    roots = list(map(root_of, world.firsts))
    size = (await told(world.sidecar, roots[0])).records[0].ByteSize()
    monkeypatch.setattr(record, "MOST_RECORD_BYTES", size + size // 2)
    some = await told(world.sidecar, *roots[:3])
    monkeypatch.setattr(record, "MOST_RECORD_BYTES", size // 2)
    none = await told(world.sidecar, *roots[:2])

    assert [one.refusal.reason for one in some.records] == ["", "RECORDS_LEFT_OUT", "RECORDS_LEFT_OUT"]
    assert [one.refusal.reason for one in none.records] == ["RECORD_TOO_LARGE"] * 2


class Ending:
    """The context of a call whose time is running out."""

    def __init__(self, *left: float) -> None:
        self.left = iter(left)

    def time_remaining(self) -> float:
        return next(self.left)


async def test_a_call_for_records_ends_while_its_caller_still_waits(world):
    """Half of the caller's time is for reading; the first record is read whatever is left."""
    request = audit_pb2.GetTreeRecordsRequest(root_session_ids=map(root_of, world.firsts[:3]))
    answer = await world.sidecar.services["audit"].GetTreeRecords(request, Ending(10, 1, 6, 4))

    assert [one.refusal.reason for one in answer.records] == ["", "", "RECORDS_LEFT_OUT"]


@pytest.mark.req("BUD-4", "BUD-9")
async def test_each_tree_is_restored_or_refused_by_itself(world):
    """A forged record and one of nothing are refused beside one that is whole; nothing of theirs is written."""
    roots = list(map(root_of, world.firsts))
    whole, forged = map(restoring, (await told(world.sidecar, *roots[:2])).records)
    forged.steps[0].created_record_json = forged.steps[0].created_record_json.replace('"v":1', '"v":2')
    world.valkey.flush()
    empty = session_pb2.RestoreTreeRequest(root_session_id="x")
    request = session_pb2.RestoreTreesRequest(trees=[forged, whole, empty, whole])
    answer = await world.sidecar.mesh.session.RestoreTrees(request)

    assert [one.refusal.reason for one in answer.results] == ["RECORD_INVALID", "", "INVALID_ID", ""]
    assert sum(one.restored for one in answer.results) == 1
    assert sum(one.verified for one in answer.results) == 1
    assert [bool(epoch) for epoch in world.epochs()] == [True, False, False, False, False]


async def test_too_many_trees_are_refused_as_a_whole(sidecar):
    """At most 256 of a call, of either."""
    root = "crp_sess_" + "7" * 32
    asked = await told(sidecar, *[root] * 257)
    tree = session_pb2.RestoreTreeRequest(root_session_id=root)
    given = await sidecar.mesh.session.RestoreTrees(session_pb2.RestoreTreesRequest(trees=[tree] * 257))

    assert (asked.refusal.reason, given.refusal.reason) == ("TOO_MANY_TREES", "TOO_MANY_TREES")
    assert (len(asked.records), len(given.results)) == (0, 0)
