"""The CRP header vocabulary: who may send what, and how every value is written (SPEC-002, SPEC-012 §3).

Requests are read by allow-list. Responses are written through ``RESPONSE_SYNTAX``: a value that does not match the
grammar of its header is not sent, so that nothing a model wrote can become a header (reliability.md A-16).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from interlock.domain.budget import FULL, Micros
from interlock.domain.errors import Refused, invalid
from interlock.domain.risk import RiskLevel

PROTOCOL_VERSION = "3.0.0"

TOKEN_LIMIT = 8192
"""Longest session token or policy line, bytes (SPEC-007 §2.4)."""

VALUE_LIMIT = 1024
"""Longest value of every other header, bytes."""

LISTED = 64
"""Most windows that a header lists; a longer lineage is left out, of a longer history the end is shown."""

TOPICS = 16
"""Most uncovered sub-queries that a header names; 16 of 48 characters fit into VALUE_LIMIT. The report names all."""

DISTORTION_TYPES = frozenset({
    "NUMBER_CHANGED", "NEGATION_FLIP", "DATE_SHIFTED", "ENTITY_SUBSTITUTED", "MAGNITUDE_ALTERED", "CONTEXT_STRIPPED",
})  # fmt: skip
STRATEGIES = ("push", "pull", "reflexive", "agentic", "hierarchical", "batch", "streaming", "fan-out", "fan-in")

LINES = frozenset({"crp-safety-policy", "crp-safety-policy-report-only"})
"""Request headers that may be sent several times; every line is enforced."""

PREFERENCES = frozenset({"crp-accept-strategy", "crp-context-if-match", "crp-context-session-id"})
"""Request headers whose wish may go unmet without harm: checked, then left alone. The token names the session (§12.3)."""

NOT_SUPPORTED: Mapping[str, str] = {
    "crp-agent-session-parent": "delegation to sub-agents",
    "crp-agent-loop-depth": "delegation to sub-agents",
    "crp-agent-dispatch-strategy": "agentic dispatch",
    "crp-context-strategy": "fan-out and fan-in",
    "crp-context-acceptance": "context acceptance",
    "crp-compliance-data-residency": "data residency",
    "crp-oversight-token": "the release of held responses",
}
"""Request headers of features that do not exist yet. Ignoring one would lose a protection, so it is refused by name."""

_ACTIVE = LINES | {
    "crp-session-token", "crp-context-continuation-id", "crp-context-cache", "crp-accept-quality", "crp-accept-risk",
    "crp-safety-mode", "crp-safety-oversight-mode", "crp-safety-nonce", "crp-safety-report-uri",
    "crp-agent-safety-budget", "crp-llm-grounding-mode", "crp-llm-reproducibility-seed", "crp-session-action",
}  # fmt: skip

_FRACTION = r"(?:0\.[0-9]{1,6}|1\.0{1,6})"
_HASH = r"sha256:[0-9a-f]{64}"
_ID = r"[0-9A-Za-z]{16,32}"
_URI = r"https?://[A-Za-z0-9._~:/\[\]%-]{1,1000}"
_WINDOW = rf"crp_win_{_ID}"
_STRATEGY = "|".join(STRATEGIES)
_LEVEL = "CRITICAL|HIGH|MEDIUM|LOW"
_DISTORTION = "|".join(sorted(DISTORTION_TYPES))
_TOPIC = r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?"
_CONTROL = r"A\.[0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?"
_SESSION_ATTRIBUTE = (
    r"; (?:Path=/|Max-Age=[0-9]{1,9}|Signed|SameSite=Strict|Window=[0-9]{1,9}|QualityHistory=[SABCD](?:,[SABCD])*)"
)

RESPONSE_SYNTAX: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.ASCII)
    for name, pattern in {
        "CRP-Context-Protocol-Version": r"3\.0\.0",
        "CRP-Context-Session-Id": rf"crp_sess_{_ID}",
        "CRP-Context-Window": r"[0-9]{1,9}/[0-9]{1,9}",
        "CRP-Context-Continuation-Id": rf"crp_cont_{_ID}",
        "CRP-Context-Quality-Tier": r"[SABCD]",
        "CRP-Context-Facts-Used": r"[0-9]{1,9}/[0-9]{1,9}",
        "CRP-Context-Tokens-Used": r"[0-9]{1,9}",
        "CRP-Context-ETag": _HASH,
        "CRP-Context-Strategy": _STRATEGY,
        "CRP-Safety-Hallucination-Risk": _LEVEL,
        "CRP-Safety-Hallucination-Score": _FRACTION,
        "CRP-Safety-Attribution": r"CONTEXT_GROUNDED|PARAMETRIC|MIXED|UNVERIFIABLE",
        "CRP-Safety-Grounding-Pct": _FRACTION,
        "CRP-Safety-Fabrications": r"[0-9]{1,9}",
        "CRP-Safety-Distortions": rf"[0-9]{{1,9}}(?:; types=(?:{_DISTORTION})(?:,(?:{_DISTORTION}))*)?",
        "CRP-Safety-Contradictions": r"[0-9]{1,9}(?:; scope=(?:intra|cross-window|both))?",
        "CRP-Safety-Omissions": r"CRITICAL:[0-9]{1,9}, HIGH:[0-9]{1,9}, MEDIUM:[0-9]{1,9}",
        "CRP-Safety-Entailment-Score": _FRACTION,
        "CRP-Safety-Oversight-Mode": r"auto|human-review|halt|log-only",
        "CRP-Safety-Policy-Applied": rf"[\x20-\x7e]{{1,{TOKEN_LIMIT}}}",
        "CRP-Safety-Nonce": r"base64:[A-Za-z0-9+/=]{1,256}",
        "CRP-Safety-Retry-After": r"[0-9]{1,9}|oversight-required|new-session-required",
        "CRP-Safety-Budget-Warning": r"caution|low",
        "CRP-Provenance-HMAC": _HASH,
        "CRP-Provenance-Window-HMAC": _HASH,
        "CRP-Provenance-DAG-Root": rf"dag:{_WINDOW}",
        "CRP-Provenance-Chain-Integrity": r"VALID|BROKEN|PARTIAL|UNVERIFIED",
        "CRP-Provenance-Claim-Count": r"[0-9]{1,9}",
        "CRP-Provenance-Attribution-Score": _FRACTION,
        "CRP-Provenance-Fidelity-Score": _FRACTION,
        "CRP-Provenance-Report-URI": _URI,
        "CRP-Provenance-Window-Lineage": rf"{_WINDOW}(?: -> {_WINDOW}){{0,{LISTED - 1}}}",
        "CRP-Compliance-EU-AI-Act": r"UNACCEPTABLE|HIGH|LIMITED|MINIMAL|UNKNOWN",
        "CRP-Compliance-NIST-Tier": r"TIER-[1-4]",
        "CRP-Compliance-GDPR-PII": r"true|false",
        "CRP-Compliance-ISO-42001": rf"{_CONTROL}(?:, {_CONTROL}){{0,{LISTED - 1}}}",
        "CRP-Compliance-Controls-Met": r"[0-9]{1,9}/[0-9]{1,9}",
        "CRP-Quality-Score": _FRACTION,
        "CRP-Quality-Repetition": rf"NONE|(?:MINOR|SIGNIFICANT|SEVERE)(?:; overlap={_FRACTION})?",
        "CRP-Quality-Completeness": (
            r"(?:COMPLETE|MOSTLY_COMPLETE|PARTIAL|INCOMPLETE); sub-queries=[0-9]{1,9}/[0-9]{1,9}"
            rf"(?:; uncovered={_TOPIC}(?:,{_TOPIC}){{0,{TOPICS - 1}}})?"
        ),
        "CRP-Quality-Flow": rf"{_FRACTION}(?:; remediation=(?:prompt-augmented|stitched))?",
        "CRP-Compliance-Audit-Trail-Id": rf"crp_trail_{_ID}",
        "CRP-Compliance-Audit-Trail-URI": _URI,
        "CRP-Agent-Safety-Budget": _FRACTION,
        "CRP-Agent-Loop-Depth": r"[0-9]{1,9}",
        "CRP-Agent-Revision-Round": r"[1-3]/[1-3]",
        "CRP-Set-Session": rf"token=[A-Za-z0-9+/.=_-]{{1,{TOKEN_LIMIT}}}(?:{_SESSION_ATTRIBUTE})*",
    }.items()
}
"""Every response header that exists by now, with its grammar."""

RESPONSE_ONLY = frozenset(
    {name.lower() for name in RESPONSE_SYNTAX}
    | {f"crp-context-{name}" for name in ("saturation", "cache-status", "mode")}
    | {f"crp-memory-{name}" for name in ("tier-hit", "ckf-hits", "ckf-community", "knowledge-age")}
    | {f"crp-agent-{name}" for name in ("phase", "tool-calls", "fan-in-policy")}
    | {"crp-safety-policy-violation", "crp-safety-stop-inject", "crp-llm-temperature", "crp-onboarding-hint"}
) - (_ACTIVE | PREFERENCES | set(NOT_SUPPORTED))
"""Headers that only we may write; one in a request is refused (HDR-6)."""


@dataclass(frozen=True)
class Asked:
    """What a request's CRP headers ask for; ``None`` means that the header was absent."""

    session_token: str | None
    continuation_id: str | None
    nonce: str | None
    policies: tuple[str, ...]
    report_only: tuple[str, ...]
    safety_mode: str | None
    oversight_mode: str | None
    accept_risk: RiskLevel | None
    accept_quality: tuple[str, ...]
    report_uri: str | None
    ceiling: Micros | None
    no_store: bool
    no_cache: bool
    grounding_mode: str | None
    seed: int | None
    terminate: bool


