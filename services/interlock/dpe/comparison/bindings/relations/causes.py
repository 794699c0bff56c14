"""Causes: what a sentence says comes of what, whichever word says so (SPEC-005 §5.3).

*Lending fell because two branches were closed*, *two branches were closed, so lending fell* and *the closure of two branches led to
less lending* have one cause and one effect. Each side is a bag of senses, as in order.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from interlock.dpe.comparison.bindings.relations.order import LONGEST, Order, bag, halves, start_of
from interlock.dpe.text.wordlists import word_set

_BECAUSE = word_set("because")
_DUE = frozenset({("due", "to"), ("owing", "to"), ("thanks", "to"), ("result", "of"), ("account", "of")})
_SO = word_set("therefore thus hence consequently accordingly")
_LEADS = frozenset({("lead", "to"), ("result", "in"), ("give", "rise"), ("bring", "about")})
_CAUSES = word_set("cause trigger prompt provoke")
_COMES_OF = frozenset({("result", "from"), ("stem", "from"), ("come", "from")})
_BREAKS = frozenset({".", ";", "!", "?", ":"})
_FILLERS = frozenset({"and", "which", "that", ","})


def causes(sentence: Any) -> tuple[Order, ...]:
    """Return the causes, each before its effect, that a parsed sentence, a spaCy span, states."""
    tokens = [t for t in sentence if not t.is_space]
    if len(tokens) > LONGEST or sentence.text.rstrip().endswith("?"):
        return ()
    return tuple(each for each in _causes(tokens) if each.first and each.second)


def _causes(tokens: Sequence[Any]) -> Iterator[Order]:
    for n, token in enumerate(tokens):
        low, lemma = token.lower_, token.lemma_.lower()
        after = tokens[n + 1].lower_ if n + 1 < len(tokens) else ""
        if low in _BECAUSE or (low, after) in _DUE:
            effect, cause = halves(tokens, n)
            yield Order(bag(cause), bag(effect), token.text)
        elif low in _SO or (low == "so" and _joins(tokens, n)):
            yield _either_side(tokens, n)
        elif (lemma, after) in _LEADS or (lemma in _CAUSES and token.pos_ == "VERB" and after != "by"):
            if not _is_passive(token):
                yield _either_side(tokens, n)
        elif (lemma, after) in _COMES_OF or (lemma in _CAUSES and after == "by"):
            told = _either_side(tokens, n)
            yield Order(told.second, told.first, told.word)


def _joins(tokens: Sequence[Any], n: int) -> bool:
    """Whether *so* opens the clause that says what came of the one before: *…, so lending fell*."""
    return n > 0 and tokens[n - 1].lower_ in _FILLERS and n + 1 < len(tokens) and tokens[n + 1].lower_ != "that"


def _is_passive(verb: Any) -> bool:
    return any(c.dep_ == "auxpass" for c in verb.children)


def _either_side(tokens: Sequence[Any], n: int) -> Order:
    end = next((m for m in range(n + 1, len(tokens)) if tokens[m].text in _BREAKS), len(tokens))
    return Order(bag(tokens[start_of(tokens, n) : n]), bag(tokens[n + 1 : end]), tokens[n].text)
