"""Reach: whether a figure may follow from the figures around it, whatever the words say (SPEC-005 §5.2).

People add, subtract, scale and count without naming the operation: *9 to go*, *aim for 19 May*, a column of gross prices. A figure
that one exact operation on stated figures gives is not invented; whether it is right, one cannot tell. At least one operand must stand
near: in the sentence itself, beside it, or in the question. Units must fit, so that few figures are reached by chance. Pure functions.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, permutations

from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import ORDINAL, Value
from interlock.dpe.values.units import PERCENT, TIME, TIMES

MOST_NEAR = 12
MOST_FAR = 32
_DAY, _MONTH, _YEAR = 86_400.0, 2_629_800.0, 31_557_600.0
_DAY_MINUTES = 1440
_PAIR = 2
_LAST_YEAR = 9999
_HOUR = 60
_SECONDS = re.compile(r"(\d{1,2}):(\d\d):(\d\d)")


def in_reach(target: Value, near: Iterable[Value], far: Iterable[Value]) -> bool:
    """Whether one operation gives *target*. One operand is *near*, the other of either."""
    close = _distinct(near, target)[:MOST_NEAR]
    every = _distinct(chain(close, far), target)[:MOST_FAR]
    if target.moment is not None:
        return any(_is(target.moment, made) for made in _moments(target.moment, close, every))
    if target.amount is None or target.label or target.kind == ORDINAL:
        return False
    return any(_rounds_to(result, target) for result in _results(target, close, every))


def between_times(target: Value, values: Iterable[Value]) -> bool:
    """Whether a duration is the one between two stated times of day, to the minute, or to the second where they have them."""
    timed = [value for value in values if value.moment is not None]
    seconds = {int(h) * 3600 + int(m) * 60 + int(s) for value in timed for h, m, s in _SECONDS.findall(value.text)[:1]}
    exact = target.unit == TIME and target.factor == 1.0 and len(seconds) <= MOST_FAR
    if exact and any(_rounds_to(float(abs(a - b)), target) for a, b in permutations(seconds, _PAIR)):
        return True
    minutes = dict.fromkeys(value.moment.minute for value in timed if value.moment)
    stated = [minute for minute in minutes if minute is not None][:MOST_FAR]
    if target.unit != TIME or not target.amount or target.factor > 60 * _HOUR:
        return False
    spans = {abs(a - b) for a, b in permutations(stated, 2)}
    if any(_rounds_to(each * 60.0, target) for span in spans for each in (span, _DAY_MINUTES - span)):
        return True
    # 18:42 and 18:55 may be minutes and seconds, of a race.
    return target.factor == 1.0 and any(_rounds_to(float(span), target) for span in spans)


def between_stamps(target: Value, near: Sequence[Value], stamps: Sequence[Value]) -> bool:
    """Whether a duration is the one from a day and time of day *near* to another of the *stamps*."""
    if target.unit != TIME or not target.amount:
        return False
    for a in near[:MOST_NEAR]:
        for b in stamps[:MOST_FAR]:
            one, other = (_day(a.moment, b.moment), _day(b.moment, a.moment)) if a.moment and b.moment else (None, None)
            if a.moment is None or b.moment is None or one is None or other is None or a.moment == b.moment:
                continue
            minutes = (other - one).days * _DAY_MINUTES + (b.moment.minute or 0) - (a.moment.minute or 0)
            if _rounds_to(abs(minutes) * 60.0, target):
                return True
    return False


def differs(target: Value, values: Sequence[Value]) -> bool:
    """Whether a figure is the difference of two of the figures that a column or a key has."""
    pairs = permutations((value for value in values if value.amount and _fits(value, target)), _PAIR)
    return bool(target.amount) and any(_rounds_to(_as(a, target) - _as(b, target), target) for a, b in pairs)


def adds(target: Value, near: Sequence[Value], far: Sequence[Value]) -> bool:
    """Whether a figure is one that stands *near*, more or less one of the *far* ones: 130 each less the 96 that were paid."""
    one, other = (
        [each for each in group if each.amount and each.text != target.text and _fits(each, target)]
        for group in (near, far)
    )
    made = (_as(a, target) + sign * _as(b, target) for a in one for b in other if a.text != b.text for sign in (1, -1))
    return bool(target.amount) and any(_rounds_to(each, target) for each in made)


def scaled(target: Value, factor: float, values: Iterable[Value]) -> bool:
    """Whether a figure is a stated one times *factor*, which the words name: double, half."""
    figures = (value for value in values if value.amount and value.unit in {"", target.unit})
    return bool(target.amount) and any(_rounds_to(_as(each, target) * factor, target) for each in figures)


def _distinct(values: Iterable[Value], target: Value) -> list[Value]:
    """Return the exact values that are no notation of the target, each once."""
    found: dict[tuple[object, ...], Value] = {}
    for value in values:
        stated = value.amount is not None or (value.moment is not None and value.moment != target.moment)
        if stated and not value.vague and not value.label and value.text != target.text:
            found.setdefault((value.amount, value.unit, value.moment), value)
    return list(found.values())


def _results(target: Value, near: Sequence[Value], every: Sequence[Value]) -> Iterator[float]:
    """Yield what one operation gives, in base units of the target."""
    for a in near:
        if not a.amount:
            continue
        for b in every:
            if b is a or not b.amount or (target.unit and not (a.unit or b.unit or b in near)):
                continue  # two bare figures, one of them far off, make no days
            yield from _of_two(a, b, target)
            yield from _of_two(b, a, target)
            if b in near and a.unit == b.unit and a.unit not in {"", target.unit}:
                # a bag of 12 kg at 300 g a day lasts 40 days; 3 mg at 1.5 mg/ml are 2 ml
                yield (a.amount or 0.0) / b.amount * target.factor
                yield b.amount / (a.amount or 1.0) * target.factor
    yield from _of_many(target, near, every)
    if target.unit == TIME or not target.unit:
        yield from _durations(near, every)


def _of_two(a: Value, b: Value, target: Value) -> Iterator[float]:
    """Yield the results of two operands in this order whose unit can be the target's."""
    one, other = _as(a, target), _as(b, target)
    if _fits(a, target) and _fits(b, target):
        yield one + other
        yield abs(one - other)
    if _fits(a, target):
        if b.unit == PERCENT:
            share = (b.amount or 0.0) / 100
            yield from (one * share, one * (1 + share), one * (1 - share))
        elif b.unit != a.unit or not a.unit:
            factor = _stated(b)
            yield one * factor
            yield one / factor
    yield from _ratios(a, b, target)