def read(fields: Iterable[tuple[str, str]]) -> Asked:
    """Return what the header *fields* of a request ask for; fields that are not ours are left alone.

    Refused with UNKNOWN_CRP_HEADER, RESPONSE_HEADER_IN_REQUEST, DUPLICATE_HEADER, HEADER_TOO_LARGE, INVALID_HEADER or
    HEADER_NOT_SUPPORTED, each naming the header.
    """
    lines: dict[str, list[str]] = {}
    for name, value in fields:
        if is_ours(name):
            lines.setdefault(_known(name.lower()), []).append(_clean(name.lower(), value))
    one = {name: values[0] for name, values in lines.items() if _single(name, values)}
    _preferences(one)
    cache = _listed(one, "crp-context-cache", r"no-store|no-cache|reuse-ckf|only-if-ckf|max-age=[0-9]{1,9}")
    if "only-if-ckf" in cache:
        raise _unsupported("crp-context-cache", "only-if-ckf: a knowledge fabric")
    risk = _one_of(one, "crp-accept-risk", [level.name for level in RiskLevel], fold=str.upper)
    seed = _matching(one, "crp-llm-reproducibility-seed", r"[0-9]{1,18}")
    return Asked(
        session_token=_matching(one, "crp-session-token", r"[A-Za-z0-9+/.=_-]+"),
        continuation_id=_matching(one, "crp-context-continuation-id", rf"crp_cont_{_ID}"),
        nonce=_matching(one, "crp-safety-nonce", r"base64:[A-Za-z0-9+/=]+"),
        policies=tuple(lines.get("crp-safety-policy", ())),
        report_only=tuple(lines.get("crp-safety-policy-report-only", ())),
        safety_mode=_one_of(one, "crp-safety-mode", ["strict", "warn", "permissive"]),
        oversight_mode=_one_of(one, "crp-safety-oversight-mode", ["auto", "human-review", "halt", "log-only"]),
        accept_risk=RiskLevel[risk] if risk else None,
        accept_quality=_listed(one, "crp-accept-quality", "[SABCD]", fold=str.upper),
        report_uri=_matching(one, "crp-safety-report-uri", r"https://[A-Za-z0-9._~:/?#\[\]!$&'()*+=%-]+"),
        ceiling=_ceiling(one),
        no_store="no-store" in cache,
        no_cache="no-cache" in cache,
        grounding_mode=_one_of(one, "crp-llm-grounding-mode", ["context-strict", "context-preferred", "open"]),
        seed=None if seed is None else int(seed),
        terminate=_one_of(one, "crp-session-action", ["terminate"]) is not None,
    )


