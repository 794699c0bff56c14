"""Rebuilding the sessions of a tree from the audit chain, pure (BUD-4, BUD-9; reliability.md I1, A-02; docs/adr/0012).

What the chain says is replayed through the rule of ``session_rule.py``; what a store still holds is merged with it: budgets
are the lower of both, and whatever went further stays. Merging is idempotent, and it takes nothing back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from interlock.domain.breaker import BreakerState, breaker_state
from interlock.domain.budget import Micros
from interlock.domain.dag.dag import BRANCH, LINEAR, Node
from interlock.domain.errors import Refused, conflict, invalid
from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.caller import PERIODS_KEPT, Spent
from interlock.domain.session.hold import BudgetHold
from interlock.domain.session.opening import FACTS_KEPT
from interlock.domain.session.rule import UNTOLD_KEPT, commit_window, fail_window, new_session, terminate
from interlock.domain.session.session_policy import tightened
from interlock.domain.session.spending import Amount, Reservation, SpendingLimits, merged_spending
from interlock.domain.session.spending_rule import charged
from interlock.domain.session.state import (
    VOID,
    CommitOutcome,
    CommitWindow,
    FailWindow,
    Lease,
    PolicyText,
    SessionState,
    Status,
    Terms,
)

INCOMPLETE = "RECORD_INCOMPLETE"


@dataclass(frozen=True)
class SessionBegan:
    """A session began, with its first budget; a child used up a grant, and the approval of that where it needed one."""

    terms: Terms
    policy: PolicyText
    budget: Micros
    grant_id: str = ""
    approval_id: str = ""

    @property
    def session_id(self) -> SessionId:
        """The session."""
        return self.terms.session_id


@dataclass(frozen=True)
class Unrecorded:
    """A session began whose terms are not on record: it was made by older code. It cannot be rebuilt, only verified."""

    session_id: SessionId


@dataclass(frozen=True)
class Ended:
    """A session was ended by its client."""

    session_id: SessionId


@dataclass(frozen=True)
class StreamBegan:
    """A part of a window's answer was released before the window was sealed: it holds the most that it may cost."""

    session_id: SessionId
    hold: BudgetHold
    lease: Lease


@dataclass(frozen=True)
class Lowered:
    """A settlement below left a session this budget. The settlement itself is replayed too: this is what it came to."""

    session_id: SessionId
    budget: Micros


@dataclass(frozen=True)
class SpentApart:
    """Model calls of a window that has no seal yet were reserved, or charged where it never gets one."""

    session_id: SessionId
    window_id: WindowId
    amount: Amount
    limits: SpendingLimits
    final: bool


Step = SessionBegan | Unrecorded | CommitWindow | FailWindow | Ended | Lowered | StreamBegan | SpentApart

Rebuilt = dict[SessionId, SessionState]


def replayed(root: SessionId, steps: Iterable[Step]) -> Rebuilt:
    """Return every session of the tree of *root* as its steps, in the order in which they were logged, leave it.

    Refused with RECORD_INCOMPLETE for steps that do not make up whole sessions of one tree.
    """
    states: Rebuilt = {}
    logged = list(steps)
    for step, following in zip(logged, _followed(logged), strict=True):
        try:
            states.update(_after(states, root, step, following))
        except Refused as refused:
            if refused.reason == INCOMPLETE:
                raise
            raise _incomplete(step.session_id, refused.reason) from None
    if root not in states:
        raise _incomplete(root, "NO_ROOT")
    return states


def _followed(steps: Sequence[Step]) -> list[Lease | None]:
    """Return for each step the lease of the next window of its session: it was in flight, or the session went on for it."""
    found: list[Lease | None] = []
    latest: dict[SessionId, Lease] = {}
    for step in reversed(steps):
        found.append(latest.get(step.session_id))
        if isinstance(step, CommitWindow | FailWindow):
            latest[step.session_id] = Lease(step.window_id, 0, step.pattern, step.parent_ids)
    return found[::-1]


def ended(steps: Iterable[Step]) -> frozenset[SessionId]:
    """Return the sessions that their clients ended."""
    return frozenset(step.session_id for step in steps if isinstance(step, Ended))


