"""Readers of the directives' values (SPEC-006 §2.1), which report the fault, its position and a near miss."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from interlock.domain.policy.directives import Oversight, Repetition, Source, Strategy, Tier, kebab
from interlock.domain.policy.policy_uri import UriError, check_uri
from interlock.domain.risk.risk import RiskLevel

Reader = Callable[[str], Any]

_SHOWN = 64
_THRESHOLD = re.compile(r"([0-9]++)\.([0-9]{1,2})")
_MONEY = re.compile(r"([0-9]{1,8})(?:\.([0-9]{1,6}))?")
_COUNT = re.compile(r"[0-9]{1,12}")
_GROUP = re.compile(r"[A-Za-z0-9_-]++")


class Flaw(Exception):  # noqa: N818 - parse() turns it into a Refused with its position
    """A fault inside a directive, *offset* characters from its start."""

    def __init__(self, reason: str, message: str, offset: int = 0, **details: str) -> None:
        super().__init__(message)
        self.reason, self.message, self.offset, self.details = reason, message, offset, details


def bad_value(got: str, allowed: list[str], offset: int = 0) -> Flaw:
    """Return the flaw of a keyword that is not among the allowed ones."""
    expected = "one of " + " ".join(allowed)
    what = f"{shown(got)!r} is not {expected}" if got else f"a value is missing, {expected}"
    return Flaw("POLICY_BAD_VALUE", what, offset, expected=expected, got=shown(got), **near_miss(got, allowed))


def near_miss(got: str, names: Iterable[str]) -> dict[str, str]:
    """Return ``did_you_mean`` for the metadata of a refusal; empty when no name is similar to *got*."""
    lowered = {name.lower(): name for name in names}
    close = get_close_matches(got[:_SHOWN].lower(), lowered, n=1)
    return {"did_you_mean": lowered[close[0]]} if close else {}


def shown(got: str) -> str:
    """Return the start of a caller's text for use in a message. Characters outside printable ASCII are escaped."""
    return got[:_SHOWN].encode("unicode_escape").decode("ascii")


def _word(values: Mapping[str, Any]) -> Reader:
    """Read exactly one of the keywords in *values*, in any case."""
    lowered = {word.lower(): value for word, value in values.items()}

    def read(rest: str) -> Any:
        try:
            return lowered[rest.lower()]
        except KeyError:
            raise bad_value(rest, list(values)) from None

    return read


def _set(values: Mapping[str, Any]) -> Reader:
    """Read one or more of the keywords in *values*. A repeated keyword changes nothing."""
    word = _word(values)

    def read(rest: str) -> frozenset[Any]:
        found, at = set(), 0
        for part in rest.split(" "):
            try:
                found.add(word(part))
            except Flaw as flaw:
                flaw.offset += at
                raise
            at += len(part) + 1
        return frozenset(found)

    return read


_LISTED_SOURCES = _set({source.value: source for source in Source} | {"'none'": None})


def _sources(rest: str) -> frozenset[Source]:
    found: frozenset[Source | None] = _LISTED_SOURCES(rest)
    if None in found and len(found) > 1:
        raise Flaw(
            "POLICY_BAD_VALUE", "'none' cannot be combined with other sources", expected="'none' alone", got=shown(rest)
        )
    return frozenset(source for source in found if source)


def _threshold(rest: str) -> int:
    """Read a threshold as hundredths. The grammar's 1*DIGIT allows 9.99; the meaning of a threshold does not (§7, row 18)."""
    expected = "a threshold from 0.00 to 1.00 with one or two decimals"
    found = _THRESHOLD.fullmatch(rest)
    whole = found[1].lstrip("0") if found else ""
    if found and whole in {"", "1"}:
        hundredths = int(whole or "0") * 100 + int(found[2].ljust(2, "0"))
        if hundredths <= 100:
            return hundredths
    what = f"{shown(rest)!r} is not {expected}" if rest else f"a value is missing, {expected}"
    raise Flaw("POLICY_BAD_VALUE", what, expected=expected, got=shown(rest))


def _money(rest: str) -> int:
    """Read dollars as millionths."""
    if found := _MONEY.fullmatch(rest):
        return int(found[1]) * 1_000_000 + int((found[2] or "").ljust(6, "0"))
    raise _no_amount(rest, "dollars such as 5.00, below 100000000, with up to six decimals")


def _count(rest: str) -> int:
    if _COUNT.fullmatch(rest):
        return int(rest)
    raise _no_amount(rest, "a whole number of up to 12 digits")


def _no_amount(rest: str, expected: str) -> Flaw:
    what = f"{shown(rest)!r} is not {expected}" if rest else f"a value is missing, {expected}"
    return Flaw("POLICY_BAD_VALUE", what, expected=expected, got=shown(rest))


def _flag(rest: str) -> bool:
    if rest:
        raise Flaw("POLICY_BAD_VALUE", "it takes no value", expected="no value", got=shown(rest))
    return True


def _uri(rest: str) -> frozenset[str]:
    try:
        check_uri(rest)
    except UriError as error:
        raise Flaw(
            "POLICY_BAD_URI", str(error), error.offset, expected=error.expected, got=shown(rest[error.offset :])
        ) from None
    return frozenset({rest})


def _group(rest: str) -> frozenset[str]:
    if not _GROUP.fullmatch(rest):
        expected = "a group name of letters, digits, '-' and '_'"
        raise Flaw("POLICY_BAD_VALUE", f"{shown(rest)!r} is not {expected}", expected=expected, got=shown(rest))
    return frozenset({rest})


_LEVELS = _word({level.name: level for level in (RiskLevel.CRITICAL, RiskLevel.HIGH, RiskLevel.MEDIUM)})
_OVERSIGHT = _word({kebab(mode): mode for mode in Oversight})

READERS: Mapping[str, Reader] = {
    "default-src": _sources,
    "halt-on": _LEVELS,
    "warn-on": _LEVELS,
    "require-grounding": _threshold,
    "require-entailment": _threshold,
    "require-quality": _set({tier.value: tier for tier in Tier}),
    "require-oversight": _OVERSIGHT,
    "require-flow": _threshold,
    "require-completeness": _threshold,
    "block-ungrounded": _flag,
    "block-parametric": _flag,
    "block-pii": _flag,
    "block-fabrication": _flag,
    "block-repetition": _flag,
    "max-repetition": _word({level.name: level for level in Repetition if level is not Repetition.SEVERE}),
    "max-cannot-tell": _threshold,
    "max-spend-usd": _money,
    "max-spend-tokens": _count,
    "halt-on-action": _flag,
    "upgrade-on-risk": _word({kebab(strategy): strategy for strategy in Strategy}),
    "oversight": _OVERSIGHT,
    "report-uri": _uri,
    "report-to": _group,
}
"""Directive → reader of its value, including aliases. Each raises ``Flaw`` with an offset from the value's start."""
