"""One suite over both stores of sessions: windows side by side, fan-in, branches, failures, and their limits."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from interlock.domain.budget import Micros
from interlock.domain.dag.dag import BRANCH, FAN_IN, FAN_OUT, LINEAR, Edge, leaves, violations
from interlock.domain.dag.lineage import Degradation
from interlock.domain.errors import Kind, Refused
from interlock.domain.ids import ContinuationId
from interlock.domain.session.session_refusals import LEFT_OPEN
from interlock.domain.session.state import FailWindow, Status
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from interlock.session.store.store import MemoryStore
from tests.support.session.sessions import (
    LEASE_MS,
    NOW_MS,
    continuation_id,
    digest,
    first_ask,
    new_state,
    pointer_ask,
    policy,
    refused,
    seal,
    session_id,
    settle,
    window_id,
)

SESSION = session_id(1)
LATER = NOW_MS + LEASE_MS


@pytest.fixture(params=["memory", "redis"])
async def store(request):
    if request.param == "memory":
        yield MemoryStore()
        return
    made = RedisStore(Batcher(parse(request.getfixturevalue("redis_url"))), token_lifetime_s=3600)
    yield made
    await made.close()


async def state(store: Any) -> Any:
    return await store.read(SESSION, SESSION)


async def opened(store: Any, n: int, at: int = 0, pattern: str = LINEAR, **changed: Any) -> Any:
    """Open window *n* with the token of window *at*; 0 is the token of the session."""
    if not at:
        return await store.open(first_ask(n, pattern=pattern, **changed))
    return await store.open(pointer_ask(n, await state(store), window_id(at), pattern=pattern, **changed))


async def done(store: Any, n: int, at: int = 0, pattern: str = LINEAR, cost: int = 0, **changed: Any) -> Any:
    """Open and settle window *n* on window *at*."""
    return await store.commit(settle(n, await opened(store, n, at, pattern), charge=Micros(cost), **changed))


def pointers(*windows: int) -> tuple[ContinuationId, ...]:
    return tuple(continuation_id(n) for n in windows)


async def merge(store: Any, n: int, *windows: int, **changed: Any) -> Any:
    """Open window *n* as the fan-in of others; the token is the first one's."""
    return await opened(store, n, windows[0], FAN_IN, continuation_ids=pointers(*windows), **changed)


async def fanned(store: Any, *children: int, **limits: Any) -> None:
    """Start a session, settle its root 1 and these children of it."""
    await store.start(new_state(**limits))
    await done(store, 1)
    for n in children:
        await done(store, n, 1, FAN_OUT)


def fail(n: int) -> FailWindow:
    return FailWindow(SESSION, SESSION, window_id(n), "UPSTREAM_TIMEOUT")


# Fan-out and fan-in


@pytest.mark.req("BUD-6", "DAG-3", "DAG-8", "DAG-11")
async def test_the_session_of_appendix_a(store):
    """Budgets, numbers, lineage and quality of SPEC-004 Appendix A; its 2a costs 0.05 although the table says LOW."""
    await store.start(new_state())
    tiers = {1: "A", 2: "A", 3: "A", 4: "B", 5: "B", 6: "B"}
    sealed = {n: {"seal": seal(n, quality_tier=tier)} for n, tier in tiers.items()}
    await done(store, 1, **sealed[1])
    children = [await opened(store, n, 1, FAN_OUT) for n in (2, 3, 4)]
    w2 = [
        await store.commit(settle(n, each, charge=Micros(cost), **sealed[n]))
        for n, each, cost in zip((2, 3, 4), children, (50_000, 100_000, 50_000), strict=True)
    ]
    w3a = await done(store, 5, 2, cost=150_000, **sealed[5])
    synthesis = await merge(store, 6, 5, 3, 4)
    w4 = await store.commit(settle(6, synthesis, charge=Micros(0), **sealed[6]))
    at = {n: window_id(n) for n in tiers}

    assert [each.path_budget for each in children] == [1_000_000] * 3
    assert [each.outcome.path_budget for each in (*w2, w3a, w4)] == [950_000, 900_000, 950_000, 800_000, 800_000]
    assert [each.outcome.number for each in (*w2, w3a, w4)] == [2, 2, 2, 3, 4]
    assert synthesis.path_budget == 800_000
    assert sorted(parent.window_id for parent in synthesis.parents) == [at[3], at[4], at[5]]
    assert w4.history.lineage_text == f"{at[1]} -> [{at[2]} -> {at[5]}, {at[3]}, {at[4]}] -> {at[6]}"
    assert w4.history.quality_text == "A,[A,A,B],[B],B"
    assert w4.pattern == FAN_IN
    assert violations((await state(store)).nodes) == ()


