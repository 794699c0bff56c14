"""Every store of signals keeps their order, numbers without gaps, and its bound, fairly between senders (DEC-2)."""

from __future__ import annotations

import pytest

from interlock.decision.bus.streams import MemoryStreams, StreamEntry
from interlock.decision.bus.streams_redis import RedisStreams

pytestmark = pytest.mark.req("DEC-2")
ID, OTHER = "crp_sess_" + "1" * 32, "crp_sess_" + "2" * 32


def entry(number: int, share: str = "a", cycle: int = 0) -> StreamEntry:
    return StreamEntry(f"sig_{share}_{number}", share, "metric_plateau", cycle, f'{{"n":{number}}}')


@pytest.fixture(params=["memory", "valkey"])
async def streams(request):
    held = (
        MemoryStreams()
        if request.param == "memory"
        else RedisStreams(request.getfixturevalue("redis_url"), timeout_s=5)
    )
    yield held
    await held.close()


async def test_signals_come_back_in_order_and_page_by_page(streams):
    """Each bus has numbers of its own from 1; there is nothing before the first."""
    assert (await streams.page(ID, 0, 10)).epoch == ""
    put = await streams.put(ID, 100, [entry(number, cycle=number % 2) for number in range(5)])
    await streams.put(OTHER, 100, [entry(9)])

    first = await streams.page(ID, 0, 3)
    rest = await streams.page(ID, 3, 10)
    assert [one.number for one in (*first.rows, *rest.rows)] == [1, 2, 3, 4, 5]
    assert [(one.type, one.cycle, one.text) for one in first.rows][1] == ("metric_plateau", 1, '{"n":1}')
    assert put.epoch == first.epoch == rest.epoch != (await streams.page(OTHER, 0, 1)).epoch
    assert list(put.places) == [(number, False) for number in range(1, 6)]


async def test_a_signal_that_is_held_keeps_its_place(streams):
    """So an emitter that got no answer can ask again."""
    await streams.put(ID, 100, [entry(1), entry(2)])
    again = await streams.put(ID, 100, [entry(2), entry(3), entry(3)])

    assert list(again.places) == [(2, True), (3, False), (3, True)]
    assert len((await streams.page(ID, 0, 10)).rows) == 3


async def test_a_full_bus_lets_go_of_whoever_holds_most(streams):
    """And says how many."""
    await streams.put(ID, 8, [entry(number, "quiet") for number in range(3)])
    done = await streams.put(ID, 8, [entry(number, "loud") for number in range(20)])

    assert done.dropped == 15
    assert [one.number for one in (await streams.page(ID, 0, 50)).rows] == [1, 2, 3, 19, 20, 21, 22, 23]
