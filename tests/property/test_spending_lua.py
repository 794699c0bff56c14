"""What model calls cost: the Lua scripts and the pure rule are one rule, up a tree of agents, and no limit is ever overspent."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId
from interlock.domain.session.restore import SessionBegan as Began
from interlock.domain.session.restore import SpentApart, merged, replayed
from interlock.domain.session.spending import (
    NOTHING,
    UNLIMITED,
    Amount,
    Reservation,
    Spending,
    SpendingLimits,
    SpendWindow,
    merged_spending,
)
from interlock.domain.session.state import OpenedWindow, SessionState
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from interlock.session.store.store import MemoryStore, Store
from tests.support.session.sessions import child_of, delegated, first_ask, new_state, session_id, settle, window_id

TREES = count(9_000_000, 10)
AGENTS = 4
"""A root, a child, a grandchild, and a second child of the root."""
PARENTS = (None, 0, 1, 0)

LIMIT = st.none() | st.sampled_from([0, 50, 100, 200])
LIMITS = st.builds(SpendingLimits, LIMIT, LIMIT)
AMOUNTS = st.builds(Amount, st.integers(0, 60), st.integers(0, 60))
AGENT = st.integers(0, AGENTS - 1)
WINDOW = st.integers(1, 6)
STEPS = st.one_of(
    st.tuples(st.just("reserve"), AGENT, WINDOW, AMOUNTS, st.just(SpendingLimits()) | LIMITS),
    st.tuples(st.just("reserve"), AGENT, WINDOW, AMOUNTS, st.just(SpendingLimits())),
    st.tuples(st.just("charge"), AGENT, WINDOW, AMOUNTS),
    st.tuples(st.just("settle"), AGENT, AMOUNTS),
    st.tuples(st.just("open"), AGENT),
    st.tuples(st.just("restore"), AGENT),
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


async def _answer(call: Any) -> Any:
    try:
        return await call
    except Refused as refused:
        return refused.kind, refused.reason, refused.metadata


class Tree:
    """One tree of agents in both stores."""

    def __init__(self, redis_store: Store, limits: list[SpendingLimits]) -> None:
        self.stores: tuple[Store, Store] = (MemoryStore(), redis_store)
        first = next(TREES)
        self.states: list[SessionState] = []
        for number, parent in enumerate(PARENTS):
            spending = {"spending": limits[number]}
            made = (
                new_state(first, max_windows=50, **spending)
                if parent is None
                else child_of(self.states[parent], first + number, max_windows=50, **spending)
            )
            self.states.append(made)
        self.opened: dict[int, OpenedWindow] = {}
        self.windows = count(100)

    async def both(self, method: str, *arguments: Any) -> Any:
        answers = [await _answer(getattr(store, method)(*arguments)) for store in self.stores]
        assert answers[0] == answers[1], (method, arguments)
        return answers[0]

    async def start(self) -> None:
        await self.both("start", self.states[0])
        for number, parent in enumerate(PARENTS):
            if parent is not None:
                asked = delegated(self.states[parent], number)
                for store in self.stores:
                    await store.start_child(self.states[number], asked)

    async def all(self) -> dict[SessionId, SessionState]:
        root = self.states[0].terms.session_id
        found = [await self.both("read", root, one.terms.session_id) for one in self.states]
        return {one.terms.session_id: one for one in found}

    def ask(self, agent: int, window: int, amount: Amount, **more: Any) -> SpendWindow:
        terms = self.states[agent].terms
        return SpendWindow(
            terms.session_id, terms.root_session_id, window_id(1000 * agent + window), amount, terms.ancestors, **more
        )

    async def step(self, name: str, agent: int, *told: Any) -> None:
        terms = self.states[agent].terms
        if name == "reserve":
            got = await self.both("spend", self.ask(agent, told[0], told[1], limits=told[2]))
            event(f"reserve: {got[1] if isinstance(got, tuple) else 'reserved'}")
        elif name == "charge":
            await self.both("spend", self.ask(agent, told[0], told[1], final=True))
        elif name == "open" and agent not in self.opened:
            number = next(self.windows)
            opening = first_ask(number, session_id=terms.session_id, root_session_id=terms.root_session_id)
            state = (await self.all())[terms.session_id]
            if not state.nodes:
                got = await self.both("open", opening)
                if isinstance(got, OpenedWindow):
                    self.opened[agent] = got
                    event(f"open: limited {got.limited}")
        elif name == "settle" and (opened := self.opened.get(agent)):
            number = 100 + list(self.opened).index(agent)
            await self.both("commit", settle(number, opened, spent=told[0], charge=0))
        elif name == "restore":
            state = (await self.all())[terms.session_id]
            await self.both("restore", state)


async def _drive(redis_store: Store, limits: list[SpendingLimits], steps: list[tuple[Any, ...]]) -> None:
    tree = Tree(redis_store, limits)
    await tree.start()
    before = await tree.all()
    for step in steps:
        await tree.step(*step)
        after = await tree.all()
        _check(before, after, step)
        before = after


def _check(before: dict[SessionId, SessionState], after: dict[SessionId, SessionState], step: tuple[Any, ...]) -> None:
    """No limit is overspent by reservations, what is charged never falls, and every session holds all that is below it."""
    for session, state in after.items():
        spending, was = state.spending, before[session].spending
        told, old = dict(spending.charged), dict(was.charged)
        assert all((told[each] | amount) == told[each] for each, amount in old.items())
        below = [one for one in after.values() if session in (one.terms.session_id, *one.terms.ancestors)]
        for one in below:
            own = dict(one.spending.charged).get(one.terms.session_id, NOTHING)
            assert told.get(one.terms.session_id, NOTHING) == own
        if step[0] == "reserve" and spending != was:
            gone, limits = spending.total + spending.outstanding, spending.limits
            already = was.total + was.outstanding  # a charge may exceed a limit; what is free may still be reserved
            assert limits.tokens is None or gone.tokens <= max(limits.tokens, already.tokens)
            assert limits.usd is None or gone.usd <= max(limits.usd, already.usd)


@pytest.mark.req("KRN-9", "KRN-2")
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limits=st.lists(LIMITS, min_size=AGENTS, max_size=AGENTS), steps=st.lists(STEPS, min_size=1, max_size=20))
@example(
    limits=[UNLIMITED, SpendingLimits(None, 0), UNLIMITED, UNLIMITED],
    steps=[("open", 1), ("settle", 1, Amount(0, 1)), ("reserve", 1, 1, NOTHING, UNLIMITED)],
)
def test_lua_and_the_rule_spend_alike(runner, redis_store, limits, steps):
    """Any order of reservations, charges and settlements of a tree: equal answers, equal state, and the laws hold."""
    runner.run(_drive(redis_store, limits, steps))


SPENDINGS = st.builds(
    Spending,
    limits=LIMITS,
    charged=st.dictionaries(st.sampled_from([session_id(1), session_id(2)]), AMOUNTS).map(
        lambda found: tuple(sorted(found.items()))
    ),
)


@pytest.mark.req("KRN-12")
@given(one=SPENDINGS, other=SPENDINGS)
def test_merging_never_loses_a_charge_and_never_raises_a_limit(one, other):
    """What a store holds and what the chain says come to the same in any order, and twice as once."""
    joined = merged_spending(one, other)
    assert merged_spending(other, one) == joined
    assert merged_spending(joined, other) == joined
    for each in (one, other):
        assert (joined.total | each.total) == joined.total
        assert joined.limits.tightened(each.limits) == joined.limits


@pytest.mark.req("KRN-12")
@given(one=AMOUNTS, other=AMOUNTS)
def test_a_store_that_was_set_back_holds_the_higher_reservation(one, other):
    """It may know of the first model call of a window alone; the chain knows of the second, or is a little behind."""
    held, told = (Spending(reserved=(Reservation(window_id(1), each),)) for each in (one, other))
    assert merged_spending(held, told).reserved == (Reservation(window_id(1), one | other),)
    assert merged_spending(held, replace(told, closed=frozenset({window_id(1)}))).reserved == ()


@pytest.mark.req("KRN-12")
def test_a_lost_store_gets_reservations_and_charges_back_from_the_chain():
    """A reservation without an end stays; what was sealed or charged takes its place, in every session above too."""
    root, amount = new_state(1, spending=SpendingLimits(usd=100)), Amount(7, 30)
    child = child_of(root, 2)
    steps = [
        Began(root.terms, root.policy, root.budget),
        Began(child.terms, child.policy, child.budget, grant_id="g"),
        *(SpentApart(session_id(2), window_id(n), amount, SpendingLimits(), final=False) for n in (1, 2, 3)),
        SpentApart(session_id(2), window_id(2), Amount(1, 2), SpendingLimits(), final=True),
        settle(3, session=2, root_session_id=session_id(1), ancestors=(session_id(1),), spent=Amount(5, 20)),
    ]
    states = replayed(session_id(1), steps)
    for session in (session_id(1), session_id(2)):
        spending = merged(None, states[session]).spending
        assert dict(spending.charged) == {session_id(2): Amount(6, 22)}
        assert [one.window_id for one in spending.reserved] == [window_id(1)]
    stale = replace(states[session_id(1)], spending=replace(states[session_id(1)].spending, charged=()))
    assert merged(stale, states[session_id(1)]).spending.total == Amount(6, 22)
