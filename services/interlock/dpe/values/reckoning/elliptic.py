"""Elliptic figures: those that leave out the unit of one beside them: *45 days, small firms within 20* (SPEC-005 §5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from interlock.dpe.text.lexing import at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead
from interlock.dpe.values.frames import STOP
from interlock.dpe.values.quantities import NUMBER, Value
from interlock.dpe.values.reckoning.derived import Operand
from interlock.dpe.values.units import PERCENT, POINTS, TIMES

_GOES_ON = (
    STOP
    | word_set(
        "instead less more before after now then later earlier altogether together net gross only . , ; : ! ? ) ]"
    )
    | {""}
)
"""What follows a figure that counts nothing of its own."""

_NO_UNITS = frozenset({"", TIMES, POINTS})
_MOST_UNITS = 3


def filled(target: Value, operands: Sequence[Operand]) -> list[Operand]:
    """Return *operands*, and those without a unit once more with that of their sentence, or with that of the *target*.

    The target's own is taken only where the sources state it somewhere.
    """
    known = {each.value.unit for each in operands if each.scope >= 0}
    return [*operands, *(full for each in operands for full in _with_units(each, target, known, operands))]


def with_unit_beside(value: Value, reading: ValuesRead) -> Iterator[Value]:
    """Yield a figure that counts nothing of its own with the unit of the last one before it: *28 minutes, and another 15 until …*."""
    if value.kind != NUMBER or value.unit or value.fraction or not value.amount or value.label:
        return
    before = [each for each in reading.values if each.end <= value.start and each.amount and each.unit]
    if not before or before[-1].unit in _NO_UNITS or at(reading.tokens, value.last).low not in _GOES_ON:
        return
    unit = before[-1]
    amount, step = value.amount * unit.factor, value.step * unit.factor
    yield replace(value, kind=unit.kind, unit=unit.unit, amount=amount, step=step, factor=unit.factor)


def _with_units(one: Operand, target: Value, known: set[str], operands: Sequence[Operand]) -> list[Operand]:
    value = one.value
    if value.kind != NUMBER or value.unit or value.fraction or not value.amount or value.label or one.scope < 0:
        return []
    if one.follows not in _GOES_ON or (value.words and not value.unit and value.amount == 1):
        return []
    beside = [each.value for each in operands if each.scope == one.scope and each.value.amount and each.value.unit]
    units = {each.unit: each for each in beside if each.unit not in _NO_UNITS | {PERCENT}}
    if len(units) > _MOST_UNITS:
        return []
    if not beside and target.unit in known - _NO_UNITS - {PERCENT}:
        units[target.unit] = target
    return [
        replace(
            one, value=replace(value, unit=unit, amount=value.amount * each.factor, factor=each.factor, kind=each.kind)
        )
        for unit, each in units.items()
    ]
