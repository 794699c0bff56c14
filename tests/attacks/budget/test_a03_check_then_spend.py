"""A-03: however many settle or ask at the same time, each charge counts once, and what is released was covered."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from interlock.domain.budget import OPEN_AT, Micros
from interlock.domain.dag.dag import FAN_OUT, LINEAR
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from tests.support.servers.provider import RunningProvider
from tests.support.session.sessions import HIGH, first_ask, new_state, pointer_ask, session_id, settle, window_id
from tests.support.sidecar.sidecar import running_sidecar
from tests.support.sidecar.windows import Answering, Merger, budget, dag, fan_out

SESSION = session_id(1)


@pytest.fixture
async def stores(redis_url):
    """Four clients of one store."""
    made = [RedisStore(Batcher(parse(redis_url), timeout_s=30), token_lifetime_s=3600) for _ in range(4)]
    yield made
    for store in made:
        await store.close()


async def opened_beside(stores, count: int, **terms):
    """Open so many windows side by side, all from a session that is still whole."""
    first = stores[0]
    await first.start(new_state(max_fan_out=300, max_dag_nodes=400, **terms))
    await first.commit(settle(1, await first.open(first_ask(1)), charge=Micros(0)))
    state = await first.read(SESSION, SESSION)
    asks = [pointer_ask(n, state, window_id(1), pattern=FAN_OUT) for n in range(2, count + 2)]
    return [await stores[n % 4].open(ask) for n, ask in enumerate(asks)]


@pytest.mark.req("BUD-8")
@pytest.mark.parametrize("count", [2, 5, 6, 64, pytest.param(256, marks=pytest.mark.long)])
async def test_a03_parallel_settles_are_each_charged_once_and_five_are_covered(stores, count):
    """Of any number of HIGH results at once five leave a budget above the halt, whichever come first; the sum is exact."""
    opened = await opened_beside(stores, count, accumulate=True)
    asks = [settle(n, one, charge=HIGH) for n, one in enumerate(opened, 2)]
    settled = await asyncio.gather(*(stores[n % 4].commit(ask) for n, ask in enumerate(asks)))
    again = await asyncio.gather(*(stores[n % 3].commit(ask) for n, ask in enumerate(asks)))
    covered = [one for one in settled if one.outcome.session_budget > OPEN_AT]
    state = await stores[0].read(SESSION, SESSION)

    assert len(covered) == min(count, 5)
    assert state.budget == max(0, 1_000_000 - 150_000 * count)
    assert sorted(one.outcome.session_budget for one in settled) == sorted(
        max(0, 1_000_000 - 150_000 * n) for n in range(1, count + 1)
    )
    assert all(one.duplicate for one in again)
    assert [one.outcome for one in again] == [one.outcome for one in settled]


@pytest.mark.req("BUD-8", "TOK-5")
@pytest.mark.parametrize("count", [2, 16, 256])
async def test_a03_of_parallel_openings_of_one_place_one_gets_it(stores, count):
    """Checking and taking a lease is one step: of all that ask with one token, one is let in."""
    await stores[0].start(new_state())
    asks = [first_ask(n, pattern=LINEAR) for n in range(1, count + 1)]
    got = await asyncio.gather(*(stores[n % 4].open(ask) for n, ask in enumerate(asks)), return_exceptions=True)
    told = Counter(getattr(one, "reason", "opened") for one in got)

    assert told == {"opened": 1, "WINDOW_IN_FLIGHT": count - 1}


@pytest.mark.req("BUD-8", "BRK-3")
async def test_a03_answers_that_were_all_admitted_are_released_only_while_the_budget_lasts(tmp_path, redis_url):
    """Eight calls pass the check before any is charged; five are given away, and three are stopped after their settlement."""
    gate = asyncio.Barrier(8)
    with RunningProvider(Answering()) as running:
        running.provider.reset()
        running.provider.by_question = dict.fromkeys([f"P{n}?" for n in range(8)], "It is HIGH.")
        dpe = Merger()
        async with running_sidecar(
            tmp_path, upstream=running.base_url, dpe=dpe, redis_url=redis_url, budget_accumulate="sum"
        ) as sidecar:
            root = await sidecar.chat("All?")
            dpe.gate = gate.wait
            parts = await fan_out(sidecar, root, *(f"P{n}?" for n in range(8)))
            left, nodes = await budget(sidecar, root), await dag(sidecar, root)

    assert Counter(part.status_code for part in parts) == {200: 5, 451: 3}
    assert left == 0
    assert sum(node.charge_micros for node in nodes.values()) == 8 * 150_000
