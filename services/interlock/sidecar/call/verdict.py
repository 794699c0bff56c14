"""What a governed call ends in: an answer that is released, or a refusal that says why not (SPEC-002 §13)."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.answers.report import report_fault
from interlock.domain.budget import EXHAUSTED_AT, OPEN_AT
from interlock.domain.errors import Refused, conflict, halted, unavailable
from interlock.runtime.clock import system_clock, whole_seconds
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.trail.events import directive_of
from interlock.sidecar.trail.report_figures import figures_of
from interlock.sidecar.trail.response_headers import ResponseHeaders, left_of

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
    "ANCESTOR_HALTED": "a session above this one was halted by its breaker; nothing below it goes on",
    "ANCESTOR_EXHAUSTED": "a session above this one has spent its safety budget to the last; nothing below it goes on",
    "ANCESTOR_ENDED": "a session above this one has ended; nothing below it goes on",
}

_STOPPED = "the response was stopped by the safety policy"
_STOPPED_FOR_REVIEW = f"{_STOPPED}, unless a person releases it; held_uri tells when, and how to get it then"


def checked_report(report: dpe_pb2.Report, answer: Completion) -> dpe_pb2.Report:
    """Return *report* when it can be decided upon.

    Refused with DPE_REPORT_INVALID, and what does not hold as ``fault``, for a report that contradicts itself or leaves a choice out:
    an analysis that cannot be read is no analysis (A-40, A-52).
    """
    fault = report_fault(figures_of(report))
    judged = {choice.choice_index for choice in report.choices} | {report.choice_index}
    if not fault and not judged >= {output.choice_index for output in answer.outputs}:
        fault = "CHOICES"
    if not fault and report.envelope_tokens < 0:  # the settlement carries it, and would be refused after the seal
        fault = "COUNTS"
    if fault:
        raise unavailable("DPE_REPORT_INVALID", "the analysis of the response cannot be used", fault=fault)
    return report


@dataclass(frozen=True)
class SettledHalt:
    """Why a settlement keeps an answer from being released: the reasons of the refusal and of the 451's body."""

    reason: str
    halt_reason: str


_DEPLETED = SettledHalt("BUDGET_DEPLETED", "SAFETY_BUDGET_DEPLETED")
_CALLER_DEPLETED = SettledHalt("CALLER_BUDGET_DEPLETED", CALLER_HALT)


def halt_of(settled: session_pb2.CommitWindowResponse, *, caller: bool) -> SettledHalt | None:
    """Return what halts an answer once it is settled; ``None`` when nothing does.

    Its session has nothing left, now or then (I2); its *caller*, where one stands above the session, has nothing left; or a
    session above it is halted or has ended (I20).
    """
    if caller and settled.caller_budget.left_micros <= OPEN_AT:
        return _CALLER_DEPLETED
    if min(settled.session_budget_micros, left_of(settled)) <= OPEN_AT:
        return _DEPLETED
    if settled.HasField("ancestor_halt"):
        return SettledHalt(settled.ancestor_halt.reason, settled.ancestor_halt.reason)
    return None


def halted_by(halt: SettledHalt, decision: policy_pb2.Decision) -> policy_pb2.Decision:
    """Return the decision that replaces any earlier one once the settlement halts the answer."""
    return policy_pb2.Decision(
        action=policy_pb2.ACTION_HALT,
        halt_reason=halt.halt_reason,
        reason=halt.reason,
        violations=decision.violations,
        oversight_mode=decision.oversight_mode,
        oversight_required=False,
        warned=decision.warned,
    )


def reviewable(decision: policy_pb2.Decision) -> bool:
    """Tell whether a reviewer's approval can release the answer: it is held, or ``halt-on`` halted it (SPEC-012 §6.2)."""
    return decision.action == policy_pb2.ACTION_HOLD or (
        decision.action == policy_pb2.ACTION_HALT and decision.releasable
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
    promised = reviewable(decision) and settled.session_budget_micros > EXHAUSTED_AT
    refused = _halt(decision, settled, reply, promised=promised)
    if promised:
        refused.metadata["held_uri"] = held_uri(base_url, reply.session_id, reply.window_id)
    return refused


def held_uri(base_url: str, session_id: str, window_id: str) -> str:
    """Return where a client asks what became of a held response."""
    return f"{base_url}/crp/v3/session/{session_id}/held/{window_id}"


def _halt(
    decision: policy_pb2.Decision, settled: session_pb2.CommitWindowResponse, reply: ResponseHeaders, *, promised: bool
) -> Refused:
    """Return the 451. A review is only spoken of where it can release the answer: at 0.00 nothing is (reading 4)."""
    reply.set({"CRP-Safety-Retry-After": OVERSIGHT if promised else _retry(settled)})
    reason = decision.reason or _REASONS.get(decision.action, "SAFETY_HALT")
    return halted(
        reason,
        _MESSAGES.get(reason, _STOPPED_FOR_REVIEW if promised else _STOPPED),
        halt_reason=decision.halt_reason,
        oversight_required=str(promised).lower(),
        directive=directive_of(decision) or "",
        window_id=reply.window_id,
        **({"ancestor_session_id": settled.ancestor_halt.session_id} if settled.HasField("ancestor_halt") else {}),
    )


def _retry(settled: session_pb2.CommitWindowResponse) -> str:
    """Return what helps where no review does: an open breaker ends everything (BRK-3)."""
    if settled.HasField("caller_budget") and settled.caller_budget.left_micros <= OPEN_AT:
        return seconds_until(settled.caller_budget.ends_at)
    if settled.HasField("ancestor_halt") or settled.terminated or settled.breaker == common_pb2.BREAKER_STATE_OPEN:
        return NEW_SESSION
    return AT_ONCE


def seconds_until(ends_at: int) -> str:
    """Return how long it is to a time in seconds since the epoch, at least one second."""
    return str(max(1, ends_at - system_clock() // 1_000_000))


def as_halt(refused: Refused, reply: ResponseHeaders, *, now: str) -> dict[str, object]:
    """Return the JSON object that a 451 carries (SPEC-002 §13.2), for a halt of any origin. *now* is ISO 8601."""
    retry = reply.headers.get("CRP-Safety-Retry-After", NEW_SESSION)
    if retry.isdigit() and retry != AT_ONCE:
        retry = whole_seconds(system_clock() + int(retry) * 1_000_000)
    return {
        "crp_halt_reason": refused.metadata.get("halt_reason") or "SAFETY_BUDGET_DEPLETED",
        "session_id": reply.session_id or None,
        "audit_trail_uri": reply.trail_uri or None,
        "oversight_required": refused.metadata.get("oversight_required") == "true",
        "retry_condition": now if retry == AT_ONCE else retry,
    }
