"""Causes that a noun or a verb of judging names: *the reason for the delay was a strike*, *he put the delay down to a strike* (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, SUBJECTS
from interlock.dpe.comparison.bindings.relations.order import Order, bag, written
from interlock.dpe.text.wordlists import word_set

_CAUSE = word_set("reason cause explanation trigger")
_EFFECT = word_set("consequence result effect outcome upshot")
_NAMING = _CAUSE | _EFFECT
_TO_CAUSE = frozenset(
    {("attribute", "to"), ("ascribe", "to"), ("owe", "to"), ("put", "to"), ("blame", "on"), ("trace", "to"), ("pin", "on")}
)  # fmt: skip
"""Verbs whose object is an effect, and the preposition of its cause."""
_TO_EFFECT = frozenset({("blame", "for"), ("credit", "with"), ("thank", "for"), ("credit", "for")})
"""Verbs whose object is a cause, and the preposition of its effect."""
_DOWN = "down"
_DENYING = word_set("not n't never no only main")


def named_causes(tokens: Sequence[Any]) -> Iterator[Order]:
    """Yield the causes, each before its effect, that nouns and verbs of judging in a sentence name."""
    for token in tokens:
        lemma = token.lemma_.lower()
        if lemma in _NAMING and token.pos_ == "NOUN":
            yield from _of_noun(token, is_cause=lemma in _CAUSE)
        elif token.pos_ == "VERB" and token.lower_ != "owing":
            yield from _of_verb(token, lemma)


def _of_noun(noun: Any, *, is_cause: bool) -> Iterator[Order]:
    """Yield what a noun and the *be* beside it name: *the reason why it closed was a fire*, *a fire was the reason*."""
    verb = noun.head
    if (
        verb.lemma_.lower() != "be"
        or verb.lower_ == "being"
        or noun.dep_ not in {"nsubj", "attr"}
        or _is_denied(noun, verb)
    ):
        return
    own = [t for t in noun.subtree if t.i > noun.i]
    if noun.dep_ == "nsubj":
        inside = {t.i for t in noun.subtree}
        other = [t for t in verb.subtree if t.i > verb.i and t.i not in inside]
    else:
        other = [t for c in verb.children if c.dep_ in SUBJECTS for t in c.subtree]
    first, second = (other, own) if is_cause else (own, other)
    if other:
        yield Order(bag(first), bag(second), noun.text, written(first))


def _is_denied(noun: Any, verb: Any) -> bool:
    return any(c.lower_ in _DENYING for c in (*noun.children, *verb.children))


def _of_verb(verb: Any, lemma: str) -> Iterator[Order]:
    """Yield what a verb of judging names: *she blamed the frost for the loss*, *the loss was attributed to the frost*."""
    for preposition in _prepositions(verb):
        pair = (lemma, preposition.lower_)
        down = lemma != "put" or any(c.lower_ == _DOWN for c in (*verb.children, *preposition.head.children))
        if pair not in _TO_CAUSE | _TO_EFFECT and pair != ("credit", "to"):
            continue
        thing = list(_object(verb, preposition))
        named = [t for c in preposition.children for t in c.subtree]
        if not down or not named or any(c.dep_ == "neg" for c in verb.children):
            continue
        cause, effect = (thing, named) if pair in _TO_EFFECT else (named, thing)
        yield Order(bag(cause), bag(effect), verb.text, written(cause))


def _object(verb: Any, preposition: Any) -> Iterator[Any]:
    """Yield what is judged: the subject of a passive, or all that stands between the verb and the preposition."""
    subject = next((c for c in verb.children if c.dep_ in PASSIVE_SUBJECTS), None)
    if subject is not None:
        yield from subject.subtree
    elif preposition.i > verb.i:
        yield from (t for t in verb.doc[verb.i + 1 : preposition.i] if t.lower_ != _DOWN)


def _prepositions(verb: Any) -> Iterator[Any]:
    for child in verb.children:
        if child.dep_ in {"prep", "dative"}:
            yield child
        elif child.dep_ in {"dobj", "advmod", "prt"}:
            yield from (c for c in child.children if c.dep_ == "prep")
        if child.lower_ == _DOWN:
            yield from (c for c in child.children if c.dep_ == "prep")