def _ratios(a: Value, b: Value, target: Value) -> Iterator[float]:
    """Yield how many times, or what share, one amount is of another."""
    one, other = a.amount or 0.0, b.amount or 0.0
    if a.moment or b.moment:
        return
    bare = not target.unit or target.unit == TIMES
    if a.unit == b.unit and target.unit == PERCENT:
        yield from (one / other * 100, abs(one - other) / other * 100)
    elif a.unit == b.unit and bare:
        yield one / other
    elif bare:
        yield _stated(a) / _stated(b)


def _of_many(target: Value, near: Sequence[Value], every: Sequence[Value]) -> Iterator[float]:
    """Yield the sum of all that fits, what the other parts leave of a whole, and a price for several with one for another."""
    if target.unit == TIMES:  # every 6 hours: four times a day
        spans = [value.amount for value in every if value.unit == TIME and value.amount]
        yield from (whole / span for span in spans for whole in (3600.0, _DAY, 7 * _DAY, _MONTH, _YEAR))
    for group in (near, every):
        own = [_as(value, target) for value in group if value.amount and _fits(value, target)]
        if len(own) > _PAIR:
            yield sum(own)
    alike = [value for value in near if value.amount and value.unit == target.unit]
    if target.unit and len(alike) > 1:
        total = sum(value.amount or 0.0 for value in alike)
        yield from (2 * (whole.amount or 0.0) - total for whole in alike)
        counts = [_stated(value) for value in near if value.amount and value.unit in {"", TIMES}]
        for a, b in permutations(alike, 2):
            yield from ((a.amount or 0.0) * n + (b.amount or 0.0) for n in counts if 1 < n <= MOST_NEAR)


