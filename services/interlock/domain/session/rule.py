"""The rule of a session, pure: start, commit, fail, abandon, terminate; opening is in ``opening.py``.

The Lua scripts of the session service are this rule in Redis; ``tests/property/test_session_lua.py`` drives both with the
same commands. A question that cannot be granted raises one of the refusals of ``session_refusals.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from interlock.domain.breaker import BreakerState, breaker_state
from interlock.domain.budget import FULL, Micros, charge
from interlock.domain.dag.dag import BRANCH, FAN_IN, LINEAR, NO_SEAL, Node, violations
from interlock.domain.dag.lineage import as_steps, trace_history
from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.above import Above, above_of
from interlock.domain.session.caller import spend
from interlock.domain.session.holding import freed
from interlock.domain.session.opening import FACTS_KEPT, Parents, check_limits, check_width, places, start_of
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.spending import NOTHING, Spending
from interlock.domain.session.spending_rule import charged
from interlock.domain.session.state import (
    VOID,
    CommitOutcome,
    Committed,
    CommitWindow,
    Effect,
    FailWindow,
    Lease,
    PolicyText,
    SessionState,
    Status,
    Terms,
)

States = Mapping[SessionId, SessionState]
"""Sessions of one tree by their ids: the one that is asked for, and its ancestors."""

Changed = dict[SessionId, SessionState]

UNTOLD_KEPT = 256
"""Settled windows that are remembered until it is acknowledged that their moves are on record, the latest ones."""


def new_session(terms: Terms, policy: PolicyText, budget: Micros = FULL) -> SessionState:
    """Return a session before its first window."""
    return SessionState(terms, policy, Status.ACTIVE, budget, spending=Spending(terms.spending))


def commit_window(states: States, ask: CommitWindow) -> tuple[Changed, Committed]:
    """Charge a sealed window, advance the session and lower its ancestors, once per window id.

    SPEC-012 §2, §5.3; SPEC-004 §3.3. A lease is no condition: it vouches for the place of its window, and a line whose
    parent nothing continues yet is settled without one too.
    """
    state = states.get(ask.session_id)
    if state is None:
        raise refusal("SESSION_STATE_LOST")
    if ask.ancestors != state.terms.ancestors:
        raise refusal("ANCESTORS_MISMATCH")
    above = above_of(states, state)
    for node, outcome in zip(state.nodes, state.outcomes, strict=True):
        if node.window_id == ask.window_id:
            return {}, _again(state, outcome, ask, above)
    if _set_back(state, ask) or _set_back_above(states, ask):
        raise refusal("SESSION_STATE_LOST")
    parents = _place(state, ask)
    outcome, cap = _settled(state, ask, parents, above)
    lowered, effects = _cascade(states, ask, state, outcome)
    if any(effect.before != effect.after or effect.status != states[effect.session_id].status for effect in effects):
        outcome = replace(outcome, ancestors=effects)
    settled = _advanced(state, ask, outcome, cap)
    if violations(settled.nodes):
        raise refusal("DAG_INVARIANT_VIOLATED")
    changed = _spent({**lowered, ask.session_id: settled}, ask)
    settled = changed[ask.session_id]
    return changed, _committed(settled, outcome, above_of({**states, **changed}, settled), duplicate=False)


def _spent(changed: Changed, ask: CommitWindow) -> Changed:
    """Return the settled sessions with what the window's model calls cost."""
    reserved = any(one.window_id == ask.window_id for each in changed.values() for one in each.spending.reserved)
    if ask.spent == NOTHING and not reserved:
        return changed
    return changed | charged(changed, ask.session_id, ask.ancestors, ask.window_id, ask.spent)


def _set_back(state: SessionState, ask: CommitWindow) -> bool:
    """Tell whether the store holds less than the audit chain: a higher budget, or fewer windows, those in flight included.

    A window that failed was never sealed: it stands for none that was.
    """
    flying = [lease for lease in (*state.leases, *state.expired) if lease.window_id != ask.window_id]
    sealed = sum(not node.failed for node in state.nodes)
    return state.budget > ask.chain.budget or sealed + len(flying) < ask.chain.sealed


