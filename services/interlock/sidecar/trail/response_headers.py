"""Response headers, out of the result of each step of a call (HDR-4, HDR-5; SPEC-005 §20; SPEC-012 §3).

Every value is a number, an id or a word of a fixed list; ``ResponseHeaders.set`` leaves out what is not. A signal that is
absent has no header: it never reads as a good value. Nothing here is sent to a provider (SPEC-012 §3.3, HDR-3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros, as_decimal, budget_warning
from interlock.domain.dag.dag import lineage_text
from interlock.domain.headers import headers
from interlock.domain.headers.header_syntax import LISTED, RESPONSE_SYNTAX

_LOWER = {name: name.lower() for name in RESPONSE_SYNTAX}
LONGEST_METADATA = 2048
"""Longest value in trailing metadata: clients take 8 KiB of metadata in all by default. The message has every header."""


@dataclass
class ResponseHeaders:
    """The CRP headers of a response. Each step sets its own, so that a refusal carries all that were set before it."""

    headers: dict[str, str] = field(default_factory=dict)
    session_id: str = ""
    window_id: str = ""
    trail_uri: str = ""
    cookie: str = ""
    """Value of the session cookie that the client does not have yet; empty: none is set."""
    agent_type: str = ""
    """Registered type of the agent that calls, once it is known; empty for others."""
    told: bool = False
    """Whether the log has a line of how the call ended."""

    def told_binding(self, word: str) -> None:
        """Say what bound the call. Of one that takes several windows, the first one's binding is the call's."""
        self.set({"CRP-Session-Binding": self.headers.get("CRP-Session-Binding", word)})

    def set(self, values: Mapping[str, str | None]) -> None:
        """Set header values; what is absent or does not match its grammar is left out, and so is what it replaces."""
        for name, value in values.items():
            if value is not None and RESPONSE_SYNTAX[name].fullmatch(value):
                self.headers[name] = value
            else:
                self.headers.pop(name, None)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return the headers as trailing metadata, in lower case."""
        return tuple([
            (_LOWER[name], value) for name, value in self.headers.items() if len(value) <= LONGEST_METADATA
        ])  # fmt: skip


def of_session(session: session_pb2.Session, token: str) -> dict[str, str | None]:
    """Return the headers of a session that has just been made."""
    return {
        "CRP-Context-Session-Id": session.session_id,
        "CRP-Agent-Safety-Budget": as_decimal(Micros(session.safety_budget_micros)),
        "CRP-Agent-Loop-Depth": str(session.loop_depth),
        "CRP-Agent-Session-Parent": session.parent_session_id or None,
        "CRP-Set-Session": headers.set_session(token, max_age_s=None, window=None, quality=()),
    }


def of_delegation(delegation: session_pb2.Delegation) -> dict[str, str | None]:
    """Return the headers of the session that delegates."""
    return {"CRP-Context-Session-Id": delegation.parent_session_id}


def of_opened(opened: session_pb2.OpenedWindow) -> dict[str, str | None]:
    """Return the headers of an admitted call."""
    return {
        "CRP-Context-Protocol-Version": headers.PROTOCOL_VERSION,
        "CRP-Context-Session-Id": opened.session_id,
        "CRP-Context-Window": f"{opened.window_number}/{opened.max_windows}",
        "CRP-Agent-Safety-Budget": as_decimal(Micros(min(opened.safety_budget_micros, opened.session_budget_micros))),
        "CRP-Agent-Loop-Depth": str(opened.loop_depth),
        "CRP-Agent-Session-Parent": next(iter(opened.ancestor_session_ids), None),
        "CRP-Quality-Degradation": _degradation(opened.degradation),
        "CRP-Safety-Budget-Warning": budget_warning(Micros(opened.session_budget_micros)),
    }


def of_strategy(strategy: str, revision: str) -> dict[str, str | None]:
    """Return the headers of how an answer was produced: what was done, not what was preferred (SPEC-002 §4.14)."""
    return {
        "CRP-Context-Strategy": strategy,
        "CRP-Agent-Dispatch-Strategy": strategy,
        "CRP-Agent-Revision-Round": revision,
    }


def media_text(report: dpe_pb2.Report) -> str | None:
    """Return what nobody judged of a call's media, such as ``request-image=2``; ``None`` where there is none."""
    return ", ".join(f"{one.direction}-{one.kind}={one.count}" for one in report.unjudged_media) or None


