"""Reach: whether a figure may follow from the figures around it, whatever the words say (SPEC-005 §5.2).

People add, subtract, scale and count without naming the operation: *9 to go*, *aim for 19 May*, a column of gross prices. A figure
that one exact operation on stated figures gives is not invented; whether it is right, one cannot tell. At least one operand must stand
near: in the sentence itself, beside it, or in the question. Units must fit, so that few figures are reached by chance. Pure functions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import ORDINAL, Value
from interlock.dpe.values.units import PERCENT, TIME

MOST_NEAR = 12
MOST_FAR = 32
_DAY, _MONTH, _YEAR = 86_400.0, 2_629_800.0, 31_557_600.0
_DAY_MINUTES = 1440
_HOUR = 60


def in_reach(target: Value, near: Iterable[Value], far: Iterable[Value]) -> bool:
    """Whether one operation gives *target*. One operand is *near*, the other of either."""
    close = _distinct(near, target)[:MOST_NEAR]
    every = _distinct(chain(close, far), target)[:MOST_FAR]
    if target.moment is not None:
        return any(_is(target.moment, made) for made in _moments(target.moment, close, every))
    if target.amount is None or target.label or target.kind == ORDINAL:
        return False
    return any(_rounds_to(result, target) for result in _results(target, close, every))


def _distinct(values: Iterable[Value], target: Value) -> list[Value]:
    """Return the exact values that are no notation of the target, each once."""
    found: dict[tuple[object, ...], Value] = {}
    for value in values:
        stated = value.amount is not None or value.moment is not None
        if stated and not value.vague and not value.label and value.text != target.text:
            found.setdefault((value.amount, value.unit, value.moment), value)
    return list(found.values())


def _results(target: Value, near: Sequence[Value], every: Sequence[Value]) -> Iterator[float]:
    """Yield what one operation gives, in base units of the target."""
    own = [value for value in every if value.amount and _fits(value, target)]
    for a in near:
        if not a.amount:
            continue
        for b in every:
            if b is a or not b.amount:
                continue
            yield from _of_two(a, b, target)
            yield from _of_two(b, a, target)
    if len(own) > 2:
        yield sum(value.amount or 0.0 for value in own)
    if target.unit == TIME or not target.unit:
        yield from _durations(near, every)


def _of_two(a: Value, b: Value, target: Value) -> Iterator[float]:
    """Yield the results of two operands in this order whose unit can be the target's."""
    one, other = a.amount or 0.0, b.amount or 0.0
    if _fits(a, target) and _fits(b, target):
        yield one + other
        yield abs(one - other)
    if _fits(a, target):
        if b.unit == PERCENT:
            yield from (one * other / 100, one * (1 + other / 100), one * (1 - other / 100))
        elif b.unit != a.unit or not a.unit:
            factor = other / b.factor
            yield one * factor
            yield one / factor
    if a.unit == b.unit and not (a.moment or b.moment):
        if target.unit == PERCENT:
            yield from (one / other * 100, abs(one - other) / other * 100)
        elif not target.unit:
            yield one / other
    if not target.unit and a.unit != b.unit:
        yield one / a.factor / (other / b.factor)


def _fits(value: Value, target: Value) -> bool:
    """Whether a value may be of the target's unit: a bare number, such as one in a table, may be of any."""
    if value.moment is not None or value.kind == ORDINAL:
        return False
    return value.unit == target.unit or not value.unit or not target.unit


def _rounds_to(result: float, target: Value) -> bool:
    """Whether a result, rounded to the digits that the target states, is the target."""
    stated = abs(target.amount or 0.0)
    slack = target.step / 2 * (2.0 if target.approximate else 1.0)
    return abs(stated - abs(result)) <= min(slack, 0.02 * stated) * (1 + 1e-9) + 1e-9


def _durations(near: Sequence[Value], every: Sequence[Value]) -> Iterator[float]:
    for a in near:
        for b in every:
            if a.moment is None or b.moment is None or a is b:
                continue
            one, other = _day(a.moment, b.moment), _day(b.moment, a.moment)
            if one and other:
                days = abs((other - one).days)
                for span in (days, days + 1):
                    yield from (span * _DAY, float(span), round(span / 30.4375) * _MONTH, round(span / 30.4375) / 1.0)
                    yield round(span / 365.25) * _YEAR
            if a.moment.minute is not None and b.moment.minute is not None:
                between = abs(a.moment.minute - b.moment.minute)
                yield from (between * 60.0, (_DAY_MINUTES - between) * 60.0)


def _day(moment: Moment, other: Moment) -> dt.date | None:
    """Return the day that a moment names, the first one of a month. A year that it leaves out is that of the *other*."""
    if moment.months is None or moment.months[0] != moment.months[1]:
        return None
    years = moment.years or other.years or (2024, 2024)
    try:
        return dt.date(years[0], moment.months[0], moment.day or 1)
    except ValueError:
        return None


def _moments(target: Moment, near: Sequence[Value], every: Sequence[Value]) -> Iterator[Moment]:
    """Yield the dates and times that a date or a time and a period make, one of them near."""
    for a in near:
        for b in every:
            if a is b:
                continue
            for start, period in ((a, b), (b, a)):
                if start.moment is not None and period.unit == TIME and period.amount:
                    for sign in (1, -1):
                        yield from _moved(start.moment, sign * period.amount, target)
                if start.unit == TIME and start.amount and period.amount and period.unit != TIME:
                    # A pace, 6:07 a kilometre, reads as a time: its minutes and seconds stand where hours and minutes do.
                    yield Moment(minute=round(start.amount / (period.amount / period.factor)))
    for a in near:
        if a.moment is not None and (day := _day(a.moment, target)) is not None:
            yield Moment(a.moment.years, a.moment.months, a.moment.day, day.weekday(), a.moment.minute)


def _moved(start: Moment, seconds: float, target: Moment) -> Iterator[Moment]:
    if start.minute is not None and target.minute is not None:
        minute = (start.minute + round(seconds / _HOUR)) % _DAY_MINUTES
        yield Moment(start.years, start.months, start.day, start.weekday, minute)
    day = _day(start, target)
    if day is None or abs(seconds) > 200 * _YEAR:
        return
    months = seconds / _MONTH
    if abs(months - round(months)) < 0.01 and round(months):
        place = day.year * 12 + day.month - 1 + round(months)
        yield from (Moment((place // 12,) * 2, (place % 12 + 1,) * 2, day.day + off) for off in (0, -1, 1))
    if seconds % _DAY == 0:
        try:
            for off in (0, -1, 1):
                moved = day + dt.timedelta(seconds=seconds + off * _DAY)
                if off == 0 or abs(seconds) > 27 * _DAY:
                    yield Moment((moved.year,) * 2, (moved.month,) * 2, moved.day, moved.weekday())
        except OverflowError:
            return


def _is(target: Moment, made: Moment) -> bool:
    """Whether what the target states of a date or time is what was made."""
    pairs = (
        (target.years, made.years), (target.months, made.months), (target.day, made.day),
        (target.weekday, made.weekday), (target.minute, made.minute),
    )  # fmt: skip
    stated = [(one, other) for one, other in pairs if one is not None]
    return bool(stated) and all(one == other or (one is target.years and made.years is None) for one, other in stated)
