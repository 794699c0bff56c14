"""One suite over both stores of sessions: settling."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.domain.budget import Micros
from interlock.domain.dag.dag import violations
from interlock.domain.errors import Kind
from interlock.domain.session.caller import CallerAsk, caller_id_of, rebuild
from interlock.domain.session.hold import BudgetHold, HoldWindow
from interlock.domain.session.renewing import RenewLease
from interlock.domain.session.restore import SessionBegan, StreamBegan, replayed
from interlock.domain.session.session_refusals import LEFT_OPEN
from interlock.domain.session.state import VOID, Lease, Status
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from interlock.session.store.store import MemoryStore
from tests.support.session.sessions import (
    CRITICAL,
    HIGH,
    LEASE_MS,
    MEDIUM,
    NOW_MS,
    continuation_id,
    first_ask,
    line,
    new_state,
    next_ask,
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


# Committing


@pytest.mark.req("BUD-1", "BUD-5", "DAG-1")
async def test_a_commit_charges_and_keeps_the_whole_node(store):
    """Budget, breaker, tip, node fields and continuation after one window."""
    await started(store)
    (done,) = await line(store, HIGH)
    kept = await state(store)
    (node,) = kept.nodes

    assert (kept.budget, kept.status, kept.lease) == (850_000, Status.ACTIVE, None)
    assert (node.window_id, node.window_number, node.parent_ids) == (window_id(1), 1, ())
    assert (node.safety_budget, node.charge, node.seal) == (850_000, HIGH, seal(1))
    assert (node.continuation_id, node.pattern) == (continuation_id(1), "LINEAR")
    assert kept.outcomes == (done.outcome,)
    assert done.terms == kept.terms


@pytest.mark.req("BUD-8", "BUD-5")
async def test_a_window_is_charged_once_however_often_it_is_committed(store):
    """A repeated commit gets the stored outcome, its first continuation id too, and changes nothing."""
    await started(store)
    opened = await store.open(first_ask(1))
    first = await store.commit(settle(1, opened))
    before = await state(store)
    again = await store.commit(settle(1, opened, continuation_id=continuation_id(55)))

    assert again == replace(first, duplicate=True)
    assert await state(store) == before


@pytest.mark.req("BUD-8")
async def test_a_repeated_commit_of_an_earlier_window_gets_the_outcome_of_its_time(store):
    """Two windows later the first one is still answered with its own budget, lineage and quality; what is left is what is left now."""
    await started(store)
    first, _, _ = await line(store, MEDIUM, HIGH, MEDIUM)
    again = await store.commit(settle(1))

    assert again == replace(first, duplicate=True, left=750_000)
    assert (again.lineage, again.outcome.session_budget) == ((window_id(1),), 950_000)


@pytest.mark.req("BUD-8")
@pytest.mark.parametrize("changed", [{"charge": Micros(0)}, {"seal": seal(9)}])
async def test_a_window_id_is_not_good_for_another_charge_or_seal(store, changed):
    """The idempotency key answers for one settlement only."""
    await started(store)
    await line(store, HIGH)
    no = await refused(store.commit(settle(1, **{"charge": HIGH, **changed})))

    assert (no.kind, no.reason) == (Kind.CONFLICT, "WINDOW_ID_REUSED")
    assert (await state(store)).budget == 850_000


@pytest.mark.req("DAG-2", "TOK-5")
async def test_a_commit_whose_parent_is_not_the_tip_loses(store):
    """Of two siblings the first settles; the other is refused and charged nothing."""
    await started(store)
    (done,) = await line(store, MEDIUM)
    second = await store.open(next_ask(2, done))
    third = await store.open(next_ask(3, done, now_ms=NOW_MS + LEASE_MS))
    await store.commit(settle(3, third))
    no = await refused(store.commit(settle(2, second)))

    assert (no.kind, no.reason) == (Kind.CONFLICT, "PARENT_NOT_TIP")
    assert [node.window_id for node in (await state(store)).nodes] == [window_id(1), window_id(3)]


async def test_a_sealed_window_settles_although_its_lease_was_taken_over(store):
    """The lease only spares work; whose parent is still the tip is settled. The other's lease stays, and will lose."""
    await started(store)
    first = await store.open(first_ask(1))
    second = await store.open(first_ask(2, now_ms=NOW_MS + LEASE_MS))
    await store.commit(settle(1, first))
    kept = await state(store)

    assert (kept.tip.window_id, kept.lease.window_id, kept.unsettled) == (window_id(1), window_id(2), ())
    assert (await refused(store.commit(settle(2, second)))).reason == "PARENT_NOT_TIP"


async def test_a_window_number_that_does_not_follow_its_parent_is_refused(store):
    """The tip is the parent, and the number is not one further."""
    await started(store)
    no = await refused(store.commit(settle(1, window_number=2)))

    assert (no.kind, no.reason) == (Kind.INVALID, "WINDOW_NUMBER_MISMATCH")
    assert no.metadata == {"expected": "1", "given": "2"}


