"""Pronouns: who a verb is about, and whom a pronoun stands for where only one noun of its sentence can be meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlock.dpe.comparison.bindings.clauses import sense
from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, SUBJECTS, has_subject
from interlock.dpe.text.wordlists import word_set

PERSONAL = word_set("he she it they him her them")
_RELATIVE = word_set("who which that")
_CLAUSES = frozenset({"ROOT", "conj", "advcl", "ccomp", "xcomp", "relcl", "acl", "pcomp", "parataxis", "dep"})
_MOST_STEPS = 4


def subject_of(verb: Any) -> Any:
    """Return the subject of a verb: its own, the antecedent of its relative pronoun, or that of the verb that it goes on from."""
    seen = verb
    for _ in range(_MOST_STEPS):
        own = next((c for c in seen.children if c.dep_ in SUBJECTS | PASSIVE_SUBJECTS), None)
        if own is not None:
            return seen.head if own.lower_ in _RELATIVE and seen.dep_ == "relcl" else own
        if seen.dep_ == "acl":
            return seen.head
        if seen.dep_ not in {"conj", "xcomp"} or seen.head.pos_ not in {"VERB", "AUX", "ADJ"}:
            return _before(seen)
        seen = seen.head
    return None


def _before(verb: Any) -> Any:
    """Return the name right before a verb, which the parser took for something else: *Amply repaid him*."""
    if verb.i == verb.sent.start:
        return None
    token = verb.nbor(-1)
    proper = (
        token.text[:1].isupper()
        and token.pos_ in {"PROPN", "NOUN", "ADV", "ADJ", "INTJ"}
        and token.dep_ not in {"pobj", "appos"}
    )
    return token if proper else None


def antecedent(pronoun: Any, verb: Any) -> Any:
    """Return the one noun before a pronoun that may be meant: the subject of another clause of its sentence; ``None`` if unsure."""
    mine = subject_of(verb)
    found: dict[str, Any] = {}
    for token in pronoun.sent:
        if token.i >= pronoun.i:
            break
        if token.pos_ in {"VERB", "AUX"} and token.i != verb.i and has_subject(token):
            subject = subject_of(token)
            known = subject is not None and subject.pos_ in {"NOUN", "PROPN"} and subject.i < pronoun.i
            if known and (mine is None or subject.i != mine.i) and _fits(pronoun, subject):
                found.setdefault(sense(subject), subject)
    return next(iter(found.values())) if len(found) == 1 else None


def _fits(pronoun: Any, noun: Any) -> bool:
    """Whether a pronoun's number, and *he* or *she*, may be a noun's."""
    if pronoun.lower_ in {"they", "them"}:
        return True
    if noun.tag_ in {"NNS", "NNPS"}:
        return bool(noun.pos_ == "PROPN" and pronoun.lower_ == "it")
    return bool(noun.pos_ == "PROPN" or pronoun.lower_ == "it")


def own_tokens(head: Any) -> Iterator[Any]:
    """Yield the tokens that a verb governs without those of other clauses."""
    for child in head.children:
        if child.pos_ not in {"VERB", "AUX"} or child.dep_ not in _CLAUSES:
            yield child
            yield from own_tokens(child)
