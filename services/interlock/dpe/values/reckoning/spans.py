"""Spans that a text writes out, *14 months, from March 2022 to June 2023*, and weekdays of its dates, and whether they are right.

Nothing but the calendar is needed to see that they are not. Pure functions of a reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from interlock.dpe.text.lexing import at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead
from interlock.dpe.values.quantities import Value
from interlock.dpe.values.reckoning import calendar
from interlock.dpe.values.reckoning.derived import fits
from interlock.dpe.values.units import TIME

_LASTS = word_set("lasts lasted last takes took take runs ran run open long duration term")
_OPENS = frozenset({"from", "between"})
_JOINS = frozenset({"to", "until", "till", "through", "and"})
_OTHER = word_set("every each per within notice after before later earlier not about least most up")
_ENDS = 2
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def wrong_spans(reading: ValuesRead) -> Iterator[tuple[str, Value]]:
    """Yield the period that a text gives for the time between two dates that it names, with those dates, where it is none."""
    words = {token.low for token in reading.tokens}
    dates = [value for value in reading.values if value.moment is not None]
    periods = [value for value in reading.values if value.unit == TIME and value.amount]
    if len(dates) != _ENDS or len(periods) != 1 or not words & _LASTS or words & _OTHER:
        return
    (first, second), period = dates, periods[0]
    opens, joint = at(reading.tokens, first.first - 1).low, at(reading.tokens, first.last).low
    if opens not in _OPENS or joint not in _JOINS or second.first != first.last + 1 or period.bound or period.vague:
        return
    one, other = first.moment, second.moment
    made = [seconds for a, b in pairwise((one, other)) if a and b for seconds in calendar.between(a, b)]
    if made and not any(fits(period, seconds) for seconds in made):
        yield f"{first.text} {joint} {second.text}", period


def misnamed_weekdays(reading: ValuesRead) -> Iterator[tuple[str, Value]]:
    """Yield the dates that name another day of the week than their own, with the right one: *Monday, 14 February 2025*."""
    for value in _with_weekdays(reading):
        day = calendar.day_of(value.moment) if value.moment is not None else None
        if value.moment is not None and day is not None and calendar.misnamed_weekday(value.moment):
            yield WEEKDAYS[day.weekday()], value


def _with_weekdays(reading: ValuesRead) -> Iterator[Value]:
    """Yield the dates, those with the weekday that stands right behind them too: *14 February 2025, a Friday*."""
    yield from reading.values
    for one, other in pairwise(reading.values):
        between = [token.low for token in reading.tokens[one.last : other.first]]
        apposed = between in ([",", "a"], ["(", "a"], ["("])
        if one.moment and other.moment and other.moment.weekday is not None and other.moment.day is None and apposed:
            yield replace(one, moment=replace(one.moment, weekday=other.moment.weekday))
