"""Days in other words: *the 14th* of a month that is told beside it, and holidays whose date never changes (SPEC-005 §5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from interlock.dpe.text.lexing import WORD, Lexeme, at
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import DATE, ORDINAL, Value

_LAST_DAY, _MONTHS = 31, 12
_THE = frozenset({"the"})
_GOES_ON = word_set(
    "at and or to until till by for with when if as because but so which while instead then from in after before on"
)
"""What may follow a day of which the month is left out; a noun would be what is counted: *the 14th floor*."""

_FIXED: Mapping[str, tuple[int, int]] = {
    "new year's day": (1, 1), "new years day": (1, 1), "new year's eve": (12, 31), "new years eve": (12, 31),
    "christmas eve": (12, 24), "christmas day": (12, 25), "boxing day": (12, 26), "st stephen's day": (12, 26),
    "valentine's day": (2, 14), "valentines day": (2, 14), "st patrick's day": (3, 17), "halloween": (10, 31),
    "all saints' day": (11, 1), "all saints day": (11, 1), "all souls' day": (11, 2), "may day": (5, 1), "epiphany": (1, 6),
    "labour day": (5, 1), "independence day": (7, 4), "bastille day": (7, 14), "armistice day": (11, 11), "juneteenth": (6, 19),
    "australia day": (1, 26), "canada day": (7, 1), "king's day": (4, 27), "april fools' day": (4, 1), "april fool's day": (4, 1),
}  # fmt: skip
_HOLIDAY = pattern(
    r"\b(?:" + "|".join(sorted((name.replace("'", "['’]") for name in _FIXED), key=len, reverse=True)) + r")\b",
    ignore_case=True,
)


def holidays(text: str) -> Iterator[Value]:
    """Yield the holidays of a text as the dates that they fall on."""
    for match in _HOLIDAY.finditer(text):
        month, day = _FIXED[match[0].lower().replace("’", "'")]
        yield Value(DATE, match[0], match.start(), match.end(), moment=Moment(None, (month, month), day))


def days_meant(value: Value, reading: ValuesRead) -> Iterator[Value]:
    """Yield the days of which an ordinal may leave out the month: that of a date beside it, or the next one.

    *From 3 March until the 14th*, and *from 28 March until the 2nd*. Of no month, where none stands beside it.
    """
    if value.kind != ORDINAL or value.words or not value.amount or value.amount > _LAST_DAY:
        return
    if at(reading.tokens, value.first - 1).low not in _THE or _is_counted(at(reading.tokens, value.last)):
        return
    day = int(value.amount)
    dated = [each.moment for each in reading.values if each.moment is not None and each.moment.months is not None]
    months = [month for moment in dated for month in _months(moment, day)]
    for month in dict.fromkeys(months):
        yield replace(value, kind=DATE, amount=None, unit="", moment=Moment(None, (month, month), day))
    if not dated:
        yield replace(value, kind=DATE, amount=None, unit="", moment=Moment(day=day))


def _months(moment: Moment, day: int) -> Iterator[int]:
    """Yield the months of a date, and the next one where the day lies before the date's own."""
    first, last = moment.months or (1, 1)
    yield from (first, last)
    if moment.day is not None and day <= moment.day:
        yield last % _MONTHS + 1


def _is_counted(following: Lexeme) -> bool:
    return following.kind == WORD and following.low not in _GOES_ON
