"""Mentions: which rows of a grid a stretch of text names, and where (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interlock.dpe.grounding.placing.records.conditions import sides
from interlock.dpe.grounding.placing.records.grids import Grid, GridLabel
from interlock.dpe.grounding.placing.records.words import RecordWord, beginnings, begins, says
from interlock.dpe.grounding.placing.words import alike
from interlock.dpe.text.wordlists import word_set

_SHORTEST = 3
_ROOM = 3
_MOST_OF_IT = 0.6
_FEW = 2
_EVERYDAY = word_set("free open basic on off standard full light general other none all")


@dataclass(frozen=True)
class Mention:
    """A row that a text names, by its number, and the places of the words that do."""

    row: int
    places: frozenset[int]


def mentions(grid: Grid, found: Sequence[RecordWord]) -> list[Mention]:
    """Return the rows that a text names, in the order of the text. Of two that share words, the one with more of them."""
    every: list[Mention] = []
    first = beginnings(found)
    for number, row in enumerate(grid.rows):
        likely = [label for label in row.labels if _is_likely(label, first)]
        places = max((_places(label, found, grid) for label in likely), key=len, default=frozenset())
        if places:
            every.append(Mention(number, places))
    kept = [
        one
        for one in every
        if not any(other is not one and one.places <= other.places and _more(other, one) for other in every)
    ]
    return sorted(kept, key=lambda each: min(each.places))


def _is_likely(label: GridLabel, first: frozenset[str]) -> bool:
    stems = set(label.stems)
    hit = sum(begins((stem,), first) for stem in stems)
    return hit == len(stems) or (len(stems) > _FEW and hit >= max(_FEW, _MOST_OF_IT * len(stems)))


def _more(one: Mention, other: Mention) -> bool:
    return len(one.places) > len(other.places)


def _places(label: GridLabel, found: Sequence[RecordWord], grid: Grid) -> frozenset[int]:
    if len(label.stems) == 1:
        return _of_one(label, found, grid)
    held: dict[str, list[int]] = {stem: [] for stem in label.stems}
    for place, token in enumerate(found):
        for stem in held if token.is_word else ():
            if token.stem == stem or alike(token.stem, stem):
                held[stem].append(place)
    hit = [stem for stem in held if held[stem]]
    whole = len(hit) == len(held)
    most = len(held) > _FEW and len(hit) >= max(_FEW, _MOST_OF_IT * len(held)) and bool(label.own.intersection(hit))
    if not (whole or most):
        return frozenset()
    return _nearest([held[stem] for stem in hit], len(label.stems) + _ROOM)


def _nearest(places: Sequence[Sequence[int]], room: int) -> frozenset[int]:
    """Return a place of each within so much room, or nothing."""
    for start in places[0]:
        chosen = [min(each, key=lambda place: abs(place - start)) for each in places]
        if max(chosen) - min(chosen) < room:
            return frozenset(chosen)
    return frozenset()


def _of_one(label: GridLabel, found: Sequence[RecordWord], grid: Grid) -> frozenset[int]:
    stem = label.stems[0]
    code = any(map(str.isdigit, stem)) and any(map(str.isalpha, stem))
    short = not code and (len(stem) < _SHORTEST or stem.isdigit())
    for place, token in enumerate(found):
        if not token.is_word or not (token.stem == stem or (not short and alike(token.stem, stem))):
            continue
        before = found[place - 1] if place else None
        if short and (before is None or not any(says(before.stem, each) for each in grid.kinds)):
            continue
        if len(label.written) == 1 and token.text != label.written:
            continue
        if _is_everyday(token) and (place == 0 or not token.text[:1].isupper()):
            continue
        return frozenset({place})
    return frozenset()


def _is_everyday(token: RecordWord) -> bool:
    return token.low in _EVERYDAY or bool(sides([token.low]))