def of_report(report: dpe_pb2.Report) -> dict[str, str | None]:
    """Return the headers that the analysis fills (SPEC-005 §20)."""
    ran = {stage.number for stage in report.stages if stage.status == dpe_pb2.STAGE_STATUS_RAN}
    return {
        "CRP-Context-Quality-Tier": report.quality_tier or None,
        "CRP-Context-Facts-Used": f"{report.facts_total}/{report.facts_total}",
        "CRP-Context-Tokens-Used": str(report.envelope_tokens),
        "CRP-Context-ETag": report.envelope_etag or None,
        "CRP-Safety-Hallucination-Risk": word(common_pb2.RiskLevel, report.risk_level),
        "CRP-Safety-Hallucination-Score": headers.fraction(report.composite_score),
        "CRP-Provenance-Claim-Count": str(report.claims_total) if "1" in ran else None,
        "CRP-Safety-Attribution": word(dpe_pb2.Attribution, report.attribution_dominant) if "2" in ran else None,
        **_scores(report, ran),
        **_findings(report, ran),
        **_quality(report),
        **_compliance(report),
    }


def _quality(report: dpe_pb2.Report) -> dict[str, str | None]:
    """Return the headers of stages 7 to 9 and of the quality score. A topic's name is checked against its alphabet."""
    level = report.repetition_level if report.HasField("repetition_level") else None
    completeness = report.completeness_level if report.HasField("completeness_level") else None
    flow = headers.fraction(report.flow_score) if report.HasField("flow_score") else None
    uncovered = [query.token for query in report.sub_queries if not query.covered]
    total = len(report.sub_queries)
    return {
        "CRP-Quality-Repetition": headers.repetition(level, _overlap(report)) if level else None,
        "CRP-Quality-Completeness": _of_agents(report)
        or (
            headers.completeness(completeness, covered=total - len(uncovered), total=total, uncovered=uncovered)
            if completeness
            else None
        ),
        "CRP-Quality-Flow": headers.flow(flow, report.flow_remediation) if flow else None,
        "CRP-Quality-Score": headers.fraction(report.quality_score) if report.HasField("quality_score") else None,
    }


def _of_agents(report: dpe_pb2.Report) -> str | None:
    """Return the completeness of an answer made from several agents' (SPEC-012 §9.2); ``None`` where it is none."""
    merged = report.cross_agent
    if not merged.HasField("completeness"):
        return None
    uncovered = [topic for covered in merged.coverage for topic in covered.uncovered]
    return headers.agents_completeness(merged.completeness, uncovered)


def _overlap(report: dpe_pb2.Report) -> str | None:
    return headers.fraction(report.repetition_overlap) if report.HasField("repetition_overlap") else None


def _compliance(report: dpe_pb2.Report) -> dict[str, str | None]:
    met = report.HasField("controls_met") and report.HasField("controls_total")
    return {
        # An unregistered system has no class of its own (SPEC-002 §12.5).
        "CRP-Compliance-EU-AI-Act": report.eu_ai_act_class if report.domain else "UNKNOWN",
        "CRP-Compliance-NIST-Tier": report.nist_tier if report.HasField("nist_tier") else None,
        "CRP-Compliance-ISO-42001": ", ".join(report.iso_42001_controls[:LISTED]) or None,
        "CRP-Compliance-Controls-Met": f"{report.controls_met}/{report.controls_total}" if met else None,
    }


def _scores(report: dpe_pb2.Report, ran: set[str]) -> dict[str, str | None]:
    grounding = headers.fraction(report.grounding_pct) if report.HasField("grounding_pct") else None
    return {
        "CRP-Safety-Grounding-Pct": grounding,
        "CRP-Safety-Grounding-Basis": report.basis or None,
        "CRP-Safety-Unjudged-Media": media_text(report),
        "CRP-Safety-Cannot-Tell": str(report.cannot_tell_count) if "2" in ran else None,
        "CRP-Provenance-Attribution-Score": grounding,
        "CRP-Provenance-Fidelity-Score": (
            headers.fraction(report.fidelity_score) if report.HasField("fidelity_score") else None
        ),
        "CRP-Safety-Entailment-Score": (
            headers.fraction(report.entailment_score) if report.HasField("entailment_score") else None
        ),
    }


def _findings(report: dpe_pb2.Report, ran: set[str]) -> dict[str, str | None]:
    pii = report.HasField("gdpr_pii_detected")
    return {
        "CRP-Safety-Fabrications": str(report.fabrication_count) if "3a" in ran else None,
        "CRP-Safety-Distortions": (
            headers.distortions(report.distortion_count, report.distortion_types) if "3b" in ran else None
        ),
        "CRP-Safety-Contradictions": (
            headers.contradictions(report.contradiction_count, report.contradiction_scope) if "3c" in ran else None
        ),
        "CRP-Safety-Omissions": headers.omissions(report.omission_summary) if "10" in ran else None,
        "CRP-Compliance-GDPR-PII": str(report.gdpr_pii_detected).lower() if pii and "11" in ran else None,
    }


def of_decision(decision: policy_pb2.Decision) -> dict[str, str | None]:
    """Return the headers of the decision."""
    return {"CRP-Safety-Oversight-Mode": decision.oversight_mode or None}


