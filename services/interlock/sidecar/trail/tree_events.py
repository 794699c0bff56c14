"""What the audit trail says about a tree of agents: who delegated to whom, and what a child cost those above it."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros, as_decimal
from interlock.sidecar.trail import events
from interlock.sidecar.trail.response_headers import word


def created(session: session_pb2.Session, scope: str, grant_id: str, record: str = "") -> audit_pb2.NewEvent:
    """A session begins; a child's says whose it is, so that an auditor finds the way up (SPEC-012 §8.2)."""
    return events.session_created(
        session.session_id, scope, session.policy_hash,
        parent_session_id=session.parent_session_id or None,
        root_session_id=session.root_session_id if session.parent_session_id else None,
        agent_type=session.agent.agent_type or None,
        loop_depth=session.loop_depth if session.parent_session_id else None,
        grant_id=grant_id or None, record=record or None,
    )  # fmt: skip


def granted(delegation: session_pb2.Delegation, approval: policy_pb2.VerifyApprovalResponse) -> audit_pb2.NewEvent:
    """A sub-agent may be started; where a person had to approve it, by whom (SPEC-012 §5.1)."""
    return events.event(
        "DELEGATION_GRANTED", events.INFO, grant_id=delegation.grant_id, agent_type=delegation.agent_type or None,
        loop_depth=delegation.loop_depth, expires_at=delegation.expires_at, approval_id=approval.approval_id or None,
        reviewer_id=approval.reviewer_id or None,
    )  # fmt: skip


def started(session: session_pb2.Session, grant_id: str) -> audit_pb2.NewEvent:
    """A grant was used: the way down, in the parent's trail."""
    return events.event(
        "SUB_AGENT_STARTED", events.INFO, session_id=session.session_id, agent_type=session.agent.agent_type or None,
        grant_id=grant_id,
    )  # fmt: skip


def cascaded(ancestor: session_pb2.Ancestor, commit: session_pb2.CommitWindowRequest) -> list[audit_pb2.NewEvent]:
    """Return what a settlement below did to *ancestor*: its budget, its breaker, its end (BRK-4, BRK-5; SPEC-012 §6.1).

    A halted CRITICAL of a sub-agent is a critical event in the trail of everyone above it.
    """
    critical = commit.status == "HALTED" and commit.risk_level == common_pb2.RISK_LEVEL_CRITICAL
    left = as_decimal(Micros(ancestor.safety_budget_micros))
    found = [
        events.event(
            "SAFETY_BUDGET_CASCADED", events.CRITICAL if critical else events.WARN, child_session_id=commit.session_id,
            window_id=commit.window_id, risk_level=word(common_pb2.RiskLevel, commit.risk_level),
            before=as_decimal(Micros(ancestor.before_micros)), after=left,
        ),
        *(_moved(step) for step in ancestor.transitions),
    ]  # fmt: skip
    if any(step.to_state == common_pb2.BREAKER_STATE_OPEN for step in ancestor.transitions):
        found.append(events.event("SAFETY_BUDGET_DEPLETED", events.CRITICAL, remaining_budget=left))
    if ancestor.terminated:
        found.append(
            events.event("SESSION_TERMINATED", events.INFO, reason="SAFETY_BUDGET_DEPLETED", final_safety_budget=left)
        )
    return found


def caller_lowered(
    caller: session_pb2.CallerBudget, commit: session_pb2.CommitWindowRequest
) -> list[audit_pb2.NewEvent]:
    """Return what a settlement took off its caller's budget, behind the beginning of the period (ATT-2).

    They say nothing that another window moves, so that telling them twice is seen.
    """
    grave = commit.risk_level == common_pb2.RISK_LEVEL_CRITICAL
    return [
        events.event(
            "CALLER_BUDGET_PERIOD", events.INFO, period=caller.period, previous_period=caller.previous_period,
            budget_micros=caller.budget_micros, ends_at=caller.ends_at,
        ),
        events.event(
            "CALLER_BUDGET_LOWERED", events.CRITICAL if grave else events.WARN, period=commit.caller_period,
            child_session_id=commit.session_id, window_id=commit.window_id, charge_micros=commit.charge_micros,
            risk_level=word(common_pb2.RiskLevel, commit.risk_level),
        ),
    ]  # fmt: skip


def window_failed(reason: str, parent_ids: Iterable[str], pattern: str) -> audit_pb2.NewEvent:
    """A part of a fan-out will never be sealed; its place stays, so that a fan-in knows of it (SPEC-004 §16.3)."""
    return events.event("WINDOW_FAILED", events.WARN, reason=reason, parent_ids=list(parent_ids), pattern=pattern)


def _moved(step: session_pb2.BreakerTransition) -> audit_pb2.NewEvent:
    return events.event(
        "BREAKER_TRANSITION", events.WARN, session_id=step.session_id,
        from_state=word(common_pb2.BreakerState, step.from_state),
        to_state=word(common_pb2.BreakerState, step.to_state),
        safety_budget=as_decimal(Micros(step.safety_budget_micros)),
    )  # fmt: skip
