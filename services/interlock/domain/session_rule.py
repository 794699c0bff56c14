"""The rule of a session, pure: start, open, commit, abandon, terminate.

The Lua scripts of the session service are this rule in Redis; ``tests/property/test_session_lua.py`` drives both with the
same commands. A question that cannot be granted raises one of the refusals of ``session_refusals.py``.
"""

from __future__ import annotations

from dataclasses import replace

from interlock.domain.breaker import BreakerState, state_of
from interlock.domain.budget import FULL, OPEN_AT, Micros, charge
from interlock.domain.dag import LINEAR, Node, violations
from interlock.domain.ids import WindowId
from interlock.domain.session import (
    Committed,
    CommitWindow,
    Lease,
    Opened,
    OpenWindow,
    Outcome,
    PolicyText,
    SessionState,
    Status,
    Terms,
)
from interlock.domain.session_refusals import refusal

UNSETTLED_KEPT = 16
"""Expired leases that are remembered. More only wedge a session, never refill it: the audit log refuses a second seal."""


def new_session(terms: Terms, policy: PolicyText, budget: Micros = FULL) -> SessionState:
    """Return a session before its first window."""
    return SessionState(terms, policy, Status.ACTIVE, budget, (), (), None, ())


def open_window(state: SessionState | None, ask: OpenWindow) -> tuple[SessionState, Opened]:
    """Take the lease of the next window (SPEC-004 §4.2; SPEC-007 §5).

    A lease that ran out is taken over, and its window is named as unsettled: it may have been sealed.
    """
    state = _alive(state, ask)
    _check_chain(state, ask)
    _check_limits(state, state.tip_number + 1)
    if state.status is not Status.ACTIVE:
        raise refusal("SESSION_TERMINATED")
    waiting, named = _unsettled(state, ask)
    lease = Lease(ask.window_id, ask.now_ms + ask.lease_ms)
    tip = state.tip
    path = Micros(min(tip.safety_budget if tip else state.budget, ask.token_budget))
    opened = Opened(
        terms=state.terms,
        policy=state.policy,
        parent_id=tip.window_id if tip else None,
        parent_number=state.tip_number,
        parent_hmac=tip.seal.hmac if tip else "",
        path_budget=path,
        session_budget=Micros(min(state.budget, path)),
        unsettled=named,
        lineage=tuple(node.window_id for node in state.nodes),
        quality_history=tuple(node.seal.quality_tier for node in state.nodes),
    )
    return replace(state, lease=lease, unsettled=waiting), opened


def _alive(state: SessionState | None, ask: OpenWindow) -> SessionState:
    """Return *state* when it is there and its breaker is not open; that comes first (SPEC-012 §5: nothing more accepted)."""
    if state is None or ask.token_window > state.tip_number:
        raise refusal("SESSION_STATE_LOST")
    if (left := min(state.budget, ask.token_budget)) <= OPEN_AT:
        raise refusal("BUDGET_DEPLETED", left)
    return state


def _check_limits(state: SessionState, number: int) -> None:
    limits, nodes = state.terms.limits, len(state.nodes) + 1
    if number > limits.max_windows:
        raise refusal("MAX_WINDOWS_EXCEEDED", limits.max_windows, number)
    if nodes > limits.max_dag_nodes:
        raise refusal("MAX_DAG_NODES_EXCEEDED", limits.max_dag_nodes, nodes)


def _check_chain(state: SessionState, ask: OpenWindow) -> None:
    """Hold the token against the window that its continuation points to (requirements.md, reading 8)."""
    target = _target(state, ask)
    number, hmac = (target.window_number, target.seal.hmac) if target else (0, "")
    if (number, hmac) != (ask.token_window, ask.token_tip):
        raise refusal("CONTINUATION_MISMATCH", ask.token_window, number)
    if target is not state.tip:
        raise refusal("TOKEN_REPLAYED", ask.token_window, state.tip_number)
    if ask.token_policy_hash != state.policy.hash:
        raise refusal("POLICY_HASH_MISMATCH")


def _target(state: SessionState, ask: OpenWindow) -> Node | None:
    wanted = ask.continuation_id or ask.token_continuation_id
    if wanted is None:
        # The token of a new session, or of a window that was the last one.
        return state.tip if ask.token_window else None
    for node in state.nodes:
        if node.continuation_id == wanted:
            return node
    # We signed that id, so the store lost the window it points to; any other id is simply not of this session.
    raise refusal("SESSION_STATE_LOST" if wanted == ask.token_continuation_id else "CONTINUATION_NOT_FOUND")


