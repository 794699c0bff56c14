"""The Lua scripts and the pure rule are one rule for trees too: agents below agents, windows side by side."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from interlock.domain.breaker import breaker_state
from interlock.domain.budget import FULL, OPEN_AT, Micros
from interlock.domain.chain.chain_state import ChainState
from interlock.domain.dag.dag import BRANCH, FAN_IN, FAN_OUT, LINEAR, violations
from interlock.domain.ids import ContinuationId, SessionId
from interlock.domain.session.state import Committed, FailWindow, OpenedWindow, SessionState, Status
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from interlock.session.store.store import MemoryStore, Store
from tests.property.test_session_lua import answer
from tests.support.session.sessions import (
    NOW_MS,
    child_of,
    continuation_id,
    delegated,
    first_ask,
    new_state,
    pointer_ask,
    seal,
    session_id,
    settle,
    window_id,
)
from tests.support.session.standings import told

ROOTS = count(1_000_000, 1000)
PATTERNS = st.sampled_from([LINEAR] * 3 + [FAN_OUT] * 5 + [BRANCH] * 2 + [FAN_IN] * 4)
COSTS = st.sampled_from([0, 0, 0, 0, 10_000, 50_000, 150_000]) | st.integers(0, 350_000)
STATUSES = st.sampled_from(["COMPLETED"] * 6 + ["HALTED", "HELD"])
PLACES = st.integers(0, 10_000)
OPENS = st.fixed_dictionaries(
    {
        "session": PLACES,
        "pattern": PATTERNS,
        "at": PLACES,
        "others": st.lists(PLACES, max_size=4),
        "leaves": st.sampled_from([True] * 3 + [False]),
        "partial": st.booleans(),
        "twice": st.sampled_from([False] * 9 + [True]),
        "minutes": st.sampled_from([0] * 7 + [1, 2, 5]),
    }
)
COMMITS = st.fixed_dictionaries(
    {
        "charge": COSTS,
        "status": STATUSES,
        "accumulate": st.sampled_from([False] * 4 + [True]),
        "parent_charge": st.sampled_from([0] * 5 + [350_000]),
        "facts": st.lists(st.integers(0, 12), max_size=4),
        "wrong": st.sampled_from([None] * 12 + ["number", "ancestors", "lost lease", "parents", "pattern"]),
        "above": st.none() | st.tuples(st.integers(0, 1_000_000), st.integers(0, 3), st.booleans()),
    }
)
STEPS = st.one_of(
    st.tuples(st.just("open"), OPENS),
    st.tuples(st.just("round"), OPENS, COMMITS),
    st.tuples(st.just("round"), OPENS, COMMITS),
    st.tuples(st.just("round"), OPENS, COMMITS),
    st.tuples(st.just("commit"), PLACES, COMMITS),
    st.tuples(st.just("again"), PLACES),
    st.tuples(st.just("fail"), PLACES),
    st.tuples(st.just("abandon"), PLACES),
    st.tuples(st.just("child"), PLACES, st.sampled_from([1_000_000] * 4 + [300_000, 90_000]), PLACES, st.booleans()),
    st.tuples(st.just("end"), st.integers(0, 60)),
    st.tuples(st.just("round"), OPENS, COMMITS),
    st.tuples(st.just("halt"), PLACES),
    st.tuples(st.just("orphan"), PLACES, PLACES, st.sampled_from(["end", "halt"])),
)
OPENED: dict[str, Any] = {
    "session": 0, "pattern": FAN_OUT, "at": 0, "others": [], "leaves": False, "partial": False, "twice": False, "minutes": 0,
}  # fmt: skip
SETTLED: dict[str, Any] = {
    "charge": 0, "status": "COMPLETED", "accumulate": False, "parent_charge": 0, "facts": [], "wrong": None, "above": None
}  # fmt: skip
ROOTED = [("round", OPENED, SETTLED)] * 3
"""Most trees begin with a window and two that run side by side after it."""

TREES = st.fixed_dictionaries(
    {
        "max_windows": st.sampled_from([3, 5, 8]),
        "max_dag_nodes": st.sampled_from([4, 8, 30]),
        "max_fan_out": st.sampled_from([1, 2, 3, 3, 4, 4]),
        "deepest": st.integers(0, 4),
        "max_delegations": st.integers(0, 3),
        "accumulate": st.booleans(),
    }
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


class Tree:
    """One tree in both stores, asked the same; what they answer and keep has to be the same."""

    def __init__(self, redis_store: Store, limits: dict[str, Any]) -> None:
        self.stores: tuple[Store, Store] = (MemoryStore(), redis_store)
        self.first = next(ROOTS)
        self.root = session_id(self.first)
        self.limits = limits
        self.sessions: list[SessionId] = [self.root]
        self.opened: dict[int, OpenedWindow] = {}
        self.asked: list[Any] = []
        self.windows = count(1)
        self.seen = Counter[str]()

    async def both(self, method: str, *arguments: Any) -> Any:
        answers = [await answer(getattr(store, method)(*arguments)) for store in self.stores]
        assert answers[0] == answers[1], (method, arguments)
        told = answers[0][1] if isinstance(answers[0], tuple) else "done"
        event(f"{method}: {told}")
        if method == "open" and told == "done":
            event(f"opened: {arguments[0].pattern}")
        return answers[0]

    async def state(self, place: int) -> SessionState:
        session = self.sessions[place % len(self.sessions)]
        standings = [await told(store, self.root, session) for store in self.stores]
        assert standings[0] == standings[1]
        return await self.both("read", self.root, session)

    async def states(self) -> dict[SessionId, SessionState]:
        return {session: await self.both("read", self.root, session) for session in self.sessions}

    async def step(self, name: str, *given: Any) -> None:
        await getattr(self, name)(*given)

    async def start(self) -> None:
        await self.both("start", new_state(self.first, **self.limits))

    async def open(self, given: dict[str, Any]) -> int:
        state, n = await self.state(given["session"]), next(self.windows)
        pointed = [node for node in state.nodes if node.continuation_id]
        changed: dict[str, Any] = {"now_ms": NOW_MS + given["minutes"] * 60_000, "pattern": given["pattern"]}
        session = {"session_id": state.terms.session_id, "root_session_id": self.root}
        if not pointed:
            ask = first_ask(
                n, **session, **{**changed, "pattern": LINEAR if given["minutes"] < 5 else given["pattern"]}
            )
        else:
            busy = {parent for node in state.nodes if not node.failed for parent in node.parent_ids}
            ends = (
                [node for node in pointed if node.window_id not in busy]
                if given["leaves"] and given["pattern"] != BRANCH
                else pointed
            )
            ends = ends or pointed
            own = ends[given["at"] % len(ends)]
            if given["pattern"] == FAN_IN:
                chosen = {own.continuation_id, *(ends[at % len(ends)].continuation_id for at in given["others"])}
                if given["leaves"]:
                    chosen.update(node.continuation_id for node in ends)
                pointers = [ContinuationId(str(each)) for each in sorted(map(str, chosen))]
                changed["continuation_ids"] = tuple(pointers + pointers[:1] if given["twice"] else pointers)
                changed["partial"] = given["partial"]
            elif given["twice"]:
                changed["continuation_id"] = continuation_id(given["at"])
            ask = pointer_ask(n, state, own.window_id, **changed)
        got = await self.both("open", ask)
        if isinstance(got, OpenedWindow):
            check_opened(got, await self.states())
            self.opened[n] = got
        return n

    async def commit(self, place: int, given: dict[str, Any]) -> None:
        if self.opened:
            await self._commit(list(self.opened)[place % len(self.opened)], given)

    async def _commit(self, n: int, given: dict[str, Any]) -> None:
        opened = self.opened[n]
        ask = settle(
            n,
            opened,
            charge=Micros(given["charge"]),
            ceiling=FULL,
            seal=seal(n, status=given["status"]),
            accumulate=given["accumulate"],
            parent_charge=Micros(given["parent_charge"]),
            facts=tuple(f"{fact:016x}" for fact in given["facts"]),
        )
        if given["above"] is not None:
            budget, sealed, ended = given["above"]
            told = ChainState(Micros(budget), sealed, ended=ended)
            ask = replace(ask, above=(told,) * len(ask.ancestors))
        if given["wrong"] == "number":
            ask = replace(ask, window_number=ask.window_number + 1)
        elif given["wrong"] == "ancestors":
            ask = replace(ask, ancestors=(*ask.ancestors, session_id(7)))
        elif given["wrong"] == "parents":
            ask = replace(ask, parent_ids=ask.parent_ids[:-1])
        elif given["wrong"] == "pattern":
            ask = replace(ask, pattern=FAN_IN if ask.pattern != FAN_IN else BRANCH)
        elif given["wrong"] == "lost lease":
            await self.both("abandon", self.root, ask.session_id, ask.window_id)
        got = await self.both("commit", ask)
        if isinstance(got, Committed):
            check_told(got, await self.states())
        self.asked.append(ask)

    async def round(self, opening: dict[str, Any], committing: dict[str, Any]) -> None:
        n = await self.open(opening)
        if n in self.opened:
            await self._commit(n, committing)

    async def again(self, place: int) -> None:
        if self.asked:
            await self.both("commit", self.asked[place % len(self.asked)])

    async def fail(self, place: int) -> None:
        if self.opened:
            n = list(self.opened)[place % len(self.opened)]
            session = self.opened[n].terms.session_id
            await self.both("fail", FailWindow(session, self.root, window_id(n), "UPSTREAM_TIMEOUT"))

    async def abandon(self, place: int) -> None:
        if self.opened:
            n = list(self.opened)[place % len(self.opened)]
            await self.both("abandon", self.root, self.opened[n].terms.session_id, window_id(n))

    async def child(self, place: int, budget: int, grant: int, approved: bool) -> None:
        parent = await self.state(place)
        n = self.first + len(self.sessions)
        terms = {name: self.limits[name] for name in ("max_windows", "max_dag_nodes", "max_fan_out", "max_delegations")}
        child = child_of(parent, n, budget=budget, **terms)
        ask = delegated(parent, grant % 40, approval=f"approval-{grant % 3}" if approved else "")
        if grant % 23 == 0:
            ask = replace(ask, parent_policy_hash="")
        got = await self.both("start_child", child, ask)
        if isinstance(got, int):
            self.sessions.append(child.terms.session_id)

    async def halt(self, place: int) -> None:
        """Have a session of the tree spend all that it has: what is above and below it follows."""
        n = await self.open({**OPENED, "session": place, "pattern": LINEAR, "leaves": True})
        for _ in range(3 if n in self.opened else 0):
            await self._commit(n, {**SETTLED, "charge": 500_000})
            n = await self.open({**OPENED, "session": place, "pattern": LINEAR, "leaves": True})
            if n not in self.opened:
                break

    async def orphan(self, place: int, over: int, how: str) -> None:
        """Have a session end above one that has a window in flight, which is settled then, and whose next one is asked for."""
        await self.child(place, 1_000_000, next(self.windows), approved=True)
        below = [at for at, session in enumerate(self.sessions) if session != self.root]
        if not below:
            return
        at = below[place % len(below)]
        opening = {**OPENED, "session": at, "pattern": LINEAR, "leaves": True}
        n = await self.open(opening)
        above = (await self.state(at)).terms.ancestors
        top = self.sessions.index(above[over % len(above)])
        if how == "end":
            await self.both("terminate", self.root, self.sessions[top])
        else:
            await self.halt(top)
        if n in self.opened:
            await self._commit(n, SETTLED)
        await self.open(opening)

    async def end(self, place: int) -> None:
        if place < 4:
            await self.both("terminate", self.root, self.sessions[place % len(self.sessions)])


def over(states: dict[SessionId, SessionState], session: SessionId) -> list[SessionState]:
    return [states[each] for each in states[session].terms.ancestors]


def check_opened(opened: OpenedWindow, states: dict[SessionId, SessionState]) -> None:
    """Nothing is admitted below a session that is OPEN or ended, and where costs add up nothing with more than the tree has (I20)."""
    above = over(states, opened.terms.session_id)
    assert all(one.status is Status.ACTIVE and one.budget > OPEN_AT for one in above)
    if opened.terms.accumulate:
        assert opened.session_budget <= min([FULL, *(one.budget for one in above)])


def check_told(settled: Committed, states: dict[SessionId, SessionState]) -> None:
    """A settlement says whether something above it ended, and never tells more than the session, or its tree's sum, has."""
    state = states[settled.terms.session_id]
    above = over(states, settled.terms.session_id)
    ended = [one for one in above if one.status is not Status.ACTIVE or one.budget <= OPEN_AT]
    assert (settled.barrier is not None) == bool(ended)
    if settled.barrier is not None:
        assert settled.barrier.session_id == ended[0].terms.session_id
    assert settled.left <= min(state.budget, settled.outcome.session_budget)
    if settled.terms.accumulate:
        assert settled.left <= min([FULL, *(one.budget for one in above)])


