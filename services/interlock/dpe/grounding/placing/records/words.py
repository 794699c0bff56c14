"""Words that lead from a sentence to a field or a row of a record (SPEC-005 §5.3).

A key is *payment.accepted* or *Shared users*, and people say *takes cash* and *users who share it*: forms of a word and everyday
synonyms name the same field. Pure functions of texts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from interlock.dpe.grounding.placing.words import alike
from interlock.dpe.text.folding import fold
from interlock.dpe.text.lexing import SYMBOL, lex
from interlock.dpe.text.memory.remembered import LONG, remembered
from interlock.dpe.text.wordlists import lines
from interlock.dpe.values.frames import STOP, ending_cut

_SHORT = 1
_BEGINNING = 3


@dataclass(frozen=True)
class RecordWord:
    """A word, a figure or a mark of a text: as written, in lower case, and its stem."""

    text: str
    low: str
    stem: str
    is_word: bool

    @property
    def counts(self) -> bool:
        """Whether it says something by itself."""
        return self.is_word and self.low not in STOP


def stem_of(word: str) -> str:
    """Return the stem of a word. *East* and *west* are not one here, as they are where statements are aligned."""
    return ending_cut(word)


@remembered(bytes_a_character=60, from_length=LONG)
def tokens(text: str) -> tuple[RecordWord, ...]:
    """Return the words, figures and marks of a text. The ending of *Nora's* is left out, and *26X* is one word."""
    found: list[RecordWord] = []
    for each in lex(fold(text)):
        low = each.low.removesuffix("'s")
        if each.kind != SYMBOL and each.glued and found and found[-1].is_word and _is_code(found[-1].low, low):
            low = found.pop().low + low
            found.append(RecordWord(low.upper(), low, low, is_word=True))
        else:
            if low == "mail" and len(found) > _SHORT and found[-1].low == "-" and found[-2].low == "e":
                del found[-2:]
                low = "email"
            word = each.kind != SYMBOL
            found.append(RecordWord(each.text, low, stem_of(low) if word else low, is_word=word))
    return tuple(found)


def _is_code(before: str, after: str) -> bool:
    """Whether two pieces without a space are one code: *N2*, *26X*."""
    return before[-1:].isdigit() != after[:1].isdigit()


@cache
def _synonyms() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in lines("key_words.txt"):
        stems = frozenset(map(stem_of, line.split()))
        for each in stems:
            found[each] = found.get(each, frozenset()) | stems
    return found


@cache
def _beginnings() -> dict[str, frozenset[str]]:
    """Return with which letters the synonyms of words with some first letters begin."""
    found: dict[str, frozenset[str]] = {}
    for stem, others in _synonyms().items():
        own = frozenset(each[:_BEGINNING] for each in others)
        found[stem[:_BEGINNING]] = found.get(stem[:_BEGINNING], frozenset()) | own
    return found


def beginnings(found: Sequence[RecordWord]) -> frozenset[str]:
    """Return the first letters of all words that tokens could stand for, so that most others need no closer look."""
    own = {token.stem[:_BEGINNING] for token in found if token.is_word}
    words = [token.low for token in found if token.is_word]
    joined = {(one + other)[:_BEGINNING] for one, other in pairwise(words)}
    return frozenset(own | joined).union(*(_beginnings().get(each, frozenset()) for each in own))


def begins(key: Collection[str], first: Collection[str]) -> bool:
    """Whether each word of a key begins with some of these letters."""
    return all(stem[:_BEGINNING] in first for stem in key)


def says(stem: str, key: str) -> bool:
    """Whether a word of a sentence stands for a word of a key."""
    return alike(stem, key) or any(alike(stem, each) for each in _synonyms().get(key, ()))


def named(stems: Collection[str], key: Collection[str]) -> bool:
    """Whether words of a sentence name each word of a key."""
    return bool(key) and all(any(says(stem, each) for stem in stems) for each in key)


def content(text: str) -> tuple[str, ...]:
    """Return the stems of the words of a text that say something; of a text of small words alone, all of them."""
    found = [token for token in tokens(text) if token.is_word]
    own = [token for token in found if token.counts]
    return tuple(token.stem for token in own or found)


def stems_in(found: Sequence[RecordWord]) -> frozenset[str]:
    """Return the stems of tokens, and those of two that a key writes as one: *off peak* for *offpeak*."""
    own = [token for token in found if token.is_word]
    pairs = [one.low + other.low for one, other in pairwise(own)]
    parted = [
        stem_of(one.low + other.low)
        for one, mark, other in zip(found, found[1:], found[2:], strict=False)
        if mark.low == "-" and one.is_word and other.is_word
    ]
    return frozenset({*(token.stem for token in own if len(token.low) > _SHORT), *map(stem_of, pairs), *parted})