def _unsettled(state: SessionState, ask: OpenWindow) -> tuple[tuple[WindowId, ...], WindowId | None]:
    """Return the windows whose leases ran out on this tip, and the one to look at now: each opening names another."""
    waiting, named, lease = list(state.unsettled), None, state.lease
    if lease and lease.window_id != ask.window_id:
        if lease.until_ms > ask.now_ms:
            raise refusal("WINDOW_IN_FLIGHT", lease.until_ms - ask.now_ms)
        named = lease.window_id
    elif waiting:
        named = waiting.pop(0)
    if named:
        waiting.append(named)
    return tuple(waiting[-UNSETTLED_KEPT:]), named


def commit_window(state: SessionState | None, ask: CommitWindow) -> tuple[SessionState, Committed]:
    """Charge a sealed window and advance the session, once per window id (SPEC-012 §2; SPEC-004 §3.3).

    The lease does not matter: whose parent is still the tip is settled, whoever holds the lease.
    """
    if state is None:
        raise refusal("SESSION_STATE_LOST")
    for node, outcome in zip(state.nodes, state.outcomes, strict=True):
        if node.window_id == ask.window_id:
            return state, _again(state, outcome, ask)
    _check_place(state, ask)
    outcome = _settled(state, ask)
    settled = _advanced(state, ask, outcome)
    if violations(settled.nodes):
        raise refusal("DAG_INVARIANT_VIOLATED")
    return settled, _committed(settled, outcome, duplicate=False)


def _again(state: SessionState, outcome: Outcome, ask: CommitWindow) -> Committed:
    if (outcome.hmac, outcome.charge) != (ask.seal.hmac, ask.charge):
        raise refusal("WINDOW_ID_REUSED")
    return _committed(state, outcome, duplicate=True)


def _check_place(state: SessionState, ask: CommitWindow) -> None:
    tip = state.tip
    if ask.parent_ids != ((tip.window_id,) if tip else ()):
        # A parent that is not there yet: the store lost the windows in between.
        lost = ask.window_number > state.tip_number + 1
        raise refusal("SESSION_STATE_LOST" if lost else "PARENT_NOT_TIP")
    if ask.window_number != state.tip_number + 1:
        raise refusal("WINDOW_NUMBER_MISMATCH", state.tip_number + 1, ask.window_number)
    _check_limits(state, ask.window_number)


def _settled(state: SessionState, ask: CommitWindow) -> Outcome:
    path = charge(Micros(min(state.tip.safety_budget if state.tip else state.budget, ask.ceiling)), ask.charge)
    budget, index, limits = Micros(min(state.budget, path)), len(state.nodes) + 1, state.terms.limits
    status = state.status
    if status is not Status.TERMINATED:
        if state_of(budget) is BreakerState.OPEN:
            status = Status.HALTED
        elif ask.window_number == limits.max_windows or index == limits.max_dag_nodes:
            status = Status.TERMINATED
    return Outcome(
        index=index,
        path_budget=path,
        session_budget=budget,
        before=state_of(state.budget),
        status=status,
        charge=ask.charge,
        hmac=ask.seal.hmac,
        # None after the last window (SPEC-004 §11.4).
        continuation_id=ask.continuation_id if status is Status.ACTIVE else None,
    )


def _advanced(state: SessionState, ask: CommitWindow, outcome: Outcome) -> SessionState:
    node = Node(
        window_id=ask.window_id,
        window_number=ask.window_number,
        parent_ids=ask.parent_ids,
        continuation_id=outcome.continuation_id,
        pattern=LINEAR,
        safety_budget=outcome.path_budget,
        charge=ask.charge,
        seal=ask.seal,
    )
    return replace(
        state,
        policy=ask.policy or state.policy,
        status=outcome.status,
        budget=outcome.session_budget,
        nodes=(*state.nodes, node),
        outcomes=(*state.outcomes, outcome),
        lease=None if state.lease and state.lease.window_id == ask.window_id else state.lease,
        unsettled=(),  # only one child of a tip can be sealed, and this is it
    )


def _committed(state: SessionState, outcome: Outcome, *, duplicate: bool) -> Committed:
    nodes = state.nodes[: outcome.index]
    return Committed(
        terms=state.terms,
        policy_hash=state.policy.hash,
        outcome=outcome,
        duplicate=duplicate,
        lineage=tuple(node.window_id for node in nodes),
        quality_history=tuple(node.seal.quality_tier for node in nodes),
    )


def abandon_window(state: SessionState | None, window_id: WindowId) -> tuple[SessionState, bool]:
    """Give the lease of a window back that was never sealed; the answer says whether it was held."""
    if state is None:
        raise refusal("SESSION_NOT_FOUND")
    held = state.lease is not None and state.lease.window_id == window_id
    return (replace(state, lease=None) if held else state), held


def terminate(state: SessionState | None) -> tuple[SessionState, bool]:
    """End a session for good; the answer says whether it ended now."""
    if state is None:
        raise refusal("SESSION_STATE_LOST")
    return replace(state, status=Status.TERMINATED), state.status is not Status.TERMINATED
