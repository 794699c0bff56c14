"""Expressions that a text writes out, *60 − 43 − 9*, *2 × 3 × 118 €*, and what they make, in English and continental notation.

Unlike an equation of values, an expression needs no result beside it: it may stand in brackets behind the figure that it explains.
Pure functions of a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.reckoning.equations import evaluated

_NUMBER = r"\d+(?:[.,]\d+)*"
_SIGN = r"(?:\s[-−–/x]\s|\s?[+×*·÷]\s?)"
_EXPRESSION = pattern(
    rf"[€$£]?{_NUMBER}(?:\s?(?:[€$£%]|\p{{L}}{{1,4}}))?(?:{_SIGN}[€$£]?{_NUMBER}(?:\s?(?:[€$£]|\p{{L}}{{1,4}}))?)+"
)
_PARTS = pattern(rf"({_NUMBER})|([-−–/x+×*·÷])")
_ENGLISH = pattern(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_CONTINENTAL = pattern(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d{1,2}")
_SIGNS = {"−": "-", "–": "-", "x": "*", "×": "*", "·": "*", "÷": "/"}


@dataclass(frozen=True)
class Expression:
    """The operands of an expression and what they make."""

    operands: tuple[float, ...]
    result: float


def expressions(text: str) -> Iterator[Expression]:
    """Yield the expressions of a text that can be evaluated."""
    for match in _EXPRESSION.finditer(text):
        parts = _PARTS.findall(match.group())
        operands = [amount for number, _ in parts if number and (amount := amount_of(number)) is not None]
        signs = [_SIGNS.get(sign, sign) for number, sign in parts if not number]
        if len(operands) == len(signs) + 1 and (result := evaluated(operands, signs)) is not None:
            yield Expression(tuple(operands), result)


def amount_of(number: str) -> float | None:
    """Return what a run of digits means: 1,150.50 and 1.150,50 alike; ``None`` for what is neither."""
    if _ENGLISH.fullmatch(number) is not None:
        return float(number.replace(",", ""))
    if _CONTINENTAL.fullmatch(number) is not None:
        return float(number.replace(".", "").replace(",", "."))
    return None
