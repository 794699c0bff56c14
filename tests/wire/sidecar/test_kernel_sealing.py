"""Calls that rest on records which another call is sealing: they wait for it, and are decided again where it fails (KRN-2)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from interlock.domain.errors import invalid
from tests.support.kernels import UNIT, KernelClient
from tests.support.sidecar.sidecar import Hooked, running_sidecar

pytestmark = pytest.mark.req("KRN-2")


@asynccontextmanager
async def held_at_the_seal(folder, redis_url):
    """A kernel whose first action is decided, and held where it is sealed; yield it, the call, and what lets its seal be refused."""
    begun, gate = asyncio.Event(), asyncio.Event()

    async def once(request):
        if request.records[-1].type == "KERNEL_EXECUTED" and not gate.is_set():
            begun.set()
            await gate.wait()
            raise invalid("REFUSED_BY_TEST", "not this time")

    def wrap(services):
        return {**services, "audit": Hooked(services["audit"], SealKernel=once)}

    async with running_sidecar(folder, redis_url=redis_url, wrap=wrap) as sidecar:
        team = KernelClient(sidecar.client, "team")
        await team.open()
        first = asyncio.create_task(team.post("execute", action="task", key="one"))
        await begun.wait()
        yield team, first, gate


async def types(team: KernelClient) -> list[str]:
    return [one["type"] for one in await team.trace()]


async def test_what_rests_on_a_record_waits_for_its_seal_and_is_asked_again_where_that_fails(tmp_path, redis_url):
    """A dry run sees the action of another call: it is told once that is sealed, though the other call was refused meanwhile."""
    async with held_at_the_seal(tmp_path, redis_url) as (team, first, gate):
        asked = asyncio.create_task(team.post("evaluate", action="task"))
        await asyncio.sleep(0.2)
        assert not asked.done(), "what it rests on is not sealed"
        gate.set()
        told, refused = (await asked).json(), (await first).json()
        sealed = await types(team)
        again = await team.execute("task", "one")

    assert refused["reason"] == "REFUSED_BY_TEST"
    assert told["state_after"]["active"] == {"number_micros": str(2 * UNIT)}
    assert sealed == ["KERNEL_OPENED", "KERNEL_EXECUTED"]
    assert again["verdict"]["replayed"], "it is done, once"


async def test_an_action_behind_one_whose_seal_failed_is_sealed_after_it(tmp_path, redis_url):
    """Its own record does not follow what the chain has: both are sent again, and both are done once."""
    async with held_at_the_seal(tmp_path, redis_url) as (team, first, gate):
        others = [asyncio.create_task(team.post("execute", action="task", key=key)) for key in ("two", "three")]
        await asyncio.sleep(0.2)
        gate.set()
        told = [(await one).json()["verdict"]["approved"] for one in others]
        await first
        await team.execute("task", "one")
        sealed = await types(team)

    assert told == [True, True]
    assert sealed == ["KERNEL_OPENED", *["KERNEL_EXECUTED"] * 3]


async def test_an_action_whose_callers_all_left_is_sealed_by_the_next_call(tmp_path, redis_url):
    """A caller hangs up while its action is being sealed: whoever rests on it seals it."""
    async with held_at_the_seal(tmp_path, redis_url) as (team, first, gate):
        asked = asyncio.create_task(team.post("evaluate", action="task"))
        await asyncio.sleep(0.2)
        first.cancel()
        gate.set()
        told = (await asked).json()
        sealed = await types(team)

    assert told["state_after"]["active"] == {"number_micros": str(2 * UNIT)}
    assert sealed == ["KERNEL_OPENED", "KERNEL_EXECUTED"]
