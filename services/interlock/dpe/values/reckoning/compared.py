"""Compared lines: what a claim makes of the values of two lines or sentences that it names, each by a word of its own (SPEC-005 §5.2).

*The shared cache saves four minutes more than the local one*, of a list with a line for each; *a third of the goals were scored by Ilunga*.
``derived`` has the values of one sentence and of one attribute of records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from interlock.dpe.text.lexing import WORD
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead
from interlock.dpe.values.frames import STOP, stem
from interlock.dpe.values.quantities import ORDINAL, PERCENT, Value
from interlock.dpe.values.reckoning.derived import DIFFERS, DOWN, UP, Operand, fits
from interlock.dpe.values.reckoning.implied import GAINED
from interlock.dpe.values.units import TIMES

_ADDS = word_set(
    "total altogether together combined sum all overall both add adds added extends lengthens raises brings"
)
_MOST_WORDS = 12
_MOST_OPERANDS = 24


def compares(target: Value, reading: ValuesRead, operands: Sequence[Operand]) -> bool:
    """Whether a value is the difference, the sum or the ratio of the values of two things that a claim names."""
    if target.moment is not None or not target.amount or target.label or target.vague:
        return False
    words = frozenset(token.low for token in reading.tokens)
    bag = frozenset(stem(token.low) for token in reading.tokens if token.kind == WORD and token.low not in STOP)
    usable = [each for each in operands if each.scope >= 0 and each.value.amount and each.value.kind != ORDINAL]
    usable = [each for each in usable if each.noun & bag and len(each.noun) <= _MOST_WORDS and not each.value.fraction]
    return any(
        fits(target, made)
        for a, b in combinations(usable[:_MOST_OPERANDS], 2)
        if a.scope != b.scope and a.value.unit == b.value.unit
        for made in _made(target, words, bag, a, b)
    )


def _made(target: Value, words: frozenset[str], bag: frozenset[str], a: Operand, b: Operand) -> Iterator[float]:
    one, other = abs(a.value.amount or 0.0), abs(b.value.amount or 0.0)
    same = a.value.unit == target.unit
    if same and (a.near | b.near) & GAINED and words & _ADDS:
        yield one + other
    if not ((a.noun - b.noun) & bag and (b.noun - a.noun) & bag):
        return
    if same and words & DIFFERS and bool(words & UP) == bool(words & DOWN):
        yield abs(one - other)  # which of two is the higher one, ``implied`` looks at
    if same and words & _ADDS:
        yield one + other
    if a.value.kind == PERCENT or not min(one, other):
        return
    if target.fraction:
        yield min(one, other) / max(one, other)
    elif target.unit == TIMES:
        yield max(one, other) / min(one, other)
