"""Boundaries: up to which event something is so, and from which on: *until the bridge opened there were queues* (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings.relations.order import LONGEST, MEASURES, bag, halves, start_of
from interlock.dpe.text.wordlists import word_set

_UNTIL = word_set("until till")
_FROM = word_set("since once after")
_NOT = word_set("not n't never no nobody none nothing cannot neither")
_WEAK = frozenset({",", "(", "and", "but", "where", "which", "who", "when"})


@dataclass(frozen=True)
class Boundary:
    """What is so, the event that bounds it, whether it is so up to that event, and the word that says so."""

    state: frozenset[str]
    event: frozenset[str]
    until: bool
    word: str


def boundaries(sentence: Any) -> tuple[Boundary, ...]:
    """Return the boundaries that a parsed sentence, a spaCy span, states. What is *not* so until an event says nothing here."""
    tokens = [t for t in sentence if not t.is_space]
    if len(tokens) > LONGEST or sentence.text.rstrip().endswith("?"):
        return ()
    return tuple(each for each in _boundaries(tokens) if each.state and each.event)


def _boundaries(tokens: Sequence[Any]) -> Iterator[Boundary]:
    for n, token in enumerate(tokens):
        low = token.lower_
        following = tokens[n + 1].lower_ if n + 1 < len(tokens) else ""
        if low not in _UNTIL | _FROM or (low == "since" and token.dep_ == "advmod"):
            continue
        if following in {"that", "this"} and low not in _UNTIL:
            continue
        if n and low == "after" and tokens[n - 1].lemma_.lower() in MEASURES:
            continue  # three days after the flood: a time, which bounds nothing
        if following == "then":
            state = tokens[_clause_start(tokens, n) : n]
            event = tokens[start_of(tokens, n) : _clause_start(tokens, n)]
        else:
            first = n - 1 if n and tokens[n - 1].lower_ in {"ever", "up"} else n
            state, event = halves(tokens, first, n - first + 1)
        if not any(t.lower_ in _NOT for t in (*state, *event)):
            yield Boundary(bag(state), bag(event), low in _UNTIL, token.text)


def _clause_start(tokens: Sequence[Any], n: int) -> int:
    """Return where the last clause before a token begins: *to ease the traffic, | where jams had been usual until then*."""
    for m in range(n - 1, -1, -1):
        if tokens[m].lower_ in _WEAK or tokens[m].text == ";":
            return m + 1
    return 0
