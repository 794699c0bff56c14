"""Domain values as messages of the session service."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.breaker import BreakerState, Transition, breaker_state, strategy_under
from interlock.domain.budget import Decrements, Micros
from interlock.domain.dag.dag import TRANSFERS, Edge, Node, Seal, chain_tips, children, leaves
from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.above import NOTHING_ABOVE, Above
from interlock.domain.session.caller import CallerView
from interlock.domain.session.state import Barrier, Committed, Effect, OpenedWindow, Parent, SessionState, Status
from interlock.session.delegation import Inherited, SubAgentAnswer
from interlock.session.messages.spending import spending_message
from interlock.session.terms import agent_message, terms_message


def session_message(state: SessionState, above: Above = NOTHING_ABOVE) -> session_pb2.Session:
    """Return a session as stored, under what stands *above* it."""
    budget = above.holds(state.budget, summing=state.terms.accumulate)
    below, tips = children(state.nodes), chain_tips(state.nodes)
    message = terms_message(state.terms)
    message.MergeFrom(
        session_pb2.Session(
            status=session_pb2.SessionStatus.ValueType(int(state.status)),
            safety_budget_micros=budget,
            breaker=_breaker(breaker_state(budget)),
            policy_text=state.policy.text,
            policy_hash=state.policy.hash,
            windows=[_window(state, node, below[node.window_id], tips[node.window_id]) for node in state.nodes],
            chain_tip=state.tip.seal.hmac if state.tip else "",
            child_session_ids=state.children,
            leaf_ids=leaves(state.nodes),
            untold_window_ids=state.untold,
            ancestor_halt=_halt_above(above.barrier),
            charged_micros=sum(node.charge for node in state.nodes),
            spending=spending_message(state.spending, state.terms.session_id),
        )
    )
    return message


def _halt_above(barrier: Barrier | None) -> session_pb2.AncestorHalt | None:
    if barrier is None:
        return None
    return session_pb2.AncestorHalt(
        session_id=barrier.session_id, reason=barrier.reason, safety_budget_micros=barrier.budget
    )


def _breaker(state: BreakerState) -> common_pb2.BreakerState.ValueType:
    return common_pb2.BreakerState.ValueType(int(state))


def _risk(seal: Seal) -> common_pb2.RiskLevel.ValueType:
    return common_pb2.RiskLevel.ValueType(int(seal.risk_level or 0))


def _window(state: SessionState, node: Node, below: tuple[WindowId, ...], tip: str) -> session_pb2.Window:
    seal = node.seal
    return session_pb2.Window(
        window_id=node.window_id,
        session_id=state.terms.session_id,
        window_number=node.window_number,
        parent_ids=node.parent_ids,
        child_ids=below,
        continuation_id=node.continuation_id or "",
        pattern=node.pattern,
        strategy=seal.strategy,
        envelope_etag=seal.envelope_etag,
        quality_tier=seal.quality_tier,
        risk_level=_risk(seal),
        safety_budget_micros=node.safety_budget,
        charge_micros=node.charge,
        hmac=seal.hmac,
        timestamp=seal.timestamp,
        token_count=seal.token_count,
        response_hash=seal.response_hash,
        status=seal.status,
        edges=_edges(node),
        hmac_chain_tip=tip,
    )


def _edges(node: Node) -> list[session_pb2.Edge]:
    """Return one edge per parent; nothing was transferred where none was recorded."""
    known = {edge.source_id: edge for edge in node.edges}
    found = [known.get(parent, Edge(parent, TRANSFERS[0], 0, "")) for parent in node.parent_ids]
    return [
        session_pb2.Edge(
            source_id=edge.source_id,
            target_id=node.window_id,
            transfer_type=session_pb2.TransferType.ValueType(TRANSFERS.index(edge.transfer_type)),
            transferred_tokens=edge.transferred_tokens,
            summary_hash=edge.summary_hash,
        )
        for edge in found
    ]


def opened_message(
    window: WindowId, opened: OpenedWindow, decrements: Decrements, *, period_s: int
) -> session_pb2.OpenedWindow:
    """Return the lease of a window."""
    terms, breaker = opened.terms, breaker_state(opened.session_budget)
    return session_pb2.OpenedWindow(
        session_id=terms.session_id,
        root_session_id=terms.root_session_id,
        window_id=window,
        window_number=opened.number,
        parent_ids=[parent.window_id for parent in opened.parents],
        parent_hmacs=[parent.hmac for parent in opened.parents],
        policy_text=opened.policy.text,
        policy_hash=opened.policy.hash,
        safety_budget_micros=opened.path_budget,
        session_budget_micros=opened.session_budget,
        breaker=_breaker(breaker),
        loop_depth=terms.loop_depth,
        max_windows=terms.limits.max_windows,
        quality_history=opened.history.tiers,
        lineage=opened.history.lineage,
        decrements=session_pb2.Decrements(
            low_micros=decrements.low,
            medium_micros=decrements.medium,
            high_micros=decrements.high,
            critical_micros=decrements.critical,
        ),
        unsettled_window_id=opened.unsettled or "",
        strategy=strategy_under(breaker, terms.strategy),
        pattern=opened.pattern,
        parents=[_parent(parent) for parent in opened.parents],
        ancestor_session_ids=terms.ancestors,
        agent=agent_message(terms.agent),
        facts_seen=opened.facts,
        left_out_ids=opened.left_out,
        data_residency=terms.residency,
        safety_mode=terms.safety_mode,
        aware=terms.aware,
        max_dag_nodes=terms.limits.max_dag_nodes,
        max_fan_out=terms.limits.max_fan_out,
        degradation=session_pb2.Degradation.ValueType(int(opened.history.degradation)),
        key_version=terms.key_version,
        untold_window_ids=opened.untold,
        unsettled_hold_micros=opened.lapsed_hold,
        spending_limited=opened.limited,
        unsettled_pattern=opened.lapsed.pattern if opened.lapsed else "",
        unsettled_parent_ids=opened.lapsed.parent_ids if opened.lapsed else (),
        caller_budget=caller_message(opened.caller, period_s),
    )


def caller_message(view: CallerView | None, period_s: int) -> session_pb2.CallerBudget | None:
    """Return what is told of a caller's budget; its periods last *period_s* seconds."""
    if view is None:
        return None
    return session_pb2.CallerBudget(
        caller_id=view.caller_id,
        period=view.number,
        budget_micros=view.cap,
        left_micros=max(0, view.left - view.held),
        ends_at=(view.number + 1) * period_s,
        previous_period=view.previous,
    )