@pytest.mark.req("BUD-9")
async def test_a_commit_that_is_ahead_of_the_store_shows_a_loss(store):
    """A sealed window whose parent the store has never seen: writes were lost, nobody lost a race."""
    await started(store)
    await line(store, MEDIUM)
    no = await refused(store.commit(settle(3, parent_ids=(window_id(2),), window_number=3)))

    assert (no.kind, no.reason) == (Kind.UNAVAILABLE, "SESSION_STATE_LOST")


@pytest.mark.req("DAG-2")
@pytest.mark.parametrize("hmac", ["", seal(1).hmac])
async def test_a_window_without_a_seal_of_its_own_is_refused(store, hmac):
    """Every window is chained: an absent HMAC, or its parent's, breaks the fourth invariant."""
    await started(store)
    (done,) = await line(store, MEDIUM)
    opened = await store.open(next_ask(2, done))
    no = await refused(store.commit(settle(2, opened, seal=seal(2, hmac=hmac))))

    assert (no.kind, no.reason) == (Kind.CONFLICT, "DAG_INVARIANT_VIOLATED")


@pytest.mark.req("DAG-2", "DAG-3")
async def test_the_invariants_hold_after_every_window(store):
    """A line of five windows is acyclic, single-rooted, connected, chained and numbered."""
    await started(store)
    await line(store, 0, 0, 0, 0, 0)
    nodes = (await state(store)).nodes

    assert violations(nodes) == ()
    assert [node.window_number for node in nodes] == [1, 2, 3, 4, 5]
    assert {node.pattern for node in nodes} == {"LINEAR"}


@pytest.mark.req("DAG-11")
async def test_the_lineage_grows_by_each_window(store):
    """A commit tells the path from the root to itself, and the tiers beside it."""
    await started(store)
    *_, last = await line(store, 0, 0, 0)

    assert last.lineage == tuple(window_id(n) for n in (1, 2, 3))
    assert last.quality_history == tuple(seal(n).quality_tier for n in (1, 2, 3))


@pytest.mark.req("BUD-9", "BUD-4")
async def test_the_ceiling_of_a_commit_lowers_the_budget_and_never_lifts_it(store):
    """What the ledger or the token vouches for caps the path before the charge."""
    await started(store)
    opened = await store.open(first_ask(1))
    low = await store.commit(settle(1, opened, ceiling=Micros(300_000)))
    second = await store.open(next_ask(2, low))
    high = await store.commit(settle(2, second, ceiling=Micros(1_000_000), charge=Micros(0)))

    assert (low.outcome.path_budget, high.outcome.path_budget, high.outcome.session_budget) == (250_000,) * 3


@pytest.mark.req("BUD-4", "BUD-3")
async def test_a_budget_stops_at_zero(store):
    """A charge larger than what is left leaves exactly nothing."""
    await started(store)
    *_, last = await line(store, CRITICAL, CRITICAL, CRITICAL)

    assert last.outcome.session_budget == 0


@pytest.mark.req("BUD-11", "ATT-2")
@pytest.mark.parametrize("ended", ["settled", "open"])
async def test_a_rebuilt_session_frees_what_its_caller_held_for_a_settled_window(store, ended):
    """The caller's budget outlives its session, which is set back and rebuilt: a hold stays for a window that is open, and for no other."""
    caller = CallerAsk(caller_id_of(f"holder {ended} {type(store).__name__}"), 7, Micros(10_000_000))
    began = new_state(caller_id=caller.caller_id)
    await store.restore_caller(caller.caller_id, rebuild(7, caller.cap, []))
    await store.start(began, caller)
    opened = await store.open(replace(first_ask(1), caller=caller))
    hold = BudgetHold(window_id(1), Micros(350_000), 7)
    await store.hold(HoldWindow(SESSION, SESSION, hold.window_id, hold.amount, Micros(1_000_000), caller.caller_id, 7))
    of_caller = {"caller_id": caller.caller_id, "caller_period": 7}
    steps = [
        SessionBegan(began.terms, began.policy, began.budget),
        StreamBegan(SESSION, hold, Lease(hold.window_id, NOW_MS + LEASE_MS)),
        settle(1, opened, charge=Micros(50_000), **of_caller),
    ]  # fmt: skip
    await store.restore(replayed(SESSION, steps if ended == "settled" else steps[:2])[SESSION])
    known = await store.caller(caller.caller_id)

    assert known.now.held == (0 if ended == "settled" else 350_000)
    assert known.now.left == 10_000_000 - (50_000 if ended == "settled" else 0)


