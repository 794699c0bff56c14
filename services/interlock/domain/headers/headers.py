"""The CRP header vocabulary: who may send which header, and the form of every value (SPEC-002, SPEC-012 §3).

Requests are read by allow-list. Responses are written through ``RESPONSE_SYNTAX``: a value that does not match the
grammar of its header is not sent, so that no text of a model can become a header (reliability.md A-16).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from interlock.domain.budget import FULL, Micros
from interlock.domain.errors import Refused, invalid
from interlock.domain.headers.header_syntax import (
    DISTORTION_TYPES,
    HASH,
    ID,
    LISTED,
    RESIDENCY,
    RESPONSE_SYNTAX,
    STRATEGIES,
    TOKEN_LIMIT,
    TOPIC,
    TOPICS,
)
from interlock.domain.risk.risk import RiskLevel

PROTOCOL_VERSION = "3.0.0"

_RISKS = [level.name for level in RiskLevel]
VALUE_LIMIT = 1024
"""Maximum length of every other header value, bytes."""

_LIMITS = {
    **dict.fromkeys(("crp-safety-policy", "crp-safety-policy-report-only", "crp-session-token"), TOKEN_LIMIT),
    **dict.fromkeys(("crp-context-continuation-id", "crp-oversight-token"), TOKEN_LIMIT),
    "crp-agent-delegation-grant": 2048,
}

LINES = frozenset({"crp-safety-policy", "crp-safety-policy-report-only"})
"""Request headers that may occur several times. Every line is enforced."""

PREFERENCES = frozenset({"crp-context-session-id"})
"""Request headers that are checked here and otherwise ignored. Where there is no token (§12.3), the session id binds a call
to its session: ``domain.binding.evidence``."""

ANY = "*"
"""CRP-Context-If-Match of a caller that has some answer, whatever its ETag (SPEC-002 §4.9)."""

APPROVAL = "crp-oversight-token"
"""Request header that is read where a delegation or a release may need an approval, and refused elsewhere."""

NOT_SUPPORTED: Mapping[str, str] = {"crp-context-acceptance": "context acceptance"}
"""Request headers of features that do not exist yet. Ignoring one would lose a protection, so each is refused by name."""

_ACTIVE = LINES | {
    "crp-session-token", "crp-context-continuation-id", "crp-context-if-match", "crp-context-cache", "crp-accept-quality", "crp-accept-risk",
    "crp-safety-mode", "crp-safety-oversight-mode", "crp-safety-nonce", "crp-safety-report-uri",
    "crp-agent-safety-budget", "crp-llm-grounding-mode", "crp-llm-reproducibility-seed", "crp-session-action",
    "crp-agent-session-parent", "crp-agent-delegation-grant", "crp-agent-loop-depth", "crp-agent-dispatch-strategy",
    "crp-agent-fan-in-policy", "crp-context-strategy", "crp-accept-strategy", "crp-compliance-data-residency", "crp-stream-final",
    APPROVAL,
}  # fmt: skip

FAN_OUT, FAN_IN, BATCH, PULL, AGENTIC = "fan-out", "fan-in", "batch", "pull", "agentic"
USABLE = ("push", PULL, "reflexive")
"""Strategies that a preference may select: each takes one window. The others define what a call is, take several windows, or
are not implemented."""
NOT_BUILT = ("streaming",)

RESPONSE_ONLY = frozenset(
    {name.lower() for name in RESPONSE_SYNTAX}
    | {f"crp-memory-{name}" for name in ("ckf-hits", "ckf-community", "knowledge-age")}
    | {
        "crp-context-mode",
        "crp-safety-policy-violation",
        "crp-safety-stop-inject",
        "crp-llm-temperature",
        "crp-onboarding-hint",
    }
) - (_ACTIVE | PREFERENCES | set(NOT_SUPPORTED))
"""Headers that only the gateway may write. One in a request is refused (HDR-6)."""

KNOWN = _ACTIVE | PREFERENCES | set(NOT_SUPPORTED) | RESPONSE_ONLY
"""Every header of the protocol, in lower case."""


@dataclass(frozen=True)
class RequestHeaders:
    """The values of a request's CRP headers. ``None`` means that the header was absent."""

    session_token: str | None
    continuation_id: str | None
    """The window that is continued; ``None`` for no window or several."""
    continuation_ids: tuple[str, ...]
    """Every window that is continued; a fan-in has several."""
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
    only_if_known: bool
    """Whether a call without any source is refused instead of dispatched (only-if-ckf, SPEC-002 §4.10)."""
    max_age_s: int | None
    if_match: str | None
    """ETag of the answer that the caller has, or ``ANY``; ``None``: the call is not conditional (SPEC-002 §4.9)."""
    grounding_mode: str | None
    seed: int | None
    terminate: bool
    branch: bool
    """Whether a window that already has a child is continued again (SPEC-004 §1.2)."""
    strategy: str | None
    """The demanded strategy, otherwise the first preferred one that can be used."""
    preferred: tuple[str, ...]
    """Every usable strategy of CRP-Accept-Strategy when none is demanded: a preference, not a demand (SPEC-002 §4.14)."""
    fan_in_policy: str | None
    session_parent: str | None
    grant: str | None
    loop_depth: int | None
    data_residency: str | None
    oversight_token: str | None
    stream_final: bool = False
    """Whether a stream ends with an event of its final CRP values."""