@pytest.mark.req("BUD-6")
async def test_the_synthesis_of_three_agents_starts_from_the_lowest(store):
    """0.62, 0.31 and 0.80 from 0.85: the merged window has 0.31 (SPEC-004 §6.4, §15.2)."""
    await store.start(new_state())
    await done(store, 1, cost=150_000)
    first = await opened(store, 2, 1, FAN_OUT)
    second = await opened(store, 3, 1, FAN_OUT)
    third = await opened(store, 4, 1, FAN_OUT)
    for n, each, cost in ((2, first, 230_000), (3, second, 350_000), (4, third, 50_000)):
        await store.commit(settle(n, each, charge=Micros(cost)))
    await done(store, 5, 3, cost=190_000)
    synthesis = await merge(store, 6, 2, 5, 4)

    assert [each.path_budget for each in (first, second, third)] == [850_000] * 3
    assert sorted(parent.path_budget for parent in synthesis.parents) == [310_000, 620_000, 800_000]
    assert (synthesis.path_budget, synthesis.session_budget) == (310_000, 310_000)


@pytest.mark.req("DAG-3", "TOK-5")
async def test_one_token_fans_out_many_times_and_is_then_of_no_use_for_a_line(store):
    """Siblings share parent, number and budget; a line from the same window is a replay (reading 8)."""
    await fanned(store, 2, 3)
    no = await refused(opened(store, 9, 1))

    assert (no.kind, no.reason) == (Kind.CONFLICT, "TOKEN_REPLAYED")
    assert [node.window_number for node in (await state(store)).nodes] == [1, 2, 2]
    assert leaves((await state(store)).nodes) == (window_id(2), window_id(3))


@pytest.mark.req("DAG-3", "TOK-5")
async def test_a_window_that_a_line_continues_does_not_fan_out(store):
    """409 for a fan-out from a continued window; 409 too while the line is still in flight."""
    await store.start(new_state())
    await done(store, 1)
    await opened(store, 2, 1)
    flight = await refused(opened(store, 3, 1, FAN_OUT))
    await store.commit(settle(2, await opened(store, 2, 1)))

    assert flight.reason == "WINDOW_IN_FLIGHT"
    assert (await refused(opened(store, 3, 1, FAN_OUT))).reason == "TOKEN_REPLAYED"


async def test_a_line_waits_for_a_fan_out_in_flight_and_the_other_way_round(store):
    """Several fan-out children may be in flight from one window; a line beside them may not."""
    await fanned(store)
    await opened(store, 2, 1, FAN_OUT)
    await opened(store, 3, 1, FAN_OUT)

    assert (await refused(opened(store, 4, 1))).reason == "WINDOW_IN_FLIGHT"
    assert len((await state(store)).leases) == 2


@pytest.mark.req("AGT-3", "DAG-3")
async def test_the_width_of_a_fan_out_is_limited(store):
    """Children and leases together, at most max_fan_out; the limit, its value and the attempt are named."""
    await fanned(store, 2, max_fan_out=3)
    await opened(store, 3, 1, FAN_OUT)
    await opened(store, 4, 1, FAN_OUT)
    no = await refused(opened(store, 5, 1, FAN_OUT))

    assert (no.kind, no.reason) == (Kind.FORBIDDEN, "MAX_FAN_OUT_EXCEEDED")
    assert no.metadata == {"name": "max_fan_out", "limit": "3", "attempted": "4"}


@pytest.mark.req("AGT-3", "BUD-8")
async def test_siblings_race_for_the_last_nodes(store):
    """Of eight at once those find a place for which there are nodes, and whoever was leased settles."""
    await fanned(store, max_dag_nodes=4)
    asks = [opened(store, n, 1, FAN_OUT) for n in range(2, 10)]
    answers = await asyncio.gather(*asks, return_exceptions=True)
    won = [(n, each) for n, each in enumerate(answers, 2) if not isinstance(each, Refused)]
    for n, each in won:
        await store.commit(settle(n, each))
    lost = {(each.reason, each.metadata["name"]) for each in answers if isinstance(each, Refused)}

    assert (len(won), lost) == (3, {("MAX_DAG_NODES_EXCEEDED", "max_dag_nodes")})
    assert ((await state(store)).status, len((await state(store)).nodes)) == (Status.TERMINATED, 4)


