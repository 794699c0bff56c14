"""Counts: how many of what a sentence names, *two dogs*, *at least six people* (SPEC-005 §5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import NUMBER

_LONGEST = 60
_NOT_THINGS = frozenset(
    {"time", "part", "percent", "degree", "no", "number", "version", "page", "chapter", "step", "point", "way"}
)
"""What is numbered, or counted without being things of its own."""


@dataclass(frozen=True)
class Count:
    """So many of a thing, by the key of its noun, and the word that says how many."""

    noun: str
    amount: float
    text: str


def counts(sentence: Any) -> tuple[Count, ...]:
    """Return the counts of a parsed sentence, a spaCy span. Quantities with a unit are none."""
    if len(sentence) > _LONGEST:
        return ()
    found = ((token, _amount(token)) for token in sentence if token.dep_ == "nummod" and token.head.pos_ == "NOUN")
    return tuple(
        Count(key_of(token.head), amount, token.text)
        for token, amount in found
        if amount is not None and token.head.i > token.i and token.head.lemma_.lower() not in _NOT_THINGS
    )


def _amount(token: Any) -> float | None:
    """Return the whole number that a word says where it counts things: of *three hours* the value has a unit."""
    values = read(f"{token.text} {token.head.text}").values
    if len(values) != 1 or values[0].kind != NUMBER or values[0].amount is None or not values[0].amount.is_integer():
        return None
    return values[0].amount
