"""Purposes: to what end something is done, *they dug a well to water the field* (SPEC-005 §5.3).

The end stands first, as a cause does; what is meant to come of a thing need not come of it, so that it is no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from interlock.dpe.comparison.bindings.relations.order import LONGEST, Order, bag, halves, written

_MARKS = frozenset(
    tuple(each.split())
    for each in (
        "in order to", "in order that", "so as to", "so that", "with a view to", "with the aim of", "for the purpose of",
        "with the intention of", "for the sake of",
    )
)  # fmt: skip
_LENGTHS = (4, 3, 2)


def purposes(sentence: Any) -> tuple[Order, ...]:
    """Return the ends, each before what is done to that end, that a parsed sentence, a spaCy span, tells."""
    tokens = [t for t in sentence if not t.is_space]
    if len(tokens) > LONGEST or sentence.text.rstrip().endswith("?"):
        return ()
    return tuple(each for each in _purposes(tokens) if each.first and each.second)


def _purposes(tokens: Sequence[Any]) -> Iterator[Order]:
    for n, token in enumerate(tokens):
        size = next((m for m in _LENGTHS if tuple(t.lower_ for t in tokens[n : n + m]) in _MARKS), 0)
        if size:
            main, end = halves(tokens, n, size)
            yield Order(bag(end), bag(main), written(tokens[n : n + size]), written(end))
        elif _is_end(token) and not (n and tokens[n - 1].lower_ in {"order", "as"}):
            yield _of_infinitive(token)


def _is_end(token: Any) -> bool:
    """Whether *to* opens an infinitive of purpose, which completes no verb: *dug a well to water the field*."""
    verb = token.head
    return bool(token.lower_ == "to" and token.dep_ == "aux" and verb.dep_ == "advcl" and verb.head.pos_ == "VERB")


def _of_infinitive(to: Any) -> Order:
    inside = {t.i for t in to.head.subtree}
    main = [t for t in to.head.head.subtree if t.i not in inside]
    end = [t for t in to.head.subtree if t.i >= to.i]
    return Order(bag(end), bag(main), to.text, written(end))
