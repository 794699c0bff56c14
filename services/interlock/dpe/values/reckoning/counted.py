"""Counts that follow from counts: what is left of a dozen eggs, players of two teams, trainers of all workshops (SPEC-005 §5.2).

The sums of *derived.py* need words that name the operation. Of whole things none is needed: *12 eggs, two eggs are broken* leaves ten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice

from interlock.dpe.text.lexing import WORD, at
from interlock.dpe.values.extraction import read
from interlock.dpe.values.frames import STOP, stem
from interlock.dpe.values.quantities import NUMBER

_NEAR = 3
"""Words behind a number among which its noun stands."""
_MOST_CHARACTERS, _MOST_COUNTS = 64_000, 60
_LEAST_FACTOR = 2
_ENDS = frozenset({".", "!", "?", ";", "\n"})


@dataclass(frozen=True)
class Counted:
    """A whole number, the stems of the words behind it, the sentence that it stands in, and how it is written."""

    amount: int
    nouns: frozenset[str]
    sentence: int
    text: str


@lru_cache(maxsize=512)
def counts_in(text: str) -> tuple[Counted, ...]:
    """Return the whole numbers of a text that count something or stand alone. Quantities with a unit are none."""
    reading = read(text)
    found: list[Counted] = []
    for value in reading.values:
        if value.kind != NUMBER or value.unit or value.amount is None or value.amount != int(value.amount):
            continue
        sentence = sum(token.text in _ENDS for token in reading.tokens[: value.first])
        nouns: set[str] = set()
        for place in range(value.last, value.last + _NEAR):
            token = at(reading.tokens, place)
            if token.kind != WORD or token.low in STOP:
                break
            nouns.add(stem(token.low))
        found.append(Counted(int(value.amount), frozenset(nouns), sentence, value.text))
    return tuple(found)


def settled_counts(claim: str, sources: Sequence[str]) -> frozenset[str]:
    """Return the counts of a claim, as it writes them, that follow from counts of the same things in the sources."""
    own = [one for one in counts_in(claim) if one.nouns]
    if not own or sum(map(len, sources)) > _MOST_CHARACTERS:
        return frozenset()
    told = list(islice(_numbered(sources), _MOST_COUNTS))
    return frozenset(one.text for one in own if one.amount in set(_derived(one, told)))


def _numbered(texts: Sequence[str]) -> Iterator[Counted]:
    """Yield the counts of texts with their sentences numbered through."""
    before = 0
    for text in texts:
        for one in counts_in(text):
            yield replace(one, sentence=before + one.sentence)
        before += 1 + sum(text.count(mark) for mark in _ENDS)


def _derived(own: Counted, told: Sequence[Counted]) -> Iterator[int]:
    """Yield sums and differences of the same things, what a part of them leaves, and so many of each."""
    alike = [one for one in told if one.nouns & own.nouns]
    if len(alike) > 1:
        yield sum(one.amount for one in alike)
    for one, other in combinations(alike, 2):
        yield one.amount + other.amount
        yield abs(one.amount - other.amount)
    for one in alike:
        for other in told:
            if other is one:
                continue
            if other.sentence == one.sentence and not other.nouns:
                yield one.amount - other.amount
            if min(one.amount, other.amount) >= _LEAST_FACTOR and abs(one.sentence - other.sentence) <= 1:
                yield one.amount * other.amount