def _set_back_above(states: States, ask: CommitWindow) -> bool:
    """Tell whether the store holds a session above as its audit chain does not: with more left, with less done, or not ended."""
    for session_id, chain in zip(ask.ancestors, ask.above, strict=False):
        one = states[session_id]
        done = sum(not node.failed for node in one.nodes) + len(one.leases) + len(one.expired)
        open_again = chain.ended and one.status is not Status.TERMINATED
        if one.budget > chain.budget or done < chain.sealed or open_again:
            return True
    return False


def _again(state: SessionState, outcome: CommitOutcome, ask: CommitWindow, above: Above) -> Committed:
    if (outcome.hmac, outcome.charge) != (ask.seal.hmac, ask.charge):
        raise refusal("WINDOW_ID_REUSED")
    return _committed(state, outcome, above, duplicate=True)


def _place(state: SessionState, ask: CommitWindow) -> Parents:
    """Return the parents of a window that has its place; everything but the seal is checked here."""
    parents = tuple(state.node(parent) for parent in ask.parent_ids)
    known = tuple(parent for parent in parents if parent and not parent.failed)
    if len(known) < len(parents):
        raise refusal("SESSION_STATE_LOST")  # the store lost the windows in between
    if not known and state.nodes:
        raise refusal("PARENT_NOT_TIP")
    if (not known and ask.pattern != LINEAR) or (len(known) > 1 and ask.pattern != FAN_IN):
        raise refusal("DAG_INVARIANT_VIOLATED")
    own = [lease for lease in (*state.leases, *state.expired) if lease.window_id == ask.window_id]
    if ask.pattern == LINEAR:
        _check_line(state, known, held=bool(own))
    number = max((parent.window_number for parent in known), default=0) + 1
    if ask.window_number != number:
        raise refusal("WINDOW_NUMBER_MISMATCH", number, ask.window_number)
    others = [lease for lease in (*state.leases, *state.expired) if lease.window_id != ask.window_id]
    mine = Lease(ask.window_id, 0, ask.pattern, ask.parent_ids)
    if not _beside(state, ask):
        check_limits(state, number, (*others, mine))
    if not own:
        check_width(state, mine, others)
    if ask.seal.hmac in {"", *(parent.seal.hmac for parent in known)}:
        raise refusal("DAG_INVARIANT_VIOLATED")
    if ask.policy and ask.policy.hash != state.policy.hash and ask.policy_base not in {None, state.policy.hash}:
        raise refusal("POLICY_MOVED")
    return known


def _beside(state: SessionState, ask: CommitWindow) -> bool:
    """Tell whether a window was sealed beside the one that took its place. A part of it has left, so a full session takes it too."""
    return ask.pattern == BRANCH and any(hold.window_id == ask.window_id for hold in state.holds)


def _check_line(state: SessionState, parents: Parents, *, held: bool) -> None:
    """Let one line continue a window: the first, or the one whose lease was there before anything else was."""
    for parent in parents:
        patterns = [node.pattern for node in state.below(parent.window_id) if not node.failed]
        if LINEAR in patterns or (patterns and not held):
            raise refusal("PARENT_NOT_TIP")


def _settled(state: SessionState, ask: CommitWindow, parents: Parents, above: Above) -> tuple[CommitOutcome, Micros]:
    """Return what the settlement does to the session, and the cap on what starts after it.

    Where costs add up in the tree, what the sessions above have left is all that there is (requirements.md, reading 13).
    """
    summing = state.sums(ask)
    start = Micros(min(start_of(state, parents), ask.ceiling, state.budget if summing else FULL))
    path = charge(above.holds(start, summing=state.terms.accumulate), ask.charge)
    budget, index, limits = Micros(min(state.budget, path)), len(state.nodes) + 1, state.terms.limits
    status = state.status
    last = ask.window_number >= limits.max_windows
    if status is not Status.TERMINATED:
        if breaker_state(budget) is BreakerState.OPEN:
            status = Status.HALTED
        elif index >= limits.max_dag_nodes or (last and not _goes_on(state, ask)):
            status = Status.TERMINATED
    outcome = CommitOutcome(
        index=index,
        path_budget=path,
        session_budget=budget,
        before=breaker_state(state.budget),
        status=status,
        charge=ask.charge,
        hmac=ask.seal.hmac,
        # None after the last window (SPEC-004 §11.4).
        continuation_id=ask.continuation_id if status is Status.ACTIVE and not last else None,
        number=ask.window_number,
    )
    return outcome, Micros(min(state.cap, budget) if summing else state.cap)


