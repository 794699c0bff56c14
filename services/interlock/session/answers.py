"""Domain values as messages of the session service."""

from __future__ import annotations

from typing import Any, cast

from interlock.api.session.v1 import session_pb2
from interlock.domain.breaker import state_of, strategy_under
from interlock.domain.budget import Decrements
from interlock.domain.dag import Node, children
from interlock.domain.ids import WindowId
from interlock.domain.session import Committed, Opened, SessionState, Status
from interlock.runtime.clock import iso8601


def session_message(state: SessionState) -> session_pb2.Session:
    """Return a session as stored."""
    terms, below = state.terms, children(state.nodes)
    return session_pb2.Session(
        session_id=terms.session_id,
        root_session_id=terms.root_session_id,
        status=cast("Any", int(state.status)),
        safety_budget_micros=state.budget,
        breaker=cast("Any", int(state_of(state.budget))),
        policy_text=state.policy.text,
        policy_hash=state.policy.hash,
        max_windows=terms.limits.max_windows,
        windows=[_window(state, node, below[node.window_id]) for node in state.nodes],
        chain_tip=state.tip.seal.hmac if state.tip else "",
        created_at=iso8601(terms.created_us),
        scope=terms.scope,
        loop_depth=terms.loop_depth,
    )


def _window(state: SessionState, node: Node, below: tuple[WindowId, ...]) -> session_pb2.Window:
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
        risk_level=cast("Any", int(seal.risk_level)),
        safety_budget_micros=node.safety_budget,
        charge_micros=node.charge,
        hmac=seal.hmac,
        timestamp=seal.timestamp,
        token_count=seal.token_count,
        response_hash=seal.response_hash,
        status=seal.status,
    )


def opened_message(window: WindowId, opened: Opened, decrements: Decrements) -> session_pb2.OpenedWindow:
    """Return the lease of a window."""
    terms, breaker = opened.terms, state_of(opened.session_budget)
    return session_pb2.OpenedWindow(
        session_id=terms.session_id,
        root_session_id=terms.root_session_id,
        window_id=window,
        window_number=opened.parent_number + 1,
        parent_ids=[opened.parent_id] if opened.parent_id else [],
        parent_hmacs=[opened.parent_hmac] if opened.parent_id else [],
        policy_text=opened.policy.text,
        policy_hash=opened.policy.hash,
        safety_budget_micros=opened.path_budget,
        session_budget_micros=opened.session_budget,
        breaker=cast("Any", int(breaker)),
        loop_depth=terms.loop_depth,
        max_windows=terms.limits.max_windows,
        quality_history=opened.quality_history,
        lineage=opened.lineage,
        decrements=session_pb2.Decrements(
            low_micros=decrements.low,
            medium_micros=decrements.medium,
            high_micros=decrements.high,
            critical_micros=decrements.critical,
        ),
        unsettled_window_id=opened.unsettled or "",
        strategy=strategy_under(breaker, terms.strategy),
    )


def committed_message(committed: Committed, token: str, *, max_age_s: int) -> session_pb2.CommitWindowResponse:
    """Return what a commit did."""
    outcome, terms = committed.outcome, committed.terms
    return session_pb2.CommitWindowResponse(
        token=token,
        continuation_id=outcome.continuation_id or "",
        safety_budget_micros=outcome.path_budget,
        session_budget_micros=outcome.session_budget,
        breaker=cast("Any", int(outcome.after)),
        transitions=[
            session_pb2.BreakerTransition(
                session_id=terms.session_id,
                from_state=cast("Any", int(step.before)),
                to_state=cast("Any", int(step.after)),
                safety_budget_micros=outcome.session_budget,
            )
            for step in outcome.transitions
        ],
        terminated=outcome.status is not Status.ACTIVE,
        duplicate=committed.duplicate,
        quality_history=committed.quality_history,
        lineage=committed.lineage,
        max_age_s=max_age_s,
        nonce=terms.nonce,
    )
