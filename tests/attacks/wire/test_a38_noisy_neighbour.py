"""A-38: a caller that floods takes nothing from another: neither its call in flight, nor its place at the judge, nor its turn there."""

from __future__ import annotations

import asyncio
import threading

import pytest

from interlock.dpe.wiring import open_service
from interlock.runtime.settings.model import Settings
from tests.support.sidecar.sidecar import RunningSidecar, reason_of, running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("SVC-3")

LOUD, QUIET = {"authorization": "Bearer loud-key"}, {"authorization": "Bearer quiet-key"}
FLOOD = 40
ANSWERS = [
    " ".join(
        f"Tower {number} in Paris was built by Gustave Eiffel in {1100 + 16 * answer + number}." for number in range(16)
    )
    for answer in range(60)
]
"""Each of other words: what was judged before is remembered."""


async def flood(sidecar: RunningSidecar) -> list[asyncio.Task]:
    """Send many calls of the loud key at once, and return them when one is shed: the others wait at the provider, or will be shed."""
    calls = [asyncio.create_task(sidecar.chat(headers=LOUD)) for _ in range(FLOOD)]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    return calls


def asked_by(provider) -> list[str]:
    """The keys with which the provider was asked."""
    return [dict(one.headers)["authorization"] for one in list(provider.received)]


async def test_a38_a_flood_leaves_room_for_a_call_in_flight(tmp_path, upstream, provider):
    """The bound of the process is reached by one key: its further calls are shed, and another's are served."""
    go = threading.Event()
    provider.waits_for(go)
    async with running_sidecar(tmp_path, upstream=upstream, max_in_flight=8) as sidecar:
        loud = await flood(sidecar)
        quiet = [asyncio.create_task(sidecar.chat(headers=QUIET)) for _ in range(3)]
        while len(provider.received) < 8 + len(quiet) and not all(call.done() for call in quiet):
            await asyncio.sleep(0.01)
        again = await sidecar.chat(headers=LOUD)
        go.set()
        served, of_loud = await asyncio.gather(*quiet), await asyncio.gather(*loud)

    assert [one.status_code for one in served] == [200] * 3
    assert sorted(one.status_code for one in of_loud) == [200] * 8 + [429] * (FLOOD - 8)
    assert (again.status_code, reason_of(again)) == (429, "OVERLOADED")


async def test_a38_a_flood_leaves_a_place_and_a_turn_at_the_judge(tmp_path, upstream, provider):
    """Over the real models: the loud key has every place. The quiet one gets one, and its answer comes before nearly all others."""
    go, ended = threading.Event(), []
    provider.waits_for(go, *ANSWERS)
    dpe = await open_service(Settings())
    async with running_sidecar(tmp_path, upstream=upstream, dpe=dpe) as sidecar:
        loud = await flood(sidecar)
        quiet = asyncio.create_task(sidecar.chat(headers=QUIET))
        for call in [*loud, quiet]:
            call.add_done_callback(ended.append)
        while QUIET["authorization"] not in asked_by(provider) and not quiet.done():
            await asyncio.sleep(0.01)
        go.set()
        answer, others = await quiet, await asyncio.gather(*loud)
    await dpe.close()
    judged = [call for call in ended if call.result().status_code == 200]

    assert answer.status_code == 200
    assert {one.status_code for one in others} == {200, 429}
    assert len(judged) >= 7
    assert judged.index(quiet) <= 2