@pytest.mark.req("DAG-3")
async def test_a_sealed_window_keeps_its_place_when_its_lease_runs_out(store):
    """The node of an expired lease stays reserved until somebody says what became of it."""
    await fanned(store, max_dag_nodes=2)
    lost = await opened(store, 2, 1, FAN_OUT)
    no = await refused(opened(store, 3, 1, FAN_OUT, now_ms=LATER))
    await store.commit(settle(2, lost))

    assert no.reason == "MAX_DAG_NODES_EXCEEDED"
    assert no.metadata[LEFT_OPEN] == f"{window_id(2)} FAN_OUT {window_id(1)}"
    assert len((await state(store)).nodes) == 2


@pytest.mark.req("DAG-3", "BUD-8")
async def test_a_window_too_wide_for_another_names_what_ran_out_there(store):
    """No opening looks at them any more, so the refusal does; what was settled or has failed is named no longer."""
    await fanned(store, 2, max_fan_out=4)
    await opened(store, 4, 1, FAN_OUT)
    await opened(store, 5, 1, FAN_OUT)
    branch = await opened(store, 3, 1, BRANCH)
    full = await refused(opened(store, 6, 1, BRANCH, now_ms=LATER))
    await store.commit(settle(3, branch))
    await store.fail(fail(4))
    still = await refused(opened(store, 6, 1, BRANCH, now_ms=LATER))
    in_time = await refused(opened(store, 6, 1, BRANCH))

    at = window_id(1)
    named = [f"{window_id(3)} BRANCH {at}", f"{window_id(4)} FAN_OUT {at}", f"{window_id(5)} FAN_OUT {at}"]
    assert sorted(full.metadata[LEFT_OPEN].split(",")) == named
    assert still.metadata[LEFT_OPEN] == named[2]
    assert LEFT_OPEN not in in_time.metadata


@pytest.mark.req("DAG-3")
async def test_an_expired_fan_out_is_named_and_free_again_when_it_is_given_back(store):
    """Whoever opens next learns of it; abandoned, it holds no place."""
    await fanned(store, max_dag_nodes=3)
    await opened(store, 2, 1, FAN_OUT)
    other = await opened(store, 3, 1, FAN_OUT, now_ms=LATER)

    assert other.unsettled == window_id(2)
    assert await store.abandon(SESSION, SESSION, window_id(2)) is True
    assert (await opened(store, 4, 1, FAN_OUT, now_ms=LATER)).number == 2


@pytest.mark.req("DAG-3")
@pytest.mark.parametrize("pattern", [FAN_OUT, BRANCH])
async def test_a_first_window_continues_nothing(store, pattern):
    """The root is LINEAR."""
    await store.start(new_state())
    no = await refused(opened(store, 1, pattern=pattern))

    assert (no.kind, no.reason) == (Kind.INVALID, "PATTERN_NEEDS_PARENT")


@pytest.mark.req("DAG-3")
async def test_a_branch_leaves_from_a_window_that_was_continued(store):
    """It has the number after its window; from a window that nothing continues it is refused."""
    await store.start(new_state())
    await done(store, 1)
    early = await refused(opened(store, 2, 1, BRANCH))
    await done(store, 2, 1)
    await done(store, 3, 2)
    branch = await done(store, 4, 1, BRANCH)
    further = await done(store, 5, 4)

    assert (early.kind, early.reason) == (Kind.CONFLICT, "NOTHING_TO_BRANCH_FROM")
    assert (branch.outcome.number, further.outcome.number) == (2, 3)
    assert further.lineage == (window_id(1), window_id(4), window_id(5))
    assert violations((await state(store)).nodes) == ()


@pytest.mark.req("DAG-3", "DAG-10")
async def test_a_session_with_several_ends_ends_when_no_path_goes_on(store):
    """A branch at the last window has no pointer, but the other path is not over with it."""
    await fanned(store, 2, 3, max_windows=3)
    last = await done(store, 4, 2)
    other = await done(store, 5, 3)

    assert (last.outcome.continuation_id, last.outcome.status) == (None, Status.ACTIVE)
    assert (other.outcome.continuation_id, other.outcome.status) == (None, Status.TERMINATED)


