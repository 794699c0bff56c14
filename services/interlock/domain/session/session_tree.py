"""The rule of delegation: what a session may delegate, and the atomic step that creates a child (SPEC-012 §4, §5, §7).

``start.lua`` is this rule in Redis.
"""

from __future__ import annotations

from dataclasses import replace

from interlock.domain.breaker import BreakerState, breaker_state
from interlock.domain.budget import OPEN_AT, Micros
from interlock.domain.session.above import above_of, check_above
from interlock.domain.session.delegating import Delegated, ParentView
from interlock.domain.session.rule import Changed, States
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.state import SessionState, Status


def check_delegation(view: ParentView, *, approved: bool) -> None:
    """Refuse what the session cannot delegate now. Asked early by those who mint and read grants, and once more at last."""
    if view.budget <= OPEN_AT:
        raise refusal("BUDGET_DEPLETED", view.budget)
    if view.grant_used:
        raise refusal("GRANT_ALREADY_USED")
    if view.status is not Status.ACTIVE:
        raise refusal("PARENT_ENDED")
    if breaker_state(view.budget) is BreakerState.HALF_OPEN and not approved:
        raise refusal("DELEGATION_NEEDS_APPROVAL")
    if view.approval_used:
        raise refusal("APPROVAL_ALREADY_USED")
    if view.delegations + 1 > view.terms.max_delegations:
        raise refusal("MAX_DELEGATIONS_EXCEEDED", view.terms.max_delegations, view.delegations + 1)
    if view.terms.loop_depth + 1 > view.terms.deepest:
        raise refusal("MAX_LOOP_DEPTH_EXCEEDED", view.terms.deepest, view.terms.loop_depth + 1)


def view_of(state: SessionState, *, pointer: str = "", grant_id: str = "", approval_id: str = "") -> ParentView:
    """Return what is looked at of a session before it delegates."""
    pointed = next(
        (node.seal.hmac for node in state.nodes if node.continuation_id and node.continuation_id == pointer), ""
    )
    return ParentView(
        terms=state.terms,
        policy=state.policy,
        status=state.status,
        budget=state.budget,
        delegations=len(state.children),
        grant_used=any(grant == grant_id for grant, _ in state.grants),
        approval_used=approval_id in state.approvals,
        top=state.tip_number,
        pointed_hmac=pointed,
    )


def start_child(states: States, child: SessionState, ask: Delegated) -> tuple[Changed, Micros]:
    """Create a child under its parent; return what changed and the child's budget.

    The budget of *child* is the ceiling that its grant and its caller set; the parent's present one caps it (BUD-7), and where
    costs add up the lowest above. An ancestor that is halted or ended lets nothing new start below it.
    """
    session_id, ancestors = child.terms.session_id, child.terms.ancestors
    if session_id in states:
        raise refusal("SESSION_EXISTS")
    above = above_of(states, child)
    parent = states[ancestors[0]]
    if above.lowest <= OPEN_AT:
        raise refusal("BUDGET_DEPLETED", above.lowest)
    check_above(above_of(states, parent))
    view = view_of(parent, grant_id=ask.grant_id, approval_id=ask.approval_id)
    left = above.holds(parent.budget, summing=parent.terms.accumulate)
    check_delegation(replace(view, budget=left), approved=bool(ask.approval_id))
    if ask.parent_policy_hash != parent.policy.hash:
        raise refusal("PARENT_POLICY_CHANGED")
    budget = Micros(min(child.budget, left))
    if budget <= OPEN_AT:
        raise refusal("BUDGET_DEPLETED", budget)
    if left - parent.held <= OPEN_AT:
        raise refusal("BUDGET_HELD")
    used = replace(
        parent,
        children=(*parent.children, session_id),
        grants=parent.grants | {(ask.grant_id, session_id)},
        approvals=parent.approvals | ({ask.approval_id} if ask.approval_id else set()),
    )
    return {ancestors[0]: used, session_id: replace(child, budget=budget)}, budget