def read(fields: Iterable[tuple[str, str]], *, delegating: bool = False) -> RequestHeaders:
    """Return the values of a request's CRP headers. Other *fields* are ignored.

    Refused with UNKNOWN_CRP_HEADER, RESPONSE_HEADER_IN_REQUEST, DUPLICATE_HEADER, CONFLICTING_HEADERS, HEADER_TOO_LARGE,
    INVALID_HEADER or HEADER_NOT_SUPPORTED, each naming the header. An approval is read only when the call may be *delegating*.
    """
    lines: dict[str, list[str]] = {}
    for name, value in fields:
        if is_ours(name):
            lines.setdefault(_known(name.lower()), []).append(_clean(name.lower(), value))
    one = {name: values[0] for name, values in lines.items() if _single(name, values)}
    _matching(one, "crp-context-session-id", rf"crp_sess_{ID}")
    cache = _listed(one, "crp-context-cache", r"no-store|no-cache|reuse-ckf|only-if-ckf|max-age=[0-9]{1,9}")
    if APPROVAL in one and not delegating:
        message = f"{APPROVAL} approves a delegation or the release of a held response; this call is neither"
        raise invalid("HEADER_NOT_SUPPORTED", message, header=APPROVAL)
    risk = _one_of(one, "crp-accept-risk", _RISKS, fold=str.upper)
    seed = _matching(one, "crp-llm-reproducibility-seed", r"[0-9]{1,18}")
    depth = _matching(one, "crp-agent-loop-depth", r"[0-9]{1,9}", "a whole number")
    action = _one_of(one, "crp-session-action", ["terminate", "branch"])
    demanded, preferred = _strategies(one)
    continued = _continued(one, demanded, action)
    return RequestHeaders(
        session_token=_matching(one, "crp-session-token", r"[A-Za-z0-9+/.=_-]+"),
        continuation_id=continued[0] if len(continued) == 1 else None,
        continuation_ids=continued,
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
        only_if_known="only-if-ckf" in cache,
        max_age_s=_max_age(cache),
        if_match=_matching(one, "crp-context-if-match", rf"{HASH}|\*"),
        grounding_mode=_one_of(one, "crp-llm-grounding-mode", ["context-strict", "context-preferred", "open", "auto"]),
        seed=None if seed is None else int(seed),
        terminate=action == "terminate",
        branch=action == "branch",
        strategy=demanded or next(iter(preferred), None),
        preferred=preferred,
        fan_in_policy=_one_of(one, "crp-agent-fan-in-policy", ["require-all", "partial"]),
        session_parent=_matching(one, "crp-agent-session-parent", rf"crp_sess_{ID}"),
        grant=_matching(one, "crp-agent-delegation-grant", r"[A-Za-z0-9_.-]+"),
        loop_depth=None if depth is None else int(depth),
        data_residency=_residency(one),
        oversight_token=_matching(one, APPROVAL, r"approved:sha256:[A-Za-z0-9+/=_.:~-]+"),
        stream_final=_one_of(one, "crp-stream-final", ["event"]) is not None,
    )


