"""Calendar: the dates that a date and a period make, and the periods between two dates (SPEC-005 §5.2).

A period of months or years moves the month and keeps the day, one of weeks or days counts days. A term includes the day on which it
begins, so that one of 18 months from 1 March 2024 ends on 31 August 2025; people also say 1 September. Both count as right. Pure
functions of their arguments.
"""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Iterator
from dataclasses import replace

from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import Value

DAY, WEEK, MONTH, YEAR = 86_400.0, 604_800.0, 2_629_800.0, 31_557_600.0
DAY_MINUTES = 1440
_MONTHS_OF_YEAR = 12
_WORKDAYS = 5
_NEAR = 0.01  # of a month: half a year is six months
_LONGEST = 200  # years
_PLAIN_YEAR = 2023  # the year after it has a leap day
_TERMS = word_set(
    "run runs running ran last lasts lasting lasted take takes took taking term valid validity for over period duration long expire"
    " expires expired end ends ended until till through covers covered"
)
_LATER = word_set(
    "after later from since following within start starts started begin begins began once thereafter afterwards"
)
_EARLIER = word_set("before earlier prior ahead previously beforehand preceding")
_STEPS = (
    (word_set("weekly week"), WEEK),
    (word_set("monthly month"), MONTH),
    (word_set("daily day"), DAY),
)
_WORKING = word_set("working business work")


def relates(near: frozenset[str]) -> bool:
    """Whether the words of a clause say from where its period runs: *two weeks before*, *runs for 18 months*."""
    return "for" in near or bool(near & (_TERMS | _LATER | _EARLIER))


def _is_term(near: frozenset[str]) -> bool:
    return bool(near & _TERMS) or ("for" in near and not near & (_LATER | _EARLIER))


def moved(moment: Moment, period: Value, near: frozenset[str], follows: str = "") -> Iterator[Moment]:
    """Yield the dates to which a period leads from a date, in the directions that the words beside it name.

    *follows* is the word right after the period, which settles it: *three weeks before the term begins*.
    """
    told = frozenset({follows}) if follows in _EARLIER | _LATER else near
    term = _is_term(told)
    back, on = bool(told & _EARLIER), term or bool(told & _LATER)
    signs = (1, -1) if back == on else (-1,) if back else (1,)
    for sign in signs:
        yield from _shifted(moment, period, sign, term=term, working=bool(near & _WORKING))


def _shifted(moment: Moment, period: Value, sign: int, *, term: bool, working: bool) -> Iterator[Moment]:
    seconds = (period.amount or 0.0) * sign
    if moment.minute is not None and moment.years is None:
        yield Moment(minute=int(moment.minute + seconds / 60) % DAY_MINUTES)
        return
    if abs(seconds) > _LONGEST * YEAR:
        return
    months = round(seconds / MONTH)
    if months and abs(seconds / MONTH - months) < _NEAR:
        yield from _by_months(moment, months, term=term)
    if moment.years is None and moment.months is not None and moment.day is not None:
        yield from _within_any_year(moment, seconds)
    day = day_of(moment)
    if day is None or (period.factor >= MONTH and months):
        return
    last = _after_workdays(day, round(seconds / DAY)) if working else day + dt.timedelta(seconds=seconds)
    yield _moment(last)
    if moment.minute is not None:
        yield Moment((last.year, last.year), (last.month, last.month), last.day, minute=moment.minute)
    if term and not working:
        yield _moment(last - dt.timedelta(days=sign))


def _by_months(moment: Moment, months: int, *, term: bool) -> Iterator[Moment]:
    """Yield a date so many months on, and the last day of a term that begins with it."""
    if moment.years is None:
        return
    if moment.months is None:
        year = moment.years[0] + int(months / _MONTHS_OF_YEAR)
        yield Moment((year, year))
        return
    if moment.months[0] != moment.months[1]:
        return
    sign = 1 if months > 0 else -1
    for each in (months, months - sign) if term and moment.day is None else (months,):
        place = moment.years[0] * _MONTHS_OF_YEAR + moment.months[0] - 1 + each
        year, month = place // _MONTHS_OF_YEAR, place % _MONTHS_OF_YEAR + 1
        if moment.day is None:
            yield Moment((year, year), (month, month))
            continue
        last = dt.date(year, month, min(moment.day, calendar.monthrange(year, month)[1]))
        yield _moment(last)
        if term:
            yield _moment(last - dt.timedelta(days=sign))


