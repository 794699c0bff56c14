"""The grammar of every response header (SPEC-002; SPEC-004 §13.3, Appendix A; SPEC-012 §3)."""

from __future__ import annotations

import re
from collections.abc import Mapping

TOKEN_LIMIT = 8192
"""Longest session token or policy line, bytes (SPEC-007 §2.4)."""

LISTED = 64
"""Maximum number of windows in a header. A longer lineage is left out; of a longer history the end is shown."""

TOPICS = 16
"""Maximum number of uncovered sub-queries in a header: 16 of 48 characters fit into one value. The report names all."""

DISTORTION_TYPES = frozenset({
    "NUMBER_CHANGED", "NEGATION_FLIP", "DATE_SHIFTED", "ENTITY_SUBSTITUTED", "MAGNITUDE_ALTERED", "CONTEXT_STRIPPED",
})  # fmt: skip
STRATEGIES = ("push", "pull", "reflexive", "agentic", "hierarchical", "batch", "streaming", "fan-out", "fan-in")
PHASES = ("ANALYZE", "PLAN", "GENERATE", "EVALUATE", "CRITIQUE", "REFINE", "INTEGRATE", "COMPLETE")
"""Phases of the agentic loop, in order (SPEC-008 §6.2)."""

FRACTION = r"(?:0\.[0-9]{1,6}|1\.0{1,6})"
HASH = r"sha256:[0-9a-f]{64}"
ID = r"[0-9A-Za-z]{16,32}"
STRATEGY = "|".join(STRATEGIES)
RESIDENCY = "[A-Z]{2}"
TOPIC = r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?"

_URI = r"https?://[A-Za-z0-9._~:/\[\]%-]{1,1000}"
_WINDOW = rf"crp_win_{ID}"
_LEVEL = "CRITICAL|HIGH|MEDIUM|LOW"
_MEDIA = r"(?:request|answer)-(?:image|audio|file)=[0-9]{1,6}"
_DISTORTION = "|".join(sorted(DISTORTION_TYPES))
_CONTROL = r"A\.[0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?"
_WOULD = r"(?:halt|hold|reject|rewrite); reason=[A-Z0-9_]{1,64}"
_NESTED = 8
"""Maximum depth of brackets in a lineage or a quality history. Deeper nesting is left out."""


def _parallel(item: str, separators: str, most: int) -> str:
    """Return the pattern of items in a row, with parallel items in brackets (SPEC-004 Appendix A)."""
    one = rf"\[{{0,{_NESTED}}}{item}\]{{0,{_NESTED}}}"
    return rf"{one}(?:(?:{separators}){one}){{0,{most - 1}}}"


_HISTORY = _parallel("[SABCD]", ", ?", LISTED)
_SESSION_ATTRIBUTE = (
    r"; (?:Path=/|Max-Age=[0-9]{1,9}|Signed|SameSite=Strict|Window=[0-9]{1,9}|QualityHistory=" + _HISTORY + ")"
)