def is_ours(name: str) -> bool:
    """Tell whether a header name claims to be of this protocol, in any case, and also with underscores (A-15)."""
    return name.lower().startswith(("crp-", "crp_"))


def _known(name: str) -> str:
    if name in NOT_SUPPORTED:
        raise _unsupported(name, NOT_SUPPORTED[name])
    if name in RESPONSE_ONLY:
        raise invalid("RESPONSE_HEADER_IN_REQUEST", f"{name} may be written by the gateway only", header=name)
    if name not in _ACTIVE | PREFERENCES:
        shown = name if re.fullmatch(r"[a-z0-9_-]{1,64}", name) else "crp-?"
        raise invalid("UNKNOWN_CRP_HEADER", f"{shown} is not a header of this protocol", header=shown)
    return name


def _clean(name: str, value: str) -> str:
    if len(value) > _LIMITS.get(name, VALUE_LIMIT):
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
    """A budget in a request can only lower the remaining budget. Digits after the sixth are cut, never rounded up (§12.4)."""
    value = _matching(
        one, "crp-agent-safety-budget", r"0(?:\.[0-9]{1,18})?|1(?:\.0{1,18})?", "a decimal from 0.0 to 1.0"
    )
    if value is None:
        return None
    whole, _, decimals = value.partition(".")
    return Micros(int(whole) * FULL + int(decimals[:6].ljust(6, "0")))


def _max_age(cache: Sequence[str]) -> int | None:
    """Return the least of the ages that a call accepts, seconds."""
    return min((int(one.removeprefix("max-age=")) for one in cache if one.startswith("max-age=")), default=None)


def _strategies(one: Mapping[str, str]) -> tuple[str | None, tuple[str, ...]]:
    """Return the demanded strategy and the preferred ones. One header is an alias of the other (SPEC-002 §8.6)."""
    demanded = _one_of(one, "crp-context-strategy", STRATEGIES)
    alias = _one_of(one, "crp-agent-dispatch-strategy", STRATEGIES)
    if demanded and alias and demanded != alias:
        raise _conflicting("crp-context-strategy", "crp-agent-dispatch-strategy")
    strategy = demanded or alias
    if strategy in NOT_BUILT:
        name = "crp-context-strategy" if demanded else "crp-agent-dispatch-strategy"
        raise _unsupported(name, f"the strategy {strategy}")
    preferred = _listed(one, "crp-accept-strategy", "|".join(STRATEGIES))
    return strategy, () if strategy else tuple(name for name in preferred if name in USABLE)


def _continued(one: Mapping[str, str], strategy: str | None, action: str | None) -> tuple[str, ...]:
    """Return the windows that are continued. Several are a fan-in, and neither fan-in nor fan-out may branch (SPEC-004 §14.4)."""
    name = "crp-context-continuation-id"
    continued = _listed(one, name, rf"crp_cont_{ID}", fold=str)
    if len(continued) > 1 and strategy != FAN_IN:
        raise _malformed(name, "one window, unless CRP-Context-Strategy is fan-in")
    if action == "branch" and strategy in {FAN_OUT, FAN_IN}:
        raise _conflicting("crp-session-action", "crp-context-strategy")
    return continued


