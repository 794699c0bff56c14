"""Frequencies: how often something happens, however it is written (SPEC-005 §5.2).

*Four times a year* is *every three months* and *quarterly*; what comes *on Tuesdays and Fridays* comes twice a week. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.extraction import read
from interlock.dpe.values.numerals import UNITS
from interlock.dpe.values.quantities import same
from interlock.dpe.values.units import MEASURES

_MOST_CHARACTERS = 64_000
_NEAR = 0.01
_ALONE = {"once": 1.0, "twice": 2.0, "thrice": 3.0}
_UNITS = {
    **{name: MEASURES[name].factor for name in ("minute", "hour", "day", "week", "fortnight", "month", "year", "decade")},
    "night": MEASURES["day"].factor, "quarter": 3 * MEASURES["month"].factor,
}  # fmt: skip
_ADVERBS = {
    "hourly": "hour", "daily": "day", "nightly": "night", "weekly": "week", "fortnightly": "fortnight", "biweekly": "fortnight",
    "monthly": "month", "quarterly": "quarter", "yearly": "year", "annually": "year", "annual": "year",
}  # fmt: skip
_HALF_YEARS = ("half-yearly", "half yearly", "semi-annually", "semi-annual", "biannually")
_NUMBER = r"\d{1,3}|" + "|".join(sorted((word for word, value in UNITS.items() if value), key=len, reverse=True))
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_ADVERB = "|".join(sorted(_ADVERBS, key=len, reverse=True))
_DAYS = "(?:mon|tues|wednes|thurs|fri|satur|sun)days"
_TIMES = pattern(
    rf"\b(?:(once|twice|thrice)|({_NUMBER}) times)(?: (?:in )?(?:an?|per|each|every|the|one) ({_UNIT})\b| ({_ADVERB})\b)",
    ignore_case=True,
)
_EVERY = pattern(rf"\b(?:every|each|once in) (?:({_NUMBER}|other|second|third) )?({_UNIT})s?\b", ignore_case=True)
_BY_ADVERB = pattern(rf"\b({_ADVERB}|{'|'.join(_HALF_YEARS)})\b", ignore_case=True)
_ON_DAYS = pattern(rf"\b{_DAYS}(?:(?:, | and |, and | & ){_DAYS})*", ignore_case=True)
_EACH_DAY = pattern(_DAYS, ignore_case=True)


@dataclass(frozen=True)
class Frequency:
    """The seconds from one time to the next, and the span of the words that tell them."""

    period: float
    start: int
    end: int


@remembered(bytes_a_character=10, from_length=60)
def frequencies(text: str) -> tuple[Frequency, ...]:
    """Return how often things happen by a text, in the order in which its kinds of words tell it."""
    told = [
        *_spans(_TIMES, text, _of_times),
        *_spans(_EVERY, text, _of_every),
        *_spans(_ON_DAYS, text, lambda match: _UNITS["week"] / len(_EACH_DAY.findall(match.group()))),
    ]
    adverbs = _spans(_BY_ADVERB, text, _of_adverb)
    return (*told, *(one for one in adverbs if not any(each.start <= one.start < each.end for each in told)))


def _spans(expression: Any, text: str, period: Any) -> Iterator[Frequency]:
    yield from (Frequency(period(match), match.start(), match.end()) for match in expression.finditer(text))


def _of_times(match: Any) -> float:
    times = _ALONE[match[1].lower()] if match[1] else _amount(match[2])
    unit = match[3].lower() if match[3] else _ADVERBS[match[4].lower()]
    return _UNITS[unit] / max(times, 1.0)


def _of_every(match: Any) -> float:
    counted = (match[1] or "1").lower()
    return _UNITS[match[2].lower()] * {"other": 2.0, "second": 2.0, "third": 3.0}.get(counted, _amount(counted))


def _of_adverb(match: Any) -> float:
    written = match[1].lower()
    return _UNITS["year"] / 2 if written in _HALF_YEARS else _UNITS[_ADVERBS[written]]


def _amount(written: str) -> float:
    low = written.lower()
    return float(low) if low.isdigit() else float(UNITS.get(low, 1))


def settled_frequencies(claim: str, sources: Sequence[str]) -> frozenset[str]:
    """Return the values of a claim that tell how often, and that the sources tell in other words.

    A value that a source states as it is follows from nothing: whether it is in its place is for the comparison of both.
    """
    own = frequencies(claim)
    if not own or sum(map(len, sources)) > _MOST_CHARACTERS:
        return frozenset()
    told = [each.period for source in sources for each in frequencies(source)]
    stated = [value for source in sources for value in read(source).values] if told else []
    return frozenset(
        value.text
        for one in own
        if any(abs(one.period - period) <= _NEAR * period for period in told)
        for value in read(claim).values
        if one.start <= value.start < one.end
        and value.moment is None  # another day of the week is no other word for it
        and not any(same(value, each) for each in stated)
    )