def _after(states: Rebuilt, root: SessionId, step: Step, following: Lease | None) -> Rebuilt:
    """Return the sessions that *step* changes."""
    if isinstance(step, SessionBegan):
        return _created(states, root, step)
    state = states.get(step.session_id)
    if state is None:
        raise _incomplete(step.session_id, "NOT_CREATED")
    if isinstance(step, CommitWindow):
        return _settled(states, state, step, following)
    if isinstance(step, FailWindow):
        # A window that was sealed has not failed, whatever was written down about it.
        sealed = any(node.window_id == step.window_id and not node.failed for node in state.nodes)
        return {} if sealed else {step.session_id: fail_window(state, step)[0]}
    if isinstance(step, SpentApart):
        return _spent_apart(states, state, step)
    return {step.session_id: _moved(state, step)}


def _moved(state: SessionState, step: Step) -> SessionState:
    """Return a session after a step that changes no other."""
    if isinstance(step, Ended):
        return terminate(state)[0]
    if isinstance(step, StreamBegan):
        return _streaming(state, step)
    if isinstance(step, Lowered):
        return _lowered(state, step.budget)
    raise _incomplete(step.session_id, "UNRECORDED")


def _streaming(state: SessionState, step: StreamBegan) -> SessionState:
    """Return a session with the hold of a window, and its lease: when that runs out, the window is closed at what it holds."""
    known = {node.window_id for node in state.nodes} | {hold.window_id for hold in state.holds}
    if step.hold.window_id in known:
        return state
    lease = _still([step.lease], state.nodes, {step.hold.window_id})  # another window may have its place
    return replace(state, leases=(*state.leases, *lease), holds=(*state.holds, step.hold))


def _spent_apart(states: Rebuilt, state: SessionState, step: SpentApart) -> Rebuilt:
    """Return the sessions with a reservation, whatever their limits are: it was granted; or with a charge in place of one."""
    window, ancestors = step.window_id, state.terms.ancestors
    path = (step.session_id, *ancestors)
    if state.node(window) or any(window in states[each].spending.closed for each in path):
        return {}
    if step.final:
        return _closed(charged(states, step.session_id, ancestors, window, step.amount), path, window)
    changed: Rebuilt = {}
    for each in path:
        spending = states[each].spending.without(window)
        limits = spending.limits.tightened(step.limits) if each == step.session_id else spending.limits
        reserved = (*spending.reserved, Reservation(window, step.amount))
        changed[each] = replace(states[each], spending=replace(spending, reserved=reserved, limits=limits))
    return changed


def _closed(states: Rebuilt, path: Iterable[SessionId], window: WindowId) -> Rebuilt:
    """Return the sessions with a window that is settled: what a store still reserves for it is over."""
    spent = {each: states[each].spending for each in path}
    closed = {each: replace(one, closed=one.closed | {window}) for each, one in spent.items()}
    return states | {each: replace(states[each], spending=closed[each]) for each in closed}


def _lowered(state: SessionState, told: Micros) -> SessionState:
    """Return a session with no more than a cascade left it, whatever order the settlements had."""
    budget = Micros(min(state.budget, told))
    status = max(state.status, Status.HALTED) if breaker_state(budget) is BreakerState.OPEN else state.status
    return replace(state, budget=budget, cap=Micros(min(state.cap, told)), status=status)


def _created(states: Rebuilt, root: SessionId, step: SessionBegan) -> Rebuilt:
    """Return a new session and its parent. What a child was checked against is not checked again: it was there."""
    session_id, ancestors = step.session_id, step.terms.ancestors
    first = new_session(step.terms, step.policy, step.budget)
    if step.terms.root_session_id != root or (not ancestors) != (session_id == root) or session_id in states:
        raise _incomplete(session_id, "MISPLACED")
    if not ancestors:
        return {session_id: first}
    parent = states.get(ancestors[0])
    if parent is None or (parent.terms.session_id, *parent.terms.ancestors) != ancestors:
        raise _incomplete(session_id, "NO_PARENT")
    used = replace(
        parent,
        children=(*parent.children, session_id),
        grants=parent.grants | {(step.grant_id, session_id)},
        approvals=parent.approvals | ({step.approval_id} if step.approval_id else set()),
    )
    return {ancestors[0]: used, session_id: first}


