"""One suite over both stores of sessions: starting, opening, tokens and continuations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.domain.budget import Micros
from interlock.domain.dag.lineage import NO_HISTORY, Degradation, History
from interlock.domain.errors import Kind
from interlock.domain.session.opening import UNSETTLED_KEPT
from interlock.domain.session.state import Lease, OpenedWindow, Parent
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from interlock.session.store.store import MemoryStore
from tests.support.session.sessions import (
    HIGH,
    LEASE_MS,
    MEDIUM,
    NOW_MS,
    continuation_id,
    digest,
    first_ask,
    line,
    new_state,
    next_ask,
    policy,
    refused,
    seal,
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


# Starting


@pytest.mark.req("BUD-1", "BRK-1")
async def test_a_session_starts_with_a_full_budget_and_a_closed_breaker(store):
    """What is kept is what was started: 1.0, ACTIVE, no window."""
    await started(store)

    assert await state(store) == new_state()
    assert (await store.open(first_ask(1))).session_budget == 1_000_000


async def test_a_session_starts_once(store):
    """An id that is taken stays with its session."""
    await started(store)
    await line(store, HIGH)

    assert (await refused(store.start(new_state()))).reason == "SESSION_EXISTS"
    assert (await state(store)).budget == 850_000


async def test_a_session_that_is_not_there_cannot_be_read(store):
    """There is no default session."""
    assert await state(store) is None


# Opening


async def test_the_first_window_has_no_parent_and_the_next_one_has_the_tip(store):
    """An opening names the parent, its HMAC, the number before, the path's budget, lineage and quality so far."""
    await started(store)
    first = await store.open(first_ask(1))
    done = await store.commit(settle(1, first))
    second = await store.open(next_ask(2, done))

    assert (first.parents, first.number, first.history) == ((), 1, NO_HISTORY)
    assert second == OpenedWindow(
        terms=new_state().terms,
        policy=policy(),
        pattern="LINEAR",
        parents=(Parent(window_id(1), 1, seal(1).hmac, seal(1).quality_tier, "COMPLETED", Micros(950_000)),),
        path_budget=Micros(950_000),
        session_budget=Micros(950_000),
        lapsed=None,
        left_out=(),
        facts=(),
        history=History((window_id(1),), (seal(1).quality_tier,), Degradation.NONE, window_id(1), seal(1).quality_tier),
    )
    assert second.number == 2


@pytest.mark.req("ATT-1")
async def test_an_opening_tells_on_request_how_the_windows_hang_together(store):
    """Two windows continue the first one: the reply says so to who asks, and nobody else."""
    await started(store)
    (first,) = await line(store, 0)
    for number, pattern in ((2, "LINEAR"), (3, "BRANCH")):
        opened = await store.open(next_ask(number, first, pattern=pattern, continuation_id=continuation_id(1)))
        last = await store.commit(settle(number, opened))
    unasked = await store.open(next_ask(4, last))
    await store.abandon(session_id(1), session_id(1), window_id(4))
    links = (await store.open(next_ask(5, last, linked=True))).links

    assert unasked.links is None
    assert links.leads(window_id(1), window_id(3))
    assert not links.leads(window_id(2), window_id(3))
    assert links.side_by_side([window_id(2), window_id(3)])


@pytest.mark.req("BUD-4", "BUD-9")
async def test_the_effective_budget_is_never_above_the_tokens(store):
    """A store that forgot a charge is held down by the signed token."""
    await started(store)
    opened = await store.open(first_ask(1, token_budget=Micros(620_000)))

    assert (opened.path_budget, opened.session_budget) == (620_000, 620_000)


@pytest.mark.req("BUD-4")
async def test_a_token_with_a_higher_budget_raises_nothing(store):
    """The token caps; it never lifts."""
    await started(store)
    (done,) = await line(store, HIGH)
    opened = await store.open(next_ask(2, done, token_budget=Micros(1_000_000)))

    assert opened.path_budget == 850_000


@pytest.mark.req("BRK-3")
async def test_a_token_at_the_open_band_halts_even_when_the_store_has_more(store):
    """The breaker follows the lowest budget that anyone vouches for."""
    await started(store)
    no = await refused(store.open(first_ask(1, token_budget=Micros(100_000))))

    assert (no.kind, no.reason, no.metadata["safety_budget"]) == (Kind.HALTED, "BUDGET_DEPLETED", "0.10")


async def test_a_second_opening_waits_for_the_lease(store):
    """While a window is in flight the next caller is told how long the lease still runs."""
    await started(store)
    await store.open(first_ask(1))
    no = await refused(store.open(first_ask(2, now_ms=NOW_MS + 1)))

    assert (no.kind, no.reason, no.retry_after_ms) == (Kind.CONFLICT, "WINDOW_IN_FLIGHT", LEASE_MS - 1)
    assert (await state(store)).lease == Lease(window_id(1), NOW_MS + LEASE_MS)


async def test_the_same_opening_twice_takes_one_lease(store):
    """A call that is sent again after a lost connection gets its own lease again."""
    await started(store)
    first = await store.open(first_ask(1))

    assert await store.open(first_ask(1)) == first
    assert (await state(store)).unsettled == ()


async def test_a_lease_that_ran_out_is_taken_over_and_its_window_is_named(store):
    """The window may have been sealed: whoever opens next is told to look."""
    await started(store)
    await store.open(first_ask(1))
    opened = await store.open(first_ask(2, now_ms=NOW_MS + LEASE_MS))

    assert opened.unsettled == window_id(1)
    assert (await state(store)).lease.window_id == window_id(2)


