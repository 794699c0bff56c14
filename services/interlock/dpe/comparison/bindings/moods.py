"""Moods of a clause: whether it is denied, must or may hold, is only supposed, and with which clauses it is coordinated."""

from __future__ import annotations

from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.text.parse.memo import of_token
from interlock.dpe.text.wordlists import word_set

SUBJECTS = frozenset({"nsubj", "csubj"})
PASSIVE_SUBJECTS = frozenset({"nsubjpass", "csubjpass"})
_MUST = word_set("must shall")
_MAY = word_set("may might could can")
_CONDITIONS = word_set("if unless when once")
_OBLIGED = word_set("have need oblige require compel")
_CARRIED_OUT = word_set("begin start continue manage tend use come get commence proceed happen seem appear be")


def has_subject(verb: Any) -> bool:
    return any(c.dep_ in SUBJECTS | PASSIVE_SUBJECTS for c in verb.children)


def contrasts(word: Any) -> bool:
    """Whether a *not* only sets another phrase against the one before it: *within a week of the survey, not of the signing*."""
    before, after = (word.nbor(n) if 0 <= word.i + n < len(word.doc) else word for n in (-1, 1))
    return (
        word.lower_ == "not" and before.text in {",", "–", "—", "("} and after.pos_ in {"ADP", "DET", "NOUN", "PROPN"}
    )


def is_negated(verb: Any) -> bool:
    own = any(
        (c.dep_ == "neg" or c.lower_ in {"never", "not"} or _is_no_longer(c)) and not (c.i > verb.i and contrasts(c))
        for c in verb.children
    )
    own = own or _is_of_neither(verb)
    none = any(
        c.dep_ in {*SUBJECTS, *PASSIVE_SUBJECTS, "dobj"}
        and (
            c.lower_ in {"nobody", "none", "nothing"}
            or any(g.lower_ in {"no", "neither"} for g in c.children)
            or _is_not_one(c)
        )
        for c in verb.children
    )
    above = verb.dep_ == "xcomp" and verb.head.pos_ in {"VERB", "AUX", "ADJ"} and verb.head.i != verb.i
    governed = above and (verb.head.lemma_.lower() in predicates.REFUSING) != is_negated(verb.head)
    return (own or none) != bool(governed)


def _is_of_neither(verb: Any) -> bool:
    """Whether a verb is one of two that are both denied: *neither lost nor exposed*."""
    if any(
        c.lower_ == "neither" and c.dep_ in {"preconj", "cc", "advmod", "neg"} and c.i < verb.i for c in verb.children
    ):
        return True
    joined = verb.dep_ == "conj" and any(c.lower_ == "nor" and verb.head.i < c.i < verb.i for c in verb.head.children)
    return joined and not has_subject(verb)


def _is_not_one(noun: Any) -> bool:
    """Whether a noun is denied as a whole: *not a single post will be cut*, *not one guest fell ill*."""
    first = noun.left_edge
    return first.lower_ == "not" and first.i < noun.i and first.nbor().lower_ in {"a", "an", "one", "single"}


def _is_no_longer(adverb: Any) -> bool:
    return adverb.lower_ in {"longer", "more"} and any(c.lower_ == "no" for c in adverb.children)


def modality_of(verb: Any) -> str:
    helped = {c.lower_ for c in verb.children if c.dep_ == "aux"}
    if helped & _MUST or (verb.dep_ == "xcomp" and verb.head.lemma_.lower() in _OBLIGED):
        return "must"
    return "may" if helped & _MAY else ""


@of_token
def is_hypothetical(verb: Any) -> bool:
    """Whether a clause states no event: a condition, a question, what somebody wants or asks for."""
    if any(c.lower_ == "to" and c.dep_ == "aux" for c in verb.children) and not is_carried_out(verb):
        return True
    for token in (verb, *verb.ancestors):
        if any(c.dep_ == "mark" and c.lower_ in {"if", "unless", "whether"} for c in token.children):
            return True
        if token.dep_ in {"xcomp", "ccomp"} and token.head.lemma_.lower() in predicates.HYPOTHETICAL:
            return True
        if token.dep_ in {"ROOT", "relcl"}:
            break
    return bool(verb.sent.text.rstrip().endswith("?"))


def is_conditional(verb: Any) -> bool:
    """Whether a clause holds in one case only: *if the count differs, do not restart the pump*."""
    return any(
        c.dep_ == "advcl" and any(g.dep_ in {"mark", "advmod"} and g.lower_ in _CONDITIONS for g in c.children)
        for c in verb.children
    )


def prefers(verb: Any) -> bool:
    """Whether a denial only prefers one phrase to another: *they are not left on the porch, but with the neighbour*."""
    joins = [t for c in verb.children for t in (c, *c.children) if t.lower_ == "but" and t.dep_ == "cc"]
    return any(not any(c.dep_ == "conj" and c.pos_ in {"VERB", "AUX"} for c in t.head.children) for t in joins)


def level_of(verb: Any) -> int:
    """Return the place of the first of the clauses that a clause is coordinated with, or set against by *while*."""
    at = verb
    while at.head.i != at.i and (
        at.dep_ in {"conj", "parataxis"}
        or (
            at.dep_ == "ccomp"
            and any(t.text in {";", "—"} for t in at.doc[min(at.i, at.head.i) : max(at.i, at.head.i)])
        )
        or (at.dep_ == "advcl" and any(c.lower_ in {"while", "whereas", "after", "before"} for c in at.children))
    ):
        at = at.head
    return int(at.i)


def is_carried_out(verb: Any) -> bool:
    """Whether an infinitive is what happens or must: *has to pay*, *failed to pay*, *began to pay*, but not *a bid to pay*."""
    return verb.dep_ == "xcomp" and verb.head.lemma_.lower() in _OBLIGED | predicates.REFUSING | _CARRIED_OUT


def is_finite(verb: Any) -> bool:
    helped = any(c.dep_ in {"aux", "auxpass"} and c.lower_ != "to" for c in verb.children)
    return (
        helped
        or verb.tag_ in {"VBD", "VBZ", "VBP"}
        or (verb.dep_ == "xcomp" and is_carried_out(verb))
        or (verb.tag_ == "VB" and verb.dep_ in {"ROOT", "conj"})
    )
