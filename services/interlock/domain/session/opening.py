"""The rule of opening a window: where it stands in the DAG, and the lease of its place (SPEC-004 §4 to §7, §11).

``open.lua`` is this rule in Redis. Places are reserved here: windows, leases and expired leases together stay within the
limits, so that a window that was sealed always finds its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from interlock.domain.budget import FULL, OPEN_AT, Micros
from interlock.domain.dag.dag import BRANCH, COMPLETED, FAN_IN, FAN_OUT, LINEAR, Node
from interlock.domain.dag.lineage import as_steps, closure, trace_history
from interlock.domain.errors import Refused
from interlock.domain.ids import ContinuationId, SessionId, WindowId
from interlock.domain.session.above import Above, above_of, check_above
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.standing import links_of
from interlock.domain.session.state import VOID, Lease, OpenedWindow, OpenWindow, Parent, SessionState, Status

UNSETTLED_KEPT = 16
"""Expired leases of lines that are remembered. More only wedge a session, never refill it: the audit log refuses a
second seal. Those of parallel windows hold a place each and are all kept."""

FACTS_KEPT = 4096
"""Digests of facts that a session remembers, the latest ones; a fact that is forgotten is merely told again."""

Parents = tuple[Node, ...]


def open_window(states: Mapping[SessionId, SessionState], ask: OpenWindow) -> tuple[SessionState, OpenedWindow]:
    """Take the lease of the next window (SPEC-004 §4.2; SPEC-007 §5). *states* has the session and those above it.

    A lease that ran out is taken over, and its window is named as unsettled: it may have been sealed.
    """
    state = _alive(states.get(ask.session_id), ask)
    check_above(above := above_of(states, state))
    parents, left_out = _fan_in(state, ask) if ask.pattern == FAN_IN else (_parent(state, ask), ())
    if ask.token_policy_hash != state.policy.hash:
        raise refusal("POLICY_HASH_MISMATCH")
    ids = tuple(sorted(parent.window_id for parent in parents))
    lease = Lease(ask.window_id, ask.now_ms + ask.lease_ms, ask.pattern, ids)
    live, waiting, lapsed = _leases(state, ask)
    check_limits(state, _number(parents), (*live, *waiting, lease), left_open=waiting)
    if state.status is not Status.ACTIVE:
        raise refusal("SESSION_TERMINATED")
    check_width(state, lease, (*live, *waiting), left_open=waiting)
    _check_flight(live, lease, ask.now_ms)
    opened = _opened(state, ask, parents, left_out, lapsed, above=above)
    limited = any(states[each].spending.limits for each in (ask.session_id, *state.terms.ancestors))
    return replace(state, leases=(*live, lease), expired=waiting), replace(opened, limited=limited)


def _opened(
    state: SessionState,
    ask: OpenWindow,
    parents: Parents,
    left_out: tuple[WindowId, ...],
    lapsed: Lease | None,
    *,
    above: Above,
) -> OpenedWindow:
    path = above.holds(_path(state, ask, parents), summing=state.terms.accumulate)
    places = [at for at, node in enumerate(state.nodes) if node in parents]
    return OpenedWindow(
        terms=state.terms,
        policy=state.policy,
        pattern=ask.pattern,
        parents=tuple(sorted((_told(node) for node in parents), key=lambda parent: parent.window_id)),
        path_budget=path,
        session_budget=Micros(min(state.budget - _held_by_others(state, ask), ask.token_budget, path)),
        lapsed=lapsed,
        left_out=left_out,
        facts=state.facts,
        history=trace_history(as_steps(state.nodes), places),
        untold=state.untold,
        links=links_of(state.nodes) if ask.linked else None,
        lapsed_hold=Micros(sum(hold.amount for hold in state.holds if lapsed and hold.window_id == lapsed.window_id)),
    )


def _path(state: SessionState, ask: OpenWindow, parents: Parents) -> Micros:
    """Return what the window's path starts with. A token tells the session's budget, which a path may be above.

    One that tells less than the session has vouches for a charge that the store lost: then no path has more than it tells.
    """
    bound = ask.token_budget if ask.token_budget < state.budget else FULL
    return Micros(min(start_of(state, parents), ask.path_ceiling, bound))


def _told(node: Node) -> Parent:
    seal = node.seal
    return Parent(node.window_id, node.window_number, seal.hmac, seal.quality_tier, seal.status, node.safety_budget)


def start_of(state: SessionState, parents: Parents) -> Micros:
    """Return the budget that a window on these parents starts from: the lowest of their paths (SPEC-004 §6.4)."""
    paths = [parent.safety_budget for parent in parents] or [state.budget]
    return Micros(min([*paths, state.cap]))


def _number(parents: Parents) -> int:
    return max((parent.window_number for parent in parents), default=0) + 1


def _alive(state: SessionState | None, ask: OpenWindow) -> SessionState:
    """Return *state* when it is there and its breaker is not open; that comes first (SPEC-012 §5: nothing more accepted)."""
    if state is None or ask.token_window > state.tip_number:
        raise refusal("SESSION_STATE_LOST")
    if (left := min(state.budget, ask.token_budget)) <= OPEN_AT:
        raise refusal("BUDGET_DEPLETED", left, holding_text(state, _leases(state, ask)[1]))
    if left - _held_by_others(state, ask) <= OPEN_AT:
        raise refusal("BUDGET_HELD", 0, holding_text(state, _leases(state, ask)[1]))
    return state


def _held_by_others(state: SessionState, ask: OpenWindow) -> int:
    return sum(hold.amount for hold in state.holds if hold.window_id != ask.window_id)


def check_limits(state: SessionState, number: int, leases: Iterable[Lease], left_open: Sequence[Lease] = ()) -> None:
    """Refuse a number beyond max_windows, and leases that with the windows there are more than max_dag_nodes.

    Nothing opens a window of a session that is full: whoever is refused is told of the leases that ran out, *left_open*, and has
    their windows settled.
    """
    limits, nodes = state.terms.limits, len(state.nodes) + places(leases)
    if number > limits.max_windows:
        raise _full("MAX_WINDOWS_EXCEEDED", limits.max_windows, number, left_open)
    if nodes > limits.max_dag_nodes:
        raise _full("MAX_DAG_NODES_EXCEEDED", limits.max_dag_nodes, nodes, left_open)


def left_open_text(leases: Iterable[Lease]) -> str:
    """Return leases that ran out as words: ``<window> <pattern> <parents joined by +, or ->``, joined by commas."""
    return ",".join(f"{lease.window_id} {lease.pattern} {'+'.join(lease.parent_ids) or '-'}" for lease in leases)


def holding_text(state: SessionState, left_open: Iterable[Lease]) -> str:
    """Return those of the leases that ran out, *left_open*, whose windows still hold something, as words."""
    holding = {hold.window_id for hold in state.holds}
    return left_open_text(lease for lease in left_open if lease.window_id in holding)


def _full(reason: str, most: int, attempted: int, left_open: Sequence[Lease]) -> Refused:
    return refusal(reason, most, f"{attempted} {left_open_text(left_open)}".rstrip())


def places(leases: Iterable[Lease]) -> int:
    """Return how many windows these leases can still become: of lines from one window only one is ever sealed."""
    leases = [lease for lease in leases if lease.pattern != VOID]
    lines = {lease.parent_ids for lease in leases if lease.pattern == LINEAR}
    return len(lines) + sum(lease.pattern != LINEAR for lease in leases)


def check_width(state: SessionState, lease: Lease, others: Iterable[Lease], left_open: Sequence[Lease] = ()) -> None:
    """Refuse more children of one window than max_fan_out (SPEC-004 §11.2). A line and a fan-in add no width."""
    if lease.pattern not in {FAN_OUT, BRANCH}:
        return
    (parent,) = lease.parent_ids
    siblings = [other.pattern for other in others if other.pattern != VOID and parent in other.parent_ids]
    siblings += [node.pattern for node in state.below(parent)]
    width = 1 + sum(pattern == FAN_OUT or lease.pattern == BRANCH for pattern in siblings)
    if width > state.terms.limits.max_fan_out:
        raise _full("MAX_FAN_OUT_EXCEEDED", state.terms.limits.max_fan_out, width, left_open)


def _check_flight(live: Iterable[Lease], lease: Lease, now_ms: int) -> None:
    """Refuse while a window is in flight that this one cannot run in parallel with."""
    if lease.pattern == BRANCH:
        return
    waits = [
        other.until_ms - now_ms
        for other in live
        if other.pattern != VOID
        and not (lease.pattern == other.pattern == FAN_OUT)
        and (set(other.parent_ids) & set(lease.parent_ids) or other.parent_ids == lease.parent_ids)
    ]
    if waits:
        raise refusal("WINDOW_IN_FLIGHT", max(waits))


def _parent(state: SessionState, ask: OpenWindow) -> Parents:
    """Return the one window that is continued, none for the root; the token must be its own (reading 8)."""
    target = _target(state, ask)
    number, hmac = (target.window_number, target.seal.hmac) if target else (0, "")
    if (number, hmac) != (ask.token_window, ask.token_tip):
        raise refusal("CONTINUATION_MISMATCH", ask.token_window, number)
    if target is None:
        if state.nodes:
            _check_late(state, ask, [node for node in state.nodes if not node.parent_ids])
            raise refusal("TOKEN_REPLAYED", ask.token_window, state.tip_number)
        if ask.pattern != LINEAR:
            raise refusal("PATTERN_NEEDS_PARENT")
        return ()
    patterns = [node.pattern for node in state.below(target.window_id) if not node.failed]
    if ask.pattern == BRANCH:
        if not patterns:
            raise refusal("NOTHING_TO_BRANCH_FROM")
    elif [pattern for pattern in patterns if not pattern == ask.pattern == FAN_OUT]:
        _check_late(state, ask, state.below(target.window_id))
        raise refusal("TOKEN_REPLAYED", ask.token_window, state.tip_number)
    return (target,)


def _check_late(state: SessionState, ask: OpenWindow, below: Iterable[Node]) -> None:
    """Name the line that a restore settled: the caller that asks for its place again never got its answer."""
    for node in below:
        if ask.pattern == node.pattern == LINEAR and node.window_id in state.late:
            raise refusal("WINDOW_SETTLED_LATE", node.window_id)


def _target(state: SessionState, ask: OpenWindow) -> Node | None:
    wanted = ask.continuation_id or ask.token_continuation_id
    if wanted is None:
        # The token of a new session, or of a window that was the last one.
        return state.tip if ask.token_window else None
    return _pointed(state, ask, wanted)


def _pointed(state: SessionState, ask: OpenWindow, wanted: ContinuationId) -> Node:
    for node in state.nodes:
        if node.continuation_id == wanted:
            return node
    # We signed that id, so the store lost the window it points to; any other id is simply not of this session.
    raise refusal("SESSION_STATE_LOST" if wanted == ask.token_continuation_id else "CONTINUATION_NOT_FOUND")


def _fan_in(state: SessionState, ask: OpenWindow) -> tuple[Parents, tuple[WindowId, ...]]:
    """Return the windows that meet, and the ids of those that a partial fan-in leaves out (SPEC-004 §7, §16.3)."""
    given = _given(state, ask)
    steps = as_steps(state.nodes)
    at = {node.window_id: place for place, node in enumerate(state.nodes)}
    above = [closure(steps, steps[at[node.window_id]].parents) for node in given]
    if any(at[node.window_id] in each for node in given for each in above):
        raise refusal("FAN_IN_RELATED")
    if any(not child.failed for node in given for child in state.below(node.window_id)):
        raise refusal("TOKEN_REPLAYED", ask.token_window, state.tip_number)
    kept = tuple(node for node in given if node.seal.status == COMPLETED)
    missing = {node.window_id for node in given} - {node.window_id for node in kept}
    common = set.intersection(*above)
    if common:
        nearest = state.nodes[max(common, key=lambda place: (steps[place].number, place))].window_id
        covered = closure(steps, [at[node.window_id] for node in kept])
        missing |= {
            n.window_id for n in state.below(nearest) if n.pattern == FAN_OUT and at[n.window_id] not in covered
        }
        leases = (lease for lease in (*state.leases, *state.expired) if lease.window_id != ask.window_id)
        missing |= {lease.window_id for lease in leases if lease.pattern == FAN_OUT and nearest in lease.parent_ids}
    left_out = tuple(sorted(missing))
    if not kept or (left_out and not ask.partial):
        raise refusal("FAN_IN_INCOMPLETE", ",".join(left_out))
    return kept, left_out


def _given(state: SessionState, ask: OpenWindow) -> Parents:
    """Return the windows of the presented pointers: few enough, each once, the token's own among them."""
    pointers, most = ask.continuation_ids, state.terms.limits.max_fan_out
    if len(pointers) > most:
        raise refusal("MAX_FAN_OUT_EXCEEDED", most, len(pointers))
    if len(pointers) < (1 if ask.partial else 2):
        raise refusal("FAN_IN_TOO_FEW", len(pointers))
    given = tuple(_pointed(state, ask, pointer) for pointer in pointers)
    if len(set(pointers)) < len(pointers):
        raise refusal("FAN_IN_DUPLICATE")
    own = [node for node in given if node.continuation_id == ask.token_continuation_id]
    if [(node.window_number, node.seal.hmac) for node in own] != [(ask.token_window, ask.token_tip)]:
        raise refusal("CONTINUATION_MISMATCH", ask.token_window, own[0].window_number if own else 0)
    return given


