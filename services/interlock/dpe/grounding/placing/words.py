"""Words of keys: whether a claim names a key, in whatever form (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile

from interlock.dpe.values.frames import stem

_SUFFIXES = frozenset({"", "i", "y", "er", "or", "ing", "ed", "s", "es", "ation", "ion"})
_SHORTEST_ROOT = 4


def stem_of(word: str) -> str:
    """Return the stem of a word; one of a direction is itself."""
    return stem(word).removeprefix("±")


def alike(one: str, other: str) -> bool:
    """Whether two stems are forms of one word: *carri* and *carry*, *smok* and *smoker*."""
    if one == other:
        return True
    size = shared_start(one, other)
    return size >= _SHORTEST_ROOT and one[size:] in _SUFFIXES and other[size:] in _SUFFIXES


def shared_start(one: str, other: str) -> int:
    """Return how many letters two words begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def among(stems: Collection[str], word: str) -> bool:
    """Whether a word is a form of one of several."""
    return any(alike(each, word) for each in stems)


def names_all(words: Collection[str], key: Collection[str]) -> bool:
    """Whether *words* name each of the stems of a key."""
    return all(among(words, each) for each in key)
