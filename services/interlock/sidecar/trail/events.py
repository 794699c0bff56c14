"""What the audit trail says about a call: types, severities and fields of SPEC-011 §1, never a text of anyone's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.policy.policy_text import parse
from interlock.sidecar.trail.response_headers import word

DEBUG = audit_pb2.SEVERITY_DEBUG
INFO = audit_pb2.SEVERITY_INFO
WARN = audit_pb2.SEVERITY_WARN
ERROR = audit_pb2.SEVERITY_ERROR
CRITICAL = audit_pb2.SEVERITY_CRITICAL

GENERATE = "generate"
"""The step that makes an answer; the others are verify, refine, continue and stitch."""

REASONS = {
    "upgrade": "risk_upgrade",
    "context-correction": "contradiction",
    "anti-repetition": "repetition",
    "flow-augmentation": "flow",
}
"""Reason of a re-dispatch (SPEC-011 §1.2) by its remedy."""

FAN_OUT, FAN_IN = "FAN_OUT", "FAN_IN"
"""Patterns of windows (SPEC-004 §3.1)."""

LONGEST_LIST = 512
"""Ids listed in one event; the counts are exact, and the sealed report holds every one."""


@dataclass(frozen=True)
class Dispatch:
    """How the answer was produced; ``None`` where the request did not say."""

    provider: str
    model: str
    strategy: str
    temperature: float | None
    token_budget: int | None
    seed: int | None
    choices: int

    def made_by(self, strategy: str, body: Mapping[str, Any]) -> Dispatch:
        """Return how one provider call with *body* was made; an answer that was brought has none."""
        if not body:
            return self
        return replace(
            self,
            strategy=strategy,
            temperature=body.get("temperature"),
            token_budget=body.get("max_completion_tokens") or body.get("max_tokens"),
            seed=body.get("seed"),
            choices=int(body.get("n") or 1),
        )


def event(kind: str, severity: audit_pb2.Severity.ValueType, /, **data: Any) -> audit_pb2.NewEvent:
    """Return an event with key fields *data*; what is ``None`` is left out."""
    fields = {name: value for name, value in data.items() if value is not None}
    return audit_pb2.NewEvent(event_type=kind, severity=severity, data_json=canonical_json(fields))


def session_created(session_id: str, scope: str, policy_hash: str, **tree: Any) -> audit_pb2.NewEvent:
    """The scope stands for the key: it is a hash's beginning or a configured name, never a part of the key.

    *tree* says where a child session hangs.
    """
    return event("SESSION_CREATED", INFO, session_id=session_id, scope=scope, safety_policy_hash=policy_hash, **tree)


def session_terminated(reason: str, *, windows: int, budget_micros: int) -> audit_pb2.NewEvent:
    """The end of a session: by its client, its last window or its open breaker."""
    return event(
        "SESSION_TERMINATED",
        INFO,
        reason=reason,
        total_windows=windows,
        final_safety_budget=as_decimal(Micros(budget_micros)),
    )


def dispatch_failed(
    reason: str, dispatch: Dispatch, *, round_number: int | None = None, remedies: Sequence[str] = ()
) -> audit_pb2.NewEvent:
    """A provider call that failed; the provider's own words stay out. With a round it is a remedy that came to nothing."""
    return event(
        "DISPATCH_FAILED", ERROR, error_code=reason, provider=dispatch.provider, model=dispatch.model,
        round=round_number, remedies=list(remedies) or None,
    )  # fmt: skip


def of_window(
    *,
    opened: session_pb2.OpenedWindow,
    continuation_id: str | None,
    noted: Sequence[audit_pb2.NewEvent],
    report: dpe_pb2.Report,
    decision: policy_pb2.Decision,
    report_uri: str,
    policy: policy_pb2.ResolveResponse | None = None,
) -> list[audit_pb2.NewEvent]:
    """Return the events that are sealed with a window, in the order in which they happened; *noted* are its rounds'.

    The effective *policy* says where a violation is reported to.
    """
    continued = opened.window_number > 1
    return [
        *([_continued(opened, continuation_id)] if continued else []),
        *_patterned(opened),
        *noted,
        *_of_decision(report, decision, report_uri, policy or policy_pb2.ResolveResponse()),
    ]