def _stated(value: Value) -> float:
    return (value.amount or 0.0) / value.factor


def _as(value: Value, target: Value) -> float:
    """Return an amount as the target counts it: a bare 30 beside minutes is 30 minutes."""
    if value.unit == target.unit:
        return value.amount or 0.0
    return (value.amount or 0.0) * target.factor if not value.unit else _stated(value)


def _fits(value: Value, target: Value) -> bool:
    """Whether a value may be of the target's unit: a bare number, such as one in a table, may be of any."""
    if value.moment is not None or value.kind == ORDINAL:
        return False
    return value.unit == target.unit or not value.unit or not target.unit


def _rounds_to(result: float, target: Value) -> bool:
    """Whether a result, rounded to the digits that the target states, is the target."""
    stated = abs(target.amount or 0.0)
    step = max(target.step, _round_step(target)) if target.approximate else target.step
    slack = step / 2 * (2.0 if target.approximate else 1.0)
    return abs(stated - abs(result)) <= min(slack, 0.02 * stated) * (1 + 1e-9) + 1e-9


def _round_step(target: Value) -> float:
    """Return the step of an approximate figure, which its last zeros tell: roughly 415,500 is to the hundred."""
    figure = "".join(char for char in target.text if char.isdigit())
    zeros = len(figure) - len(figure.rstrip("0"))
    return (
        float(10 ** min(zeros, 3)) * target.factor
        if zeros > 1 and target.scale == 1.0 and "." not in target.text
        else 0.0
    )


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
                    yield from (round(span / 365.25) * _YEAR, round(span / 365.25) / 1.0)
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
    dated = start.years or target.years
    months = seconds / _MONTH
    if abs(months - round(months)) < 0.01 and round(months):
        place = day.year * 12 + day.month - 1 + round(months)
        year, month = place // 12, place % 12 + 1
        # From the end of a month one comes to the end of another.
        ends = (calendar.monthrange(year, month)[1],) if start.day is None and 0 < year < _LAST_YEAR else ()
        yield from (Moment((year,) * 2, (month,) * 2, one) for one in (*(day.day + off for off in (0, -1, 1)), *ends))
        if day.day == 1:  # a year from 1 September ends on 31 August
            year, month = (place - 1) // 12, (place - 1) % 12 + 1
            last = calendar.monthrange(year, month)[1] if 0 < year < _LAST_YEAR else 0
            yield Moment((year,) * 2, (month,) * 2, last)
    if seconds % _DAY == 0:
        try:
            for off in (0, -1, 1):
                moved = day + dt.timedelta(seconds=seconds + off * _DAY)
                if off == 0 or abs(seconds) > 27 * _DAY:
                    weekday = moved.weekday() if dated else _weekday(start, target, seconds + off * _DAY)
                    yield Moment((moved.year,) * 2, (moved.month,) * 2, moved.day, weekday)
        except OverflowError:
            return


def _weekday(start: Moment, target: Moment, seconds: float) -> int | None:
    """Return the weekday of a day without a year: counted on from that of the start, else whatever is claimed."""
    return target.weekday if start.weekday is None else (start.weekday + round(seconds / _DAY)) % 7


def _is(target: Moment, made: Moment) -> bool:
    """Whether what the target states of a date or time is what was made."""
    pairs = (
        (target.years, made.years), (target.months, made.months), (target.day, made.day),
        (target.weekday, made.weekday), (target.minute, made.minute),
    )  # fmt: skip
    stated = [(one, other) for one, other in pairs if one is not None]
    return bool(stated) and all(one == other or (one is target.years and made.years is None) for one, other in stated)