@pytest.mark.req("BUD-11", "BUD-8")
@pytest.mark.parametrize("holder", ["the session", "its caller"])
async def test_a_refusal_for_what_is_held_names_the_windows_that_ran_out(store, holder):
    """No opening looks at a lost stream where what it holds leaves nothing to open with, so the refusal names it; freed, all goes on."""
    caller = CallerAsk(caller_id_of(f"{holder} {type(store).__name__}"), 7, Micros(1_000_000))
    await store.restore_caller(caller.caller_id, rebuild(7, caller.cap, []))
    await store.start(new_state(caller_id=caller.caller_id), caller)
    await store.open(replace(first_ask(1), caller=caller))
    await store.hold(
        HoldWindow(SESSION, SESSION, window_id(1), Micros(350_000), Micros(1_000_000), caller.caller_id, 7)
    )
    late = replace(first_ask(2), caller=caller, now_ms=NOW_MS + LEASE_MS)
    if holder == "the session":
        late = replace(late, token_budget=Micros(450_000))
    else:
        await store.restore_caller(caller.caller_id, rebuild(7, caller.cap, [(7, session_id(2), Micros(550_000))]))
    in_time = await refused(store.open(replace(late, now_ms=NOW_MS + 1)))
    no = await refused(store.open(late))
    await store.abandon(SESSION, SESSION, window_id(1), caller.caller_id)
    await store.open(late)

    assert (in_time.reason, no.reason) == (
        "BUDGET_HELD" if holder == "the session" else "WINDOW_IN_FLIGHT",
        "BUDGET_HELD",
    )
    assert LEFT_OPEN not in in_time.metadata
    assert no.metadata[LEFT_OPEN] == f"{window_id(1)} LINEAR -"


@pytest.mark.req("BUD-11", "BUD-8")
async def test_of_windows_that_ran_out_the_one_that_holds_budget_is_named_first(store):
    """Openings whose answers are lost leave windows behind too: each names the lost stream again, until it is closed."""
    await store.start(new_state())
    await store.open(first_ask(1))
    await store.hold(HoldWindow(SESSION, SESSION, window_id(1), Micros(350_000), Micros(1_000_000)))
    named = []
    for number in range(2, 25):  # more than are remembered
        opened = await store.open(first_ask(number, now_ms=NOW_MS + number * LEASE_MS))
        named.append((opened.unsettled, opened.lapsed_hold))
    await store.abandon(SESSION, SESSION, window_id(1))
    after = await store.open(first_ask(25, now_ms=NOW_MS + 25 * LEASE_MS))

    assert set(named) == {(window_id(1), 350_000)}
    assert (after.unsettled, after.lapsed_hold) == (window_id(24), 0)


@pytest.mark.req("BUD-11", "BUD-8")
async def test_a_hold_that_older_code_left_without_a_lease_is_named(store):
    """A session as it was rebuilt before void leases were kept: each opening names the window until its hold is freed."""
    await store.restore(replace(new_state(), holds=(BudgetHold(window_id(1), Micros(350_000)),)))
    first = await store.open(first_ask(2))
    second = await store.open(first_ask(3, now_ms=NOW_MS + LEASE_MS))
    refusal = await refused(store.open(first_ask(4, now_ms=NOW_MS + 2 * LEASE_MS, token_budget=Micros(450_000))))
    await store.abandon(SESSION, SESSION, window_id(1))
    third = await store.open(first_ask(4, now_ms=NOW_MS + 2 * LEASE_MS))

    assert {(one.lapsed, one.lapsed_hold) for one in (first, second)} == {(Lease(window_id(1), 0, VOID), 350_000)}
    assert refusal.metadata[LEFT_OPEN] == f"{window_id(1)} VOID -"
    assert (third.unsettled, third.lapsed_hold) == (window_id(3), 0)


@pytest.mark.req("BUD-11", "API-4")
async def test_a_lease_that_is_renewed_runs_out_later_and_never_sooner(store):
    """Whoever comes while its holder lives is refused with the time that is left; once it ran out its window is named."""
    await store.start(new_state())
    await store.open(first_ask(1))
    longer = await store.renew(RenewLease(SESSION, SESSION, window_id(1), NOW_MS + 3 * LEASE_MS))
    same = await store.renew(RenewLease(SESSION, SESSION, window_id(1), NOW_MS + 1))
    meanwhile = await refused(store.open(first_ask(2, now_ms=NOW_MS + 2 * LEASE_MS)))
    late = await store.open(first_ask(3, now_ms=NOW_MS + 3 * LEASE_MS))

    assert (longer, same) == (NOW_MS + 3 * LEASE_MS, NOW_MS + 3 * LEASE_MS)
    assert meanwhile.reason == "WINDOW_IN_FLIGHT"
    assert late.unsettled == window_id(1)


@pytest.mark.req("BUD-11", "API-4")
async def test_a_lease_that_was_found_to_have_run_out_is_lost(store):
    """Its window is looked after by whoever found it; so is one that is settled, and of one that is gone there is nothing to renew."""
    await store.start(new_state())
    await store.open(first_ask(1))
    opened = await store.open(first_ask(2, now_ms=NOW_MS + LEASE_MS))
    await store.commit(settle(2, opened, charge=Micros(0)))
    found = [await refused(store.renew(RenewLease(SESSION, SESSION, window_id(n), NOW_MS * 2))) for n in (1, 2, 3)]

    assert [one.reason for one in found] == ["LEASE_LOST"] * 3
