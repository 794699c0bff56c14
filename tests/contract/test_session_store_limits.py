"""One suite over both stores of sessions: limits, breaker, the end, and many callers at once."""

from __future__ import annotations

import asyncio

import pytest

from interlock.domain.breaker import BreakerState, Transition
from interlock.domain.budget import Micros
from interlock.domain.errors import Kind, Refused
from interlock.domain.session.state import Status
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from interlock.session.store.store import MemoryStore
from tests.support.session.sessions import (
    CRITICAL,
    HIGH,
    MEDIUM,
    continuation_id,
    first_ask,
    line,
    new_state,
    next_ask,
    policy,
    refused,
    session_id,
    settle,
    window_id,
)

SESSION = session_id(1)


@pytest.fixture(params=["memory", "redis"])
async def store(request):
    if request.param == "memory":
        yield MemoryStore()
        return
    made = RedisStore(Batcher(parse(request.getfixturevalue("redis_url"))), token_lifetime_s=3600)
    yield made
    await made.close()


async def started(store, **limits) -> None:
    await store.start(new_state(**limits))


async def state(store):
    return await store.read(SESSION, SESSION)


# Limits, breaker, end


@pytest.mark.req("BRK-1", "BRK-5", "BUD-3")
async def test_each_commit_names_the_steps_of_the_breaker(store):
    """1.00, 0.65, 0.50, 0.35, 0.10: the steps come with the commit that causes them, and only with it."""
    await started(store)
    outcomes = [each.outcome for each in await line(store, CRITICAL, HIGH, HIGH, 250_000)]
    closed, half, opened = BreakerState

    assert [outcome.session_budget for outcome in outcomes] == [650_000, 500_000, 350_000, 100_000]
    assert [outcome.after for outcome in outcomes] == [closed, half, half, opened]
    assert [outcome.transitions for outcome in outcomes] == [
        (),
        (Transition(closed, half),),
        (),
        (Transition(half, opened),),
    ]


@pytest.mark.req("BRK-1", "BRK-5")
async def test_a_fall_through_half_open_is_two_steps(store):
    """From CLOSED to OPEN in one window passes HALF_OPEN."""
    await started(store)
    opened = await store.open(first_ask(1))
    done = await store.commit(settle(1, opened, ceiling=Micros(400_000), charge=CRITICAL))

    assert [step.after for step in done.outcome.transitions] == [BreakerState.HALF_OPEN, BreakerState.OPEN]


@pytest.mark.req("BRK-3", "DAG-10")
async def test_an_open_breaker_halts_the_session_and_issues_no_pointer(store):
    """At 0.10 the session is HALTED: no continuation id, 451 to whoever comes, with the latest token or an old one."""
    await started(store)
    settled = await line(store, CRITICAL, CRITICAL, 200_000)
    kept = await state(store)

    assert (kept.status, kept.budget, settled[-1].outcome.continuation_id) == (Status.HALTED, 100_000, None)
    for token in settled:
        no = await refused(store.open(next_ask(4, token)))
        assert (no.kind, no.reason) == (Kind.HALTED, "BUDGET_DEPLETED")
        assert no.metadata["retry_after"] == "new-session-required"


@pytest.mark.req("BUD-3", "BRK-3")
async def test_one_millionth_above_the_band_still_opens(store):
    """0.100001 is HALF_OPEN: the halt starts exactly at 0.10."""
    await started(store)
    *_, last = await line(store, CRITICAL, CRITICAL, 199_999)

    assert (await store.open(next_ask(4, last))).session_budget == 100_001


@pytest.mark.req("DAG-10")
async def test_the_last_window_has_no_pointer_and_the_session_is_over(store):
    """window_number = max_windows: no continuation id (SPEC-004 §11.4), and a further window is a named limit."""
    await started(store, max_windows=2)
    first, last = await line(store, 0, 0)
    no = await refused(store.open(next_ask(3, last)))

    assert (first.outcome.continuation_id, last.outcome.continuation_id) == (continuation_id(1), None)
    assert (await state(store)).status is Status.TERMINATED
    assert (no.kind, no.reason) == (Kind.FORBIDDEN, "MAX_WINDOWS_EXCEEDED")
    assert no.metadata == {"name": "max_windows", "limit": "2", "attempted": "3"}


@pytest.mark.req("DAG-10")
async def test_the_limit_on_nodes_is_its_own(store):
    """max_dag_nodes ends a session as max_windows does, under its own name."""
    await started(store, max_dag_nodes=1)
    (last,) = await line(store, 0)
    no = await refused(store.open(next_ask(2, last)))

    assert last.outcome.continuation_id is None
    assert (no.kind, no.reason) == (Kind.FORBIDDEN, "MAX_DAG_NODES_EXCEEDED")
    assert no.metadata == {"name": "max_dag_nodes", "limit": "1", "attempted": "2"}


@pytest.mark.req("DAG-10")
@pytest.mark.parametrize(
    ("limit", "reason"), [("max_windows", "MAX_WINDOWS_EXCEEDED"), ("max_dag_nodes", "MAX_DAG_NODES_EXCEEDED")]
)
async def test_a_commit_is_held_to_the_limits_too(store, limit, reason):
    """A settle that no opening stands behind does not pass a limit: the check is in the atomic step."""
    await started(store, **{limit: 1})
    await line(store, 0)
    no = await refused(store.commit(settle(2, parent_ids=(window_id(1),), window_number=2)))

    assert (no.kind, no.reason) == (Kind.FORBIDDEN, reason)