def is_ours(name: str) -> bool:
    """Tell whether a header name claims to be of this protocol, in any case and with underscores too (A-15)."""
    return name.lower().startswith(("crp-", "crp_"))


def _known(name: str) -> str:
    if name in NOT_SUPPORTED:
        raise _unsupported(name, NOT_SUPPORTED[name])
    if name in RESPONSE_ONLY:
        raise invalid("RESPONSE_HEADER_IN_REQUEST", f"{name} is written by the gateway only", header=name)
    if name not in _ACTIVE | PREFERENCES:
        shown = name if re.fullmatch(r"[a-z0-9_-]{1,64}", name) else "crp-?"
        raise invalid("UNKNOWN_CRP_HEADER", f"{shown} is no header of this protocol", header=shown)
    return name


def _clean(name: str, value: str) -> str:
    if len(value) > (TOKEN_LIMIT if name in LINES or name == "crp-session-token" else VALUE_LIMIT):
        raise invalid("HEADER_TOO_LARGE", f"{name} is too long", header=name)
    if not re.fullmatch(r"[\x20-\x7e]*", value, re.ASCII):
        raise invalid("INVALID_HEADER", f"{name} holds a character that is not printable ASCII", header=name)
    return value.strip(" ")


def _single(name: str, values: list[str]) -> bool:
    if len(values) > 1 and name not in LINES:
        raise invalid("DUPLICATE_HEADER", f"{name} was sent {len(values)} times", header=name)
    if not all(values):
        raise invalid("INVALID_HEADER", f"{name} is empty", header=name)
    return name not in LINES


def _unsupported(name: str, feature: str) -> Refused:
    return invalid("HEADER_NOT_SUPPORTED", f"{name} asks for {feature}, which this version does not have", header=name)


