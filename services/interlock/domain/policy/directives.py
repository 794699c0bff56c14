"""Safety policies as values: the directives of SPEC-006, their canonical text and its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from interlock.domain.budget import Micros, as_decimal
from interlock.domain.risk.risk import RiskLevel

MAX_BYTES = 8192
"""Maximum length of a policy text, as given and canonical, bytes (SPEC-015 §8; the limit of the header reader)."""


class Source(StrEnum):
    """A permitted basis of a claim (SPEC-006 §3.1), in canonical order."""

    CONTEXT = "context"
    PARAMETRIC = "parametric"
    CKF = "ckf"
    CROSS_SESSION = "cross-session"


class Tier(StrEnum):
    """Quality tier of an envelope, best first (SPEC-002 §4.1)."""

    S = "S"
    A = "A"
    B = "B"
    C = "C"
    D = "D"


class Repetition(IntEnum):
    """How much a response repeats (SPEC-005 §9.2). SEVERE is a finding; no policy can allow it."""

    NONE = 0
    MINOR = 1
    SIGNIFICANT = 2
    SEVERE = 3


class Strategy(IntEnum):
    """Dispatch strategy of ``upgrade-on-risk``, weakest remedy first.

    The specification gives no order. ``reflexive`` is last because it verifies (SPEC-006 §3.14) and because a half-open
    breaker forces it (SPEC-012 §5.1).
    """

    BATCH = 0
    HIERARCHICAL = 1
    REFLEXIVE = 2


class Oversight(IntEnum):
    """Human oversight, loosest first: halt > human-review > auto > log-only (SPEC-012 §4.2)."""

    LOG_ONLY = 0
    AUTO = 1
    HUMAN_REVIEW = 2
    HALT = 3


class Policy(NamedTuple):
    """One policy. ``None``, ``False`` and the empty endpoint set mean that the directive is absent.

    ``max_spend_usd`` is millionths of a dollar, ``max_spend_tokens`` tokens. Thresholds are hundredths, 0 to 100: the grammar has at most two decimals, so numerically equal texts are equal.
    An empty ``default_src`` is ``'none'``. Endpoints are sets, because every layer that asked for reports gets them.
    This is a named tuple because making one takes a fifth of the time of a frozen dataclass, and dominates parsing.
    """

    default_src: frozenset[Source] | None = None
    halt_on: RiskLevel | None = None
    warn_on: RiskLevel | None = None
    require_grounding: int | None = None
    require_entailment: int | None = None
    require_quality: frozenset[Tier] | None = None
    require_flow: int | None = None
    require_completeness: int | None = None
    block_ungrounded: bool = False
    block_parametric: bool = False
    block_pii: bool = False
    block_fabrication: bool = False
    block_repetition: bool = False
    max_repetition: Repetition | None = None
    max_cannot_tell: int | None = None
    max_spend_usd: int | None = None
    max_spend_tokens: int | None = None
    halt_on_action: bool = False
    upgrade_on_risk: Strategy | None = None
    oversight: Oversight | None = None
    report_uri: frozenset[str] = frozenset()
    report_to: frozenset[str] = frozenset()


NOTHING = Policy()
"""The policy without directives. Its canonical text is empty."""


def kebab(member: IntEnum) -> str:
    """Return an enum member's name in the form of the grammar: HUMAN_REVIEW → human-review."""
    return member.name.lower().replace("_", "-")


def _sources(value: frozenset[Source]) -> Iterator[tuple[str, ...]]:
    yield tuple(source.value for source in Source if source in value) or ("'none'",)


def _tiers(value: frozenset[Tier]) -> Iterator[tuple[str, ...]]:
    yield tuple(tier.value for tier in Tier if tier in value)


def _name(value: IntEnum) -> Iterator[tuple[str, ...]]:
    yield (value.name,)


def _kebab(value: IntEnum) -> Iterator[tuple[str, ...]]:
    yield (kebab(value),)


def _threshold(value: int) -> Iterator[tuple[str, ...]]:
    yield (f"{value // 100}.{value % 100:02d}",)


def _money(value: int) -> Iterator[tuple[str, ...]]:
    yield (as_decimal(Micros(value)),)


def _count(value: int) -> Iterator[tuple[str, ...]]:
    yield (str(value),)


def _flag(value: bool) -> Iterator[tuple[str, ...]]:  # noqa: FBT001 - the value of a directive
    if value:
        yield ()


def _endpoints(value: frozenset[str]) -> Iterator[tuple[str, ...]]:
    for endpoint in sorted(value):
        yield (endpoint,)


_WRITERS: dict[str, Callable[[Any], Iterator[tuple[str, ...]]]] = {
    "default-src": _sources,
    "halt-on": _name,
    "warn-on": _name,
    "require-grounding": _threshold,
    "require-entailment": _threshold,
    "require-quality": _tiers,
    "require-flow": _threshold,
    "require-completeness": _threshold,
    "block-ungrounded": _flag,
    "block-parametric": _flag,
    "block-pii": _flag,
    "block-fabrication": _flag,
    "block-repetition": _flag,
    "max-repetition": _name,
    "max-cannot-tell": _threshold,
    "max-spend-usd": _money,
    "max-spend-tokens": _count,
    "halt-on-action": _flag,
    "upgrade-on-risk": _kebab,
    "oversight": _kebab,
    "report-uri": _endpoints,
    "report-to": _endpoints,
}

DIRECTIVES = tuple(_WRITERS)
"""Names of all directives in canonical order: the order of the fields of ``Policy``."""


def written(directive: str, value: Any) -> str:
    """Return a directive's value in the form of the canonical text; empty when absent or a flag."""
    values = () if value is None else _WRITERS[directive](value)
    return " ".join(word for words in values for word in words)


def directives(policy: Policy) -> list[tuple[str, tuple[str, ...]]]:
    """Return every directive of *policy* with its values, in canonical order. Each endpoint has its own directive."""
    return [
        (name, values)
        for name, value in zip(DIRECTIVES, policy, strict=True)
        if value is not None
        for values in _WRITERS[name](value)
    ]


@lru_cache(maxsize=256)  # a deployment has few policies, and each call asks for the text of its own several times
def canonical(policy: Policy) -> str:
    """Return the canonical text: fixed order, two decimals, ``"; "`` between directives (design.md, Policy hash)."""
    return "; ".join(" ".join((name, *values)) for name, values in directives(policy))


def policy_hash(text: str) -> str:
    """Return the hash that the session token carries as ``pol``: SHA-256 of a canonical text."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