@pytest.mark.req("TOK-5")
async def test_an_old_token_of_a_finished_session_is_a_replay(store):
    """Being over does not hide that the token is old."""
    await started(store, max_windows=2)
    first, _ = await line(store, 0, 0)

    assert (await refused(store.open(next_ask(3, first)))).reason == "TOKEN_REPLAYED"


async def test_a_terminated_session_opens_nothing_and_ends_once(store):
    """Ending is for good, and saying it twice changes nothing."""
    await started(store)
    (done,) = await line(store, MEDIUM)

    assert await store.terminate(SESSION, SESSION) is True
    assert await store.terminate(SESSION, SESSION) is False
    no = await refused(store.open(next_ask(2, done)))
    assert (no.kind, no.reason) == (Kind.CONFLICT, "SESSION_TERMINATED")


@pytest.mark.req("BUD-5")
async def test_a_window_in_flight_is_charged_although_its_session_was_terminated(store):
    """Hanging up does not make a sealed window free."""
    await started(store)
    opened = await store.open(first_ask(1))
    await store.terminate(SESSION, SESSION)
    done = await store.commit(settle(1, opened, charge=HIGH))

    assert (done.outcome.session_budget, done.outcome.status) == (850_000, Status.TERMINATED)
    assert done.outcome.continuation_id is None


async def test_an_abandoned_lease_is_free_at_once(store):
    """A window that was never sealed costs nothing and blocks nobody."""
    await started(store)
    await store.open(first_ask(1))

    assert await store.abandon(SESSION, SESSION, window_id(1)) is True
    assert await store.abandon(SESSION, SESSION, window_id(1)) is False
    opened = await store.open(first_ask(2))
    assert (opened.unsettled, opened.path_budget) == (None, 1_000_000)


async def test_only_the_holder_gives_a_lease_back(store):
    """Another window's id frees nothing."""
    await started(store)
    await store.open(first_ask(1))

    assert await store.abandon(SESSION, SESSION, window_id(2)) is False
    assert (await refused(store.open(first_ask(3)))).reason == "WINDOW_IN_FLIGHT"


async def test_ending_or_abandoning_what_is_not_there_is_refused(store):
    """An unknown session is not found; one that a token vouches for is lost."""
    assert (await refused(store.abandon(SESSION, SESSION, window_id(1)))).reason == "SESSION_NOT_FOUND"
    assert (await refused(store.terminate(SESSION, SESSION))).reason == "SESSION_STATE_LOST"
    assert await state(store) is None


async def test_a_commit_replaces_the_policy_when_it_brings_one(store):
    """A tightened policy holds from the next window on, and its token is bound to it."""
    await started(store)
    opened = await store.open(first_ask(1))
    tighter = policy("halt-on HIGH")
    done = await store.commit(settle(1, opened, policy=tighter))

    assert done.policy_hash == tighter.hash
    assert (await store.open(next_ask(2, done))).policy == tighter


async def test_a_commit_without_a_policy_keeps_it(store):
    """Leaving the policy out takes nothing away."""
    await started(store)
    (done,) = await line(store, MEDIUM)

    assert done.policy_hash == policy().hash
    assert (await state(store)).policy == policy()


# Concurrency


@pytest.mark.req("BUD-8")
async def test_sixty_four_commits_of_one_window_charge_once(store):
    """One of them settles, sixty-three are told what it did."""
    await started(store)
    opened = await store.open(first_ask(1))
    ask = settle(1, opened, charge=HIGH)
    answers = await asyncio.gather(*(store.commit(ask) for _ in range(64)))

    assert sorted(each.duplicate for each in answers) == [False] + [True] * 63
    assert {each.outcome for each in answers} == {answers[0].outcome}
    assert (await state(store)).budget == 850_000


@pytest.mark.req("TOK-5", "BUD-8")
async def test_of_sixty_four_siblings_one_settles(store):
    """Each is sealed for the same parent; the compare-and-set on the tip lets one through."""
    await started(store)
    asks = [settle(n, charge=HIGH) for n in range(1, 65)]
    answers = await asyncio.gather(*(store.commit(ask) for ask in asks), return_exceptions=True)
    lost = [each.reason for each in answers if isinstance(each, Refused)]

    assert lost == ["PARENT_NOT_TIP"] * 63
    assert (await state(store)).budget == 850_000


@pytest.mark.req("TOK-5")
async def test_of_sixty_four_holders_of_one_token_one_gets_the_lease(store):
    """The others are told that a window is in flight."""
    await started(store)
    answers = await asyncio.gather(*(store.open(first_ask(n)) for n in range(1, 65)), return_exceptions=True)
    lost = [each.reason for each in answers if isinstance(each, Refused)]

    assert lost == ["WINDOW_IN_FLIGHT"] * 63


@pytest.mark.req("BUD-8")
async def test_a_hundred_sessions_at_once_do_not_touch_one_another(store):
    """Each ends with exactly what its own windows cost."""

    async def live(n: int) -> int:
        await store.start(new_state(n))
        done = None
        for window in range(1, 4):
            ask = next_ask(window, done, session=n) if done else first_ask(window, session=n)
            opened = await store.open(ask)
            done = await store.commit(settle(window, opened, session=n, charge=Micros(n * 1000)))
        return done.outcome.session_budget

    budgets = await asyncio.gather(*(live(n) for n in range(1, 101)))

    assert budgets == [1_000_000 - 3 * n * 1000 for n in range(1, 101)]
