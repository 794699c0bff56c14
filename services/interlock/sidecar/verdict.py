"""What a governed call ends in: an answer that is released, or a refusal that says why not (SPEC-002 §13)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from google.protobuf.message import Message

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import OPEN_AT
from interlock.domain.errors import Refused, conflict, halted, unavailable
from interlock.runtime.clock import iso8601, system_clock
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.trail.events import directive_of
from interlock.sidecar.trail.response_headers import ResponseHeaders

NEW_SESSION = "new-session-required"
OVERSIGHT = "oversight-required"
AT_ONCE = "0"
CALLER_HALT = "CALLER_BUDGET_DEPLETED"
"""Why a call is halted whose caller has spent its budget of the period: a new session is no way out (ATT-2)."""

_REASONS = {policy_pb2.ACTION_HOLD: "HELD_FOR_REVIEW"}
_MESSAGES = {
    "HELD_FOR_REVIEW": "the response is held until a person has reviewed it; held_uri tells when, and how to get it then",
    "BUDGET_DEPLETED": "the safety budget of this session is spent; nothing more is released",
    "CALLER_BUDGET_DEPLETED": "the safety budget of this caller is spent; nothing more is released until its period ends",
}


def checked_report(report: dpe_pb2.Report, answer: Completion) -> dpe_pb2.Report:
    """Return *report* when it can be decided upon.

    Refused with DPE_REPORT_INVALID for a class that is not set, a number that is none, or a choice that was left out: an
    analysis that cannot be read is no analysis (A-40).
    """
    numbers_hold = all(math.isfinite(number) for number in _floats(report)) and 0.0 <= report.composite_score <= 1.0
    # The settlement carries it, and would be refused after the seal.
    numbers_hold = numbers_hold and report.envelope_tokens >= 0
    judged = {choice.choice_index for choice in report.choices} | {report.choice_index}
    complete = judged >= {output.choice_index for output in answer.outputs}
    if report.risk_level not in common_pb2.RiskLevel.values()[1:] or not numbers_hold or not complete:
        raise unavailable("DPE_REPORT_INVALID", "the analysis of the response cannot be used")
    return report


def _floats(value: Message) -> Iterator[float]:
    """Yield every number of the report's own level and of its signals; claims are not decided upon."""
    for _, held in value.ListFields():
        if isinstance(held, float):
            yield held
        elif isinstance(held, dpe_pb2.Signals):
            yield from _floats(held)


def depleted(decision: policy_pb2.Decision, *, caller: bool = False) -> policy_pb2.Decision:
    """Return the decision once the settled budget is depleted, the *caller*'s or the session's; it replaces any earlier one (I2)."""
    return policy_pb2.Decision(
        action=policy_pb2.ACTION_HALT,
        halt_reason=CALLER_HALT if caller else "SAFETY_BUDGET_DEPLETED",
        reason="CALLER_BUDGET_DEPLETED" if caller else "BUDGET_DEPLETED",
        violations=decision.violations,
        oversight_mode=decision.oversight_mode,
        oversight_required=False,
        warned=decision.warned,
    )


def refusal_of(
    decision: policy_pb2.Decision,
    settled: session_pb2.CommitWindowResponse,
    integrity: common_pb2.ChainIntegrity.ValueType,
    reply: ResponseHeaders,
    base_url: str = "",
) -> Refused | None:
    """Return why an answer is not released; ``None`` when it is. The headers learn when a retry can help."""
    if integrity == common_pb2.CHAIN_INTEGRITY_BROKEN:
        return conflict("CHAIN_BROKEN", "the audit chain of this session does not verify; start a new session")
    if decision.action == policy_pb2.ACTION_DELIVER:
        return None
    if decision.action == policy_pb2.ACTION_REJECT_QUALITY:
        message = "the quality tier that was demanded cannot be had"
        return unavailable(decision.reason or "QUALITY_NOT_ACHIEVABLE", message, retry_after_ms=0)
    refused = _halt(decision, settled, reply)
    if decision.action == policy_pb2.ACTION_HOLD:
        refused.metadata["held_uri"] = held_uri(base_url, reply.session_id, reply.window_id)
    return refused


def held_uri(base_url: str, session_id: str, window_id: str) -> str:
    """Return where a client asks what became of a held response."""
    return f"{base_url}/crp/v3/session/{session_id}/held/{window_id}"


def _halt(decision: policy_pb2.Decision, settled: session_pb2.CommitWindowResponse, reply: ResponseHeaders) -> Refused:
    reply.set({"CRP-Safety-Retry-After": _retry(decision, settled)})
    reason = decision.reason or _REASONS.get(decision.action, "SAFETY_HALT")
    return halted(
        reason,
        _MESSAGES.get(reason, "the response was stopped by the safety policy"),
        halt_reason=decision.halt_reason,
        oversight_required=str(decision.oversight_required).lower(),
        directive=directive_of(decision) or "",
        window_id=reply.window_id,
    )


def _retry(decision: policy_pb2.Decision, settled: session_pb2.CommitWindowResponse) -> str:
    """Return what helps: a review can still release what is held; an open breaker ends everything else (BRK-3)."""
    if decision.action == policy_pb2.ACTION_HOLD:
        return OVERSIGHT
    if settled.HasField("caller_budget") and settled.caller_budget.left_micros <= OPEN_AT:
        return seconds_until(settled.caller_budget.ends_at)
    if settled.terminated or settled.breaker == common_pb2.BREAKER_STATE_OPEN:
        return NEW_SESSION
    return OVERSIGHT if decision.oversight_required else AT_ONCE


def seconds_until(ends_at: int) -> str:
    """Return how long it is to a time in seconds since the epoch, at least one second."""
    return str(max(1, ends_at - system_clock() // 1_000_000))


def as_halt(refused: Refused, reply: ResponseHeaders, *, now: str) -> dict[str, object]:
    """Return the JSON object that a 451 carries (SPEC-002 §13.2), for a halt of any origin. *now* is ISO 8601."""
    retry = reply.headers.get("CRP-Safety-Retry-After", NEW_SESSION)
    if retry.isdigit() and retry != AT_ONCE:
        retry = iso8601(system_clock() + int(retry) * 1_000_000)
    return {
        "crp_halt_reason": refused.metadata.get("halt_reason") or "SAFETY_BUDGET_DEPLETED",
        "session_id": reply.session_id or None,
        "audit_trail_uri": reply.trail_uri or None,
        "oversight_required": refused.metadata.get("oversight_required") == "true",
        "retry_condition": now if retry == AT_ONCE else retry,
    }