def started(dispatch: Dispatch, step: str) -> audit_pb2.NewEvent:
    """A provider call begins; *step* names it where it is not the answer's own."""
    return event(
        "DISPATCH_STARTED", INFO, strategy=dispatch.strategy, provider=dispatch.provider, model=dispatch.model,
        temperature=dispatch.temperature, token_budget=dispatch.token_budget, seed=dispatch.seed,
        choices=dispatch.choices, step=None if step == GENERATE else step,
    )  # fmt: skip


def completed(
    response_hash: str, tokens_used: int | None, latency_ms: int, dropped: Sequence[str] = ()
) -> audit_pb2.NewEvent:
    """A provider call has ended well. *dropped* names the fields of its answer that are not passed on."""
    return event(
        "DISPATCH_COMPLETED", INFO, response_hash=response_hash, tokens_used=tokens_used, latency_ms=latency_ms,
        dropped_fields=list(dropped) or None,
    )  # fmt: skip


def strategy_upgraded(before: str, after: str, trigger: str | None) -> audit_pb2.NewEvent:
    """A stronger strategy than the one before, and the risk or the state that called for it."""
    return event("STRATEGY_UPGRADE", WARN, from_strategy=before, to_strategy=after, trigger_risk_level=trigger)


def redispatched(
    round_number: int,
    report: dpe_pb2.Report,
    *,
    remedies: Sequence[str],
    strategy: str,
    temperature: float,
    seed: int,
    tokens: int,
) -> audit_pb2.NewEvent:
    """A window is dispatched again, after *report* (SPEC-005 §19.3)."""
    return event(
        "RE_DISPATCH", WARN, round=round_number, reason=[REASONS[remedy] for remedy in remedies],
        remedies=list(remedies), original_risk=word(common_pb2.RiskLevel, report.risk_level),
        original_score=report.composite_score, strategy=strategy, temperature=temperature, seed=seed, tokens=tokens,
    )  # fmt: skip


def remedy_discarded(
    round_number: int, *, remedies: Sequence[str], worse: Iterable[str], better: Iterable[str]
) -> audit_pb2.NewEvent:
    """What a remedy brought does not take the place of the draft (docs/adr/0019)."""
    return event(
        "REMEDY_DISCARDED", INFO, round=round_number, remedies=list(remedies), worse=list(worse), better=list(better)
    )


def review_unresolved(issues: int, provider_calls: int) -> audit_pb2.NewEvent:
    """A review found fault, and the bound on provider calls left none for the revision."""
    return event("REVIEW_UNRESOLVED", WARN, issues=issues, provider_calls=provider_calls)


def flow_remedied(report: dpe_pb2.Report, kind: str) -> audit_pb2.NewEvent:
    """A flow that was too low is being remedied."""
    return event(
        "FLOW_REMEDIATION", INFO, flow_score=report.flow_score if report.HasField("flow_score") else None,
        remediation_type=kind,
    )  # fmt: skip


def continued(round_number: int, report: dpe_pb2.Report, window_id: str, tokens: int) -> audit_pb2.NewEvent:
    """What was left open is answered in the same window (docs/adr/0006); topics by their number in the report."""
    return event(
        "COMPLETENESS_CONTINUATION", INFO, round=round_number, uncovered_topics=_uncovered(report),
        auto_window_id=window_id, tokens=tokens,
    )  # fmt: skip


def stitched(round_number: int, bridge_hash: str, prior_window_id: str, tokens: int) -> audit_pb2.NewEvent:
    """A bridge was inserted before the answer."""
    return event(
        "FLOW_STITCH", INFO, round=round_number, stitch_content_hash=bridge_hash, prior_window_id=prior_window_id,
        tokens=tokens,
    )  # fmt: skip


def summarised(
    source_id: str, *, requested: int, tokens: int, summary_hash: str | None, fidelity: float | None, fault: str | None
) -> audit_pb2.NewEvent:
    """A summary of an earlier answer was made for this window; with a *fault* it was not used (SPEC-004 §12.4)."""
    score = fidelity if fidelity is not None and math.isfinite(fidelity) else None
    return event(
        "SUMMARISATION", WARN if fault else INFO, source_id=source_id, requested_tokens=requested, tokens=tokens,
        summary_hash=summary_hash, fidelity_score=score, used=fault is None, fault=fault,
    )  # fmt: skip


