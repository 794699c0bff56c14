"""Alternative forms of a figure and of a text, so that a figure is traced however an answer puts it (SPEC-005 §5.2).

They are separate from the comparison of a claim with its source, where seven and seventh differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from interlock.dpe.text.lexing import Lexeme, at
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.extraction import read
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import DATE, NUMBER, ORDINAL, QUANTITY, Value
from interlock.dpe.values.units import ANGLE, MEASURES, TEMPERATURE, TIME

_YEAR_S = 31_557_600.0
_WHOLE = (
    "for a", "for one", "after a", "within a", "of a", "in a", "than a", "for an", "after an", "within an", "by a", "by an", "by one",
    "over a", "over an", "over the", "over one", "during a", "lasts a", "takes a", "takes an",
)  # fmt: skip
_AFTER_ONE = ("later", "earlier", "longer", "sooner", "more", "after", "before", "ahead", "ago", "long")
_WEEKS, _MOST_MONTHS = (4.0, 4.4), 12
"""Weeks that people call a month, and the longest period that is told in both."""
_OLDEST = 120
_HIGHEST_COUNT = 200
_AGE_BEFORE = frozenset({",", "(", "age", "aged", "at", "was", "is", "just", "only"})
_AGE_AFTER = frozenset({",", ")", ".", ";", "", "-"})
_CLOCK_BEFORE = frozenset({"at", "from", "until", "till", "by", "to", "since", "between"})
_NEAR_CLOCK = {"after": 1, "past": 1, "before": -1, "around": 0, "about": 0}
_NEAR_MINUTES = 15
_HOURS, _HOUR = 12, 60
_WHOLE_UNITS = {
    "hour": 3600.0, "day": 86_400.0, "week": 604_800.0, "fortnight": 1_209_600.0, "year": _YEAR_S, "decade": 10 * _YEAR_S,
    "century": 100 * _YEAR_S,
}  # fmt: skip
_ENTIRE = ("full", "whole", "entire", "single")
_PARTED = pattern(r"([\p{L}\d]) (?:-|--|\x{2013}) ([\p{L}\d])")
_CUT_GROUP = pattern(r"\b(\d{1,3}), (\d{3})\b")
_SHORT_YEARS = pattern(r"\b(1[89]|20)(\d\d) -- (\d\d)\b")
_SMALL_MONTH = pattern(
    r"\b(january|february|march|april|may|june|july|august|september|october|november|december)(\.? \d)"
    r"|(\d(?:st|nd|rd|th)? (?:of )?)(january|february|march|april|may|june|july|august|september|october|november"
    r"|december)\b"
)


def tidied(text: str) -> str:
    """Return a text without artefacts of tokenised corpora, with capitalised months.

    twenty - five, 2007 -- 11, 3, 500, may 30.
    """
    if " -- " in text:
        text = _SHORT_YEARS.sub(r"\1\2-\1\3", text)
    if " -" in text or " \u2013 " in text:
        text = _PARTED.sub(r"\1-\2", text)
    if ", " in text:
        text = _CUT_GROUP.sub(r"\1,\2", text)
    return str(_SMALL_MONTH.sub(_capital, text)) if _SMALL_MONTH.search(text) else text


def _capital(match: Any) -> str:
    before, month, after = match[3] or "", match[1] or match[4], match[2] or ""
    return f"{before}{month.capitalize()}{after}"


def other_forms(value: Value, before: str, after: str) -> Iterator[Value]:
    """Yield alternative forms of *value* in a source: a rank for a count, an age for a bare number."""
    if value.amount is None or value.label or value.unit or value.fraction or value.moment:
        return
    if value.kind == ORDINAL:
        yield replace(value, kind=NUMBER, plain=True)
        if after in {"anniversary", "birthday"}:
            yield _in_years(value)
    elif value.kind == NUMBER and 0 < value.amount <= _HIGHEST_COUNT and value.amount == int(value.amount):
        yield replace(value, kind=ORDINAL)
        if value.amount <= _OLDEST and before in _AGE_BEFORE and after in _AGE_AFTER:
            yield _in_years(value)
        yield from _on_the_clock(value, before)


def keyed_forms(value: Value, tokens: Sequence[Lexeme]) -> Iterator[Value]:
    """Yield what a bare figure is with its key for its unit: *cups: 8* for 8 cups."""
    if value.kind == NUMBER and not value.unit and value.amount is not None and at(tokens, value.first - 1).text == ":":
        unit = at(tokens, value.first - 2).low
        yield from (form for form in read(f"{value.text} {unit}").values if form.unit and not form.label)


def _on_the_clock(value: Value, before: str) -> Iterator[Value]:
    """Yield the times of day that a bare hour may mean: at seven, for 19:00; shortly after eleven, for 11:05."""
    hour = int(value.amount or 0)
    if not (1 <= hour <= _HOURS) or value.scale != 1.0 or (before not in _CLOCK_BEFORE and before not in _NEAR_CLOCK):
        return
    side = _NEAR_CLOCK.get(before, 0)
    for half in (hour % _HOURS, hour % _HOURS + _HOURS):
        for off in range(_NEAR_MINUTES + 1 if side else 1):
            yield replace(value, kind=DATE, amount=None, moment=Moment(minute=half * _HOUR + side * off), plain=False)


def is_one_told(value: Value, text: str) -> bool:
    """Whether a period is exactly one unit that a text writes without a figure: *twelve months*, for *over the year* or *a year later*.

    *text* is folded and in lower case. *Two a year* is a rate and no period of a year.
    """
    return any(written in text for unit in _one_of(value) for written in _written_as_one(unit))


def _one_of(value: Value) -> Iterator[str]:
    """Yield the unit of which a period is exactly one: *year* for twelve months, *day* for 24 hours."""
    if value.unit == TIME and value.amount and value.amount != value.factor and not value.vague:
        yield from (name for name, seconds in _WHOLE_UNITS.items() if abs(value.amount - seconds) < 1.0)


def _written_as_one(unit: str) -> Iterator[str]:
    yield from (f" {before} {unit}" for before in _WHOLE)
    article = "an" if unit == "hour" else "a"
    yield from (f"{each} {unit} {after}" for each in (article, "one") for after in _AFTER_ONE)
    yield from (f"{each} {entire} {unit}" for each in ("a", "an", "one") for entire in _ENTIRE)


def rounded_forms(value: Value) -> Iterator[Value]:
    """Yield the weeks that people call so many months, and the months that they call so many weeks: twelve weeks, three months.

    And the temperature of degrees without a letter: *three degrees warmer*, for 3 °C.
    """
    if value.unit == ANGLE:
        yield replace(value, unit=TEMPERATURE)
    if value.unit != TIME or not value.amount or value.bound or value.vague:
        return
    count, weeks, months = value.amount / value.factor, MEASURES["week"].factor, MEASURES["month"].factor
    if value.factor == months and count <= _MOST_MONTHS and (2 * count).is_integer():
        for other in range(math.ceil(_WEEKS[0] * count), math.floor(_WEEKS[1] * count) + 1):
            yield replace(value, amount=other * weeks, step=weeks, factor=weeks, approximate=False)
    if value.factor == weeks and count.is_integer():
        for halves in range(2, 2 * _MOST_MONTHS + 1):
            if _WEEKS[0] * halves / 2 <= count <= _WEEKS[1] * halves / 2:
                yield replace(value, amount=halves / 2 * months, step=months / 2, factor=months, approximate=False)


def _in_years(value: Value) -> Value:
    years = (value.amount or 0.0) * _YEAR_S
    return replace(value, kind=QUANTITY, unit="time", amount=years, step=_YEAR_S, factor=_YEAR_S, plain=False)
