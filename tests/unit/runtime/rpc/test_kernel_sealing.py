"""What is sealed is told to the store by the next step or soon after, and by nobody once the process ends."""

from __future__ import annotations

import asyncio

import pytest

from interlock.api.session.v1 import session_pb2
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.kernels import sealing
from interlock.runtime.rpc.kernels.sealing import Sealing

KERNEL = f"crp_sess_{'0' * 32}"
RECORD = session_pb2.KernelRecord(sequence=1, link="a" * 40)


class Log:
    """Takes what is sealed."""

    async def seal_kernel(self, _kernel_id, _records, _deadline) -> None:
        return None


class Store:
    """Hangs while it is told what is sealed."""

    timeout_s = 30.0

    def __init__(self) -> None:
        self.told: list[int] = []

    async def acknowledge_kernel(self, request, _deadline) -> None:
        self.told.append(request.sequence)
        await asyncio.Event().wait()


def _others() -> set[asyncio.Task]:
    return asyncio.all_tasks() - {asyncio.current_task()}


@pytest.mark.req("KRN-2")
async def test_nothing_goes_on_behind_a_closed_kernel(monkeypatch):
    """Neither a call that is out, nor the timer of the next one."""
    monkeypatch.setattr(sealing, "TOLD_AFTER_S", 0.01)
    store = Store()
    sealed = Sealing(Log(), store)
    before = _others()
    await sealed.seal(KERNEL, [RECORD], Deadline(5))
    while not store.told:
        await asyncio.sleep(0.005)
    monkeypatch.setattr(sealing, "TOLD_AFTER_S", 60.0)
    await sealed.seal(KERNEL, [session_pb2.KernelRecord(sequence=2, link="b" * 40)], Deadline(5))

    await sealed.close()

    assert _others() == before
    assert store.told == [1]
    assert not sealed._telling


@pytest.mark.req("KRN-2")
async def test_a_seal_that_ends_after_the_close_leaves_no_timer():
    """It would tell the store from a process that ends."""
    may_end = asyncio.Event()

    class SlowLog:
        async def seal_kernel(self, _kernel_id, _records, _deadline) -> None:
            await may_end.wait()

    sealed = Sealing(SlowLog(), Store())
    under_way = asyncio.create_task(sealed.seal(KERNEL, [RECORD], Deadline(5)))
    await asyncio.sleep(0)
    await sealed.close()
    may_end.set()
    await under_way

    assert not sealed._telling