# What a fan-in refuses


async def reason(call: Any) -> tuple[Kind, str]:
    no = await refused(call)
    return no.kind, no.reason


@pytest.mark.req("DAG-3", "DAG-4", "DAG-9")
async def test_a_fan_in_over_the_wrong_windows_is_refused_by_name(store):
    """Duplicates, one alone, unknown or foreign pointers, an ancestor beside its descendant, a token of none of them."""
    await fanned(store, 2, 3, max_fan_out=4)
    await done(store, 4, 2)
    both = pointers(3, 4)

    assert await reason(merge(store, 9, 3, 4, 4)) == (Kind.INVALID, "FAN_IN_DUPLICATE")
    assert await reason(merge(store, 9, 3)) == (Kind.INVALID, "FAN_IN_TOO_FEW")
    assert await reason(merge(store, 9, 3, 99)) == (Kind.NOT_FOUND, "CONTINUATION_NOT_FOUND")
    assert await reason(merge(store, 9, 4, 1)) == (Kind.CONFLICT, "FAN_IN_RELATED")
    assert await reason(merge(store, 9, 2, 4)) == (Kind.CONFLICT, "FAN_IN_RELATED")
    assert await reason(merge(store, 9, 2, 3)) == (Kind.CONFLICT, "TOKEN_REPLAYED")
    assert await reason(merge(store, 9, *range(3, 8))) == (Kind.FORBIDDEN, "MAX_FAN_OUT_EXCEEDED")
    assert await reason(opened(store, 9, 1, FAN_IN, continuation_ids=both)) == (Kind.CONFLICT, "CONTINUATION_MISMATCH")
    stolen = pointer_ask(9, await state(store), window_id(3), pattern=FAN_IN, continuation_ids=both)
    assert await reason(store.open(replace(stolen, token_tip=digest("x")))) == (Kind.CONFLICT, "CONTINUATION_MISMATCH")
    assert (await state(store)).leases == ()
    assert (await merge(store, 9, 3, 4)).number == 4


@pytest.mark.req("DAG-3")
async def test_a_window_whose_only_child_failed_can_be_merged(store):
    """What failed continued nothing; while the fan-in is in flight a second one waits."""
    await fanned(store, 2, 3)
    await opened(store, 4, 2, FAN_OUT)
    await store.fail(fail(4))
    ask = pointer_ask(9, await state(store), window_id(2), pattern=FAN_IN, continuation_ids=pointers(2, 3))

    assert (await store.open(ask)).number == 3
    assert await reason(merge(store, 10, 2, 3)) == (Kind.CONFLICT, "WINDOW_IN_FLIGHT")


@pytest.mark.req("DAG-9")
async def test_a_fan_in_demands_every_child_unless_it_may_be_partial(store):
    """FAILED, halted and in flight: named together; partial goes on without them and lists them."""
    await fanned(store, 2, 3)
    await done(store, 4, 1, FAN_OUT, seal=seal(4, status="HALTED"))
    await opened(store, 5, 1, FAN_OUT)
    await store.fail(fail(5))
    await opened(store, 6, 1, FAN_OUT)
    no = await refused(merge(store, 9, 2, 3, 4))
    partial = await merge(store, 9, 2, 3, 4, partial=True)
    out = tuple(window_id(n) for n in (4, 5, 6))

    assert (no.kind, no.reason, no.metadata["missing"]) == (Kind.CONFLICT, "FAN_IN_INCOMPLETE", ",".join(out))
    assert partial.left_out == out
    assert [parent.window_id for parent in partial.parents] == [window_id(2), window_id(3)]
    settled = await store.commit(settle(9, partial))
    assert settled.lineage == (window_id(1), window_id(2), window_id(3), window_id(9))


@pytest.mark.req("DAG-9")
async def test_a_partial_fan_in_needs_one_window_at_least(store):
    """Of nothing but halted windows nothing can be made."""
    await store.start(new_state())
    await done(store, 1)
    for n in (2, 3):
        await done(store, n, 1, FAN_OUT, seal=seal(n, status="HALTED"))

    assert await reason(merge(store, 9, 2, 3, partial=True)) == (Kind.CONFLICT, "FAN_IN_INCOMPLETE")