def _malformed(name: str, expected: str) -> Refused:
    return invalid("INVALID_HEADER", f"{name} must be {expected}", header=name, expected=expected)


def _matching(
    one: Mapping[str, str], name: str, pattern: str, expected: str = "of the form that SPEC-002 gives"
) -> str | None:
    value = one.get(name)
    if value is not None and not re.fullmatch(pattern, value, re.ASCII):
        raise _malformed(name, expected)
    return value


def _one_of(
    one: Mapping[str, str], name: str, values: Sequence[str], *, fold: Callable[[str], str] = str.lower
) -> str | None:
    """Values are case-insensitive unless SPEC-002 says otherwise (§2.3)."""
    if name not in one:
        return None
    value = fold(one[name])
    if value not in values:
        raise _malformed(name, "one of " + ", ".join(values))
    return value


def _listed(one: Mapping[str, str], name: str, item: str, *, fold: Callable[[str], str] = str.lower) -> tuple[str, ...]:
    if name not in one:
        return ()
    items = tuple(fold(part.strip(" ")) for part in one[name].split(","))
    if not all(re.fullmatch(item, part, re.ASCII) for part in items):
        raise _malformed(name, "a comma-separated list of the values that SPEC-002 gives")
    return items


def _ceiling(one: Mapping[str, str]) -> Micros | None:
    """A budget in a request may only lower what is left; digits past the sixth are cut, never rounded up (§12.4)."""
    value = _matching(
        one, "crp-agent-safety-budget", r"0(?:\.[0-9]{1,18})?|1(?:\.0{1,18})?", "a decimal from 0.0 to 1.0"
    )
    if value is None:
        return None
    whole, _, decimals = value.partition(".")
    return Micros(int(whole) * FULL + int(decimals[:6].ljust(6, "0")))


def _preferences(one: Mapping[str, str]) -> None:
    _listed(one, "crp-accept-strategy", "|".join(STRATEGIES))
    _matching(one, "crp-context-if-match", rf"{_HASH}|\*")
    _matching(one, "crp-context-session-id", rf"crp_sess_{_ID}")


def admissible(values: Mapping[str, str | None]) -> dict[str, str]:
    """Return the response headers of *values*: those that are present and match the grammar of their name."""
    return {
        name: value for name, value in values.items() if value is not None and RESPONSE_SYNTAX[name].fullmatch(value)
    }


def fraction(value: float) -> str | None:
    """Write a score with three decimals; what is no number from 0.0 to 1.0 is absent, never a good value (A-40)."""
    return f"{value:.3f}" if 0.0 <= value <= 1.0 else None


def distortions(count: int, types: Iterable[str]) -> str:
    """Write the count of distortions and their types (SPEC-002 §5.6)."""
    known = sorted(DISTORTION_TYPES.intersection(types))
    return f"{count}; types={','.join(known)}" if count and known else str(count)


def contradictions(count: int, scope: str) -> str:
    """Write the count of contradictions and their scope (SPEC-002 §5.7)."""
    return f"{count}; scope={scope}" if count and scope in {"intra", "cross-window", "both"} else str(count)


def omissions(by_severity: Mapping[str, int]) -> str:
    """Write the omissions by severity (SPEC-002 §5.8)."""
    return ", ".join(f"{severity}:{by_severity.get(severity, 0)}" for severity in ("CRITICAL", "HIGH", "MEDIUM"))


def repetition(level: str, overlap: str | None) -> str:
    """Write the level of repetition, and the overlap where there is one (SPEC-005 §9.4)."""
    return f"{level}; overlap={overlap}" if overlap and level != "NONE" else level


def completeness(level: str, *, covered: int, total: int, uncovered: Sequence[str]) -> str:
    """Write the completeness (SPEC-005 §10.4). A name outside the alphabet is left out (reliability.md A-16)."""
    named = [topic for topic in uncovered if re.fullmatch(_TOPIC, topic, re.ASCII)][:TOPICS]
    text = f"{level}; sub-queries={covered}/{total}"
    return f"{text}; uncovered={','.join(named)}" if named else text


def flow(score: str, remediation: str) -> str:
    """Write the flow score and the remedy that it is the outcome of (SPEC-005 §11.6)."""
    return f"{score}; remediation={remediation}" if remediation else score


def set_session(token: str, *, max_age_s: int | None, window: int | None, quality: Sequence[str]) -> str:
    """Write CRP-Set-Session (SPEC-002 §10.1); attributes that are not known are left out."""
    attributes = [
        f"token={token}",
        "Path=/",
        *([f"Max-Age={max_age_s}"] if max_age_s else []),
        "Signed",
        "SameSite=Strict",
        *([f"Window={window}"] if window else []),
        *([f"QualityHistory={','.join(quality[-LISTED:])}"] if quality else []),
    ]
    return "; ".join(attributes)
