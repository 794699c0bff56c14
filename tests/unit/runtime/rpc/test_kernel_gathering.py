"""Steps of one kernel that wait go out together, in order; one that nobody waits for goes at once."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest

from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused, conflict
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.kernels.gathering import MOST_TOGETHER, Gathering

pytestmark = pytest.mark.req("KRN-2")


class Store:
    """Decides groups when it is let, and keeps them."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.gate = asyncio.Event()
        self.failure: BaseException | None = None

    async def decide(self, _kernel, steps, _deadline, passing):
        self.groups.append([one.execute.key for one in steps])
        await self.gate.wait()
        if self.failure and len(steps) > 1:
            raise self.failure
        passing()
        return [
            conflict("OWN_REFUSAL", "its own") if one.execute.key == "bad"
            else session_pb2.StepKernelResponse(kernel_id=one.execute.key)
            for one in steps
        ]  # fmt: skip


def step(key: str) -> session_pb2.StepKernelRequest:
    asked = session_pb2.StepKernelRequest()
    asked.execute.key = key
    return asked


async def ask(gathering: Gathering, key: str, *, kernel: str = "one", seconds: float = 5) -> str:
    try:
        return (await gathering.step(kernel, step(key), Deadline(seconds))).kernel_id
    except Refused as refused:
        return refused.reason


async def asked(gathering: Gathering, *keys: str) -> list[asyncio.Task[str]]:
    tasks = [asyncio.create_task(ask(gathering, key)) for key in keys]
    await asyncio.sleep(0)
    return tasks


async def test_what_comes_while_one_is_out_goes_together_in_order():
    """Each gets the answer of its own step; another kernel does not wait."""
    store = Store()
    gathering = Gathering(store.decide)
    tasks = await asked(gathering, "a", "b", "bad", "c")
    other = asyncio.create_task(ask(gathering, "z", kernel="two"))
    await asyncio.sleep(0)
    store.gate.set()

    assert await asyncio.gather(*tasks, other) == ["a", "b", "OWN_REFUSAL", "c", "z"]
    assert store.groups == [["a"], ["z"], ["b", "bad", "c"]]
    assert await ask(gathering, "later") == "later"
    assert store.groups[-1] == ["later"]


async def test_a_group_is_part_of_the_trace_of_its_first_call():
    """Not of the trace of whoever went before it: under load that would be one trace for ever."""
    caller: ContextVar[str] = ContextVar("caller", default="")
    seen = []

    async def decide(_kernel, steps, _deadline, passing):
        seen.append((caller.get(), len(steps)))
        await asyncio.sleep(0)
        passing()
        return [session_pb2.StepKernelResponse(kernel_id=one.execute.key) for one in steps]

    gathering = Gathering(decide)

    async def one(key: str) -> None:
        caller.set(key)
        await ask(gathering, key)

    await asyncio.gather(*(one(key) for key in "abc"))

    assert seen == [("a", 1), ("b", 2)]


async def test_a_group_has_a_limit():
    """The rest is the next group."""
    store = Store()
    gathering = Gathering(store.decide)
    keys = [f"k{number}" for number in range(MOST_TOGETHER + 6)]
    tasks = await asked(gathering, "first", *keys)
    store.gate.set()

    assert await asyncio.gather(*tasks) == ["first", *keys]
    assert [len(one) for one in store.groups] == [1, MOST_TOGETHER, 6]


async def test_who_left_or_has_no_time_is_not_asked_for():
    """Nothing was asked of the kernel for them yet."""
    store = Store()
    gathering = Gathering(store.decide)
    first, left, stays = await asked(gathering, "first", "left", "stays")
    late = asyncio.create_task(ask(gathering, "late", seconds=0))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    store.gate.set()

    assert await asyncio.gather(first, stays, late) == ["first", "stays", "DEADLINE_EXCEEDED"]
    assert store.groups == [["first"], ["stays"]]


async def test_a_group_that_fails_fails_for_each_and_the_next_one_goes():
    """A refusal of all is each one's refusal; a defect too."""
    store = Store()
    gathering = Gathering(store.decide)
    tasks = await asked(gathering, "first", "a", "b")
    store.failure = conflict("ALL", "all of them")
    store.gate.set()
    told = await asyncio.gather(*tasks)
    store.failure = RuntimeError("a defect")
    store.gate.clear()
    tasks = await asked(gathering, "first", "a", "b")
    store.gate.set()
    failed = await asyncio.gather(*tasks, return_exceptions=True)

    assert told == ["first", "ALL", "ALL"]
    assert failed[0] == "first" and all(isinstance(one, RuntimeError) for one in failed[1:])
    assert await ask(gathering, "later") == "later"
