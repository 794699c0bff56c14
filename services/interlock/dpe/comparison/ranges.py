"""Ranges: times that fall into a span of the source, which they do not shift (SPEC-005 §5.3).

*It is open at 1 am* agrees with *open until 2 am*, and *on 3 April* with *from 1 March to 30 April*.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from interlock.dpe.comparison import denials
from interlock.dpe.text.lexing import at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import Frame
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import Value

_DAY, _NIGHT_ENDS, _NOON = 1440, 360, 720
_POINTS = frozenset({"at", "on", "in"})
_OPENS, _ENDS = word_set("from since after"), word_set("until till")
_JOINTS = word_set("to until till and through - –")
_CHANGING = word_set(
    "open opens start starts begin begins close closes end ends leave leaves arrive arrives depart departs"
)
_BE = word_set("is are be was were stays stay still s")
_MOST_BETWEEN = 2
Span = tuple[int | None, int | None]


def falls_within(value: Value, claim: Frame, fact: Frame) -> bool:
    """Whether a claim names a time at which something holds, and a span of the source has it, with neither or both denied."""
    moment = value.moment
    before = at(claim.tokens, value.first - 1).low
    if moment is None or before not in _POINTS or _changes(claim, value.first - 2):
        return False
    if _denies(claim) is not _denies(fact):
        return False
    place = _place(moment)
    return place is not None and any(
        _has(span, place, timed=moment.minute is not None) for span in _spans(moment, fact)
    )


def in_span(value: Value, fact: Frame) -> bool:
    """Whether a time lies in a span of which the source states both ends, whatever is said of it."""
    place = _place(replace(value.moment, weekday=None)) if value.moment is not None else None
    if place is None or value.moment is None:
        return False
    spans = _spans(replace(value.moment, weekday=None), fact)
    return any(None not in span and _has(span, place, timed=value.moment.minute is not None) for span in spans)


def _changes(claim: Frame, place: int) -> bool:
    """Whether the word at a place says that something begins or ends at a time. *Is open at 9* says no such thing."""
    low, before = at(claim.tokens, place).low, at(claim.tokens, place - 1).low
    return low in _CHANGING and not (low == "open" and before in _BE)


def _denies(frame: Frame) -> bool:
    return any(True for _ in denials.places(frame.tokens, 0, len(frame.tokens)))


def _place(moment: Moment) -> int | None:
    """Return where in the day or the year a moment is, if it states just that."""
    if moment.minute is not None:
        return moment.minute if moment == Moment(minute=moment.minute) else None
    if moment.months is None or moment.years or moment.months[0] != moment.months[1]:
        return None
    return moment.months[0] * 31 + (moment.day or 0)


def _spans(moment: Moment, fact: Frame) -> Iterator[Span]:
    """Yield the spans of a text between times of the sort of a moment."""
    timed = [
        value for value in fact.values if value.moment and (value.moment.minute is None) == (moment.minute is None)
    ]
    for n, value in enumerate(timed):
        place, before = _place(value.moment) if value.moment else None, at(fact.tokens, value.first - 1).low
        follows = timed[n + 1] if n + 1 < len(timed) else None
        end = _place(follows.moment) if follows and follows.moment and joined(value, follows, fact) else None
        if place is None:
            continue
        if end is not None:
            yield place, end
        elif before in _ENDS and not (n and joined(timed[n - 1], value, fact)):
            yield None, place
        elif before in _OPENS:
            yield place, None


def joined(one: Value, other: Value, fact: Frame) -> bool:
    """Whether two values are the ends of a range: *from 3 to 17 September*, *13–15*."""
    between = [fact.tokens[place].low for place in range(one.last, other.first)]
    return 0 < len(between) <= _MOST_BETWEEN and between[-1] in _JOINTS


def _has(span: Span, place: int, *, timed: bool) -> bool:
    first, last = span
    if first is not None and last is not None:
        return first <= place < last if first <= last else (place >= first or place < last)
    if first is not None:  # after midnight: until the morning
        return place >= first and not (timed and first < _NIGHT_ENDS <= place)
    if last is None:
        return False
    return place < last or (timed and last <= _NIGHT_ENDS and place >= _NOON)
