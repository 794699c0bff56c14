"""Time apart: periods between two dates, days of the week or hours of the sources that name no year or no half of the day (SPEC-005 §5.2).

*From 3 to 24 June* lasts three weeks, what came in on Sunday and went out on Wednesday stayed for three days. ``derived`` has the times of
day of one sentence and the dates with their year. Small numbers of days lie between many pairs of dates, so that a pair counts only where
its source joins the two, where nothing else of its kind is stated there, or where the claim says of one of them what its source does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from interlock.dpe.text.lexing import at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead
from interlock.dpe.values.frames import STOP, stem
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import NUMBER, QUANTITY, Value
from interlock.dpe.values.reckoning import calendar
from interlock.dpe.values.reckoning.calendar import DAY, MONTH
from interlock.dpe.values.reckoning.derived import Operand, fits, keeps_bound
from interlock.dpe.values.units import TIME

_APART = word_set(
    "after before later earlier ahead sooner between since until within in for to by more longer extra past behind following during"
    " lasts last lasted lasting takes take took taking has had have long stays stay stayed remains remained runs ran open closed shut"
)
_JOINS = frozenset({"to", "until", "till", "through", "and", "-", "–"})
_OPENS = frozenset({"from", "between"})
_BY = frozenset({"by", "before"})
_A_WEEK = frozenset({"week", "weekly", "open", "opens", "closed", "shut"})
_NIGHTS = frozenset({"night", "nights"})
_MOST_PLACED = 8
_PAIR = 2
_HOURS, _WEEK_DAYS, _MONTHS = 24, 7, 12
_PLAIN_YEAR = 2023
_HOUR_SECONDS = 3600.0


def lies_between(target: Value, reading: ValuesRead, operands: Sequence[Operand]) -> bool:
    """Whether a period of a claim is the time between two dates, days or hours that the sources state."""
    period = _period(target, reading)
    words = frozenset(token.low for token in reading.tokens)
    if period is None or not words & _APART:
        return False
    placed = [each for each in dict.fromkeys(operands) if each.scope >= 0 and _kind(each)]
    return any(
        fits(period, seconds) or keeps_bound(period, seconds)
        for kind in dict.fromkeys(map(_kind, placed))
        for a, b in _pairs([each for each in placed if _kind(each) == kind], words)
        for seconds in _apart(a, b, words, with_last=period is target)
    )


def _period(target: Value, reading: ValuesRead) -> Value | None:
    """Return a value as a period; nights are days."""
    if target.unit == TIME and target.amount and not target.vague:
        return target
    if target.kind == NUMBER and not target.unit and target.amount and at(reading.tokens, target.last).low in _NIGHTS:
        return replace(target, kind=QUANTITY, unit=TIME, amount=target.amount * DAY, step=DAY, factor=DAY)
    return None


def _kind(operand: Operand) -> str:
    """Return what a value places in time: a day of the week, a day or a month without its year, a time of day, a bare hour."""
    moment, value = operand.value.moment, operand.value
    if moment is None:
        whole = value.kind == NUMBER and not value.unit and value.amount is not None and value.amount.is_integer()
        return "hour" if whole and 0 <= (value.amount or 0.0) <= _HOURS else ""
    if moment.minute is not None:
        return "minute" if moment.months is None else ""
    if moment.months is not None and moment.months[0] == moment.months[1]:
        return "day" if moment.day is not None else "month"
    return "weekday" if moment.weekday is not None else ""


def _pairs(placed: Sequence[Operand], words: frozenset[str]) -> Iterator[tuple[Operand, Operand]]:
    """Yield the pairs of one kind whose time apart a claim may tell, in the order in which the sources state them."""
    told = frozenset(map(stem, words - STOP))
    ordered = sorted(placed, key=lambda each: (each.scope, each.value.start))
    for a, b in combinations(ordered[:_MOST_PLACED], _PAIR):
        sure = len(ordered) == _PAIR or _is_alone(a, b, ordered) or _is_named(a, b, told)
        if _joined(a, b) or (_kind(a) != "hour" and sure):
            yield a, b


def _joined(a: Operand, b: Operand) -> bool:
    """Whether a source names two times as the ends of one period: *from 10 to 14*."""
    next_to = a.scope == b.scope and b.value.first - a.value.last == 1 and a.follows in _JOINS
    return next_to and (_kind(a) != "hour" or bool(a.near & _OPENS))


def _is_alone(a: Operand, b: Operand, placed: Sequence[Operand]) -> bool:
    """Whether a sentence states two times of one kind and no third."""
    return a.scope == b.scope and sum(each.scope == a.scope for each in placed) == _PAIR


def _is_named(a: Operand, b: Operand, told: frozenset[str]) -> bool:
    """Whether a claim says of one of two times what its clause or its line says, and of the other not the same."""
    lines = [each.noun if a.scope != b.scope else frozenset[str]() for each in (a, b)]
    one, other = ((frozenset(map(stem, x.near - STOP)) | line) & told for x, line in zip((a, b), lines, strict=True))
    return one != other


def _apart(a: Operand, b: Operand, words: frozenset[str], *, with_last: bool) -> Iterator[float]:
    """Yield the seconds from one time to another; *with_last*: those of a period that has its last day, too. Nights have none."""
    first, second, joined = a.value.moment, b.value.moment, _joined(a, b)
    if first is None or second is None:
        yield ((b.value.amount or 0.0) - (a.value.amount or 0.0)) % _HOURS * _HOUR_SECONDS
    elif first.minute is not None and second.minute is not None:
        yield abs(second.minute - first.minute) * 60.0
    elif first.months is not None and second.months is not None:
        yield from _between_dates(first, second, joined=joined and with_last)
    elif first.weekday is not None and second.weekday is not None:
        back = not joined and bool(b.near & _BY) and not a.near & _BY
        days = (second.weekday - first.weekday) * (-1 if back else 1) % _WEEK_DAYS
        yield days * DAY
        if joined and words & _A_WEEK:
            yield (days + 1) * DAY


def _between_dates(first: Moment, second: Moment, *, joined: bool) -> Iterator[float]:
    """Yield the time between two dates of which one has no year, and with its last day where it is one period."""
    if first.years and second.years:
        return
    if first.day is None or second.day is None:
        months = ((second.months or (0, 0))[0] - (first.months or (0, 0))[0]) % _MONTHS
        yield from (each * MONTH for each in ((months, months + 1) if joined else (months, _MONTHS - months)))
        return
    year = (first.years or second.years or (_PLAIN_YEAR, 0))[0]
    start, end = (calendar.day_of(replace(each, years=(year, year))) for each in (first, second))
    if start is None or end is None:
        return
    if end < start and joined:
        end = end.replace(year=year + 1) if (end.month, end.day) != (2, 29) else end
    days = abs((end - start).days)
    yield days * DAY
    if joined:
        yield from calendar.between(
            replace(first, years=(start.year, start.year)), replace(second, years=(end.year, end.year))
        )
    yield round(days / (MONTH / DAY / 2)) * MONTH / 2