def sub_agent_result(linked: dpe_pb2.LinkedResult) -> audit_pb2.NewEvent:
    """A sub-agent's answer is made use of; the window's HMAC covers its chain tip, for the report holds it (SPEC-012 §8.1)."""
    return event(
        "SUB_AGENT_RESULT", INFO, sub_agent_session_id=linked.session_id, sub_agent_window_id=linked.window_id,
        sub_agent_hmac=linked.hmac, sub_agent_chain_tip=linked.chain_tip, agent_type=linked.agent_type,
    )  # fmt: skip


def _continued(opened: session_pb2.OpenedWindow, continuation_id: str | None) -> audit_pb2.NewEvent:
    return event(
        "SESSION_CONTINUED", INFO, continuation_id=continuation_id, window_number=opened.window_number,
        parent_ids=list(opened.parent_ids), pattern=opened.pattern or None,
    )  # fmt: skip


def _patterned(opened: session_pb2.OpenedWindow) -> Iterator[audit_pb2.NewEvent]:
    """Yield how a window joins the others. Each child of a fan-out is an event of its own: the number that will follow is unknown."""
    if opened.pattern == FAN_OUT:
        yield event(
            "FAN_OUT_CREATED", INFO, parent_window_id=opened.parent_ids[0] if opened.parent_ids else None, child_count=1,
            child_ids=[opened.window_id],
        )  # fmt: skip
    if opened.pattern == FAN_IN:
        yield event(
            "FAN_IN_MERGED", INFO, parent_ids=list(opened.parent_ids), left_out_ids=list(opened.left_out_ids) or None,
            merged_budget=as_decimal(Micros(opened.safety_budget_micros)),
        )  # fmt: skip


def of_report(report: dpe_pb2.Report, *, no_store: bool) -> Iterator[audit_pb2.NewEvent]:
    """Yield what an analysis found."""
    yield event(
        "DPE_COMPLETED", INFO, composite_score=report.composite_score, risk_level=word(common_pb2.RiskLevel, report.risk_level),
        claim_count=report.claims_total, grounding_pct=report.grounding_pct if report.HasField("grounding_pct") else None,
        floors=list(report.floors) or None, basis=report.basis or None, grounding_mode=report.grounding_mode or None,
        misattribution_count=len(report.misattributions) or None,
    )  # fmt: skip
    if report.fabrication_count:
        yield event(
            "FABRICATION_DETECTED", WARN, fabrication_count=report.fabrication_count,
            claim_ids=[claim.claim_id for claim in report.claims if claim.fabrications][:LONGEST_LIST],
        )  # fmt: skip
    if report.distortion_count:
        yield event(
            "DISTORTION_DETECTED", WARN, distortion_count=report.distortion_count, types=list(report.distortion_types),
            claim_ids=[claim.claim_id for claim in report.claims if claim.distortions][:LONGEST_LIST],
        )  # fmt: skip
    if report.contradiction_count:
        yield _contradicted(report)
    yield from _of_quality(report)
    if report.gdpr_pii_detected:
        yield event(
            "PII_DETECTED", WARN, pii_categories=sorted({finding.category for finding in report.pii}),
            pii_types=sorted({finding.type for finding in report.pii}), no_store_set=no_store,
        )  # fmt: skip


def _of_quality(report: dpe_pb2.Report) -> Iterator[audit_pb2.NewEvent]:
    if report.HasField("repetition_level") and report.repetition_level != "NONE":
        yield event(
            "REPETITION_DETECTED", WARN, level=report.repetition_level, overlap_ratio=report.repetition_overlap,
            semantic_ratio=report.semantic_repetition if report.HasField("semantic_repetition") else None,
        )  # fmt: skip
    if report.HasField("completeness_score") and _uncovered(report):
        yield event(
            "COMPLETENESS_GAP", INFO, completeness_score=report.completeness_score,
            uncovered_sub_queries=_uncovered(report),
        )  # fmt: skip
    if report.HasField("eu_ai_act_class"):
        yield event("EU_AI_ACT_CLASSIFIED", INFO, risk_class=report.eu_ai_act_class, system_type=report.domain or None)


def _uncovered(report: dpe_pb2.Report) -> list[int]:
    """Return the uncovered sub-queries by their number in the report: their words are the user's."""
    return [number for number, query in enumerate(report.sub_queries, 1) if not query.covered][:LONGEST_LIST]


