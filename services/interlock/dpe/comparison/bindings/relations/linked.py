"""What a sentence tells of causes, of an order and of the sentence before it (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.comparison.bindings.relations.boundaries import Boundary, boundaries
from interlock.dpe.comparison.bindings.relations.order import LONGEST, Order, bag
from interlock.dpe.comparison.bindings.relations.purposes import purposes
from interlock.dpe.comparison.bindings.relations.voiced import ToldVoice, voiced
from interlock.dpe.text.wordlists import word_set

_CUTS = word_set("; : but while whereas although though")


@dataclass(frozen=True)
class ToldWhole:
    """All that a sentence tells, what its parts tell, up to what or from what on something is so, who says what, all its words, and what is done to what end."""

    whole: frozenset[str] = frozenset()
    parts: tuple[frozenset[str], ...] = ()
    boundaries: tuple[Boundary, ...] = ()
    voices: tuple[ToldVoice, ...] = ()
    named: frozenset[str] = frozenset()
    purposes: tuple[Order, ...] = ()

    def behind(self, before: ToldWhole) -> ToldWhole:
        """Return it with the voice of the sentence before where a pronoun speaks: *He said …*."""
        known = [voice for voice in before.voices if voice.words]
        if len(known) != 1 or all(voice.words for voice in self.voices):
            return self
        spoken = (
            voice if voice.words else replace(voice, words=known[0].words, names=known[0].names, text=known[0].text)
            for voice in self.voices
        )
        return replace(self, voices=tuple(spoken))


UNTOLD = ToldWhole()


def told(sentence: Any) -> ToldWhole:
    """Return what a parsed sentence, a spaCy span, tells. A very long one is no sentence."""
    tokens = [t for t in sentence if not t.is_space]
    if len(tokens) > LONGEST:
        return UNTOLD
    named = frozenset(key_of(t) for t in tokens if t.is_alpha)
    parts = tuple(bag(part) for part in _parts(tokens))
    return ToldWhole(bag(tokens), parts, boundaries(sentence), voiced(sentence), named, purposes(sentence))


def _parts(tokens: Sequence[Any]) -> Iterator[Sequence[Any]]:
    start = 0
    for n, token in enumerate(tokens):
        if token.lower_ in _CUTS:
            yield tokens[start:n]
            start = n + 1
    yield tokens[start:]


def filled(orders: tuple[Order, ...], before: ToldWhole) -> tuple[Order, ...]:
    """Return orders with what the sentence before tells where they leave one side to it: *That is why lending fell*."""
    return tuple(replace(each, first=each.first or before.whole, second=each.second or before.whole) for each in orders)
