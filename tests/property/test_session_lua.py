"""The Lua scripts and the pure rule are one rule: the same random commands, the same answers, the same state."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from interlock.domain.breaker import breaker_state
from interlock.domain.budget import Micros
from interlock.domain.chain.chain_state import ChainState
from interlock.domain.dag.dag import BRANCH, violations
from interlock.domain.errors import Refused
from interlock.domain.ids import WindowId
from interlock.domain.session.hold import HoldWindow
from interlock.domain.session.renewing import RenewLease
from interlock.domain.session.state import Committed, SessionState
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from interlock.session.store.store import MemoryStore, Store
from tests.support.session.sessions import (
    NOW_MS,
    continuation_id,
    digest,
    first_ask,
    new_state,
    next_ask,
    policy,
    seal,
    session_id,
    settle,
    window_id,
)
from tests.support.session.standings import told

SESSIONS = count(1)

FRESH = 20
WINDOWS = st.integers(1, 12)
ANY_WINDOW = WINDOWS | st.integers(FRESH, FRESH + 4)
COSTS = st.sampled_from([0, 0, 0, 10_000, 50_000, 50_000, 150_000]) | st.integers(0, 500_000)
BUDGETS = st.sampled_from([0, 100_000, 100_001, 500_000]) | st.integers(0, 1_000_000)
CLOCK = st.integers(0, 5).map(lambda minutes: NOW_MS + minutes * 30_000)


def seldom(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly ``None``: what ends a session, used often, would leave nothing to see."""
    return st.integers(0, 9).flatmap(lambda n: values if n == 9 else st.none())


AMOUNTS = st.sampled_from([350_000, 350_000, 1, 150_000]) | st.integers(1, 500_000)

