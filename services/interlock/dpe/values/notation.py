"""Notation: a claim's values written as its source writes them, so that the model compares words and not spellings (SPEC-005 §4).

The model finds *within three days* unlikely beside *within 72 hours*, and *twelve hundred* beside *1,200*. Only what is exactly equal
is rewritten: three days for 72 hours, not for *about 70 hours*. Pure functions of their texts.
"""

from __future__ import annotations

from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import NUMBER, ORDINAL, Value, comparable
from interlock.dpe.values.units import PERCENT

_EXACT = 1e-9
_ROUNDED_SHARE = 0.5  # points: two thirds are 67 %
_LONGEST = 4_000
"""Longer sources are not read again for each claim."""


def in_notation_of(text: str, source: str) -> str:
    """Return *text* with each value that *source* states in another notation written as there."""
    if len(source) > _LONGEST or not (values := read(text).values):
        return text
    stated = read(source).values
    edits = [
        (value, other.text.rstrip(" .,;:"))
        for value in values
        if value.text.casefold() not in source.casefold()
        and (other := next((each for each in stated if _is_exactly(value, each)), None)) is not None
    ]
    for value, put in reversed(edits):
        end = value.start + len(value.text.rstrip(" .,;:"))
        text = text[: value.start] + put + text[end:]
    return text


def _is_exactly(value: Value, other: Value) -> bool:
    if value.vague or other.vague or value.label or other.label or value.bound != other.bound:
        return False
    if value.moment is not None or other.moment is not None:
        return value.moment == other.moment
    if ORDINAL in {value.kind, other.kind} or not comparable(value, other):
        return False
    one, two = value.amount or 0.0, other.amount or 0.0
    if value.unit != other.unit and PERCENT in {value.unit, other.unit}:
        one, two = (one * 100, two) if value.kind == NUMBER else (one, two * 100)
    share = value.unit != other.unit and PERCENT in {value.unit, other.unit}
    slack = _ROUNDED_SHARE if share else _EXACT * max(abs(one), abs(two))
    return abs(one - two) <= slack