def of_seal(sealed: audit_pb2.AppendResponse, window_id: str, base_url: str) -> dict[str, str | None]:
    """Return the headers of the window's record."""
    return {
        "CRP-Provenance-HMAC": sealed.hmac,
        "CRP-Provenance-Window-HMAC": sealed.window_hmac,
        "CRP-Provenance-DAG-Root": f"dag:{sealed.root_window_id}",
        "CRP-Provenance-Chain-Integrity": chain_word(sealed.integrity),
        "CRP-Provenance-Report-URI": report_uri(base_url, window_id),
        "CRP-Compliance-Audit-Trail-Id": sealed.trail_id,
        "CRP-Compliance-Audit-Trail-URI": trail_uri(base_url, sealed.trail_id),
    }


def of_settlement(
    settled: session_pb2.CommitWindowResponse, window_number: int, max_windows: int
) -> dict[str, str | None]:
    """Return the headers of the settled window: the budget that the session has left, which never rises within it
    (requirements.md, reading 12), and the token for the next.
    """
    left = left_of(settled)
    return {
        "CRP-Context-Window": f"{window_number}/{max_windows}",
        **of_budget(left),
        "CRP-Context-Continuation-Id": settled.continuation_id or None,
        "CRP-Safety-Nonce": settled.nonce or None,
        "CRP-Provenance-Window-Lineage": settled.lineage_text or _short_lineage(settled.lineage),
        "CRP-Quality-Degradation": _degradation(settled.degradation),
        "CRP-Set-Session": headers.set_session(
            settled.token, max_age_s=settled.max_age_s, window=window_number, quality=settled.quality_history,
            quality_text=settled.quality_text,
        ),
    }  # fmt: skip


def of_budget(left: int) -> dict[str, str | None]:
    """Return the headers of what a session has left, millionths, and its warning."""
    return {
        "CRP-Agent-Safety-Budget": as_decimal(Micros(left)),
        "CRP-Safety-Budget-Warning": budget_warning(Micros(left)),
    }


def left_of(settled: session_pb2.CommitWindowResponse) -> int:
    """Return what a session has left after a settlement, millionths; an older session service tells the settled budget alone."""
    return settled.left_micros if settled.HasField("left_micros") else settled.session_budget_micros


def _short_lineage(latest: Sequence[str]) -> str | None:
    """Return the lineage as an older session service sends it. As many as are listed may be the end of a longer one."""
    return lineage_text(latest) if len(latest) < LISTED else None


_ADVICE: Mapping[int, str] = {
    session_pb2.DEGRADATION_FIRST_DROP: "first-drop",
    session_pb2.DEGRADATION_SUSTAINED: "sustained; recommend=strategy-upgrade",
    session_pb2.DEGRADATION_CRITICAL: "critical; recommend=new-session",
    session_pb2.DEGRADATION_PERSISTENT: "persistent; recommend=new-session",
}


def _degradation(pattern: int) -> str | None:
    """Return the pattern in which the quality falls and what helps (SPEC-004 §13.2); ``None`` when it does not fall."""
    return _ADVICE.get(pattern)


_OF_REFUSALS: Mapping[str, Mapping[str, str]] = {
    "KERNEL_ACTION_REFUSED": {"CRP-Kernel-Decision": "refused"},
    "CHAIN_BROKEN": {"CRP-Provenance-Chain-Integrity": "BROKEN"},
    "SAFETY_POLICY_INHERITANCE_VIOLATION": {"CRP-Safety-Policy-Violation": "inheritance"},
}


def of_refusal(reason: str) -> Mapping[str, str]:
    """Return the headers that a refusal carries whatever it refused (SPEC-004 §16.4, SPEC-006 §5.2)."""
    return _OF_REFUSALS.get(reason, {})


def report_uri(base_url: str, window_id: str) -> str:
    """Return where the report of a window is served."""
    return f"{base_url}/crp/v3/reports/{window_id}"


def trail_uri(base_url: str, trail_id: str) -> str:
    """Return where the record of a call is served."""
    return f"{base_url}/crp/v3/trails/{trail_id}"


def chain_word(integrity: int) -> str | None:
    """Return the specification's word for the state of a chain; it has none for one that says what was erased from it."""
    if integrity == common_pb2.CHAIN_INTEGRITY_TRUNCATED:
        return "PARTIAL"
    return word(common_pb2.ChainIntegrity, integrity)


@lru_cache(maxsize=512)
def word(kind: Any, number: int) -> str | None:
    """Return the specification's word for an enum value; ``None`` when it is not set or not known here."""
    if not number or number not in kind.values():
        return None
    return str(kind.Name(number)).removeprefix(str(kind.Name(0)).removesuffix("UNSPECIFIED"))