def _goes_on(state: SessionState, ask: CommitWindow) -> bool:
    """Tell whether another path can still be continued, or is in flight."""
    leases = [lease for lease in (*state.leases, *state.expired) if lease.window_id != ask.window_id]
    standing = [lease for lease in leases if not _lost(lease, ask)]
    continued = {parent for node in state.nodes if not node.failed for parent in node.parent_ids} | set(ask.parent_ids)
    return places(standing) > 0 or any(node.continuation_id and node.window_id not in continued for node in state.nodes)


def _cascade(
    states: States, ask: CommitWindow, state: SessionState, outcome: CommitOutcome
) -> tuple[Changed, tuple[Effect, ...]]:
    """Lower every ancestor to what the session below it has left (SPEC-012 §5.3), from the parent up to the root.

    Where costs add up they are taken off every ancestor. Otherwise a halted CRITICAL window costs the parent one
    CRITICAL decrement of its own first (requirements.md, reading 5).
    """
    below, changed, effects = outcome.session_budget, Changed(), []
    for level, session_id in enumerate(ask.ancestors):
        before = states[session_id]
        own = state.charge_above(ask, level)
        budget = Micros(min(charge(before.budget, own), below))
        cap = Micros(min(before.cap, budget if own else below))
        status = before.status
        if status is not Status.TERMINATED and breaker_state(budget) is BreakerState.OPEN:
            status = Status.HALTED
        changed[session_id] = replace(before, budget=budget, cap=cap, status=status)
        effects.append(Effect(session_id, before.budget, budget, status))
        below = budget
    return changed, tuple(effects)


def _advanced(state: SessionState, ask: CommitWindow, outcome: CommitOutcome, cap: Micros) -> SessionState:
    node = Node(
        window_id=ask.window_id,
        window_number=ask.window_number,
        parent_ids=ask.parent_ids,
        continuation_id=outcome.continuation_id,
        pattern=ask.pattern,
        safety_budget=outcome.path_budget,
        charge=ask.charge,
        seal=ask.seal,
        edges=ask.edges,
    )
    moved = ask.policy is not None and ask.policy.hash != state.policy.hash
    return replace(
        state,
        policy=ask.policy or state.policy,
        replaced=state.replaced | {state.policy} if moved else state.replaced,
        status=outcome.status,
        budget=outcome.session_budget,
        cap=cap,
        nodes=(*state.nodes, node),
        outcomes=(*state.outcomes, outcome),
        leases=tuple(_void(lease, ask) for lease in state.leases if lease.window_id != ask.window_id),
        expired=tuple(_void(lease, ask) for lease in state.expired if _waits(state, lease, ask)),
        facts=tuple(dict.fromkeys((*state.facts, *ask.facts)))[-FACTS_KEPT:],
        untold=(*state.untold, *([ask.window_id] if state.tells(outcome) else []))[-UNTOLD_KEPT:],
        late=state.late - set(ask.parent_ids),
        spent=spend(state.spent, ask.caller_period, ask.charge) if ask.caller_id else state.spent,
        holds=freed(state, ask.window_id).holds,
    )


def _lost(lease: Lease, ask: CommitWindow) -> bool:
    """Tell whether a lease lost its place to this window: of lines from one window only one can be sealed."""
    return ask.pattern == lease.pattern == LINEAR and lease.parent_ids == ask.parent_ids


