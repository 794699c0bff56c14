"""Parts of a stated amount that its sentence divides: *half now and half later*, *split equally between A and B* (SPEC-005 §5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import permutations

from interlock.dpe.grounding.placing.near import Near, values_of
from interlock.dpe.grounding.support import content_stems
from interlock.dpe.text.memory.remembered import LONG, remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import Value
from interlock.dpe.values.units import TIMES

_BREAK = pattern(r"[.!?]\s+|\n+")
_HALVES = pattern(r"\b(?:half|halves|halved|fifty-fifty)\b", ignore_case=True)
_NO_HALF = pattern(r"\bhalf (?:an?|past|term|board|day|hour|price|year)\b|\band a half\b", ignore_case=True)
_EQUALLY = pattern(
    r"\b(?:equal(?:ly)?|evenly|(?:in )?equal (?:parts|shares|instalments|installments)|shared|split|divided)\b",
    ignore_case=True,
)
_AMONG = pattern(
    r"\b(?:between|among|amongst|by)\s+(?:(?:all|the|its|their|our|of)\s+){0,3}(\p{L}+|\d{1,2})\b", ignore_case=True
)
_INTO = pattern(
    r"\b(?:in|into)\s+(\p{L}+|\d{1,2})\s+(?:equal\s+)?(?:parts|shares|instalments|installments|payments)\b",
    ignore_case=True,
)
_NAMES = pattern(r"\p{Lu}[\p{L}'’-]+(?:, \p{Lu}[\p{L}'’-]+)*,? and (?:\p{Lu}[\p{L}'’-]+)")
_MULTIPLES = {
    2.0: pattern(r"\b(?:doubl(?:e|ed|es|ing|y)|two-?fold)\b", ignore_case=True),
    3.0: pattern(r"\b(?:(?:tripl|trebl)(?:e|ed|es|ing|y)|three-?fold)\b", ignore_case=True),
}
_LEAST_SHARED = 2
"""Words that the dividing sentence shares with the claim's."""
_MOST_PARTS, _MOST_COUNT = 12, 1000
_EXACT = 0.005
_LIKE, _ABOUT, _BEYOND = 0.02, 0.06, 1.15
_MOST_OF_LINE = 6
_MOST_ABOUT = 8


def is_part(value: Value, near: Near) -> bool:
    """Whether an amount is the part of a stated one that a sentence of the sources, or the claim, makes of it."""
    if not value.amount or value.moment is not None or value.label or value.fraction or near.told is None:
        return False
    return any(_makes(line, near.text, value) for line in _about(near))


def _about(near: Near) -> list[str]:
    """Return the sentences of the sources that share most words with a claim, a few: each is read for its figures."""
    stems = content_stems(near.text)
    contents = near.told.contents if near.told is not None else ()
    shared = [
        (len(stems & own), -n, line) for n, (line, own) in enumerate(each for c in contents for each in _lines(c))
    ]
    return [line for count, _, line in nlargest(_MOST_ABOUT, shared) if count >= _LEAST_SHARED]


@remembered(bytes_a_character=30, from_length=LONG)
def _lines(content: str) -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple((line, frozenset(content_stems(line))) for line in _BREAK.split(content) if line)


def is_multiple_told(value: Value, near: Near) -> bool:
    """Whether *twice* or *three times* is what a sentence of the sources says in another word: *paid at double rate*, *wrapped doubly*."""
    told = _MULTIPLES.get(value.amount or 0.0) if value.unit == TIMES else None
    if told is None or near.told is None:
        return False
    stems = content_stems(near.text)
    lines = (line for content in near.told.contents for line in _BREAK.split(content) if told.search(line))
    return any(stems & content_stems(line) for line in lines)


def is_times(value: Value, source: str, others: Sequence[Value]) -> bool:
    """Whether an amount is that of its source as many times as the claim counts: 1,800 for three of 600 each."""
    counts = [each.amount for each in others if not each.unit and each.amount and 1 < each.amount <= _MOST_COUNT]
    own = [each.amount for each in read(source).values if each.unit == value.unit and each.amount]
    return any(abs(one * count - (value.amount or 0.0)) <= _EXACT * value.factor for one in own for count in counts)


def is_share_of_two(value: Value, near: Near) -> bool:
    """Whether a share in words is what two stated amounts of one kind make: *just over two thirds*, of 214 among 312.

    Both stand in the claim, or in one sentence of the sources that shares words with it; what is *more than* a share may not be less.
    """
    if not value.fraction or not value.amount or near.told is None:
        return False
    told = [near.own, *(values_of([line]) for line in _about(near))]
    return any(_is_about(value, share) for values in told for share in _shares(values))


def _shares(values: Sequence[Value]) -> Iterator[float]:
    """Yield what each amount is of another one of its unit, and of both together: 31 of 31 and 12 votes."""
    counted = [each for each in values if each.amount and each.amount > 0 and not (each.fraction or each.moment)]
    for one, other in permutations(counted[:_MOST_OF_LINE], 2):
        if one.unit == other.unit and one.kind == other.kind:
            part, whole = one.amount or 0.0, other.amount or 0.0
            yield from (part / (part + whole), *([part / whole] if part < whole else []))


def _is_about(value: Value, share: float) -> bool:
    told = value.amount or 0.0
    if value.bound:
        return told < share <= told * _BEYOND if value.bound == ">" else told > share >= told / _BEYOND
    return abs(share - told) <= (_ABOUT if value.approximate else _LIKE) * told


def _makes(line: str, claim: str, value: Value) -> bool:
    stated = [each for each in values_of([line]) if each.unit == value.unit and each.amount and not each.fraction]
    parts = set(_parts(line)) | (set(_parts(claim)) if stated else set())
    return any(
        abs((each.amount or 0.0) * part - (value.amount or 0.0)) <= max(value.step / 2, _EXACT * value.factor)
        for each in stated
        for part in parts
    )


def _parts(text: str) -> Iterator[float]:
    """Yield the parts into which a text divides what it is about."""
    if _HALVES.search(text) is not None and _NO_HALF.search(text) is None:
        yield 0.5
    for each in read(text).values:
        if each.fraction and not each.unit and each.amount and 0 < each.amount < 1:
            yield from (each.amount, 1 - each.amount)
    if _EQUALLY.search(text) is None:
        return
    for match in (*_AMONG.finditer(text), *_INTO.finditer(text)):
        counted = [each.amount for each in read(match[1]).values if each.amount and not each.unit]
        yield from (1 / count for count in counted if 1 < count <= _MOST_PARTS)
    for names in _NAMES.findall(text):
        yield 1 / (2 + names.count(",") - names.count(", and"))