def check_sum(states: dict[SessionId, SessionState], root: SessionId) -> None:
    """All that was charged anywhere in the tree is gone from the root at once (reading 13)."""
    if states[root].terms.accumulate:
        charged = sum(node.charge for state in states.values() for node in state.nodes)
        assert states[root].budget <= max(0, FULL - charged)


def check_laws(before: dict[SessionId, SessionState], after: dict[SessionId, SessionState]) -> None:
    """What holds after every step in every session of the tree (reliability.md I1, I3, I9; SPEC-012 §5.3)."""
    for session, state in after.items():
        limits, terms = state.terms.limits, state.terms
        assert violations(state.nodes) == ()
        assert len(state.nodes) + len({lease.parent_ids for lease in state.leases if lease.pattern == LINEAR}) >= 0
        assert len(state.nodes) <= limits.max_dag_nodes
        assert state.tip_number <= limits.max_windows
        assert terms.loop_depth <= terms.deepest
        assert len(state.children) <= terms.max_delegations
        for node in state.nodes:
            beside = [other for other in state.below(node.window_id) if other.pattern == FAN_OUT]
            assert len(beside) <= limits.max_fan_out
        if terms.ancestors and state.outcomes and any(not node.failed for node in state.nodes):
            assert after[terms.ancestors[0]].budget <= state.budget
        was = before.get(session)
        if was:
            assert state.budget <= was.budget
            assert state.cap <= was.cap
            assert breaker_state(state.budget) >= breaker_state(was.budget)
            assert state.status >= was.status
            assert state.nodes[: len(was.nodes)] == was.nodes
            assert state.outcomes[: len(was.outcomes)] == was.outcomes
            assert state.children[: len(was.children)] == was.children
        if breaker_state(state.budget).name == "OPEN":
            assert state.status is not Status.ACTIVE


async def drive(redis_store: Store, limits: dict[str, Any], steps: list[tuple[Any, ...]]) -> None:
    tree = Tree(redis_store, limits)
    await tree.start()
    for step in ROOTED if limits["max_fan_out"] > 1 else ():
        await tree.step(*step)
    before = await tree.states()
    for step in steps:
        await tree.step(*step)
        after = await tree.states()
        check_laws(before, after)
        check_sum(after, tree.root)
        before = after


@pytest.mark.finding("F-10", "F-11", "F-12")
@pytest.mark.req("AGT-2", "BUD-6", "BUD-7", "BUD-8", "BUD-10", "BRK-4", "DAG-2", "DAG-3", "DAG-9")
@settings(
    max_examples=200,
    deadline=None,
    phases=tuple(set(Phase) - {Phase.explain}),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(limits=TREES, steps=st.lists(STEPS, min_size=1, max_size=25))
def test_lua_and_the_rule_keep_the_same_tree(runner, redis_store, limits, steps):
    """Any order of delegations, fan-outs, fan-ins, branches, failures and charges: equal answers, equal state, and the laws hold."""
    runner.run(drive(redis_store, limits, steps))