def _parent(parent: Parent) -> session_pb2.ParentWindow:
    return session_pb2.ParentWindow(
        window_id=parent.window_id,
        window_number=parent.number,
        hmac=parent.hmac,
        quality_tier=parent.tier,
        status=parent.status,
        safety_budget_micros=parent.path_budget,
    )


def committed_message(
    committed: Committed, token: str, *, max_age_s: int, period_s: int
) -> session_pb2.CommitWindowResponse:
    """Return what a commit did."""
    outcome, terms, history = committed.outcome, committed.terms, committed.history
    return session_pb2.CommitWindowResponse(
        token=token,
        continuation_id=outcome.continuation_id or "",
        safety_budget_micros=outcome.path_budget,
        session_budget_micros=outcome.session_budget,
        breaker=_breaker(outcome.after),
        transitions=_transitions(terms.session_id, outcome.transitions, outcome.session_budget),
        terminated=outcome.status is not Status.ACTIVE,
        duplicate=committed.duplicate,
        quality_history=history.tiers,
        lineage=history.lineage,
        max_age_s=max_age_s,
        nonce=terms.nonce,
        ancestors=[_ancestor(effect) for effect in outcome.ancestors if effect.after != effect.before],
        lineage_text=history.lineage_text,
        quality_text=history.quality_text,
        degradation=session_pb2.Degradation.ValueType(int(history.degradation)),
        caller_budget=caller_message(committed.caller, period_s),
        left_micros=min(committed.left, outcome.session_budget),
        ancestor_halt=_halt_above(committed.barrier),
    )


def _ancestor(effect: Effect) -> session_pb2.Ancestor:
    return session_pb2.Ancestor(
        session_id=effect.session_id,
        before_micros=effect.before,
        safety_budget_micros=effect.after,
        transitions=_transitions(effect.session_id, effect.transitions, effect.after),
        terminated=effect.status is not Status.ACTIVE,
    )


def _transitions(
    session: SessionId, steps: Iterable[Transition], budget: Micros
) -> list[session_pb2.BreakerTransition]:
    return [
        session_pb2.BreakerTransition(
            session_id=session,
            from_state=_breaker(step.before),
            to_state=_breaker(step.after),
            safety_budget_micros=budget,
        )
        for step in steps
    ]


def delegation_message(inherited: Inherited) -> session_pb2.Delegation:
    """Return what a grant gives."""
    grant, parent = inherited.grant, inherited.parent
    return session_pb2.Delegation(
        parent_session_id=grant.parent_session_id,
        root_session_id=grant.root_session_id,
        loop_depth=grant.loop_depth,
        safety_budget_micros=inherited.budget,
        policy_text=parent.policy.text,
        policy_hash=parent.policy.hash,
        safety_mode=parent.terms.safety_mode,
        data_residency=parent.terms.residency,
        agent_type=grant.agent_type,
        expires_at=inherited.expires_at,
        grant_id=grant.grant_id,
        strategy=inherited.strategy,
    )


def result_message(result: SubAgentAnswer) -> session_pb2.SubAgentResult:
    """Return what is known of an answer of a sub-agent."""
    state, tip = result.state, result.state.tip
    return session_pb2.SubAgentResult(
        session_id=result.session_id,
        hmac=result.hmac,
        window_id=result.node.window_id,
        chain_tip=tip.seal.hmac if tip else "",
        agent_type=state.terms.agent.agent_type,
        safety_budget_micros=state.budget,
        risk_level=_risk(result.node.seal),
    )
