"""Instants: days and times of day, to the second, as figures to reckon with (SPEC-005 §5.2)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from interlock.dpe.grounding.placing.near import values_of

DAY = 86_400
_CLOCK = re.compile(r"(?<!\d)([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?(?!\d)")
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)")


@dataclass(frozen=True, slots=True)
class Instant:
    """What is stated of a day and a time of day. ``year`` is ``None`` where a day has none."""

    year: int | None
    month: int | None
    day: int | None
    second: int | None
    text: str = ""

    @property
    def dated(self) -> bool:
        """Whether it names a day."""
        return self.day is not None

    def moved(self, seconds: float, year: int | None) -> Instant | None:
        """Return the instant so many seconds later, or ``None`` where only whole days can be told."""
        whole = round(seconds)
        if not self.dated or self.month is None:
            return Instant(None, None, None, ((self.second or 0) + whole) % DAY)
        if self.second is None and whole % DAY:
            return None
        try:
            start = dt.datetime(self.year or year or 2024, self.month, self.day or 1, tzinfo=dt.UTC)
            end = start + dt.timedelta(seconds=(self.second or 0) + whole)
        except (ValueError, OverflowError):
            return None
        known = end.year if self.year or year else None
        clock = None if self.second is None else end.hour * 3600 + end.minute * 60 + end.second
        return Instant(known, end.month, end.day, clock)

    def agrees(self, other: Instant) -> bool:
        """Whether two instants state a day or a time in common, and differ in nothing that both state."""
        pairs = [(self.year, other.year), (self.month, other.month), (self.day, other.day), (self.second, other.second)]
        stated = [(one, two) for one, two in pairs if one is not None and two is not None]
        if self.second is not None and other.second is None:
            return False
        return (self.dated is False or other.dated or self.second is not None) and bool(stated) and all(
            one == two for one, two in stated
        )  # fmt: skip


def instants_of(text: str) -> tuple[Instant, ...]:
    """Return the days, the times and the days with a time that a text states."""
    return tuple(_instants(text))


def _instants(text: str) -> Iterator[Instant]:
    day: Instant | None = None
    end = -1
    for value in values_of([text]):
        moment = value.moment
        if moment is None:
            continue
        clock = _CLOCK.search(value.text)
        if moment.day is not None and moment.months is not None:
            year = moment.years[0] if moment.years else None
            day, end = Instant(year, moment.months[0], moment.day, None, value.text), value.end
            if clock is None:
                yield day
                if moment.other is not None:
                    yield Instant(year, moment.other[0], moment.other[1], None, value.text)
                continue
        if clock is None:
            continue
        second = int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3] or 0)
        if day is not None and (value.end == end or 0 <= value.start - end <= 3):
            yield Instant(day.year, day.month, day.day, second, value.text)
        yield Instant(None, None, None, second, value.text)


def apart(ones: Iterable[Instant], others: Iterable[Instant]) -> Iterator[float]:
    """Yield the seconds between instants of the same kind."""
    rest = list(others)
    for one in ones:
        for other in rest:
            if one.dated != other.dated or (one.second is None) != (other.second is None):
                continue
            yield abs(_at(one, other) - _at(other, one))


def _at(one: Instant, other: Instant) -> float:
    if one.month is None or one.day is None:
        return float(one.second or 0)
    try:
        days = dt.date(one.year or other.year or 2024, one.month, one.day).toordinal()
    except ValueError:
        days = 0
    return float(days * DAY + (one.second or 0))