def _waits(state: SessionState, lease: Lease, ask: CommitWindow) -> bool:
    """Tell whether a lease that ran out still has a window to look at: one that holds budget has, whoever took its place."""
    if lease.window_id == ask.window_id:
        return False
    return not _lost(lease, ask) or any(hold.window_id == lease.window_id for hold in state.holds)


def _void(lease: Lease, ask: CommitWindow) -> Lease:
    return replace(lease, pattern=VOID) if _lost(lease, ask) else lease


def _committed(state: SessionState, outcome: CommitOutcome, above: Above, *, duplicate: bool) -> Committed:
    nodes = state.nodes[: outcome.index]
    return Committed(
        terms=state.terms,
        policy_hash=state.policy.hash,
        outcome=outcome,
        duplicate=duplicate,
        pattern=nodes[-1].pattern,
        history=trace_history(as_steps(nodes), [outcome.index - 1]),
        left=above.holds(state.budget, summing=state.terms.accumulate),
        barrier=above.barrier,
    )


def fail_window(state: SessionState | None, ask: FailWindow) -> tuple[SessionState, bool]:
    """End the lease of a window that will never be sealed and leave a FAILED node; the answer says whether it did now.

    A root leaves none: the next window is the root. Without its lease only the asker knows where the window stood.
    """
    if state is None:
        raise refusal("SESSION_NOT_FOUND")
    if node := state.node(ask.window_id):
        if node.failed:
            return state, False
        raise refusal("WINDOW_SETTLED")
    own = [lease for lease in (*state.leases, *state.expired) if lease.window_id == ask.window_id]
    without = _freed(state, ask.window_id)
    lease = own[0] if own else Lease(ask.window_id, 0, ask.pattern, ask.parent_ids)
    if lease.pattern == VOID or not lease.parent_ids:
        return without, False
    parents = tuple(node for node in state.nodes if node.window_id in lease.parent_ids and not node.failed)
    if len(parents) < len(lease.parent_ids):
        raise refusal("SESSION_STATE_LOST")
    if not own and len(state.nodes) + places((*state.leases, *state.expired)) >= state.terms.limits.max_dag_nodes:
        return state, False
    number, index = max(parent.window_number for parent in parents) + 1, len(state.nodes) + 1
    path = start_of(state, parents)
    ended = index == state.terms.limits.max_dag_nodes and state.status is Status.ACTIVE
    status, breaker = Status.TERMINATED if ended else state.status, breaker_state(state.budget)
    node = Node(ask.window_id, number, lease.parent_ids, None, lease.pattern, path, Micros(0), NO_SEAL, (), ask.reason)
    outcome = CommitOutcome(index, path, state.budget, breaker, status, Micros(0), "", None, number)
    return replace(without, status=status, nodes=(*state.nodes, node), outcomes=(*state.outcomes, outcome)), True


def abandon_window(state: SessionState | None, window_id: WindowId) -> tuple[SessionState, bool]:
    """Give the lease of a window back that was never sealed; the answer says whether it was there."""
    if state is None:
        raise refusal("SESSION_NOT_FOUND")
    without = freed(_freed(state, window_id), window_id)
    return without, without.leases != state.leases or without.expired != state.expired


def _freed(state: SessionState, window_id: WindowId) -> SessionState:
    return replace(
        state,
        leases=tuple(lease for lease in state.leases if lease.window_id != window_id),
        expired=tuple(lease for lease in state.expired if lease.window_id != window_id),
    )


def acknowledge(state: SessionState | None, window_ids: Collection[WindowId]) -> tuple[SessionState, int]:
    """Note that what windows moved is on record; the answer says how many were waiting for it."""
    if state is None:
        raise refusal("SESSION_NOT_FOUND")
    left = tuple(window for window in state.untold if window not in window_ids)
    return replace(state, untold=left), len(state.untold) - len(left)


def terminate(state: SessionState | None) -> tuple[SessionState, bool]:
    """End a session for good; the answer says whether it ended now."""
    if state is None:
        raise refusal("SESSION_STATE_LOST")
    return replace(state, status=Status.TERMINATED), state.status is not Status.TERMINATED