OPENS = st.fixed_dictionaries(
    {
        "window": WINDOWS,
        "token": st.integers(-4, 0),  # 0: the latest
        "now_ms": CLOCK,
        "lease_ms": st.integers(1, 100_000),
        "pointer": seldom(ANY_WINDOW),
        "wrong": seldom(st.sampled_from(["tip", "policy", "number", "own"])),
        "token_budget": seldom(BUDGETS),
    }
)
COMMITS = st.fixed_dictionaries(
    {
        "window": WINDOWS,
        "where": st.sampled_from(["opened", "opened", "tip", "random"]),
        "parent": st.just(0) | ANY_WINDOW,
        "number": st.integers(0, 7),
        "charge": COSTS,
        "ceiling": seldom(BUDGETS),
        "policy": seldom(st.sampled_from(["halt-on HIGH", "halt-on MEDIUM"])),
        "hmac": seldom(st.sampled_from(["parent's", "none"])),
        "chain": seldom(st.builds(ChainState, BUDGETS | st.just(1_000_000), st.integers(0, 9))),
    }
)
STEPS = st.one_of(
    st.tuples(st.just("open"), OPENS),
    st.tuples(st.just("commit"), COMMITS),
    st.tuples(st.just("round"), OPENS, COMMITS),
    st.tuples(st.just("round"), OPENS, COMMITS),
    st.tuples(st.just("again"), st.integers(-3, -1)),
    st.tuples(st.just("abandon"), WINDOWS),
    st.tuples(st.just("hold"), WINDOWS, AMOUNTS, BUDGETS | st.just(1_000_000)),
    st.tuples(st.just("renew"), WINDOWS, CLOCK),
    st.tuples(st.just("flown"), OPENS, AMOUNTS),
    st.tuples(st.just("overtaken"), OPENS, AMOUNTS, COMMITS),
    st.tuples(st.just("beside"), COSTS),
    st.tuples(st.sampled_from(["start", "read", "read", "read", "read", "read", "read", "terminate"])),
)
LIMITS = st.tuples(
    st.integers(1, 8), st.integers(1, 8), st.sampled_from([1_000_000] * 4 + [520_000, 300_000]) | BUDGETS
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


class Pair:
    """Both stores, asked the same; what they answer has to be the same."""

    def __init__(self, redis_store: Store, limits: tuple[int, int, int]) -> None:
        self.stores: tuple[Store, Store] = (MemoryStore(), redis_store)
        self.n = next(SESSIONS)
        self.id = session_id(self.n)
        self.first = new_state(self.n, max_windows=limits[0], max_dag_nodes=limits[1], budget=limits[2])
        self.committed: list[Committed] = []
        self.asked: list[Any] = []
        self.opened: dict[int, Any] = {}

    async def both(self, method: str, *arguments: Any) -> Any:
        answers = [await answer(getattr(store, method)(*arguments)) for store in self.stores]
        assert answers[0] == answers[1], (method, arguments)
        return answers[0]

    async def state(self) -> SessionState | None:
        standings = [await told(store, self.id, self.id) for store in self.stores]
        assert standings[0] == standings[1]
        return await self.both("read", self.id, self.id)

    async def step(self, name: str, *given: Any) -> None:
        if name == "open":
            await self.open(given[0])
        elif name == "commit":
            await self.commit(given[0])
        elif name == "round":  # open and settle at once, with the latest token: how far a session gets
            now: dict[str, Any] = {
                "token": 0,
                "pointer": None,
                "wrong": None,
                "token_budget": None,
                "now_ms": NOW_MS + 10**7,
            }
            now["window"] = FRESH + len(self.asked)
            await self.open({**given[0], **now})
            await self.commit({**given[1], "window": now["window"], "where": "opened"})
        elif name == "again" and self.asked:
            got = await self.both("commit", self.asked[given[0] % len(self.asked)])
            event(f"again: {got[1] if isinstance(got, tuple) else 'duplicate' if got.duplicate else 'settled'}")
        elif name == "abandon":
            await self.both("abandon", self.id, self.id, window_id(given[0]))
        elif name == "hold":
            await self.hold(window_id(given[0]), given[1], given[2])
        elif name == "renew":
            got = await self.both("renew", RenewLease(self.id, self.id, window_id(given[0]), given[1]))
            event(f"renew: {got[1] if isinstance(got, tuple) else 'renewed'}")
        elif name == "flown":  # open and hold at once: what follows meets the hold
            await self.open({**given[0], "token": 0, "pointer": None, "wrong": None, "token_budget": None})
            await self.hold(window_id(given[0]["window"]), given[1], 1_000_000)
        elif name == "overtaken":  # and another window takes the place of the one that holds
            await self.step("flown", *given[:2])
            await self.commit({**given[2], "window": FRESH + len(self.asked), "where": "tip"})
        elif name == "beside":
            await self.beside(given[0])
        elif name == "terminate":
            await self.both("terminate", self.id, self.id)
        elif name == "start":
            await self.both("start", self.first)

    async def hold(self, window: WindowId, amount: int, ceiling: int) -> None:
        got = await self.both("hold", HoldWindow(self.id, self.id, window, Micros(amount), Micros(ceiling)))
        event(f"hold: {got[1] if isinstance(got, tuple) else 'held'}")

    async def beside(self, charge: int) -> None:
        """Seal a window that holds budget as a branch: from its own parents, or from the root that took its place."""
        state = await self.state()
        if state is None or not state.holds or not state.nodes:
            return
        window = state.holds[0].window_id
        own = [lease.parent_ids for lease in (*state.leases, *state.expired) if lease.window_id == window]
        parents = own[0] or (state.nodes[0].window_id,)
        number = max(node.window_number for node in state.nodes if node.window_id in parents) + 1
        ask = settle(int(window[-4:], 16), session=self.n, parent_ids=parents, window_number=number, pattern=BRANCH)
        got = await self.both("commit", replace(ask, charge=Micros(charge)))
        event(f"beside: {got[1] if isinstance(got, tuple) else 'settled'}")

    async def open(self, given: dict[str, Any]) -> None:
        changed: dict[str, Any] = {"now_ms": given["now_ms"], "lease_ms": given["lease_ms"]}
        if given["pointer"] is not None:
            changed["continuation_id"] = continuation_id(given["pointer"])
        if given["token_budget"] is not None:
            changed["token_budget"] = Micros(given["token_budget"])
        token = self.committed[: len(self.committed) + given["token"]] if self.committed else []
        ask = first_ask(given["window"], session=self.n, **changed)
        if token:
            ask = next_ask(given["window"], token[-1], session=self.n, **changed)
        wrong = {
            "tip": {"token_tip": digest("x")},
            "policy": {"token_policy_hash": digest("x")},
            "number": {"token_window": ask.token_window + 1},
            "own": {"token_continuation_id": continuation_id(88)},
        }
        got = await self.both("open", replace(ask, **wrong.get(given["wrong"] or "", {})))
        if not isinstance(got, tuple):
            self.opened[given["window"]] = got
        event(f"open: {got[1] if isinstance(got, tuple) else 'granted'}")

    async def commit(self, given: dict[str, Any]) -> None:
        window, changed = given["window"], {"charge": Micros(given["charge"])}
        if given["ceiling"] is not None:
            changed["ceiling"] = Micros(given["ceiling"])
        if given["chain"]:
            changed["chain"] = given["chain"]
        if given["policy"]:
            changed["policy"] = policy(given["policy"])
        state = await self.state()
        tip = state.tip if state else None
        if given["hmac"]:
            changed["seal"] = seal(window, hmac=tip.seal.hmac if tip and given["hmac"] == "parent's" else "")
        if given["where"] == "random":
            parent = given["parent"]
            changed["parent_ids"] = (window_id(parent),) if parent else ()
            changed["window_number"] = given["number"]
        elif given["where"] == "tip" and state:
            changed["parent_ids"] = (tip.window_id,) if tip else ()
            changed["window_number"] = state.tip_number + 1
        ask = settle(window, self.opened.get(window), session=self.n, **changed)
        got = await self.both("commit", ask)
        if isinstance(got, Committed) and not got.duplicate:
            self.committed.append(got)
            self.asked.append(ask)
        event(f"commit: {got[1] if isinstance(got, tuple) else 'duplicate' if got.duplicate else 'settled'}")


async def answer(call: Any) -> Any:
    """Return what a call answers; a refusal as all that its caller sees of it."""
    try:
        return await call
    except Refused as refused:
        return refused.kind, refused.reason, refused.message, refused.metadata, refused.retry_after_ms


async def drive(redis_store: Store, limits: tuple[int, int, int], steps: list[tuple[Any, ...]], started: bool) -> None:
    pair = Pair(redis_store, limits)
    if started:
        await pair.both("start", pair.first)
    before = await pair.state()
    for step in steps:
        await pair.step(*step)
        after = await pair.state()
        if after:
            check_laws(before, after)
        before = after


def check_laws(before: SessionState | None, after: SessionState) -> None:
    """What holds after every step, whatever the commands were (reliability.md I1, I3, I8, I9)."""
    assert violations(after.nodes) == ()
    assert 0 <= after.budget
    branches = sum(
        node.pattern == BRANCH for node in after.nodes
    )  # beside windows that took their place: the limits bound openings
    assert len(after.nodes) - branches <= min(after.terms.limits.max_windows, after.terms.limits.max_dag_nodes)
    if before is not None:
        assert after.budget <= before.budget
        assert breaker_state(after.budget) >= breaker_state(before.budget)
        assert after.status >= before.status
        assert after.nodes[: len(before.nodes)] == before.nodes
        assert after.outcomes[: len(before.outcomes)] == before.outcomes
        settled = {node.window_id for node in after.nodes if not node.failed}
        holding = {hold.window_id for hold in after.holds}
        assert not settled & holding
        assert holding <= {lease.window_id for lease in (*after.leases, *after.expired)}


@pytest.mark.req("BUD-4", "BUD-8", "BUD-11", "BRK-1", "DAG-2", "TOK-5")
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limits=LIMITS, steps=st.lists(STEPS, min_size=1, max_size=25), started=st.sampled_from([True] * 9 + [False]))
def test_lua_and_the_rule_answer_alike_and_keep_the_same_state(runner, redis_store, limits, steps, started):
    """Any order of commands, clocks, replays, wrong parents and charges: equal answers, equal state, and the laws hold."""
    runner.run(drive(redis_store, limits, steps, started))
