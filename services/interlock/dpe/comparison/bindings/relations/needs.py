"""Needs: what a sentence says cannot be done, or can be done, without something (SPEC-005 §5.3).

*Copies cannot be made without consent*, *copying requires consent* and *copies only with consent* need one thing; *no consent is
needed* and *even without consent* deny it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.clauses import sense
from interlock.dpe.comparison.bindings.relations.norms import MANDATORY, OPTIONAL, said_needed
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import STOP

_NEEDING = word_set("require need necessitate")
_POSSIBLE = word_set("may can could possible allow permit free able")
_NOT = word_set("not n't never no nobody none cannot neither nor")
_EXCEPTING = word_set("unless except")
_ADVISED = word_set("recommended advised encouraged preferred suggested")
_LABELLED = {"required": True, **dict.fromkeys(MANDATORY, True), **dict.fromkeys(OPTIONAL, False)}
_TOLD = frozenset({"NOUN", "PROPN", "VERB", "ADJ"})
_NAMING = frozenset({"NOUN", "PROPN"})
_PLAIN = word_set("possible order make take give do")
_LONGEST = 60


@dataclass(frozen=True)
class StatedNeed:
    """Something that is needed, or not, with the senses of its own words and of those around it."""

    thing: str
    own: frozenset[str]
    around: frozenset[str]
    needed: bool
    text: str
    words: tuple[str, ...] = ()
    """The content words of the thing as they are written."""
    excepted: bool = False
    """Whether it is needed but in one case: *unless the film has no dialogue*."""
    said: bool = False
    """Whether that is all that the clause says: *jabs are voluntary*, *Insurance: optional*."""
    advised: bool = False
    """Whether it is recommended, and so neither needed nor useless."""


def needs(sentence: Any) -> tuple[StatedNeed, ...]:
    """Return the needs that a parsed sentence, a spaCy span, states. A question states none."""
    if len(sentence) > _LONGEST or sentence.text.rstrip().endswith("?"):
        return ()
    return tuple(each for token in sentence for each in _of(token))


def _of(token: Any) -> Iterator[StatedNeed]:
    low = token.lower_
    if token.lemma_.lower() in _NEEDING and token.pos_ == "VERB":
        for thing in (c for c in token.children if c.dep_ in {"dobj", "nsubjpass"} and c.pos_ in _NAMING):
            denied = _is_denied(token) or any(c.lower_ == "no" for c in thing.children)
            yield _need(thing, needed=not denied)
    yield from _said_of(token)
    if low in {"without", "with"} and token.dep_ == "prep":
        needed = _needed_by(token)
        for thing in (c for c in token.children if c.dep_ == "pobj" and c.pos_ in _NAMING):
            if needed is not None:
                yield _need(thing, needed=needed)


def _said_of(token: Any) -> Iterator[StatedNeed]:
    """Yield what is said to be needed, optional or recommended, or labelled so."""
    low = token.lower_
    if (said := said_needed(token)) is not None:
        for thing in (c for c in token.children if c.dep_ == "nsubj" and c.pos_ in _NAMING):
            yield replace(_need(thing, needed=said), said=True)
    if low in _ADVISED and token.pos_ == "VERB" and not _is_denied(token):
        for thing in (c for c in token.children if c.dep_ == "nsubjpass" and c.pos_ in _NAMING):
            yield replace(_need(thing, needed=False), said=True, advised=True)
    if low == ":" and token.i + 1 < token.sent.end and token.nbor().lower_ in _LABELLED:
        yield from _labelled(token, needed=_LABELLED[token.nbor().lower_])


def _labelled(colon: Any, *, needed: bool) -> Iterator[StatedNeed]:
    """Yield what a line of a form says of its label: *Life insurance: compulsory*."""
    start = colon.i
    while start > colon.sent.start and not colon.doc[start - 1].is_space and not colon.doc[start - 1].is_punct:
        start -= 1
    label = [t for t in colon.doc[start : colon.i] if t.is_alpha]
    if label:
        own = frozenset(map(sense, label))
        yield StatedNeed(
            sense(label[-1]), own, frozenset(), needed, " ".join(t.text for t in label), tuple(t.text for t in label), said=True
        )  # fmt: skip


def _needed_by(preposition: Any) -> bool | None:
    """Return whether what a preposition governs is needed, or ``None`` where the sentence does not tell."""
    before = preposition.nbor(-1).lower_ if preposition.i > preposition.sent.start else ""
    if preposition.lower_ == "with":
        return True if before == "only" else None
    if before == "even":
        return False
    above = [preposition, *preposition.ancestors]
    if any(_is_denied(each) for each in above):
        return True
    told = {c.lower_ for each in above for c in (each, *each.children)}
    return False if told & _POSSIBLE else None


def _is_denied(token: Any) -> bool:
    return any(
        c.lower_ in _NOT or any(g.lower_ in {"no", "neither"} for g in c.children if c.dep_[:5] == "nsubj")
        for c in token.children
    )


def _need(thing: Any, *, needed: bool) -> StatedNeed:
    own = frozenset(sense(t) for t in thing.subtree if _tells(t))
    around = frozenset(sense(t) for t in thing.sent if _tells(t)) - own
    words = tuple(t.text for t in thing.subtree if t.pos_ in _TOLD and t.lower_ not in STOP)
    excepted = any(t.lower_ in _EXCEPTING for t in thing.sent)
    return StatedNeed(sense(thing), own, around, needed, " ".join(t.text for t in thing.subtree), words, excepted)


def _tells(token: Any) -> bool:
    lemma = token.lemma_.lower()
    return (
        token.pos_ in _TOLD
        and token.lower_ not in STOP
        and lemma not in predicates.LIGHT | _NEEDING | _PLAIN | MANDATORY | OPTIONAL
    )
