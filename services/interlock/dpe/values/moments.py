"""Moments: the content of a date, and whether two dates agree (SPEC-005 §5.3).

A moment holds only what is stated, so May 2026 and 25 May 2026 agree although they state different things.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from interlock.dpe.text.lexing import Lexeme, at

FIRST_YEAR, LAST_YEAR = 1000, 2199
_HALF_DAY = 720


@dataclass(frozen=True, slots=True)
class Moment:
    """The stated parts of a date, ``None`` for parts that are not stated. Spans are inclusive."""

    years: tuple[int, int] | None = None
    months: tuple[int, int] | None = None
    day: int | None = None
    weekday: int | None = None
    minute: int | None = None  # minute of the day
    other: tuple[int, int] | None = None  # the other reading of 05/06/2026, as month and day
    either_half: bool = False  # half past two, which may be 2:30 and 14:30

    def readings(self) -> tuple["Moment", ...]:
        """Return the moment, and for an ambiguous date or time also its other reading."""
        if self.either_half and self.minute is not None:
            early = replace(self, minute=self.minute % _HALF_DAY, either_half=False)
            return (early, replace(early, minute=self.minute % _HALF_DAY + _HALF_DAY))
        if self.other is None:
            return (self,)
        month, day = self.other
        return (
            Moment(self.years, self.months, self.day),
            Moment(self.years, (month, month), day),
        )


@dataclass(frozen=True, slots=True)
class DateRead:
    """A moment, and the index of the first token after it."""

    moment: Moment
    end: int


def agree(first: Moment, second: Moment) -> bool:
    """Whether two moments have no conflicting part."""
    return any(_agree(one, other) for one in first.readings() for other in second.readings())


def comparable(first: Moment, second: Moment) -> bool:
    """Whether two moments state a common part, so that they can differ."""
    return any(
        (one is None) == (other is None) and one is not None
        for one, other in zip(_parts(first), _parts(second), strict=True)
    )


def covers(source: Moment, claim: Moment) -> bool:
    """Whether a source states every part that a claimed moment states."""
    return any(
        all(
            claimed is None or (stated is not None and claimed[0] <= stated[0] and stated[1] <= claimed[1])
            for claimed, stated in pairs
        )
        for one in claim.readings()
        for other in source.readings()
        for pairs in (list(zip(_parts(one), _parts(other), strict=True)),)
    )


def _agree(first: Moment, second: Moment) -> bool:
    return all(
        one is None or other is None or (one[0] <= other[1] and other[0] <= one[1])
        for one, other in zip(_parts(first), _parts(second), strict=True)
    )


def _parts(moment: Moment) -> tuple[tuple[int, int] | None, ...]:
    single = tuple((part, part) if part is not None else None for part in (moment.day, moment.weekday, moment.minute))
    return (moment.years, moment.months, *single)


def year_at(tokens: Sequence[Lexeme], index: int) -> int | None:
    """Return the year that a token spells, whatever its context."""
    text = at(tokens, index).text
    return int(text) if len(text) == 4 and text.isdigit() and FIRST_YEAR <= int(text) <= LAST_YEAR else None


def only(year: int | None) -> tuple[int, int] | None:
    return None if year is None else (year, year)


def full_year(text: str) -> int:
    return int(text) if len(text) == 4 else (2000 if int(text) < 50 else 1900) + int(text)
