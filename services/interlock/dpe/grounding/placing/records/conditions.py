"""Conditions: words for one of two sides of a thing, and on which side a clause or a field has it (SPEC-005 §5.3).

``approved: false`` is told as *turned down*, ``open: true`` as *up and running*. Pure functions of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from interlock.dpe.grounding.placing.records.words import RecordWord
from interlock.dpe.text.wordlists import lines, word_set

_DENYING = word_set(
    "not no never none nobody nothing without lack lacks lacking lacked neither nor cannot minus zero nowhere fail fails false"
)
_LONGEST = 4
_SWITCHING = word_set("is are was were be been turned switched set stays stay remains remain kept left")
_PREPOSITIONS = word_set("on off")
_MEANWHILE = word_set("still now currently already also again always presently permanently")
_NEEDING = word_set("need needs require requires")
_OF_PLAIN = ("enabled", "allowed", "included", "available", "open", "online", "visible", "accessible", "approved")
"""Conditions, by their first word, in which a key that is only *yes* or *no* may be told."""


@dataclass(frozen=True)
class Side:
    """One side of a condition, and the places of the words that say so."""

    condition: int
    positive: bool
    places: frozenset[int] = frozenset()


@cache
def _sides() -> dict[tuple[str, ...], tuple[int, bool]]:
    found: dict[tuple[str, ...], tuple[int, bool]] = {}
    for number, line in enumerate(lines("conditions.txt")):
        for side, words in enumerate(line.split("|")):
            for phrase in words.split("="):
                found.setdefault(tuple(phrase.split()), (number, not side))
    return found


OFF = _sides()[("off",)][0]
"""The condition of what is switched."""


def sides(words: Sequence[str]) -> list[Side]:
    """Return the conditions that words name, in order; of phrases that overlap the longest."""
    found: list[Side] = []
    place = 0
    while place < len(words):
        size = next(
            (n for n in range(min(_LONGEST, len(words) - place), 0, -1) if tuple(words[place : place + n]) in _sides()),
            0,
        )
        if size and not _is_preposition(words, place, size):
            condition, positive = _sides()[tuple(words[place : place + size])]
            found.append(Side(condition, positive, frozenset(range(place, place + size))))
        place += max(size, 1)
    return found


def _is_preposition(words: Sequence[str], place: int, size: int) -> bool:
    """Whether *on* or *off* switches nothing: *on the route*, *off the coast*."""
    if size > 1 or words[place] not in _PREPOSITIONS:
        return False
    before = [word for word in words[:place] if word not in _MEANWHILE][-1:]
    after = words[place + 1 : place + 2]
    return len(words) > 1 and (not _SWITCHING.intersection(before) or bool(after and after[0] in {"the", "a", "an"}))


def tells_plain(side: Side, words: Sequence[str]) -> bool | None:
    """Return what a side says of a key that is only *yes* or *no*; ``None`` for another condition: *wifi is optional*."""
    if all(words[place] in _NEEDING for place in side.places):
        return True  # you need a label
    plain = {_sides()[(word,)][0] for word in _OF_PLAIN}
    return side.positive if side.condition in plain else None


def denials(found: Sequence[RecordWord]) -> int:
    """Return how often a clause denies."""
    words = [token.low for token in found]
    joined = "neither" in words  # neither A nor B denies once
    return sum(word in _DENYING or word.endswith("n't") for word in words if not (joined and word == "nor"))