def _settled(states: Rebuilt, state: SessionState, ask: CommitWindow, following: Lease | None) -> Rebuilt:
    """Settle a window that was sealed. It had its lease, or it would not have been opened."""
    policy = ask.policy
    if policy and policy.hash != state.policy.hash:
        policy = tightened(state.policy, policy)
    own = Lease(ask.window_id, 0, ask.pattern, ask.parent_ids)
    streaming = _holding(state.leases, state)
    # What follows in a full session was sealed beside the window in its place, and so may a branch be: such a one held budget.
    room = len(state.nodes) + 1 < state.terms.limits.max_dag_nodes
    flying = [following] if following and room else []
    beside = [BudgetHold(ask.window_id, Micros(0))] if ask.pattern == BRANCH else []
    held = replace(state, leases=(own, *flying, *streaming), holds=(*state.holds, *beside))
    asked = replace(ask, policy=policy, policy_base=None)
    changed = commit_window({**states, ask.session_id: held}, asked)[0]
    if not changed:
        raise _incomplete(ask.session_id, "SEALED_TWICE")
    changed = _closed(changed, (ask.session_id, *ask.ancestors), ask.window_id)
    return {**changed, ask.session_id: _with_streams(changed[ask.session_id], streaming)}


def _with_streams(settled: SessionState, streaming: tuple[Lease, ...]) -> SessionState:
    """Return a session with no lease but those of windows that hold something, void where their place was taken now."""
    left = {lease.window_id: lease for lease in settled.leases}  # the streams are the last of them
    kept = [left[lease.window_id] for lease in streaming if lease.window_id in left]
    return replace(settled, leases=_holding(kept, settled))


def _holding(leases: Iterable[Lease], state: SessionState) -> tuple[Lease, ...]:
    held = {hold.window_id for hold in state.holds}
    return tuple(lease for lease in leases if lease.window_id in held)


def merged(stored: SessionState | None, rebuilt: SessionState, *, ended: bool = False) -> SessionState:
    """Return what a store shall hold of a session: all that it holds and all that the chain says, at the lower budget.

    *ended* tells that its client ended it. Refused with RECORD_BEHIND when each of the two knows of a sealed window that the other lacks: the chain was read before
    the latest seal, and budgets of different windows cannot be joined.
    """
    if stored is None:
        spending = replace(rebuilt.spending, closed=frozenset())
        blank = replace(rebuilt, nodes=(), outcomes=(), untold=(), spending=spending)
        return _with_windows(blank, rebuilt, budget=rebuilt.budget, status=rebuilt.status)
    budget = Micros(min(stored.budget, rebuilt.budget))
    known = {node.window_id for node in stored.nodes}
    behind = any(node.window_id not in known for node in rebuilt.nodes)
    told = {node.window_id for node in rebuilt.nodes}
    # The last window ends a session unless others are in flight, and of those only the store knows.
    flying = not (behind or ended) and rebuilt.status is Status.TERMINATED and bool(stored.leases or stored.expired)
    status = stored.status if flying else max(stored.status, rebuilt.status)
    if breaker_state(budget) is BreakerState.OPEN:
        status = max(status, Status.HALTED)
    if behind and any(node.window_id not in told for node in stored.nodes if not node.failed):
        raise conflict("RECORD_BEHIND", "the session went on since the record of its tree was read; read it again")
    whole = replace(
        stored,
        terms=rebuilt.terms,
        policy=_policy(stored, rebuilt) if behind else stored.policy,
        cap=Micros(min(stored.cap, rebuilt.cap)),
        children=tuple(dict.fromkeys((*stored.children, *rebuilt.children))),
        grants=stored.grants | rebuilt.grants,
        approvals=stored.approvals | rebuilt.approvals,
        spent=_spent(stored, rebuilt),
        spending=merged_spending(stored.spending, rebuilt.spending, settled=known),
        facts=tuple(dict.fromkeys((*stored.facts, *rebuilt.facts)))[-FACTS_KEPT:] if behind else stored.facts,
    )
    whole = _with_holds(whole, rebuilt)
    gone = {text for text in stored.replaced | rebuilt.replaced | {stored.policy} if text != whole.policy}
    whole = replace(whole, replaced=frozenset(gone) if behind else stored.replaced)
    return _with_windows(whole, rebuilt, budget=budget, status=status)


