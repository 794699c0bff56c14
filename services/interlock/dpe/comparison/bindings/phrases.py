"""Prepositional phrases of a verb, an adjective or a noun: what fills the slot that the preposition names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, clause, named
from interlock.dpe.text.wordlists import word_set

CAUSES = frozenset({"because of", "due to"})
_TAGS = frozenset({"ADP", "SCONJ", "ADJ", "ADV", "VERB"})  # owing to, near, next to, …
_ORDERED = word_set("before after")
_PARTS = frozenset({"in favour of", "in favor of", "on behalf of", "instead of", "in front of", *CAUSES})
_HEADS_OF_PARTS = word_set("favour favor behalf front")


def phrases_of(head: Any) -> dict[str, tuple[Filler, ...]]:
    """Return the prepositional phrases of a token by preposition. Times have a slot of their own, ``when``."""
    found: dict[str, tuple[Filler, ...]] = {}
    for name, filled in _each(head):
        times = tuple(f for f in filled if f.kind is FillerKind.TIME and name not in _ORDERED)
        rest = tuple(f for f in filled if f not in times)
        found |= {"when": times} if times else {}
        found |= {name: (*found.get(name, ()), *rest)} if rest else {}
    return found


def _each(head: Any) -> Iterator[tuple[str, tuple[Filler, ...]]]:
    for child in head.children:
        if child.dep_ == "advmod" and child.lower_ == "ahead":
            for inner in (c for c in child.children if c.dep_ == "prep"):
                yield f"ahead {inner.lower_}", _filled(inner)
        elif child.dep_ == "pcomp" and child.lower_ == "to" and head.lower_ == "due":
            yield "to", _filled(child)
        elif child.dep_ in {"prep", "agent", "dative", "oprd"} and child.pos_ in _TAGS and child.lower_ != "according":
            name, at = _named(child)
            yield name, _filled(at) + (_filled(child) if at is not child else ())


def _named(preposition: Any) -> tuple[str, Any]:
    """Return the name of a preposition of one or more words, and the token that governs its filler: *in favour of*."""
    name = preposition.lower_
    for inner in preposition.children:
        if name == "than" and inner.dep_ == "prep":
            return name, inner
        for nested in (inner, *inner.children):
            words = name if nested is inner else f"{name} {inner.lower_}"
            if nested.dep_ in {"prep", "pcomp"} and f"{words} {nested.lower_}" in _PARTS:
                return f"{words} {nested.lower_}", nested
    return name, preposition


def _filled(preposition: Any) -> tuple[Filler, ...]:
    nouns = (c for c in preposition.children if c.dep_ == "pobj" and c.lower_ not in _HEADS_OF_PARTS)
    clauses = (c for c in preposition.children if c.dep_ == "pcomp" and c.pos_ == "VERB")
    return (*(filler for noun in nouns for filler in named(noun)), *map(clause, clauses))
