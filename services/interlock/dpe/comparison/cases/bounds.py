"""Bounds: on which side of a figure or a time a source's rule holds (SPEC-005 §5.3).

*Longer than 10 cm*, *from week 28*, *must not exceed 200 km*, *2 metres or more*, *until 25*, *from 3 to 17 September*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from interlock.dpe.comparison.ranges import joined
from interlock.dpe.text.lexing import Lexeme, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import Frame, FramedSentence
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import NUMBER, ORDINAL, QUANTITY, Value, comparable

_MORE = word_set(
    "longer older higher heavier taller larger bigger greater more later wider deeper thicker steeper faster warmer hotter farther further"
)
_LESS = word_set(
    "shorter younger lower lighter smaller less fewer earlier sooner narrower shallower thinner slower colder cooler nearer closer"
)
_ABOVE = word_set("over above beyond exceeding exceeds exceed exceeded past")
_BELOW = word_set("under below within")
_FROM = word_set("from since after starting")
_UNTIL = word_set("until till before by")
_SKIPPED = word_set("a an the age ages aged of week day year month level about even to on 's")
_DENYING = word_set("not no never")
_AHEAD = word_set("before ahead beforehand prior early")
_FARTHEST = 3
_MONTH_DAYS = 31
_FAR = 100  # a bicycle of 140 cm is no distance of less than 100 km


@dataclass(frozen=True)
class RuleBound:
    """Where a rule holds: from *low* up and to *high*, in base units or days of a calendar; ``None`` is without an end."""

    low: float | None
    high: float | None
    wraps: bool = False
    norm: bool = False
    """Whether the words of the bound themselves say that nothing may lie beyond it: *must not exceed*, *no longer than*, *at least*."""

    def holds(self, at_: float) -> bool:
        """Whether the rule holds of a value. Both ends belong to it: of one that lies on an end ``is_end`` tells."""
        if self.wraps and self.low is not None and self.high is not None:
            return at_ >= self.low or at_ <= self.high
        return (self.low is None or at_ >= self.low) and (self.high is None or at_ <= self.high)

    def is_end(self, at_: float) -> bool:
        """Whether a value is an end, of which the words would have to tell on which side it falls."""
        return at_ in {self.low, self.high}


def place_of(value: Value, like: Value) -> float | None:
    """Return where a value lies on the scale of another, if both are of one scale and exact."""
    if value.moment is not None and like.moment is not None:
        place, other = _of_moment(value.moment), _of_moment(like.moment)
        return place[1] if place and other and place[0] == other[0] and _is_apart(value.moment, like.moment) else None
    if (
        value.vague
        or value.label
        or value.kind == ORDINAL
        or not comparable(value, like)
        or value.fraction != like.fraction
    ):
        return None
    far = value.amount and like.amount and not 1 / _FAR <= abs(value.amount / like.amount) <= _FAR
    return None if far else value.amount


def bounds(source: FramedSentence, fact: Frame) -> Iterator[tuple[Value, RuleBound]]:
    """Yield each value of a sentence that bounds a rule, with the side on which it holds."""
    ranged: set[int] = set()
    for one, other in pairwise(source.values):
        low, high = _scale(one), _scale(other)
        opened = at(fact.tokens, one.first - 1).low in {"from", "between"} or one.moment is not None
        if (
            opened
            and low is not None
            and high is not None
            and joined(one, other, fact)
            and place_of(one, other) is not None
        ):
            ranged |= {one.first, other.first}
            yield other, RuleBound(low, high, wraps=one.moment is not None and low > high)
    for value in source.values:
        place = _scale(value)
        side = _side(value, fact.tokens) if place is not None and value.first not in ranged else ""
        if side:
            low, high = (place, None) if side == ">" else (None, place)
            yield value, RuleBound(low, high, norm=_is_norm(value, fact.tokens))


def _is_norm(value: Value, tokens: Sequence[Lexeme]) -> bool:
    before = [at(tokens, place).low for place in range(value.first - _FARTHEST - 2, value.first)]
    return bool(_DENYING & set(before)) or before[-2:] in (["at", "least"], ["at", "most"])


def _scale(value: Value) -> float | None:
    return place_of(value, value)


def _side(value: Value, tokens: Sequence[Lexeme]) -> str:
    """Return on which side of a value the rule holds: > for above it, < for below it."""
    side = value.bound or _after(value, tokens) or _before(value, tokens)
    ahead = value.moment is None and at(tokens, value.last).low in _AHEAD  # up to two hours before: at least two hours
    return {"<": ">", ">": "<"}.get(side, "") if ahead else side


def _after(value: Value, tokens: Sequence[Lexeme]) -> str:
    joint, word = at(tokens, value.last).low, at(tokens, value.last + 1).low
    if joint not in {"or", "and"}:
        return ""
    return ">" if word in _MORE | _ABOVE else "<" if word in _LESS | _BELOW else ""


def _before(value: Value, tokens: Sequence[Lexeme]) -> str:
    place = value.first - 1
    for _ in range(_FARTHEST):
        if at(tokens, place).low not in _SKIPPED:
            break
        place -= 1
    word, before = at(tokens, place).low, at(tokens, place - 1).low
    if word == "than":
        side = ">" if before in _MORE else "<" if before in _LESS else ""
        denied = _is_denied(tokens, place - 2)
    elif word in {"least", "most", "latest"} and before == "at":
        return ">" if word == "least" else "<"
    else:
        dated = value.moment is not None or value.kind in {NUMBER, QUANTITY}
        side = (
            ">"
            if (word in _ABOVE and value.moment is None) or (dated and word in _FROM)
            else "<"
            if (word in _BELOW and value.moment is None) or (dated and word in _UNTIL)
            else ""
        )
        denied = _is_denied(tokens, place - 1)
    return {"<": ">", ">": "<"}.get(side, "") if denied else side


def _is_denied(tokens: Sequence[Lexeme], place: int) -> bool:
    """Whether a comparison is denied: *not older than*, *must not be older than*, *may not exceed*."""
    low = at(tokens, place).low
    return low in _DENYING or (low in {"be", "been"} and at(tokens, place - 1).low in _DENYING)


def _of_moment(moment: Moment) -> tuple[str, float] | None:
    """Return where in the day, the year or the calendar a moment is, with the scale, if it states just that."""
    if moment.minute is not None:
        return ("minute", float(moment.minute)) if moment == Moment(minute=moment.minute) else None
    if moment.months is None:
        alone = moment.years is not None and moment == Moment(years=moment.years) and moment.years[0] == moment.years[1]
        return ("year", float(moment.years[0])) if alone and moment.years else None
    if moment.years or moment.weekday is not None or moment.other or moment.months[0] != moment.months[1]:
        return None
    return "month", float(moment.months[0] * _MONTH_DAYS + (moment.day or 0))


def _is_apart(one: Moment, other: Moment) -> bool:
    """Whether it is sure which of two dates is the earlier one: of a month and a day in it that is open."""
    return one.months is None or one.months != other.months or (one.day is None) == (other.day is None)
