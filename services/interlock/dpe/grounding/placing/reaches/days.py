"""Days and times of a claim that a source tells by another one: *on 4 June*, for *on 3 June … the next day* (SPEC-005 §5.2)."""

from __future__ import annotations

from interlock.dpe.grounding.placing.near import Near
from interlock.dpe.grounding.support import content_stems
from interlock.dpe.text.lexing import at
from interlock.dpe.text.memory.remembered import LONG, remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read
from interlock.dpe.values.moments import covers
from interlock.dpe.values.quantities import Value
from interlock.dpe.values.reckoning.told_days import told_days
from interlock.dpe.values.units import TIME

_EARLY, _LATE = word_set("early earlier before beforehand ahead prior"), word_set("late later after afterwards")
_HALF_DAY, _DAY, _MINUTE = 720, 1440, 60.0
_MOST_CLOCKS = 12
_BREAK = pattern(r"[.!?]\s+|\n+")


def is_told(value: Value, near: Near) -> bool:
    """Whether a sentence of the sources that shares a word with the claim's gives its day by another one."""
    if value.moment is None or value.moment.day is None or near.told is None:
        return False
    stems = content_stems(near.text)
    return any(
        covers(moment, value.moment) and bool(stems & content_stems(_sentence_at(content, place)))
        for content in near.told.contents
        for place, moment in told_days(content)
    )


def _sentence_at(text: str, place: int) -> str:
    breaks = [0, *(end for match in _BREAK.finditer(text) for end in match.span()), len(text)]
    first = max(each for each in breaks if each <= place)
    last = min((each for each in breaks if each > place), default=len(text))
    return text[first:last]


def is_told_time(value: Value, near: Near) -> bool:
    """Whether a time of day is a period before or after one that a source states, and says so: *13:20 … arrive 15 minutes early*."""
    moment = value.moment
    if moment is None or moment.minute is None or near.told is None:
        return False
    made = {minute for content in near.told.contents for minute in _told_times(content)}
    return any((moment.minute - minute) % (_HALF_DAY if moment.either_half else _DAY) == 0 for minute in made)


@remembered(bytes_a_character=10, from_length=LONG)
def _told_times(content: str) -> tuple[int, ...]:
    reading = read(content)
    clocks = [
        each.moment.minute for each in reading.values if each.moment is not None and each.moment.minute is not None
    ]
    found: list[int] = []
    for period in (
        each for each in reading.values if each.unit == TIME and each.amount and each.amount < _DAY * _MINUTE
    ):
        after = at(reading.tokens, period.last).low
        sign = -1 if after in _EARLY else 1 if after in _LATE else 0
        found += [
            (clock + sign * round((period.amount or 0.0) / _MINUTE)) % _DAY for clock in clocks[:_MOST_CLOCKS] if sign
        ]
    return tuple(found)