def _contradicted(report: dpe_pb2.Report) -> audit_pb2.NewEvent:
    found = list(report.contradictions)
    order = ("CRITICAL", "HIGH", "MEDIUM", "LOW")
    return event(
        "CONTRADICTION_DETECTED", WARN, contradiction_count=report.contradiction_count, scope=report.contradiction_scope,
        severity=next((level for level in order if any(one.severity == level for one in found)), None),
        claim_pairs=[[one.claim_id, one.other_claim_id or one.window_id] for one in found][:LONGEST_LIST],
    )  # fmt: skip


def _of_decision(
    report: dpe_pb2.Report, decision: policy_pb2.Decision, report_uri: str, policy: policy_pb2.ResolveResponse
) -> Iterable[audit_pb2.NewEvent]:
    for broken in decision.violations:
        yield event(
            "POLICY_VIOLATION", WARN, directive=broken.directive, report_only=broken.report_only,
            violation_details={"type": broken.type, "found": broken.found, "signal_missing": broken.signal_missing},
            **_reported(report, report_uri, policy, report_only=broken.report_only),
        )  # fmt: skip
    if decision.action == policy_pb2.ACTION_HOLD or decision.oversight_required:
        yield event(
            "OVERSIGHT_TRIGGERED", WARN, trigger_reason=decision.reason or None, oversight_mode=decision.oversight_mode
        )
    if decision.action not in {policy_pb2.ACTION_DELIVER, policy_pb2.ACTION_HOLD, policy_pb2.ACTION_REJECT_QUALITY}:
        yield safety_halt(report, decision.halt_reason or decision.reason, directive_of(decision), report_uri)


def _reported(
    report: dpe_pb2.Report, report_uri: str, policy: policy_pb2.ResolveResponse, *, report_only: bool
) -> Mapping[str, Any]:
    """Return what a violation report says, scores and ids alone, and where the policy wants it (SPEC-006 §3.16, §7.2)."""
    text = (policy.report_only_text if report_only else "") or policy.policy_text
    endpoints = parse(text) if text else None
    return {
        "risk_level": word(common_pb2.RiskLevel, report.risk_level),
        "hallucination_score": report.composite_score,
        "grounding_pct": report.grounding_pct if report.HasField("grounding_pct") else None,
        "fabrication_count": report.fabrication_count,
        "audit_trail_uri": report_uri,
        "report_uri": sorted(endpoints.report_uri) or None if endpoints else None,
        "report_to": sorted(endpoints.report_to) or None if endpoints else None,
    }


def safety_halt(report: dpe_pb2.Report, reason: str, directive: str | None, report_uri: str) -> audit_pb2.NewEvent:
    """A response that was not released. Its report's address stands for the trail, whose id the seal itself makes."""
    return event(
        "SAFETY_HALT", CRITICAL, risk_level=word(common_pb2.RiskLevel, report.risk_level), halt_reason=reason,
        policy_directive_violated=directive, audit_trail_uri=report_uri,
    )  # fmt: skip


def directive_of(decision: policy_pb2.Decision) -> str | None:
    """Return the first enforced directive that a response broke."""
    return next((broken.directive for broken in decision.violations if not broken.report_only), None)


def of_transitions(settled: session_pb2.CommitWindowResponse, *, window_number: int) -> list[audit_pb2.NewEvent]:
    """Return the events of what a settlement moved: each step of the breaker, depletion, the end (BRK-3, BRK-5)."""
    found = [event("BREAKER_TRANSITION", WARN, **_transition(step)) for step in settled.transitions]
    budget = settled.session_budget_micros
    if any(step.to_state == common_pb2.BREAKER_STATE_OPEN for step in settled.transitions):
        found.append(
            event(
                "SAFETY_BUDGET_DEPLETED",
                CRITICAL,
                remaining_budget=as_decimal(Micros(budget)),
                windows_processed=window_number,
            )
        )
    if settled.terminated:
        opened = settled.breaker == common_pb2.BREAKER_STATE_OPEN
        reason = "SAFETY_BUDGET_DEPLETED" if opened else "LAST_WINDOW"
        found.append(session_terminated(reason, windows=window_number, budget_micros=budget))
    return found


def _transition(step: session_pb2.BreakerTransition) -> Mapping[str, Any]:
    return {
        "session_id": step.session_id,
        "from_state": word(common_pb2.BreakerState, step.from_state),
        "to_state": word(common_pb2.BreakerState, step.to_state),
        "safety_budget": as_decimal(Micros(step.safety_budget_micros)),
    }