def _with_holds(state: SessionState, rebuilt: SessionState) -> SessionState:
    """Return a session with the holds of the chain that it lacks, and their leases; those that are settled go with their windows."""
    held = {hold.window_id for hold in state.holds}
    settled = {node.window_id for node in state.nodes}
    lacking = tuple(hold for hold in rebuilt.holds if hold.window_id not in held | settled)
    there = {lease.window_id for lease in (*state.leases, *state.expired)}
    leases = (
        lease for lease in _holding(rebuilt.leases, replace(rebuilt, holds=lacking)) if lease.window_id not in there
    )
    return replace(state, holds=(*state.holds, *lacking), leases=(*state.leases, *leases))


def _spent(stored: SessionState, rebuilt: SessionState) -> Spent:
    """Return the higher of both sums of each period: one of the two knows every window of the other."""
    told = dict(stored.spent)
    for period, amount in rebuilt.spent:
        told[period] = Micros(max(told.get(period, 0), amount))
    return tuple(sorted(told.items()))[-PERIODS_KEPT:]


def _policy(stored: SessionState, rebuilt: SessionState) -> PolicyText:
    if stored.policy.hash == rebuilt.policy.hash:
        return stored.policy
    return tightened(stored.policy, rebuilt.policy)


def _with_windows(state: SessionState, rebuilt: SessionState, *, budget: Micros, status: Status) -> SessionState:
    """Return *state* with the windows of the chain that it lacks behind its own, and without their leases."""
    known = {node.window_id for node in state.nodes}
    added = [pair for pair in zip(rebuilt.nodes, rebuilt.outcomes, strict=True) if pair[0].window_id not in known]
    nodes = (*state.nodes, *(node for node, _ in added))
    outcomes = (*state.outcomes, *(outcome for _, outcome in added))
    continued = {parent for node in nodes if not node.failed for parent in node.parent_ids}
    late = {node.window_id for node, _ in added if node.pattern == LINEAR and not node.failed}
    holds = tuple(hold for hold in state.holds if hold.window_id not in {node.window_id for node in nodes})
    holding = {hold.window_id for hold in holds}
    moved = [outcome_of for outcome_of in added if state.tells(outcome_of[1]) and not outcome_of[0].failed]
    return replace(
        state,
        budget=budget,
        status=status,
        nodes=nodes,
        outcomes=tuple(_at(place, outcome) for place, outcome in enumerate(outcomes, 1)),
        leases=_still(state.leases, nodes, holding),
        holds=holds,
        expired=_still(state.expired, nodes, holding),
        untold=(*state.untold, *(node.window_id for node, _ in moved))[-UNTOLD_KEPT:],
        late=frozenset((state.late | late) - continued),
    )


def _at(place: int, outcome: CommitOutcome) -> CommitOutcome:
    return outcome if outcome.index == place else replace(outcome, index=place)


def _still(leases: Iterable[Lease], nodes: Iterable[Node], holding: Collection[WindowId]) -> tuple[Lease, ...]:
    """Return the leases of windows that are not there, and whose place no other line took.

    One that holds budget stays, void where its place was taken: whoever finds it run out closes it.
    """
    there: set[WindowId] = set()
    lines: set[tuple[WindowId, ...]] = set()
    for node in nodes:
        there.add(node.window_id)
        if node.pattern == LINEAR and not node.failed:
            lines.add(node.parent_ids)
    open_still = [lease for lease in leases if lease.window_id not in there]
    lost = {lease for lease in open_still if lease.pattern == LINEAR and lease.parent_ids in lines}
    return tuple(
        replace(lease, pattern=VOID) if lease in lost else lease
        for lease in open_still
        if lease not in lost or lease.window_id in holding
    )


def holds_all(stored: SessionState | None, sealed: Iterable[WindowId], lowest: Micros) -> bool:
    """Tell whether a store holds every window that was sealed, and no more budget than cascades left: all that can be verified
    without terms.
    """
    known = {node.window_id for node in stored.nodes} if stored else set()
    return stored is not None and known >= set(sealed) and stored.budget <= lowest


def _incomplete(session: SessionId, why: str) -> Refused:
    return invalid(
        INCOMPLETE, "the record of the tree does not make up whole sessions; nothing is restored from it",
        session_id=session, cause=why,
    )  # fmt: skip