def _after_workdays(day: dt.date, count: int) -> dt.date:
    """Return the day so many days from Monday to Friday on. Holidays are not known here."""
    step = dt.timedelta(days=1 if count > 0 else -1)
    while count:
        day += step
        count -= (1 if count > 0 else -1) * (day.weekday() < _WORKDAYS)
    return day


def _within_any_year(moment: Moment, seconds: float) -> Iterator[Moment]:
    """Yield a day without a year moved by a period, where every year gives the same day."""
    found = [_moved_in(year, moment, seconds) for year in (_PLAIN_YEAR, _PLAIN_YEAR + 1)]
    if found[0] and found[1] and (found[0].month, found[0].day) == (found[1].month, found[1].day):
        yield Moment(None, (found[0].month, found[0].month), found[0].day)


def _moved_in(year: int, moment: Moment, seconds: float) -> dt.date | None:
    day = day_of(Moment((year, year), moment.months, moment.day))
    return day + dt.timedelta(seconds=seconds) if day is not None and abs(seconds) < YEAR else None


def day_of(moment: Moment) -> dt.date | None:
    """Return the day of a date that states its year, month and day, else ``None``."""
    if moment.years is None or moment.months is None or moment.day is None:
        return None
    try:
        return dt.date(moment.years[0], moment.months[0], moment.day)
    except ValueError:
        return None


def _moment(day: dt.date) -> Moment:
    return Moment((day.year, day.year), (day.month, day.month), day.day, day.weekday())


def in_series(moment: Moment, count: int, near: frozenset[str]) -> Iterator[Moment]:
    """Yield the last date of so many that follow each other as the words beside them say: *twelve weekly sessions*."""
    unit = next((seconds for words, seconds in _STEPS if near & words), 0.0)
    if unit == MONTH:
        yield from _by_months(moment, count - 1, term=False)
    elif unit and (day := day_of(moment)) is not None:
        yield _moment(day + dt.timedelta(seconds=unit * (count - 1)))


def in_years(moment: Moment, years: int) -> Iterator[Moment]:
    """Yield the day on which somebody who was born on a date is so many years old."""
    yield from _by_months(moment, years * _MONTHS_OF_YEAR, term=False)


def between(first: Moment, second: Moment) -> Iterator[float]:
    """Yield the seconds from one date to another, with the last day or month and without it."""
    if first.years is None and second.years is not None and first.months and second.months:
        first = replace(first, years=second.years)  # from 6 January to 14 March 2025
    days = [day_of(first), day_of(second)]
    if days[0] is not None and days[1] is not None:
        start, end = sorted((days[0], days[1]))
        whole = (end - start).days
        yield from (whole * DAY, (whole + 1) * DAY)
        yield round(whole / 30.4375) * MONTH
        for last in (end, end + dt.timedelta(days=1)):
            months = (last.year - start.year) * _MONTHS_OF_YEAR + last.month - start.month - (last.day < start.day)
            yield from (months * MONTH, months // _MONTHS_OF_YEAR * YEAR)
    elif first.years and second.years and first.months and second.months and not (first.minute or second.minute):
        places = [each.years[0] * _MONTHS_OF_YEAR + each.months[0] for each in (first, second)]  # type: ignore[index]
        apart = abs(places[1] - places[0])
        yield from (apart * MONTH, (apart + 1) * MONTH)
        yield apart // _MONTHS_OF_YEAR * YEAR
    elif first.years and second.years and not (first.minute or second.minute):
        yield abs(second.years[0] - first.years[0]) * YEAR


def misnamed_weekday(moment: Moment) -> bool:
    """Whether a date names another day of the week than its own: *Monday, 14 February 2025*, a Friday."""
    if moment.weekday is None or moment.other is not None:
        return False
    day = day_of(moment)
    return day is not None and day.weekday() != moment.weekday
