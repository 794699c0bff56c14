"""What parts of a whole leave, and what the parts of one text come to: *58 % for, 30 % against*, the rest 12 % (SPEC-005 §5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from interlock.dpe.grounding.placing.near import Near, values_of
from interlock.dpe.grounding.support import content_stems
from interlock.dpe.text.memory.remembered import LONG, remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.quantities import ORDINAL, Value
from interlock.dpe.values.reckoning.derived import DIFFERS
from interlock.dpe.values.units import PERCENT, TIMES

_BREAK = pattern(r"[.!?]\s+|\n+")
_LABELLED = pattern(r"(?m)^\s*[-*•]?\s*\p{L}[^:\n\d]{0,40}[:|]\s*[^\d\n]{0,3}(\d[\d,.]*)")
_TOTALS = word_set(
    "total totals totalling altogether together sum all overall combined both including included inclusive plus comes amounts amounted"
)
_LEAVES = DIFFERS | word_set(
    "other others rest remainder remaining undecided none not no without unlike adds add adding extra left kept"
)
_MOST_PARTS, _FEW = 12, 6
_WHOLE = 100.0
_EXACT = 1e-6


def is_rest_or_sum(value: Value, near: Near) -> bool:
    """Whether an amount is what the parts that one text of the sources states leave or come to, and the claim says so."""
    if not value.amount or value.moment is not None or value.label or value.kind == ORDINAL or near.told is None:
        return False
    contents = near.told.contents
    if value.unit == PERCENT and any(
        _leaves_percent(value, line, near) for text in contents for line in _BREAK.split(text)
    ):
        return True
    totals, leaves = bool(near.words & _TOTALS), bool(near.words & _LEAVES)
    if (totals or leaves) and _of_keys(value, near):
        return True
    return any((totals and _comes_to(value, text)) or (leaves and _leaves(value, text)) for text in contents)


def _of_keys(value: Value, near: Near) -> bool:
    """Whether an amount is the sum or the difference of two fields, of which the claim names one: *800 including VAT*."""
    keyed = near.told.keyed if near.told is not None else {}
    stems = content_stems(near.claim)
    alike = {
        key: _amounts([each for each in values if each.unit in {"", value.unit} and each.moment is None])
        for key, values in keyed.items()
    }
    pairs = (
        (alike[one], alike[other]) for one in alike for other in alike if one != other and content_stems(one) & stems
    )
    return any(
        _is(value, one[0] + sign * other[0]) for one, other in pairs if len(one) == len(other) == 1 for sign in (1, -1)
    )


def _leaves_percent(value: Value, line: str, near: Near) -> bool:
    read_values = [each for each in values_of([line]) if each.amount and not each.vague and each.moment is None]
    first = next((each.start for each in read_values if each.unit == PERCENT), len(line))
    # *58 percent for, 30 against*: the sign is left out of what follows.
    stated = [
        each.amount or 0.0
        for each in read_values
        if each.unit == PERCENT or (not each.unit and each.start > first and (each.amount or 0.0) < _WHOLE)
    ]
    firm = len(stated) > 1 or bool(near.words & _LEAVES)
    return bool(stated) and firm and _is(value, _WHOLE - sum(stated))


def _comes_to(value: Value, text: str) -> bool:
    groups = [*_by_unit(text, value), _labelled(text)]
    return any(
        _is(value, sum(each)) or any(_is(value, one + other) for one, other in combinations(each[:_FEW], 2))
        for each in groups
        if 1 < len(each) <= _MOST_PARTS
    )


def _leaves(value: Value, text: str) -> bool:
    alike = [each for group in _by_unit(text, value) if len(group) <= _FEW for each in combinations(group, 2)]
    return any(_is(value, one - other) for one, other in alike)


def _by_unit(text: str, like: Value) -> Iterator[list[float]]:
    """Yield the amounts of a text in the unit of a value, where it has one."""
    if like.unit and like.unit != TIMES:
        yield _amounts([each for each in values_of([text]) if each.unit == like.unit])


def _amounts(values: Sequence[Value]) -> list[float]:
    return [each.amount for each in values if each.amount and not each.vague and not each.fraction]


@remembered(bytes_a_character=10, from_length=LONG)
def _labelled(text: str) -> list[float]:
    """Return the bare numbers that stand behind the labels of a list: *Oak: 400*, *Hornbeam: 250*."""
    found = (values_of([figure]) for figure in _LABELLED.findall(text))
    return [one.amount for each in found for one in each[:1] if one.amount and not one.unit]


def _is(value: Value, result: float) -> bool:
    slack = (
        value.step / 2 * (2.0 if value.approximate else 1.0) if value.approximate else _EXACT * abs(value.amount or 1.0)
    )
    return abs(abs(result) - abs(value.amount or 0.0)) <= slack + _EXACT
