"""The limit of a call in this process: what ``asyncio.timeout`` does, for all calls with one timer (SVC-4)."""

from __future__ import annotations

import asyncio

import pytest

from interlock.runtime.rpc.deadline import TimeLimit

pytestmark = pytest.mark.req("SVC-4")

SHORT, LONG = 0.02, 3600.0


async def ends(seconds: float) -> str:
    """How a block ends that would wait for ever; one whose limit nobody watches is not expired when the test ends it."""
    try:
        async with asyncio.timeout(5):
            with TimeLimit(seconds) as limit:
                await asyncio.Event().wait()
    except TimeoutError:
        return f"expired {limit.expired}"
    return "left"


async def test_a_block_that_waits_too_long_is_ended():
    """It raises TimeoutError, and its task can go on."""
    assert [await ends(SHORT), await ends(SHORT)] == ["expired True"] * 2
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_block_that_ends_in_time_is_left_alone():
    """Nothing of it comes later, with a limit and without one."""
    for seconds in (SHORT, None):
        with TimeLimit(seconds) as limit:
            await asyncio.sleep(0)
        await asyncio.sleep(2 * SHORT)
        assert not limit.expired


async def test_every_one_of_many_blocks_is_ended():
    """Those that began at the same time, and those that began while others were watched."""
    blocks = [asyncio.create_task(ends(SHORT)) for _ in range(50)]
    await asyncio.sleep(SHORT / 2)
    blocks += [asyncio.create_task(ends(SHORT)) for _ in range(50)]

    assert set(await asyncio.gather(*blocks)) == {"expired True"}


async def test_a_short_limit_is_watched_beside_a_long_one_that_began_before():
    """It does not wait for the timer of the long one."""
    with TimeLimit(LONG):
        assert await ends(SHORT) == "expired True"
        blocks = [asyncio.create_task(ends(seconds)) for seconds in (3 * SHORT, SHORT, 2 * SHORT)]
        assert set(await asyncio.gather(*blocks)) == {"expired True"}


async def test_a_short_limit_is_watched_after_a_long_one_that_was_left():
    """The timer that the long one leaves behind is too late for it."""
    with TimeLimit(LONG):
        await asyncio.sleep(0)

    assert await ends(SHORT) == "expired True"


async def test_a_block_within_a_block_ends_by_the_shorter_limit():
    """The outer one goes on, or ends both."""
    with TimeLimit(LONG) as outer:
        assert await ends(SHORT) == "expired True"
        assert not outer.expired
    with pytest.raises(TimeoutError), TimeLimit(SHORT) as outer:
        await ends(LONG)
    assert outer.expired


async def test_who_cancels_a_block_gets_a_cancelled_one():
    """Only the limit itself becomes a TimeoutError."""
    block = asyncio.create_task(ends(LONG))
    await asyncio.sleep(0)
    block.cancel()

    with pytest.raises(asyncio.CancelledError):
        await block


async def test_a_task_cancelled_as_its_limit_ends_stays_cancelled():
    """Whoever cancelled it is not told that it ran out of time."""
    block = asyncio.create_task(ends(0.0))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(block.cancel)

    with pytest.raises(asyncio.CancelledError):
        await block


async def test_an_error_of_the_block_comes_out_as_it_is():
    """A limit hides nothing."""
    with pytest.raises(LookupError), TimeLimit(SHORT):
        raise LookupError


def test_each_event_loop_watches_its_own():
    """A loop that is gone takes no timer of the next one with it."""
    for _ in range(3):
        assert asyncio.run(ends(SHORT)) == "expired True"
