"""One suite over both stores of sessions: how many are open."""

from __future__ import annotations

import asyncio
import math

import pytest

from interlock.session import metrics
from interlock.session.counting import OpenSessions
from interlock.session.store import census
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore, key_of
from interlock.session.store.store import MemoryStore
from tests.support.session.sessions import CRITICAL, first_ask, new_state, session_id, settle

pytestmark = pytest.mark.req("OBS-2")

NOW, ALWAYS = {"within_s": -1.0, "pause_s": 0.0}, {"within_s": 3600.0, "pause_s": 0.0}


def redis_store(url: str) -> RedisStore:
    return RedisStore(Batcher(parse(url)), token_lifetime_s=3600)


@pytest.fixture(params=["memory", "redis"])
async def store(request):
    if request.param == "memory":
        yield MemoryStore()
        return
    made = redis_store(request.getfixturevalue("redis_url"))
    await made._batcher.command("FLUSHALL")
    yield made
    await made.close()


async def test_sessions_that_were_not_ended_are_open(store):
    """One that its client ended is not, nor one that spent its budget."""
    for number in range(1, 6):
        await store.start(new_state(number, budget=440_000 if number == 2 else 1_000_000))
    await store.terminate(session_id(1), session_id(1))
    opened = await store.open(first_ask(9, session=2))
    await store.commit(settle(9, opened, session=2, charge=CRITICAL))
    found = await store.census.counted(**NOW)

    assert found is not None
    assert found.open == 3


async def test_a_walk_of_many_steps_counts_each_session_once(redis_url, monkeypatch):
    """Keys that are no sessions are none, though they look like it; what is lost is not counted."""
    monkeypatch.setattr(census, "AT_A_TIME", 10)
    store = redis_store(redis_url)
    await store._batcher.command("FLUSHALL")
    for number in range(1, 301):
        await store.start(new_state(number))
    await store._batcher.command("HSET", "il:{crp_sess_x}:s:crp_sess_y", "status", "1")
    all_of_them = await store.census.counted(**NOW)
    await store._batcher.command("DEL", key_of(session_id(7), session_id(7)))
    fewer = await store.census.counted(**NOW)
    await store.close()

    assert (all_of_them.open, fewer.open) == (300, 299)


async def test_one_process_counts_for_all_and_for_those_that_start_later(redis_url):
    """A second process reads what the first one found; while a third one walks, the last count is told."""
    first, second = redis_store(redis_url), redis_store(redis_url)
    await first._batcher.command("FLUSHALL")
    await first.start(new_state(1))
    nothing_yet = await _while_another_walks(second, **ALWAYS)
    counted = await first.census.counted(**NOW)
    await first.start(new_state(2))
    read = await second.census.counted(**ALWAYS)
    meanwhile = await _while_another_walks(second, **NOW)
    again = await second.census.counted(**NOW)
    await asyncio.gather(first.close(), second.close())

    assert nothing_yet is None
    assert counted == read == meanwhile
    assert (counted.open, again.open) == (1, 2)


async def _while_another_walks(store, **asked):
    await store._batcher.command("SET", census.TURN, "1")
    try:
        return await store.census.counted(**asked)
    finally:
        await store._batcher.command("DEL", census.TURN)


async def test_the_gauge_follows_the_store(store):
    """It says what was counted, and when; before the first count it says that nothing is known."""
    await store.start(new_state(1))
    metrics.OPEN_SESSIONS.set(math.nan)
    counting = OpenSessions(store.census, every_s=0.01, pause_s=0.0)
    try:
        async with asyncio.timeout(10):
            while metrics.OPEN_SESSIONS._value.get() != 1.0:
                await asyncio.sleep(0.01)
            await store.start(new_state(2))
            while metrics.OPEN_SESSIONS._value.get() != 2.0:
                await asyncio.sleep(0.01)
    finally:
        await counting.close()

    assert metrics.COUNTED_AT._value.get() > 1_600_000_000