@pytest.mark.req("DAG-3", "TOK-5")
async def test_a_window_is_merged_once(store):
    """A second fan-in of the same windows is a replay, and so is a line from one of them."""
    await fanned(store, 2, 3)
    await store.commit(settle(4, await merge(store, 4, 2, 3)))

    assert await reason(merge(store, 5, 2, 3)) == (Kind.CONFLICT, "TOKEN_REPLAYED")
    assert await reason(opened(store, 5, 2)) == (Kind.CONFLICT, "TOKEN_REPLAYED")


# Failures, facts, edges, policies


@pytest.mark.req("DAG-9")
async def test_a_failed_window_is_a_node_without_seal_charge_or_pointer(store):
    """It is written once, keeps its reason, and nothing is charged; its siblings are untouched."""
    await fanned(store, 2)
    await opened(store, 3, 1, FAN_OUT)

    assert [await store.fail(fail(3)) for _ in range(2)] == [True, False]
    kept = await state(store)
    node = kept.node(window_id(3))
    assert (node.failed, node.failure, node.charge, node.continuation_id) == (True, "UPSTREAM_TIMEOUT", 0, None)
    assert (node.seal.hmac, node.window_number, node.pattern) == ("", 2, FAN_OUT)
    assert (kept.budget, kept.leases, violations(kept.nodes)) == (1_000_000, (), ())
    assert kept.tip.window_id == window_id(2)
    assert (await refused(store.fail(fail(2)))).reason == "WINDOW_SETTLED"


@pytest.mark.req("DAG-9", "BUD-8")
async def test_a_failed_window_cannot_be_settled_and_an_unknown_one_cannot_fail(store):
    """Given up is given up; and who holds no lease leaves nothing behind."""
    await fanned(store)
    held = await opened(store, 2, 1, FAN_OUT)
    await store.fail(fail(2))

    assert (await refused(store.commit(settle(2, held)))).reason == "WINDOW_ID_REUSED"
    assert await store.fail(fail(77)) is False
    assert len((await state(store)).nodes) == 2


async def test_a_root_that_fails_leaves_the_session_as_it_was(store):
    """There is one root: whoever comes next is it."""
    await store.start(new_state())
    await opened(store, 1)

    assert await store.fail(fail(1)) is False
    assert await state(store) == new_state()
    assert (await opened(store, 2)).number == 1


async def test_a_line_whose_window_failed_can_be_tried_again(store):
    """A FAILED child does not stand in the way of the next attempt."""
    await store.start(new_state())
    await done(store, 1)
    await opened(store, 2, 1)
    await store.fail(fail(2))
    again = await done(store, 3, 1)

    assert again.lineage == (window_id(1), window_id(3))


@pytest.mark.req("DAG-6")
async def test_facts_seen_are_kept_once_in_the_order_of_their_use(store):
    """Every opening tells what windows of the session had."""
    await store.start(new_state())
    one, two, three = (f"{n:016x}" for n in (1, 2, 3))
    await done(store, 1, facts=(one, two))
    await done(store, 2, 1, facts=(two, three))

    assert (await opened(store, 3, 2)).facts == (one, two, three)


@pytest.mark.req("DAG-1", "DAG-5")
async def test_edges_are_kept_with_their_window(store):
    """What went over, how many tokens, and the hash of the summary."""
    await store.start(new_state())
    await done(store, 1)
    edge = Edge(window_id(1), "SUMMARY", 321, digest("summary"))
    await done(store, 2, 1, edges=(edge,))

    assert (await state(store)).node(window_id(2)).edges == (edge,)


@pytest.mark.req("DAG-8")
@pytest.mark.parametrize(
    ("tiers", "found"),
    [
        ("AAB", Degradation.FIRST_DROP),
        ("ABC", Degradation.SUSTAINED),
        ("BCD", Degradation.CRITICAL),
        ("ADD", Degradation.PERSISTENT),
        ("ABB", Degradation.NONE),
        ("BA", Degradation.NONE),
    ],
)
async def test_degradation_is_seen_at_the_settle_and_at_the_next_opening(store, tiers, found):
    """The four patterns of SPEC-004 §13.2."""
    await store.start(new_state())
    for n, tier in enumerate(tiers, 1):
        last = await done(store, n, n - 1, seal=seal(n, quality_tier=tier))

    assert last.history.degradation is found
    assert (await opened(store, 9, len(tiers))).history.degradation is found