async def test_every_window_whose_lease_ran_out_is_named_in_turn(store):
    """Two holders that died one after the other are both looked at, however often the second look fails."""
    await started(store)
    later = NOW_MS
    named = []
    for n in range(1, 7):
        if n <= 3:
            later += LEASE_MS
        named.append((await store.open(first_ask(n, now_ms=later))).unsettled)
        if n >= 3:
            await store.abandon(SESSION, SESSION, window_id(n))

    assert named == [None, window_id(1), window_id(2), window_id(1), window_id(2), window_id(1)]


async def test_the_list_of_unsettled_windows_is_bounded(store):
    """A caller that lets every lease run out cannot grow a session without end."""
    await started(store)
    for n in range(1, UNSETTLED_KEPT + 5):
        await store.open(first_ask(n, now_ms=NOW_MS + n * LEASE_MS))

    assert (await state(store)).unsettled == tuple(window_id(n) for n in range(4, UNSETTLED_KEPT + 4))


# Tokens and continuations


@pytest.mark.req("TOK-5", "TOK-3")
async def test_a_token_whose_window_was_continued_is_a_replay(store):
    """The first token, after the first window: 409, and the latest window is named."""
    await started(store)
    await line(store, MEDIUM)
    no = await refused(store.open(first_ask(2)))

    assert (no.kind, no.reason) == (Kind.CONFLICT, "TOKEN_REPLAYED")
    assert no.metadata == {"token_window": "0", "latest_window": "1"}


@pytest.mark.req("TOK-5", "DAG-4")
async def test_a_second_linear_continuation_of_a_window_is_a_replay(store):
    """Its token and its own continuation id are both right, and both used (requirements.md, reading 8)."""
    await started(store)
    first, _ = await line(store, MEDIUM, MEDIUM)
    no = await refused(store.open(next_ask(3, first, continuation_id=continuation_id(1))))

    assert (no.kind, no.reason) == (Kind.CONFLICT, "TOKEN_REPLAYED")


@pytest.mark.req("DAG-4")
async def test_the_continuation_of_the_latest_window_goes_on(store):
    """Presented or left to the token, it leads to the same parent."""
    await started(store)
    (done,) = await line(store, MEDIUM)
    opened = await store.open(next_ask(2, done, continuation_id=continuation_id(1)))

    assert [parent.window_id for parent in opened.parents] == [window_id(1)]


@pytest.mark.req("DAG-4")
async def test_a_foreign_continuation_and_an_unknown_one_are_the_same_404(store):
    """Nothing tells a guess from another session's pointer (SPEC-004 §17.3; reliability.md A-10)."""
    await started(store)
    await line(store, MEDIUM)
    await store.start(new_state(2))
    mine = next_ask(3, await store.commit(settle(2, await store.open(first_ask(2, session=2)), session=2)), session=2)
    foreign = await refused(store.open(replace(mine, continuation_id=continuation_id(1))))
    unknown = await refused(store.open(replace(mine, continuation_id=continuation_id(99))))

    assert foreign.kind is Kind.NOT_FOUND
    assert vars(foreign) == vars(unknown)
    assert foreign.reason == "CONTINUATION_NOT_FOUND"


@pytest.mark.req("DAG-4", "TOK-3")
async def test_a_continuation_of_another_window_than_the_tokens_is_refused(store):
    """The chain tip of the token is held against the window that the continuation points to (reading 8)."""
    await started(store)
    first, second = await line(store, MEDIUM, MEDIUM)
    for token, pointer in ((second, 1), (first, 2)):
        no = await refused(store.open(next_ask(3, token, continuation_id=continuation_id(pointer))))
        assert (no.kind, no.reason) == (Kind.CONFLICT, "CONTINUATION_MISMATCH")


@pytest.mark.req("TOK-3")
async def test_a_token_with_another_chain_tip_is_refused(store):
    """Same number, same continuation, other HMAC: it is not a token of this history."""
    await started(store)
    (done,) = await line(store, MEDIUM)
    no = await refused(store.open(next_ask(2, done, token_tip=digest("another history"))))

    assert (no.kind, no.reason) == (Kind.CONFLICT, "CONTINUATION_MISMATCH")


@pytest.mark.req("TOK-3")
async def test_a_stored_policy_that_the_token_was_not_signed_for_is_refused(store):
    """Whoever can write to the store still cannot loosen a policy: the token carries its hash."""
    await started(store)
    no = await refused(store.open(first_ask(1, token_policy_hash=digest("looser"))))

    assert (no.kind, no.reason) == (Kind.CONFLICT, "POLICY_HASH_MISMATCH")


@pytest.mark.req("BUD-9", "BUD-4")
async def test_a_token_that_is_ahead_of_the_store_shows_a_loss(store):
    """A rolled-back store does not serve as if nothing had been spent."""
    await started(store)
    (done,) = await line(store, MEDIUM)
    ahead = next_ask(3, done, token_window=2, token_tip=digest("hmac 2"), token_continuation_id=continuation_id(2))
    rewritten = next_ask(3, done, token_continuation_id=continuation_id(77))
    for ask in (ahead, rewritten):
        no = await refused(store.open(ask))
        assert (no.kind, no.reason, no.retry_after_ms) == (Kind.UNAVAILABLE, "SESSION_STATE_LOST", 0)


@pytest.mark.req("BUD-4", "BUD-9")
async def test_a_session_that_is_gone_is_never_started_again_by_its_token(store):
    """A missing state is unknown, not new."""
    no = await refused(store.open(first_ask(1)))
    lost = await refused(store.commit(settle(1)))

    assert (no.kind, no.reason) == (lost.kind, lost.reason) == (Kind.UNAVAILABLE, "SESSION_STATE_LOST")
    assert await state(store) is None
