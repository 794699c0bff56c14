"""Groups: a label and what a source puts under it, and the words by which each is told from its siblings (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import DIRECTIONS, STOP, stem
from interlock.dpe.values.numerals import UNITS

_WORD = pattern(r"\d+(?:[.,:]\d+)*|[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*")
_DENYING = pattern(r"\b(?:not|no|never|nor|neither|without|cannot|except|excluding)\b|n['’]t\b", ignore_case=True)
_TITLES = word_set("mr mrs ms dr prof sir")


@dataclass(frozen=True)
class Group:
    """A label and its items, each as a set of words. ``denied``: the label says *not*. ``least``: how many of an item's words name it."""

    label: frozenset[str]
    items: tuple[frozenset[str], ...]
    denied: bool = False
    least: int = 0


@dataclass(frozen=True)
class Grouping:
    """Sibling groups of one source, with the text that states them."""

    groups: tuple[Group, ...]
    text: str
    fact_id: str = ""

    def label_of(self, group: Group) -> frozenset[str]:
        """Return the words that only one group has in its label."""
        others: Iterable[str] = (word for each in self.groups if each is not group for word in each.label)
        return group.label - frozenset(others)

    def items_of(self, group: Group) -> tuple[frozenset[str], ...]:
        """Return the words that only this group has in its items, item by item."""
        others = {word for each in self.groups if each is not group for item in each.items for word in item}
        labels = {word for each in self.groups for word in each.label}
        return tuple(item - others - labels for item in group.items)


def words_of(text: str) -> frozenset[str]:
    """Return the content words of a text by their stems, number words as digits, and single capitals as they are: *pump A*."""
    return frozenset(ordered_words(text))


@remembered(bytes_a_character=10, from_length=60)
def ordered_words(text: str) -> tuple[str, ...]:
    """Return the same words in order."""
    found: list[str] = []
    for place, match in enumerate(_WORD.finditer(text)):
        word, low = match.group(), match.group().lower()
        if place and len(word) == 1 and word.isupper() and word != "I":
            found.append(word)
        elif word == "May" and place:
            found.append(low)  # the month
        elif low in UNITS:
            found.append(str(UNITS[low]))
        elif low[0].isdigit():
            found.append(low.removesuffix(":00"))
        elif low not in STOP and low not in _TITLES:
            found.append(low if low in DIRECTIONS else stem(low))
    return tuple(found)


def denies(text: str) -> bool:
    """Whether a text denies anything."""
    return _DENYING.search(text) is not None
