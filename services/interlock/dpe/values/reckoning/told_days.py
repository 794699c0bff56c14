"""Days that a text gives only by another one: *the next day*, *the day before*, *the preceding Friday* (SPEC-005 §5.2).

*Found on 3 June and reported the next day*: reported on 4 June. The words name the step and its direction, so that none is free.
Pure functions of their texts.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

from interlock.dpe.text.memory.remembered import LONG, remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.dates import WEEKDAYS
from interlock.dpe.values.extraction import read
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import Value
from interlock.dpe.values.reckoning.calendar import day_of

_ON, _BACK = "next|following|subsequent|ensuing", "previous|preceding|prior"
_NAMED = "|".join(name for name in WEEKDAYS if name.endswith("day"))
_DAY = rf"day|morning|afternoon|evening|night|{_NAMED}"
_TOLD = pattern(
    rf"\b(?:(?P<on>{_ON})|(?P<back>{_BACK}))\s+(?P<day>{_DAY})\b"
    rf"|\bthe\s+(?P<named>{_DAY})\s+(?:(?P<before>before|beforehand)|(?P<after>after|afterwards))\b"
    r"|\b(?:a|one)\s+day\s+(?:(?P<earlier>earlier|before)|(?P<later>later|after))\b",
    ignore_case=True,
)
_WEEK = 7
_ANY_YEAR = (2023, 2024)
"""A year without a leap day, and one with it: a day without a year is moved where both give the same."""


@remembered(bytes_a_character=20, from_length=LONG)
def told_days(text: str) -> tuple[tuple[int, Moment], ...]:
    """Return the days that a text gives by another one, each with the place of the words that do.

    They are counted from the date before them, or from the next one where none stands before.
    """
    dated = [value for value in read(text).values if value.moment is not None and value.moment.day is not None]
    return tuple(
        (match.start(), moment)
        for match in _TOLD.finditer(text)
        if dated
        for moment in _moved(_origin(dated, match.start()), match)
    )


def _origin(dated: Sequence[Value], place: int) -> Moment:
    before = [value for value in dated if value.end <= place]
    return (before[-1] if before else dated[0]).moment or Moment()


def _moved(origin: Moment, match: Any) -> Iterator[Moment]:
    named = match.groupdict()
    sign = -1 if named["back"] or named["before"] or named["earlier"] else 1
    weekday = WEEKDAYS.get((named["day"] or named["named"] or "").lower())
    if weekday is None:
        yield from _stepped(origin, sign)
    elif (first := _weekday(origin)) is not None:
        yield from _stepped(origin, sign * ((sign * (weekday - first)) % _WEEK or _WEEK))


def _weekday(origin: Moment) -> int | None:
    day = day_of(origin)
    return origin.weekday if day is None else day.weekday()


def _stepped(origin: Moment, days: int) -> Iterator[Moment]:
    if (day := day_of(origin)) is not None:
        yield _moment(day + dt.timedelta(days=days))
        return
    found = [day_of(Moment((year, year), origin.months, origin.day)) for year in _ANY_YEAR]
    moved = {(each + dt.timedelta(days=days)).timetuple()[1:3] for each in found if each is not None}
    if origin.years is None and len(found) == len(_ANY_YEAR) and None not in found and len(moved) == 1:
        ((month, day_of_month),) = moved
        weekday = None if origin.weekday is None else (origin.weekday + days) % _WEEK
        yield Moment(None, (month, month), day_of_month, weekday)


def _moment(day: dt.date) -> Moment:
    return Moment((day.year, day.year), (day.month, day.month), day.day, day.weekday())
