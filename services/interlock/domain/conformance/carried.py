"""What of the conformance levels of SPEC-014 §1 this implementation carries, row by row, and which test shows it.

A level may be claimed where every row of it and of those below is carried. A header that has nothing to tell here is not sent, which
SPEC-014 §1.2 allows ("when applicable"): ``NOT_APPLICABLE`` says why. Tests hold this table to the header vocabulary, to the tests
that it names, and to what a served sidecar sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from interlock.domain.headers.header_syntax import RESPONSE_SYNTAX
from interlock.domain.headers.headers import KNOWN, RESPONSE_ONLY

BASIC, STANDARD, FULL = LEVELS = ("basic", "standard", "full")

_HTTP = "wire/sidecar/test_http_wire.py::"
_CARRIED = "wire/sidecar/test_carried_wire.py::"
_MANDATORY = _CARRIED + "test_every_mandatory_header_of_the_claimed_level_is_sent"

SAFETY = tuple(
    f"CRP-Safety-{name}"
    for name in (
        "Hallucination-Risk", "Hallucination-Score", "Attribution", "Grounding-Pct", "Fabrications", "Distortions",
        "Contradictions", "Omissions", "Entailment-Score", "Oversight-Mode", "Retry-After", "Nonce",
    )
)  # fmt: skip
"""The response headers of SPEC-002 §5."""


@dataclass(frozen=True)
class Requirement:
    """One row of SPEC-014 §1."""

    level: str
    what: str
    source: str
    headers: tuple[str, ...]
    test: str
    """Test below tests/ that shows it over the wire or at the command; empty where it is not carried."""
    why_not: str = ""

    @property
    def carried(self) -> bool:
        return not self.why_not


def _row(level: str, what: str, source: str, test: str, *headers: str, why_not: str = "") -> Requirement:
    return Requirement(level, what, source, headers, test, why_not)


REQUIREMENTS: tuple[Requirement, ...] = (
    _row(BASIC, "session management", "SPEC-007", _HTTP + "test_a_session_goes_on_and_pays_for_each_answer",
         "CRP-Context-Session-Id", "CRP-Set-Session", "CRP-Session-Token"),
    _row(BASIC, "hallucination risk scoring", "SPEC-005 §7", _HTTP + "test_tv_001_a_governed_call_has_the_basic_headers",
         "CRP-Safety-Hallucination-Risk", "CRP-Safety-Hallucination-Score"),
    _row(BASIC, "HMAC chain", "SPEC-011 §2", "conformance/test_spec014_vectors.py::test_vector_passes_as_printed",
         "CRP-Provenance-HMAC", "CRP-Provenance-Chain-Integrity"),
    _row(BASIC, "HTTP 451 halt", "SPEC-002 §13", _HTTP + "test_tv_003_a_critical_risk_is_halted_with_451"),
    _row(BASIC, "protocol version", "SPEC-002 §4.15", _HTTP + "test_tv_001_a_governed_call_has_the_basic_headers",
         "CRP-Context-Protocol-Version"),
    _row(BASIC, "transparency boundary", "SPEC-001 §3", _HTTP + "test_tv_002_nothing_of_ours_reaches_the_provider"),
    _row(STANDARD, "analysis in all 13 stages", "SPEC-005", _MANDATORY, *SAFETY),
    _row(STANDARD, "response quality assurance", "SPEC-005 §18", _MANDATORY,
         "CRP-Quality-Score", "CRP-Quality-Repetition", "CRP-Quality-Completeness", "CRP-Quality-Flow"),
    _row(STANDARD, "safety policy enforcement", "SPEC-006", _HTTP + "test_a_malformed_policy_is_refused_before_anything_begins",
         "CRP-Safety-Policy"),
    _row(STANDARD, "context envelope and quality tier", "SPEC-003", _MANDATORY,
         "CRP-Context-Quality-Tier", "CRP-Context-Saturation", "CRP-Context-ETag"),
    _row(STANDARD, "compliance headers", "SPEC-010", _MANDATORY,
         "CRP-Compliance-EU-AI-Act", "CRP-Compliance-Audit-Trail-Id", "CRP-Compliance-Audit-Trail-URI"),
    _row(STANDARD, "provenance headers", "SPEC-011", _MANDATORY,
         "CRP-Provenance-Claim-Count", "CRP-Provenance-Attribution-Score", "CRP-Provenance-Fidelity-Score",
         "CRP-Provenance-Report-URI"),
    _row(STANDARD, "continuation", "SPEC-004", _MANDATORY, "CRP-Context-Window", "CRP-Context-Continuation-Id"),
    _row(STANDARD, "audit trail export as NDJSON", "SPEC-011 §4",
         "unit/cli/audit/test_audit_cli.py::test_export_is_ndjson_with_the_fields_of_the_specification"),
    _row(STANDARD, "conditional dispatch, 304", "SPEC-003 §11",
         "wire/sidecar/test_conditional_wire.py::test_an_unchanged_call_is_answered_304_with_the_headers_of_its_answer",
         "CRP-Context-If-Match", "CRP-Context-Cache-Status"),
    _row(FULL, "all nine dispatch strategies", "SPEC-008", "",
         why_not="streaming is no strategy to ask for: a request with stream is analysed whole and sent as a stream"),
    _row(FULL, "multi-agent safety budget propagation", "SPEC-012",
         "wire/session/test_session_tree.py::test_a_child_cannot_raise_its_budget_by_what_it_says"),
    _row(FULL, "policy inheritance and tightening in agent chains", "SPEC-012 §4",
         "wire/session/test_session_tree.py::test_a_grant_tells_what_a_child_inherits_and_the_child_has_it"),
    _row(FULL, "circuit breaker state transitions", "SPEC-012 §5",
         "wire/session/test_session_wire.py::test_an_open_breaker_ends_the_session_with_a_451"),
    _row(FULL, "fan-out and fan-in with merged HMACs", "SPEC-004 §6, §7, §9.3",
         "wire/sidecar/test_fan_wire.py::test_a_fan_in_begins_with_the_least_of_its_parents_and_chains_from_all_of_them"),
    _row(FULL, "streaming, buffered and passed through", "SPEC-008 §9", "",
         why_not="streams leave in parts that were judged, or whole: what was not judged is not passed through"),
    _row(FULL, "CRP-Safety-Stop-Inject", "SPEC-005 §1.3", "", why_not="there is no pass-through stream to stop; a stream that is cut says so in its own form"),
    _row(FULL, "audit trail export as OCSF", "SPEC-011 §4.2",
         "unit/audit/export/test_ocsf.py::test_every_type_in_every_severity_is_valid_ocsf"),
    _row(FULL, "mutual TLS", "SPEC-015 §4.1", "wire/runtime/test_tls_wire.py::test_a_caller_without_a_certificate_is_not_served"),
    _row(FULL, "CRP Comply real-time integration", "SPEC-011 §5", "",
         why_not="events are streamed to webhooks; the hosted product is out of scope"),
    _row(FULL, "CRP Visualise session data export", "-", "",
         why_not="sessions are exported as JSON, Mermaid and DOT; the hosted product is out of scope"),
    _row(FULL, "industry-specific policy profiles", "SPEC-006 §6", "unit/domain/policy/test_policy_text.py::test_a_profile_is_its_expansion"),
    _row(FULL, "multi-region data residency", "SPEC-002 §7.7",
         "unit/sidecar/test_sidecar_tree.py::test_a_residency_is_this_deployments_or_refused", "CRP-Compliance-Data-Residency"),
)  # fmt: skip
"""Every row of SPEC-014 §1.1 to §1.3, in its order."""

_NO_FABRIC = "there is no knowledge fabric: the facts of a call come with it or from earlier windows"
NOT_APPLICABLE: Mapping[str, str] = {
    "CRP-Memory-CKF-Hits": _NO_FABRIC,
    "CRP-Memory-CKF-Community": _NO_FABRIC,
    "CRP-Memory-Knowledge-Age": _NO_FABRIC,
    "CRP-LLM-Temperature": "internal (SPEC-002 §11.1): the audit trail has it",
}
"""Headers of SPEC-002 that are never sent, and why."""

FIELDS: tuple[str, ...] = (
    *(f"CRP-Context-{name}" for name in (
        "Quality-Tier", "Window", "Saturation", "Facts-Used", "Tokens-Used", "Strategy", "Session-Id", "ETag", "If-Match",
        "Cache", "Cache-Status", "Continuation-Id", "Protocol-Version",
    )),
    "CRP-Accept-Quality", "CRP-Accept-Strategy", *SAFETY,
    "CRP-Safety-Mode", "CRP-Safety-Policy", "CRP-Safety-Report-URI", "CRP-Accept-Risk",
    *(f"CRP-Provenance-{name}" for name in (
        "HMAC", "Window-HMAC", "DAG-Root", "Chain-Integrity", "Claim-Count", "Attribution-Score", "Fidelity-Score",
        "Report-URI", "Window-Lineage",
    )),
    *(f"CRP-Compliance-{name}" for name in (
        "EU-AI-Act", "NIST-Tier", "GDPR-PII", "ISO-42001", "Audit-Trail-Id", "Audit-Trail-URI", "Data-Residency",
        "Controls-Met",
    )),
    *(f"CRP-Agent-{name}" for name in (
        "Phase", "Loop-Depth", "Safety-Budget", "Tool-Calls", "Session-Parent", "Dispatch-Strategy", "Revision-Round",
    )),
    *(f"CRP-Memory-{name}" for name in ("Tier-Hit", "CKF-Hits", "CKF-Community", "Knowledge-Age")),
    "CRP-Set-Session", "CRP-Session-Token",
    *(f"CRP-LLM-{name}" for name in ("Temperature", "Grounding-Mode", "Reproducibility-Seed")),
)  # fmt: skip
"""Every header field of SPEC-002 §4 to §11, in its order of sections."""


def claimed() -> str:
    """Return the highest level whose rows, and those of the levels below, are all carried; empty where basic is not."""
    level = ""
    for one in LEVELS:
        if any(row.level == one and not row.carried for row in REQUIREMENTS):
            break
        level = one
    return level


def use_of(field: str) -> str:
    """Return what happens with a header field: sent, read, both, or not applicable."""
    sent, read = field in RESPONSE_SYNTAX, field.lower() in KNOWN - RESPONSE_ONLY
    return "sent and read" if sent and read else "sent" if sent else "read" if read else "not applicable"
