"""The budget of a caller: Lua and the rule are one, it never rises within a period, and it is rebuilt as it was (ATT-2)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.domain.budget import Micros
from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId
from interlock.domain.session.caller import Begun, CallerAsk, caller_id_of, rebuild
from interlock.domain.session.hold import HoldWindow
from interlock.domain.session.state import Committed, CommitWindow, OpenedWindow
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore, caller_key_of
from interlock.session.store.store import MemoryStore, Store
from tests.support.session.sessions import first_ask, new_state, next_ask, session_id, settle, window_id

RUNS = count(1)
SESSIONS = 3
PERIODS = st.integers(7, 10)
CHARGES = st.sampled_from([0, 0, 50_000, 150_000, 350_000])
HOLDS = st.sampled_from([50_000, 350_000, 500_000])
STEPS = st.one_of(
    st.tuples(st.just("start"), st.integers(0, SESSIONS - 1), PERIODS),
    st.tuples(st.just("open"), st.integers(0, SESSIONS - 1), PERIODS),
    st.tuples(st.just("open"), st.integers(0, SESSIONS - 1), PERIODS),
    st.tuples(st.just("commit"), st.integers(0, SESSIONS - 1), CHARGES),
    st.tuples(st.just("commit"), st.integers(0, SESSIONS - 1), CHARGES),
    st.tuples(st.just("turn"), st.integers(0, SESSIONS - 1), PERIODS, CHARGES),
    st.tuples(st.just("turn"), st.integers(0, SESSIONS - 1), PERIODS, CHARGES),
    st.tuples(st.just("turn"), st.integers(0, SESSIONS - 1), PERIODS, CHARGES),
    st.tuples(st.just("again"), st.integers(0, 9)),
    st.tuples(st.just("lost"), PERIODS),
    st.tuples(st.just("rebuilt"), PERIODS),
    st.tuples(st.just("hold"), st.integers(0, SESSIONS - 1), HOLDS),
    st.tuples(st.just("hold"), st.integers(0, SESSIONS - 1), HOLDS),
    st.tuples(st.just("abandon"), st.integers(0, SESSIONS - 1)),
    st.tuples(st.just("streamed"), st.integers(0, SESSIONS - 1), PERIODS, HOLDS, CHARGES),
    st.tuples(st.just("session rebuilt"), st.integers(0, SESSIONS - 1)),
)


@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def redis_store(valkey, runner):
    valkey.flush()
    store = RedisStore(Batcher(parse(valkey.url)), token_lifetime_s=3600)
    yield store
    runner.run(store.close())


class Two:
    """Both stores and the log of what was sealed."""

    def __init__(self, redis_store: RedisStore, cap: int) -> None:
        run = next(RUNS)
        self.memory = MemoryStore()
        self.redis = redis_store
        self.caller_id = caller_id_of(f"caller {run}")
        self.cap = Micros(cap)
        self.numbers = [900_000 + run * 10 + n for n in range(SESSIONS)]
        self.opened: dict[int, OpenedWindow] = {}
        self.last: dict[int, Committed] = {}
        self.sealed: list[CommitWindow] = []
        self.windows = count(run * 1000)
        self.asked: dict[int, int] = {}

    def ask(self, number: int) -> CallerAsk:
        return CallerAsk(self.caller_id, number, self.cap)

    async def both(self, method: str, *arguments: Any) -> Any:
        answers = [await answered(getattr(store, method)(*arguments)) for store in (self.memory, self.redis)]
        assert answers[0] == answers[1], (method, arguments)
        return answers[0]

    async def step(self, name: str, *given: Any) -> None:
        if name == "start":
            await self.start(*given)
        elif name == "open":
            await self.open(*given)
        elif name == "commit":
            await self.commit(*given)
        elif name == "turn":
            at, period, charge = given
            if at not in self.last:
                await self.start(at, period)
            await self.open(at, period)
            await self.commit(at, charge)
        elif name in {"hold", "abandon"} and given[0] in self.opened:
            session, window = session_id(self.numbers[given[0]]), window_id(self.asked[given[0]])
            view = self.opened[given[0]].caller
            period = view.number if view else 0
            if name == "hold":
                ask = HoldWindow(session, session, window, Micros(given[1]), Micros(1_000_000), self.caller_id, period)
                await self.both("hold", ask)
            else:
                await self.both("abandon", session, session, window, self.caller_id)
        elif name == "streamed":
            at, period, amount, charge = given
            if at not in self.last:
                await self.start(at, period)
            await self.open(at, period)
            await self.step("hold", at, amount)
            await self.commit(at, charge)
        elif name == "again" and self.sealed:
            await self.both("commit", self.sealed[given[0] % len(self.sealed)])
        elif name == "lost":
            await self.redis._batcher.command("DEL", caller_key_of(self.caller_id))
            self.memory._callers.pop(self.caller_id, None)
        elif name == "rebuilt":
            charges = [(ask.caller_period, ask.session_id, ask.charge) for ask in self.sealed if ask.charge]
            await self.both("restore_caller", self.caller_id, rebuild(given[0], self.cap, charges))
        elif name == "session rebuilt":
            number = self.numbers[given[0]]
            state = await self.both("read", new_state(number).terms.session_id, new_state(number).terms.session_id)
            if state:
                await self.both("restore", state)

    async def start(self, at: int, period: int) -> None:
        await self.both("start", new_state(self.numbers[at], caller_id=self.caller_id), self.ask(period))

    async def open(self, at: int, period: int) -> None:
        number, window = self.numbers[at], next(self.windows)
        ask = next_ask(window, self.last[at], session=number) if at in self.last else first_ask(window, session=number)
        got = await self.both("open", replace(ask, caller=self.ask(period), now_ms=ask.now_ms + window * 10**6))
        if isinstance(got, OpenedWindow):
            self.opened[at], self.asked[at] = got, window

    async def commit(self, at: int, charge: int) -> None:
        opened = self.opened.pop(at, None)
        if opened is None or opened.caller is None:
            return
        ask = settle(
            self.asked[at], opened, session=self.numbers[at], charge=Micros(charge), caller_id=self.caller_id,
            caller_period=opened.caller.number,
        )  # fmt: skip
        got = await self.both("commit", ask)
        if isinstance(got, Committed):
            self.last[at] = got
            self.sealed.append(ask)

    def exact(self, number: int) -> int:
        """Return what is left of a period by the log alone."""
        return max(0, self.cap - sum(ask.charge for ask in self.sealed if ask.caller_period == number))


async def answered(call: Any) -> Any:
    try:
        return await call
    except Refused as refused:
        return refused.reason, refused.message, refused.metadata


async def drive(redis_store: RedisStore, cap: int, steps: list[tuple[Any, ...]]) -> None:
    two = Two(redis_store, cap)
    await two.step("rebuilt", 7)
    for step in steps:
        await two.step(*step)
        state = await two.both("caller", two.caller_id)
        if state is None:
            continue
        # Whatever is lost, set back in time or told twice: the present period never goes back to an earlier one that was charged,
        # and what is left of it is what the log says, to the last millionth.
        charged = max((ask.caller_period for ask in two.sealed if ask.charge), default=0)
        assert state.now.number >= charged
        assert state.now.left == two.exact(state.now.number)


@pytest.mark.req("ATT-2")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cap=st.sampled_from([400_000, 1_000_000, 5_000_000]), steps=st.lists(STEPS, min_size=1, max_size=30))
def test_the_caller_s_budget_is_exact_whatever_is_lost_or_told_twice(runner, redis_store, cap, steps):
    """Any order of starts, turns, replays, losses and rebuilds: both stores agree, and no charge is forgotten or counted twice."""
    runner.run(drive(redis_store, cap, steps))


async def spend(store: Store, caller: CallerAsk, number: int, window: int, charge: int) -> Any:
    await store.start(new_state(number, caller_id=caller.caller_id), caller)
    opened = await store.open(replace(first_ask(window, session=number), caller=caller))
    assert opened.caller
    ask = settle(
        window, opened, session=number, charge=Micros(charge), caller_id=caller.caller_id,
        caller_period=opened.caller.number,
    )  # fmt: skip
    return ask, await store.commit(ask)


async def fresh(redis_store: RedisStore, name: str) -> tuple[CallerAsk, int]:
    caller = CallerAsk(caller_id_of(name), 20, Micros(1_000_000))
    await redis_store.restore_caller(caller.caller_id, rebuild(20, caller.cap, []))
    return caller, 990_000 + next(RUNS) * 100


@pytest.mark.req("ATT-2")
def test_starting_anew_is_no_way_out(runner, redis_store):
    """Each CRITICAL answer in a session of its own: the third leaves nothing, and no further session begins in this period."""

    async def run() -> None:
        caller, number = await fresh(redis_store, "anew")
        lefts = [(await spend(redis_store, caller, number + n, number + n, 350_000))[1].caller.left for n in range(3)]
        assert lefts == [650_000, 300_000, 0]
        with pytest.raises(Refused, match="CALLER_BUDGET_DEPLETED"):
            await redis_store.start(new_state(number + 9, caller_id=caller.caller_id), caller)
        begun = await redis_store.start(new_state(number + 9, caller_id=caller.caller_id), replace(caller, number=21))
        assert begun == Begun(Micros(1_000_000), begun.caller)
        assert begun.caller and (begun.caller.number, begun.caller.previous) == (21, 20)

    runner.run(run())


@pytest.mark.req("ATT-2", "ATT-3")
def test_a_session_begun_in_full_is_held_to_what_others_spent(runner, redis_store):
    """A conversation that was begun before the caller had spent its budget opens no window after."""

    async def run() -> None:
        caller, number = await fresh(redis_store, "held")
        await redis_store.start(new_state(number, caller_id=caller.caller_id), caller)
        for n in range(1, 4):
            await spend(redis_store, caller, number + n, number + n, 350_000)
        with pytest.raises(Refused, match="CALLER_BUDGET_DEPLETED"):
            await redis_store.open(replace(first_ask(number, session=number), caller=caller))

    runner.run(run())


@pytest.mark.req("ATT-2")
def test_a_clock_set_back_renews_nothing(runner, redis_store):
    """An earlier period is never entered again, with the store or rebuilt without it."""

    async def run() -> None:
        caller, number = await fresh(redis_store, "back")
        ask, _ = await spend(redis_store, caller, number, number, 350_000)
        back = replace(caller, number=19)
        assert (await redis_store.start(new_state(number + 1, caller_id=caller.caller_id), back)).budget == 650_000
        await redis_store._batcher.command("DEL", caller_key_of(caller.caller_id))
        charges = [(ask.caller_period, SessionId(ask.session_id), ask.charge)]
        await redis_store.restore_caller(caller.caller_id, rebuild(19, caller.cap, charges))
        assert (await redis_store.start(new_state(number + 2, caller_id=caller.caller_id), back)).budget == 650_000

    runner.run(run())


@pytest.mark.req("ATT-2")
def test_parallel_sessions_of_one_caller_are_charged_exactly(runner, redis_store):
    """Forty sessions side by side, each charged once: the sum, to the millionth; only two periods are kept."""

    async def run() -> None:
        caller, number = await fresh(redis_store, "many")
        caller = replace(caller, cap=Micros(10_000_000), number=21)
        await asyncio.gather(*(spend(redis_store, caller, number + n, number + n, 50_000) for n in range(40)))
        state = await redis_store.caller(caller.caller_id)
        assert state and state.now.left == 8_000_000
        for period in (22, 23, 24):
            await redis_store.start(
                new_state(number + 50 + period, caller_id=caller.caller_id), replace(caller, number=period)
            )
        state = await redis_store.caller(caller.caller_id)
        assert state and [period.number for period in state.periods] == [23, 24]
        kept = await redis_store._batcher.command("HKEYS", caller_key_of(caller.caller_id))
        assert len(kept) <= 7, "what is over is forgotten"

    runner.run(run())


@pytest.mark.req("ATT-2", "BUD-9")
def test_a_window_that_only_a_rebuild_settles_is_charged_too(runner, redis_store):
    """It was sealed, and its session was lost before it was settled: the rebuilt session brings its charge to the caller."""

    async def run() -> None:
        caller, number = await fresh(redis_store, "crash")
        memory = MemoryStore()
        await memory.restore_caller(caller.caller_id, rebuild(20, caller.cap, []))
        await spend(memory, caller, number, number, 350_000)
        state = await memory.read(new_state(number).terms.session_id, new_state(number).terms.session_id)
        assert state
        for _ in range(2):
            await redis_store.restore(state)
            held = await redis_store.caller(caller.caller_id)
            assert held and held.now.left == 650_000

    runner.run(run())