def _residency(one: Mapping[str, str]) -> str | None:
    """Return the demanded jurisdiction in capitals: values are case-insensitive (SPEC-002 §2.3, §7.7)."""
    name = "crp-compliance-data-residency"
    if name not in one:
        return None
    value = one[name].upper()
    if not re.fullmatch(RESIDENCY, value, re.ASCII):
        raise _malformed(name, "two letters, such as EU")
    return value


def _conflicting(first: str, second: str) -> Refused:
    return invalid("CONFLICTING_HEADERS", f"{first} and {second} contradict each other", header=first, other=second)


def admissible(values: Mapping[str, str | None]) -> dict[str, str]:
    """Return the response headers in *values* that are present and match the grammar of their name."""
    return {
        name: value for name, value in values.items() if value is not None and RESPONSE_SYNTAX[name].fullmatch(value)
    }


def fraction(value: float) -> str | None:
    """Return a score with three decimals; ``None`` for anything but a number from 0.0 to 1.0, so that it never looks good (A-40)."""
    return f"{value:.3f}" if 0.0 <= value <= 1.0 else None


def distortions(count: int, types: Iterable[str]) -> str:
    """Return the number of distortions and their types (SPEC-002 §5.6)."""
    known = sorted(DISTORTION_TYPES.intersection(types))
    return f"{count}; types={','.join(known)}" if count and known else str(count)


def contradictions(count: int, scope: str) -> str:
    """Return the number of contradictions and their scope (SPEC-002 §5.7)."""
    return f"{count}; scope={scope}" if count and scope in {"intra", "cross-window", "both"} else str(count)


def omissions(by_severity: Mapping[str, int]) -> str:
    """Return the omissions by severity (SPEC-002 §5.8)."""
    return ", ".join(f"{severity}:{by_severity.get(severity, 0)}" for severity in ("CRITICAL", "HIGH", "MEDIUM"))


def repetition(level: str, overlap: str | None) -> str:
    """Return the level of repetition, with the overlap where there is one (SPEC-005 §9.4)."""
    return f"{level}; overlap={overlap}" if overlap and level != "NONE" else level


def agents_completeness(score: float, uncovered: Sequence[str]) -> str | None:
    """Return how far the answers of several agents cover the task (SPEC-012 §9.2)."""
    if not 0.0 <= score <= 1.0:
        return None
    named = [topic for topic in uncovered if re.fullmatch(TOPIC, topic, re.ASCII)][:TOPICS]
    return f"{score:.2f}" + (f"; uncovered={','.join(named)}" if named else "")


def completeness(level: str, *, covered: int, total: int, uncovered: Sequence[str]) -> str:
    """Return the completeness (SPEC-005 §10.4). A name outside the alphabet is left out (reliability.md A-16)."""
    named = [topic for topic in uncovered if re.fullmatch(TOPIC, topic, re.ASCII)][:TOPICS]
    text = f"{level}; sub-queries={covered}/{total}"
    return f"{text}; uncovered={','.join(named)}" if named else text


def flow(score: str, remediation: str) -> str:
    """Return the flow score and the remedy that led to it (SPEC-005 §11.6)."""
    return f"{score}; remediation={remediation}" if remediation else score


def set_session(
    token: str, *, max_age_s: int | None, window: int | None, quality: Sequence[str], quality_text: str = ""
) -> str:
    """Return CRP-Set-Session (SPEC-002 §10.1). Unknown attributes are left out.

    *quality_text* is the history with brackets around parallel windows. Of a text that is too long, the end is kept.
    """
    history = quality_text if quality_text and len(quality) <= LISTED else ",".join(quality[-LISTED:])
    attributes = [
        f"token={token}",
        "Path=/",
        *([f"Max-Age={max_age_s}"] if max_age_s else []),
        "Signed",
        "SameSite=Strict",
        *([f"Window={window}"] if window else []),
        *([f"QualityHistory={history}"] if history else []),
    ]
    return "; ".join(attributes)
