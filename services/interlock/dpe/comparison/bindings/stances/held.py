"""Stances of a sentence: which side of which question it takes, how often it denies it, and of what."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.clauses import sense, tells
from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, SUBJECTS, has_subject, is_hypothetical
from interlock.dpe.comparison.bindings.stances.axes import AxisPhrase, matches
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import stem

_DENYING = word_set("not n't never no nor none neither without cannot nobody nothing hardly barely")
_NONE = word_set("no none neither nobody nothing")
_BUT = word_set("only just merely")
_RATHER = frozenset({("rather", "than"), ("instead", "of"), ("as", "opposed"), ("except", "for")})
_CLAUSES = word_set("ROOT conj advcl ccomp relcl parataxis dep acl")
_AWAITING = word_set("until before unless")
_NEAR_BEFORE = 3


@dataclass(frozen=True)
class Stance:
    """One side of a question that a sentence takes.

    ``place`` is that of its first token. ``near`` are the senses of what the words belong to, their head and its subject and objects, ``clause`` those of the whole clause,
    ``names`` and ``figures`` those in it. ``awaited``: it holds until something else happens. ``supposed``: it is a condition or a wish.
    """

    axis: str
    side: int
    denied: bool
    place: int
    text: str
    lemmas: tuple[str, ...]
    open: bool
    near: frozenset[str]
    clause: frozenset[str]
    names: frozenset[str]
    figures: frozenset[str] = frozenset()
    supposed: bool = False
    awaited: bool = False

    @property
    def holds(self) -> int:
        """The side that it takes in the end, of two."""
        return self.side ^ int(self.denied)


@dataclass(frozen=True)
class _Clause:
    """What a clause says of its own: the sense and the key of each of its words, by place."""

    senses: Mapping[int, str]
    names: Mapping[int, str]
    figures: Mapping[int, str]
    supposed: bool
    awaited: bool


def stances(sentence: Any) -> tuple[Stance, ...]:
    """Return the stances of a parsed sentence, a spaCy span."""
    clauses: dict[int, _Clause] = {}
    found: list[Stance] = []
    for wording, own in matches([token for token in sentence if not token.is_space]):
        inside = {token.i for token in own}
        top = next((t for t in own if t.head.i not in inside), own[0])
        verb = _clause_of(top)
        if verb.i not in clauses:
            clauses[verb.i] = _read(verb)
        found.append(_stance(wording, own, top, verb, clauses[verb.i]))
    return tuple(found)


def _read(verb: Any) -> _Clause:
    told = [t for t in _governed(verb) if tells(t)]
    return _Clause(
        senses={t.i: sense(t) for t in told},
        names={t.i: key_of(t) for t in told if t.pos_ == "PROPN"},
        figures={t.i: t.lower_ for t in told if any(c.isdigit() for c in t.text)},
        supposed=is_hypothetical(verb),
        awaited=any(t.lower_ in _AWAITING for t in verb.subtree),
    )


def _stance(wording: AxisPhrase, own: list[Any], top: Any, verb: Any, clause: _Clause) -> Stance:
    inside = {token.i for token in own}
    beside = {t.i for t in _beside(top, verb)}

    def outside(words: Mapping[int, str]) -> frozenset[str]:
        return frozenset(word for place, word in words.items() if place not in inside)

    return Stance(
        axis=wording.axis,
        side=wording.side,
        denied=_denials(top, verb, inside) % 2 == 1,
        place=own[0].i,
        text=" ".join(t.text for t in own),
        lemmas=tuple(stem(t.lemma_.lower()) for t in own if t.pos_ not in {"DET", "PART"}),
        open=wording.open,
        near=outside({place: word for place, word in clause.senses.items() if place in beside}),
        clause=outside(clause.senses),
        names=outside(clause.names),
        figures=outside(clause.figures),
        supposed=clause.supposed,
        awaited=clause.awaited,
    )


def _clause_of(token: Any) -> Any:
    """Return the verb, or the word in its place, whose clause a token stands in."""
    at = token
    while at.head.i != at.i and not (at.dep_ in _CLAUSES and has_subject(at)):
        at = at.head
    return at


def _governed(verb: Any) -> Iterator[Any]:
    yield verb
    for child in verb.children:
        if child.dep_ == "ccomp" or not (child.dep_ in _CLAUSES and has_subject(child)):
            yield from _governed(child)


def _beside(top: Any, verb: Any) -> Iterator[Any]:
    """Yield what a word belongs to: its head, what both govern directly, and the subject of its clause."""
    heads = [top]
    at = top
    while at.i not in (verb.i, at.head.i):
        at = at.head
        heads.append(at)
        if at.pos_ in {"VERB", "AUX", "NOUN", "PROPN"}:
            break
    for head in heads:
        yield head
        for child in head.children:
            if child.dep_ == "prep":
                yield from (c for c in child.children if c.dep_ == "pobj")
            elif child.dep_ in {"dobj", "attr", "compound", "oprd", *SUBJECTS, *PASSIVE_SUBJECTS}:
                yield child
    yield from (c for c in verb.children if c.dep_ in {*SUBJECTS, *PASSIVE_SUBJECTS})


def _ends_in_a_phrase(token: Any) -> bool:
    """Whether what denies a verb above does not reach a word below: *families with free lunch do not pay*, *not by post, but in person*."""
    if token.dep_ in {*SUBJECTS, *PASSIVE_SUBJECTS, "relcl", "acl", "advcl"}:
        return True
    if token.dep_ == "conj" and not any(c.lower_ in {"or", "nor"} for c in token.head.children):
        return True
    return bool(token.dep_ == "prep" and token.head.pos_ in {"NOUN", "PROPN"} and token.lower_ != "of")


def _denials(top: Any, verb: Any, inside: set[int]) -> int:
    """Return how many words deny a phrase: on the way from it to the verb of its clause, of the verb, and right before it."""
    found: set[int] = set()
    at, path = top, [top]
    while at.i not in (verb.i, at.head.i) and not _ends_in_a_phrase(at):
        at = at.head
        path.append(at)
    for each in path:
        found |= {c.i for c in each.children if c.lower_ in _DENYING}
        if each.lower_ in _DENYING:
            found.add(each.i)
    for each, above in itertools.pairwise(path):
        if each.dep_ == "xcomp" and above.lemma_.lower() in predicates.REFUSING:
            found.add(above.i)
    if top.i == verb.i or verb in path:
        for child in verb.children:
            if child.dep_ in {*SUBJECTS, *PASSIVE_SUBJECTS, "dobj", "attr"}:
                found |= {c.i for c in (child, *child.children) if c.lower_ in _NONE}
    doc, first = top.doc, min(inside)
    before = [doc[n] for n in range(max(top.sent.start, first - _NEAR_BEFORE), first)]
    found |= {t.i for t in before[-2:] if t.lower_ in _DENYING}
    pairs = {(a.lower_, b.lower_): b.i for a, b in itertools.pairwise(before)}
    found |= {place for pair, place in pairs.items() if pair in _RATHER}
    answering = {i for i in found if i == top.sent.start and i + 1 < len(doc) and doc[i + 1].is_punct}
    only = {i for i in found if i + 1 < len(doc) and doc[i + 1].lower_ in _BUT}
    return len(found - inside - answering - only)
