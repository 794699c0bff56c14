"""Actions of one kernel that wait at the same time: decided in one call of the store, each answered by itself (KRN-1, KRN-2)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from interlock.domain.errors import Kind, Refused
from tests.support.kernels import UNIT, KernelClient, failed
from tests.support.sidecar.sidecar import Hooked, running_sidecar

pytestmark = pytest.mark.req("KRN-1", "KRN-2")


@asynccontextmanager
async def gathered(folder, redis_url, **hooks):
    """A kernel whose first action is held at the session service, so that all that come after it go together; yield it, the action,
    the session service, and what lets the action go on."""
    begun, gate, sessions = asyncio.Event(), asyncio.Event(), []

    async def held(request):
        if request.execute.key == "first":
            begun.set()
            await gate.wait()

    def wrap(services):
        sessions.append(Hooked(services["session"], **{"StepKernel": held, **hooks}))
        return {**services, "session": sessions[0]}

    async with running_sidecar(folder, redis_url=redis_url, wrap=wrap) as sidecar:
        team = KernelClient(sidecar.client, "team")
        await team.open()
        first = asyncio.create_task(team.post("execute", action="small", key="first"))
        await begun.wait()
        yield team, first, sessions[0], gate


async def asked(team: KernelClient, *asks: tuple[str, dict[str, object]]) -> list[asyncio.Task]:
    """Ask one after the other, without waiting for an answer."""
    tasks = []
    for ask, body in asks:
        tasks.append(asyncio.create_task(team.post(ask, **body)))
        await asyncio.sleep(0.05)
    return tasks


async def test_each_of_a_group_gets_its_own_answer_in_the_order_of_asking(tmp_path, redis_url):
    """The last action that is new does not fit the budget any more; bad ones are refused, and keep no other from being done."""
    async with gathered(tmp_path, redis_url) as (team, first, session, gate):
        tasks = await asked(
            team,
            *[("execute", {"action": "task", "key": f"t{n}"}) for n in range(9)],
            ("permit", {"action": "mail", "key": "mail"}),
            ("execute", {"action": "unknown", "key": "unknown"}),
            ("execute", {"action": "task", "key": "not a key\n"}),
            ("execute", {"action": "mail", "key": "t0"}),
            ("execute", {"action": "task", "key": "dear"}),
            ("execute", {"action": "task", "key": "t1"}),
        )
        before = len(session.calls)
        gate.set()
        told = [(await one).json() for one in [first, *tasks]]
        calls = [one for one in session.calls[before:] if one.startswith("StepKernel")]
        spent, trace = await team.spent(), await team.trace()

    verdicts = [one["verdict"] for one in told if "verdict" in one]
    assert calls == ["StepKernels"]
    assert [one["approved"] for one in verdicts] == [True] * 11 + [False, True]
    assert failed(verdicts[11]) == ["BUDGET_EXCEEDED"]
    assert verdicts[12]["replayed"] and verdicts[12]["sequence"] == verdicts[2]["sequence"]
    assert [one["reason"] for one in told if "reason" in one] == [
        "KERNEL_ACTION_UNKNOWN", "KERNEL_KEY_INVALID", "KERNEL_KEY_REUSED",
    ]  # fmt: skip
    assert [int(one["sequence"]) for one in verdicts[:12]] == list(range(2, 14))
    assert spent == 92 * UNIT
    assert [int(one["sequence"]) for one in trace] == list(range(1, 14)), "each is sealed"


@pytest.mark.parametrize("reason", ["SESSION_STATE_CORRUPT", "MESSAGE_TOO_LARGE"])
async def test_a_group_that_cannot_be_decided_as_one_is_asked_one_by_one(tmp_path, redis_url, reason):
    """What one asks keeps no other from its answer, whatever the group is refused for."""

    async def refused(request):
        kind = Kind.UNAVAILABLE if reason == "SESSION_STATE_CORRUPT" else Kind.EXHAUSTED
        raise Refused(kind, reason, "for one of them")

    async with gathered(tmp_path, redis_url, StepKernels=refused) as (team, first, session, gate):
        tasks = await asked(team, *[("execute", {"action": "small", "key": f"k{n}"}) for n in range(3)])
        gate.set()
        told = [(await one).json()["verdict"]["approved"] for one in [first, *tasks]]
        spent = await team.spent()

    assert "StepKernels" in session.calls
    assert told == [True] * 4
    assert spent == 4 * UNIT


async def test_a_kernel_that_was_lost_is_restored_for_the_whole_group(tmp_path, redis_url, valkey):
    """The store is emptied while a group waits: each is decided on what the chain says, and done once."""
    async with gathered(tmp_path, redis_url) as (team, first, _, gate):
        tasks = await asked(team, *[("execute", {"action": "small", "key": f"k{n}"}) for n in range(4)])
        valkey.flush()
        gate.set()
        told = [(await one).json()["verdict"]["approved"] for one in [first, *tasks]]
        spent, trace = await team.spent(), await team.trace()

    assert told == [True] * 5
    assert spent == 5 * UNIT
    assert len(trace) == 6


async def test_the_store_is_told_what_is_sealed_though_no_step_comes(tmp_path, redis_url, valkey):
    """By the next step where one comes, and by itself soon after the last one; a description in between changes nothing of that."""
    async with running_sidecar(tmp_path, redis_url=redis_url) as sidecar:
        team = KernelClient(sidecar.client, "team")
        opened = await team.open()
        for number in range(3):
            await team.execute("small", f"k{number}")
            await team.describe()
        with valkey.client() as client:
            for _ in range(500):
                fields = client.hgetall(f"il:{{{opened['kernel_id']}}}:kernel")
                if fields[b"sealed"] == fields[b"seq"]:
                    break
                await asyncio.sleep(0.02)

    assert fields[b"sealed"] == fields[b"seq"] == b"4"
    assert [name for name in fields if name.startswith(b"o:")] == []