def _leases(state: SessionState, ask: OpenWindow) -> tuple[tuple[Lease, ...], tuple[Lease, ...], Lease | None]:
    """Return the leases of others that are held, those that ran out, and the window to look at now.

    Each opening names another one of those that ran out, so that all of them are looked at in turn. One that holds budget comes first,
    whether or not its place was taken meanwhile: nothing else closes its hold.
    """
    holding = {hold.window_id for hold in state.holds}
    others = [lease for lease in state.leases if lease.window_id != ask.window_id]
    live = tuple(lease for lease in others if lease.until_ms > ask.now_ms)
    over = [lease for lease in others if lease.until_ms <= ask.now_ms]
    over = [lease for lease in over if lease.pattern != VOID or lease.window_id in holding]
    waiting = over + [lease for lease in (*state.expired, *_bare(state)) if lease.window_id != ask.window_id]
    first = next((lease for lease in waiting if lease.window_id in holding), waiting[0] if waiting else None)
    behind = [lease for lease in waiting if lease is not first] + ([first] if first else [])
    return live, _kept(behind, holding), first


def _bare(state: SessionState) -> list[Lease]:
    """Return a lease that ran out for each hold that has none: older code dropped those whose place was taken."""
    leased = {lease.window_id for lease in (*state.leases, *state.expired)}
    return [Lease(hold.window_id, 0, VOID) for hold in state.holds if hold.window_id not in leased]


def _kept(waiting: list[Lease], holding: Collection[WindowId]) -> tuple[Lease, ...]:
    lines = sum(lease.pattern == LINEAR for lease in waiting)
    kept = []
    for lease in waiting:
        if lease.pattern == LINEAR and lines > UNSETTLED_KEPT and lease.window_id not in holding:
            lines -= 1
        else:
            kept.append(lease)
    return tuple(kept)
