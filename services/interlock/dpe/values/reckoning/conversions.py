"""Conversions that a text writes out, *210 miles is about 338 km*, and whether they are right (SPEC-005 §5.2).

Two amounts of one measure in different units that stand beside each other and are equated must be one amount. Nothing but the
units is needed to see that they are not. Pure functions of a reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import log10

from interlock.dpe.text.lexing import NUMBER
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead
from interlock.dpe.values.figures import APPROXIMATE
from interlock.dpe.values.quantities import Value, same
from interlock.dpe.values.units import TEMPERATURE

WRONG_BY = 0.12
"""Share above which no rounding explains a difference."""

WRONG_BY_DEGREES = 6.0
_CONVERTED = frozenset({"length", "mass", "volume", "area", "speed", TEMPERATURE})
_OPERATES = frozenset({"of", "×", "*", "x", "+", "-", "/", "÷", "times", "per"})
_EQUATES, _OPENS = frozenset({"is", "equals", "=", "≈"}), "("
_MOST_BETWEEN = 6
_NO_REMAINDER = 1e-3
_FILLS = word_set("a an the of about roughly") | APPROXIMATE


def wrong_conversions(reading: ValuesRead) -> Iterator[tuple[Value, Value]]:
    """Yield the pairs of amounts that a text equates and that are not one."""
    for one, other in pairwise(reading.values):
        if _equated(reading, one, other) and not _is_one(one, other):
            yield one, other


def _equated(reading: ValuesRead, one: Value, other: Value) -> bool:
    alike = one.unit == other.unit and one.unit in _CONVERTED and one.factor != other.factor
    before = reading.tokens[one.first - 1].low if one.first else ""
    if (
        not alike
        or before in _OPERATES
        or not _is_of_another_system(one, other)
        or one.bound
        or other.bound
        or one.vague
        or other.vague
    ):
        return False
    between = reading.tokens[one.last : other.first]
    words = [token.low for token in between]
    if len(words) > _MOST_BETWEEN or any(token.kind == NUMBER for token in between) or not words:
        return False
    sure = [word for word in words if word in _EQUATES or (word == _OPENS and _is_restated(reading, other))]
    # *a 9-inch tin, which is roughly 32 cm*: a noun may stand between an amount and what equates it
    rest = words[words.index(sure[0]) + 1 :] if sure else ["?"]
    return all(word in _FILLS for word in rest) and _ends(reading, other)


def _is_restated(reading: ValuesRead, other: Value) -> bool:
    """Whether a bracket has an amount and nothing else: *340 g (4 oz)*, not *5 km (20 ft climb)*."""
    return other.last < len(reading.tokens) and reading.tokens[other.last].text == ")"


def _is_of_another_system(one: Value, other: Value) -> bool:
    """Whether two units are of two systems, as miles and km are; a result in g is no conversion of an operand in kg."""
    tens = log10(one.factor / other.factor)
    return abs(tens - round(tens)) > _NO_REMAINDER


def _ends(reading: ValuesRead, value: Value) -> bool:
    """Whether nothing after an amount makes it another one: *2 days is 40 hours less*, *5 feet 10 inches*."""
    follows = reading.tokens[value.last].low if value.last < len(reading.tokens) else ""
    again = any(
        other.first - value.last in {0, 1} and other.unit == value.unit
        for other in reading.values
        if other is not value
    )
    return follows not in _COMPARED and not again


_COMPARED = word_set(
    "less more longer shorter later earlier before after further away below above off wider over under left"
)


def _is_one(one: Value, other: Value) -> bool:
    if same(one, other):
        return True
    first, second = one.amount or 0.0, other.amount or 0.0
    if one.unit == TEMPERATURE:
        return abs(first - second) <= WRONG_BY_DEGREES
    return abs(first - second) <= WRONG_BY * max(abs(first), abs(second))
