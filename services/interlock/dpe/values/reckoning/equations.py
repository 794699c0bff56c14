"""Equations that a claim writes out: ``12 × £1,150 = £13,800``, ``0.2 + 0.4 + 0.8 = 1.4 seconds`` (SPEC-005 §5.2).

An equation shows its own calculation. Its result follows when the left side makes it and its operands have a source; operands that
go on from a stated one by a stated step (0.2, doubled, doubled again) have one. Pure functions of a reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from interlock.dpe.text.lexing import Lexeme
from interlock.dpe.values.extraction import ValuesRead
from interlock.dpe.values.quantities import Value
from interlock.dpe.values.units import TIMES

_SIGNS = {
    **dict.fromkeys(("+", "plus"), "+"),
    **dict.fromkeys(("-", "–", "−", "minus"), "-"),
    **dict.fromkeys(("×", "x", "*", "·", "times"), "*"),
    **dict.fromkeys(("/", "÷"), "/"),
}
_EQUAL = frozenset({"=", "≈"})
_MOST_BETWEEN = 2
_LEAST_SERIES = 3
_SLACK = 1e-9


@dataclass(frozen=True)
class Equation:
    """The values of the left side by their number among the values of a claim, the number of the result, and whether it is right."""

    operands: tuple[int, ...]
    result: int
    right: bool


def equations(reading: ValuesRead) -> Iterator[Equation]:
    """Yield the equations of a claim, in order."""
    values, first = reading.values, 0
    while first < len(values) - 1:
        signs: list[str] = []
        place = first
        while place + 1 < len(values) and (sign := _sign(reading.tokens, values[place], values[place + 1])):
            signs.append(sign)
            place += 1
            if sign == "=":
                break
        if len(signs) > 1 and signs[-1] == "=":
            yield Equation(tuple(range(first, place)), place, _is_right(values[first : place + 1], signs[:-1]))
        first = max(place, first + 1)


def _sign(tokens: Sequence[Lexeme], one: Value, other: Value) -> str:
    """Return the sign between two values, or an empty string."""
    words = [token.low for token in tokens[one.last : other.first] if token.low not in {"*" * 2, "("}]
    if one.unit == TIMES and tokens[one.last - 1].low in _SIGNS and not words:
        return "*"
    if not words and other.first < len(tokens) and (other.amount or 0.0) < 0:
        return "+"  # 31 -12: the sign is the value's
    marks = [word for word in words if word in _EQUAL or word in _SIGNS]
    if len(marks) != 1 or len(words) > _MOST_BETWEEN:
        return ""
    return "=" if marks[0] in _EQUAL else _SIGNS[marks[0]]


def _is_right(values: Sequence[Value], signs: Sequence[str]) -> bool:
    *left, result = values
    if any(value.amount is None for value in values):
        return False
    units = {value.unit for value in left if value.unit not in {"", TIMES}}
    bare = not units or any(value.unit == "" for value in left if signs[0] in "+-")
    amounts = [_stated(value) if bare or value.unit == TIMES else value.amount or 0.0 for value in left]
    made = evaluated(amounts, signs)
    target = _stated(result) if bare else result.amount or 0.0
    step = result.step / result.factor if bare else result.step
    slack = step / 2 if step < 1 or result.approximate else _SLACK * max(1.0, abs(target))
    return made is not None and abs(made - target) <= slack * (1 + _SLACK) + _SLACK


def _stated(value: Value) -> float:
    return (value.amount or 0.0) / value.factor


def evaluated(amounts: Sequence[float], signs: Sequence[str]) -> float | None:
    """Return what a chain of amounts makes, products before sums, or ``None`` for a division by zero."""
    terms, plus = [amounts[0]], [1.0]
    for sign, amount in zip(signs, amounts[1:], strict=True):
        if sign == "*":
            terms[-1] *= amount
        elif sign == "/":
            if not amount:
                return None
            terms[-1] /= amount
        else:
            terms.append(amount)
            plus.append(1.0 if sign == "+" else -1.0)
    return sum(term * side for term, side in zip(terms, plus, strict=True))


def series_step(amounts: Sequence[float]) -> float | None:
    """Return the factor by which each of three or more amounts follows the one before, or ``None``."""
    if len(amounts) < _LEAST_SERIES or not all(amounts):
        return None
    factors = [later / earlier for earlier, later in pairwise(amounts)]
    even = max(factors) - min(factors) <= 1e-6 * abs(factors[0])
    return factors[0] if even and factors[0] != 1.0 else None
