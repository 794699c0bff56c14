"""Relative wording: what a source gives only by what it is to another value (SPEC-005 §5.2).

*At 20:30, an hour before departure*: the departure is at 21:30. *80,000, 20,000 less than planned*: 100,000 were planned. *16 days, half
as long as by sea*: 32 days by sea. The wording beside the stated value names the operation, so that none is free. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from interlock.dpe.text.lexing import Lexeme, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead, read
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import NUMBER, ORDINAL, PERCENT, Value
from interlock.dpe.values.reckoning import calendar
from interlock.dpe.values.reckoning.derived import Operand, fits, same_moment
from interlock.dpe.values.units import TIME, TIMES

_BEFORE, _AFTER = frozenset({"before", "ahead"}), frozenset({"after", "behind", "past"})
_LESS = word_set("less fewer cheaper lower shorter below under smaller younger lighter earlier sooner slower")
_MORE = word_set("more dearer higher longer above over larger older heavier later greater taller")
_FACTORS = {
    2.0: word_set("double doubles doubled doubling twice"),
    3.0: word_set("triple triples tripled tripling treble trebled thrice"),
    4.0: word_set("quadruple quadruples quadrupled"),
    0.5: word_set("halve halves halved halving half"),
}
_VERBS = word_set(
    "doubles doubled doubling triples tripled tripling trebled quadruples quadrupled halves halved halving"
)
_AS = word_set("as the its their his her our what that")
_MOST_BETWEEN = 3
_MOST_TEXTS = 60
_HALF_DAY = 720
_MOST_SHARED = 16
_LIKE, _ABOUT = 0.02, 0.06
"""How far a share may be off that people tell as a fraction, and as *about* one, of the fraction: 33 % as a third, 19 % as about one in five."""


def stands_to_another(target: Value, texts: Sequence[str], claimed: frozenset[str]) -> bool:
    """Whether a value is what *texts*, one after the other, give only by another. *claimed* are the words of the claim."""
    readings = [read(text) for text in texts[:_MOST_TEXTS]]
    if target.moment is not None:
        told = target.moment
        return any(_is_told(told, made) for each in readings for made in _moments(each))
    if not target.amount or target.label or target.vague:
        return False
    if any(fits(target, made) for each in readings for made in _amounts(each, target)):
        return True
    return any(fits(target, made) for made in _scaled(target, readings, claimed))


def _is_told(told: Moment, made: Moment) -> bool:
    """Whether a time is the one that was made; nine o'clock may be of either half of the day."""
    if told.either_half and told.minute is not None and made.minute is not None:
        return told.minute % _HALF_DAY == made.minute % _HALF_DAY
    return same_moment(told, made)


def _moments(reading: ValuesRead) -> Iterator[Moment]:
    """Yield what comes so long after a stated time that is told as before it, and the other way round."""
    for value in reading.values:
        if value.moment is None or at(reading.tokens, value.last).low not in {",", "(", "–"}:
            continue
        period, place = _period(reading, value.last + 1)
        word = at(reading.tokens, place).low
        if period is not None and word in _BEFORE | _AFTER:
            near = frozenset({"after" if word in _BEFORE else "before"})
            yield from calendar.moved(value.moment, period, near)


def _period(reading: ValuesRead, place: int) -> tuple[Value | None, int]:
    """Return the period that stands at a place, *an hour* among them, and the place behind it."""
    found = next((each for each in reading.values if each.first == place and each.unit == TIME), None)
    if found is not None:
        return found, found.last
    if at(reading.tokens, place).low in {"a", "an"}:
        one = [each for each in read(f"1 {at(reading.tokens, place + 1).low}").values if each.unit == TIME]
        return (one[0], place + 2) if one else (None, place)
    return None, place


def _amounts(reading: ValuesRead, target: Value) -> Iterator[float]:
    """Yield the amount to which a stated one is told as so much more or less: *80,000, 20,000 less than planned*."""
    for one, other in pairwise(reading.values):
        if one.unit != target.unit or not one.amount or not other.amount or other.moment or other.label:
            continue
        sign = _sign(reading.tokens, other.last)
        if not sign or other.first - one.last > _MOST_BETWEEN:
            continue
        if other.kind == PERCENT:
            share = 1 - sign * other.amount / 100
            yield one.amount / share if share else 0.0
        elif other.unit == one.unit or (other.kind == NUMBER and not other.unit):
            yield one.amount + sign * (other.amount if other.unit else other.amount * one.factor)


def _sign(tokens: Sequence[Lexeme], place: int) -> int:
    """Return 1 where an amount is told as less than another one, -1 as more, and 0 as neither."""
    word = at(tokens, place).low
    compared = "than" in {at(tokens, place + step).low for step in range(_MOST_BETWEEN)} or word in {"below", "above"}
    return (1 if word in _LESS else -1 if word in _MORE else 0) if compared else 0


def _scaled(target: Value, readings: Sequence[ValuesRead], claimed: frozenset[str]) -> Iterator[float]:
    """Yield half, twice and so on of the amounts of a sentence that says so, and of those before one that says only that."""
    before: list[Value] = []
    for reading in readings:
        alike = [each for each in reading.values if each.unit == target.unit and each.amount and not each.fraction]
        factors = set(_factors(reading.tokens))
        named = {factor for factor, words in _FACTORS.items() if words & claimed & _VERBS}
        for value in alike or before:
            told = factors | named if alike else {factor for factor in factors if _VERBS & _words(reading)}
            for factor in told:
                yield from ((value.amount or 0.0) * factor, (value.amount or 0.0) / factor)
        before = alike


def _words(reading: ValuesRead) -> frozenset[str]:
    return frozenset(token.low for token in reading.tokens)


def _factors(tokens: Sequence[Lexeme]) -> Iterator[float]:
    """Yield the factors that a text names: *halves*, *twice as much*, *half the price*, not *half an hour*."""
    for place, token in enumerate(tokens):
        for factor, words in _FACTORS.items():
            if token.low in words and (token.low in _VERBS or at(tokens, place + 1).low in _AS):
                yield factor


def is_share(target: Value, operands: Sequence[Operand]) -> bool:
    """Whether a fraction is the share that two values of one sentence make, what a percentage is or leaves, or one of so many times as much.

    A fifth, for 1,200 of 6,000; one in five, where 81 % are not; a quarter, where it costs four times as much.
    """
    if not target.fraction or not target.amount:
        return False
    stated = [each for each in operands if each.scope >= 0 and each.value.amount and each.value.kind != ORDINAL]
    made = [1 / abs(each.value.amount or 1.0) for each in stated if each.value.unit == TIMES]
    parts = [abs(each.value.amount or 0.0) / 100 for each in stated if each.value.kind == PERCENT]
    made += [*parts, *(1 - part for part in parts)]
    made += [
        _ratio(a.value, b.value)
        for a, b in combinations(stated[:_MOST_SHARED], 2)
        if a.scope == b.scope and a.value.unit == b.value.unit and a.value.kind != PERCENT
    ]
    slack = (_ABOUT if target.approximate else _LIKE) * target.amount
    return any(abs(each - target.amount) <= slack for each in made if 0 < each < 1)


def _ratio(one: Value, other: Value) -> float:
    low, high = sorted((abs(one.amount or 0.0), abs(other.amount or 0.0)))
    return low / high