@pytest.mark.req("POL-8")
async def test_a_policy_replaces_only_the_one_that_it_was_made_from(store):
    """Two windows side by side cannot undo each other's tightening: the later one is told that the policy moved."""
    await fanned(store)
    first, second = [await opened(store, n, 1, FAN_OUT) for n in (2, 3)]
    tighter = policy("halt-on HIGH")
    await store.commit(settle(2, first, policy=tighter, policy_base=policy().hash))
    no = await refused(store.commit(settle(3, second, policy=policy("halt-on MEDIUM"), policy_base=policy().hash)))
    kept = await store.commit(settle(3, second, policy=tighter, policy_base="whatever"))

    assert (no.kind, no.reason) == (Kind.CONFLICT, "POLICY_MOVED")
    assert kept.policy_hash == tighter.hash
    assert (await state(store)).replaced == {policy()}


@pytest.mark.req("BUD-10")
async def test_batch_items_are_charged_to_the_session_itself(store):
    """SPEC-008 §8.3: three items of 0.05 side by side leave 0.85, to the session and to what starts next."""
    await fanned(store)
    items = [await opened(store, n, 1, FAN_OUT) for n in (2, 3, 4)]
    settled = [
        await store.commit(settle(n, each, charge=Micros(50_000), accumulate=True)) for n, each in enumerate(items, 2)
    ]

    assert [each.outcome.session_budget for each in settled] == [950_000, 900_000, 850_000]
    assert (await opened(store, 5, 2)).path_budget == 850_000


@pytest.mark.req("BUD-10")
async def test_a_batch_item_is_charged_below_what_other_paths_left(store):
    """One child left 0.70 to the session: an item on a full path still takes its 0.05 off those 0.70."""
    await fanned(store)
    spent, item = [await opened(store, n, 1, FAN_OUT) for n in (2, 3)]
    await store.commit(settle(2, spent, charge=Micros(300_000)))
    settled = await store.commit(settle(3, item, charge=Micros(50_000), accumulate=True))

    assert (settled.outcome.path_budget, settled.outcome.session_budget) == (650_000, 650_000)


# Eight writers


@pytest.mark.req("DAG-2", "BUD-8", "AGT-3")
@pytest.mark.parametrize("seed", range(6))
async def test_eight_writers_at_once_break_no_invariant_and_no_limit(store, seed):
    """Opens, settles, failures and fan-ins of eight tasks in any interleaving: the graph stays sound, the lowest path counts."""
    await fanned(store, max_dag_nodes=40, max_windows=8, max_fan_out=4)
    dice, ids, charged = random.Random(seed), iter(range(100, 10_000)), {}

    async def write() -> None:
        for _ in range(12):
            now, n = await state(store), next(ids)
            ends = [node for node in now.nodes if node.continuation_id]
            if not ends:
                return
            own = dice.choice(ends)
            pattern = dice.choice([LINEAR, FAN_OUT, FAN_OUT, BRANCH, FAN_IN])
            others = {own.continuation_id, *(dice.choice(ends).continuation_id for _ in range(2))}
            given = {"continuation_ids": tuple(sorted(others)), "partial": True} if pattern == FAN_IN else {}
            try:
                lease = await store.open(pointer_ask(n, now, own.window_id, pattern=pattern, **given))
                await asyncio.sleep(0)
                if dice.random() < 0.2:
                    await store.fail(fail(n))
                    continue
                ask = settle(n, lease, charge=Micros(dice.choice([0, 0, 10_000, 20_000])))
                await asyncio.gather(store.commit(ask), store.commit(ask))
                charged[ask.window_id] = ask.charge
            except Refused as no:
                assert no.kind in {Kind.CONFLICT, Kind.FORBIDDEN, Kind.HALTED, Kind.INVALID}, no

    await asyncio.gather(*(write() for _ in range(8)))
    kept = await state(store)
    sealed = [node for node in kept.nodes if not node.failed]

    assert violations(kept.nodes) == ()
    assert len(kept.nodes) <= 40
    assert max(node.window_number for node in kept.nodes) <= 8
    assert {node.window_id: node.charge for node in sealed if node.window_id in charged} == charged
    assert kept.budget == min(node.safety_budget for node in sealed)
    for node in kept.nodes:
        assert sum(each.pattern == FAN_OUT for each in kept.below(node.window_id)) <= 4
    for node in sealed[1:]:
        start = min(kept.node(parent).safety_budget for parent in node.parent_ids)
        assert node.safety_budget == start - node.charge