RESPONSE_SYNTAX: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.ASCII)
    for name, pattern in {
        "CRP-Context-Protocol-Version": r"3\.0\.0",
        "CRP-Context-Session-Id": rf"crp_sess_{ID}",
        "CRP-Context-Window": r"[0-9]{1,9}/[0-9]{1,9}",
        "CRP-Context-Continuation-Id": rf"crp_cont_{ID}",
        "CRP-Context-Quality-Tier": r"[SABCD]",
        "CRP-Context-Facts-Used": r"[0-9]{1,9}/[0-9]{1,9}",
        "CRP-Context-Tokens-Used": r"[0-9]{1,9}",
        "CRP-Context-Saturation": FRACTION,
        "CRP-Context-Cache-Status": r"HIT|(?:MISS|PARTIAL)(?:; reason=[a-z0-9-]{1,48})?",
        "CRP-Context-ETag": HASH,
        "CRP-Context-Strategy": STRATEGY,
        "CRP-Safety-Hallucination-Risk": _LEVEL,
        "CRP-Safety-Hallucination-Score": FRACTION,
        "CRP-Safety-Attribution": r"CONTEXT_GROUNDED|PARAMETRIC|MIXED|UNVERIFIABLE",
        "CRP-Safety-Grounding-Pct": FRACTION,
        # Not in SPEC-002: tells a LOW that was judged against sources from one that could not be (ATT-8).
        "CRP-Safety-Grounding-Basis": r"sources|no-sources",
        # Not in SPEC-002: statements that the sources neither show nor speak against.
        "CRP-Safety-Cannot-Tell": r"[0-9]{1,6}",
        # Not in SPEC-002: images, sound and files that were passed on and that nobody judged.
        "CRP-Safety-Unjudged-Media": rf"{_MEDIA}(?:, {_MEDIA}){{0,5}}",
        "CRP-Safety-Fabrications": r"[0-9]{1,9}",
        "CRP-Safety-Distortions": rf"[0-9]{{1,9}}(?:; types=(?:{_DISTORTION})(?:,(?:{_DISTORTION}))*)?",
        "CRP-Safety-Contradictions": r"[0-9]{1,9}(?:; scope=(?:intra|cross-window|both))?",
        "CRP-Safety-Omissions": r"CRITICAL:[0-9]{1,9}, HIGH:[0-9]{1,9}, MEDIUM:[0-9]{1,9}",
        "CRP-Safety-Entailment-Score": FRACTION,
        "CRP-Safety-Oversight-Mode": r"auto|human-review|halt|log-only",
        "CRP-Safety-Policy-Applied": rf"[\x20-\x7e]{{1,{TOKEN_LIMIT}}}",
        "CRP-Safety-Policy-Violation": "inheritance",
        "CRP-Safety-Nonce": r"base64:[A-Za-z0-9+/=]{1,256}",
        "CRP-Safety-Retry-After": r"[0-9]{1,9}|oversight-required|new-session-required",
        "CRP-Safety-Budget-Warning": r"caution|low",
        # Not in SPEC-002: a tool call of the answer is an action that the caller's kernel would reject (docs/kernel.md).
        "CRP-Kernel-Decision": "refused",
        # Not in SPEC-002: what is left of the lowest spending limit, of the session or of one above it (docs/spending.md).
        "CRP-Spending-Left": r"tokens=[0-9]{1,15}(?:, usd=[0-9]{1,9}\.[0-9]{2,6})?|usd=[0-9]{1,9}\.[0-9]{2,6}",
        # Not in SPEC-002: what would have been done to an answer that is only watched (docs/profiles.md).
        "CRP-Safety-Would": rf"{_WOULD}(?:, {_WOULD}){{0,3}}",
        "CRP-Provenance-HMAC": HASH,
        "CRP-Provenance-Window-HMAC": HASH,
        "CRP-Provenance-DAG-Root": rf"dag:{_WINDOW}",
        "CRP-Provenance-Chain-Integrity": r"VALID|BROKEN|PARTIAL|UNVERIFIED",
        "CRP-Provenance-Claim-Count": r"[0-9]{1,9}",
        "CRP-Provenance-Attribution-Score": FRACTION,
        "CRP-Provenance-Fidelity-Score": FRACTION,
        "CRP-Provenance-Report-URI": _URI,
        "CRP-Provenance-Window-Lineage": _parallel(_WINDOW, " -> |, ", LISTED),
        "CRP-Compliance-EU-AI-Act": r"UNACCEPTABLE|HIGH|LIMITED|MINIMAL|UNKNOWN",
        "CRP-Compliance-NIST-Tier": r"TIER-[1-4]",
        "CRP-Compliance-GDPR-PII": r"true|false",
        "CRP-Compliance-ISO-42001": rf"{_CONTROL}(?:, {_CONTROL}){{0,{LISTED - 1}}}",
        "CRP-Compliance-Data-Residency": RESIDENCY,
        "CRP-Compliance-Controls-Met": r"[0-9]{1,9}/[0-9]{1,9}",
        "CRP-Quality-Score": FRACTION,
        "CRP-Quality-Repetition": rf"NONE|(?:MINOR|SIGNIFICANT|SEVERE)(?:; overlap={FRACTION})?",
        "CRP-Quality-Completeness": (
            # The second form is for an answer made from the answers of several agents (SPEC-012 §9.2).
            rf"(?:(?:COMPLETE|MOSTLY_COMPLETE|PARTIAL|INCOMPLETE); sub-queries=[0-9]{{1,9}}/[0-9]{{1,9}}|{FRACTION})"
            rf"(?:; uncovered={TOPIC}(?:,{TOPIC}){{0,{TOPICS - 1}}})?"
        ),
        # Not in SPEC-002: SPEC-004 §13.2 requires the value and names no header.
        "CRP-Quality-Degradation": r"(?:first-drop|sustained|critical|persistent)(?:; recommend=(?:strategy-upgrade|new-session))?",
        "CRP-Quality-Flow": rf"{FRACTION}(?:; remediation=(?:prompt-augmented|stitched))?",
        "CRP-Compliance-Audit-Trail-Id": rf"crp_trail_{ID}",
        "CRP-Compliance-Audit-Trail-URI": _URI,
        "CRP-Agent-Safety-Budget": FRACTION,
        "CRP-Agent-Loop-Depth": r"[0-9]{1,9}",
        "CRP-Agent-Session-Parent": rf"crp_sess_{ID}",
        "CRP-Agent-Dispatch-Strategy": STRATEGY,
        "CRP-Agent-Revision-Round": r"[1-3]/[1-3]",
        "CRP-Agent-Phase": "|".join(PHASES),
        "CRP-Agent-Tool-Calls": r"[0-9]{1,9}",
        "CRP-Memory-Tier-Hit": r"[01]",
        "CRP-LLM-Grounding-Mode": r"context-strict|context-preferred|open",
        # Not in SPEC-002: what a call was bound to its session by (docs/bindings.md).
        "CRP-Session-Binding": r"token|hint|cookie|response|trace|body|conversation|caller",
        "CRP-Set-Session": rf"token=[A-Za-z0-9+/.=_-]{{1,{TOKEN_LIMIT}}}(?:{_SESSION_ATTRIBUTE})*",
    }.items()
}
"""Every response header with its grammar."""
