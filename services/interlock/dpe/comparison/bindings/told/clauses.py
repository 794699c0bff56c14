"""Clauses as they are told: which words are of one clause, and which of its phrases have another polarity than it (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.comparison.bindings.general import GENERAL
from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, SUBJECTS, has_subject
from interlock.dpe.comparison.bindings.told import denying
from interlock.dpe.comparison.bindings.told.kin import meaning
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import DIRECTIONS, STOP

_SUBJECTS = SUBJECTS | PASSIVE_SUBJECTS
_HEADS = frozenset({"ROOT", "conj", "ccomp", "parataxis", "advcl", "relcl", "dep", "acl"})
_COPULAS = word_set("be remain stay seem become get keep")
_PLAIN = word_set(
    "also too as well so then while whereas although yes there here just even still already yet longer very now again out up off instead rather back"
)
_DEEPEST = 4


def is_head(token: Any) -> bool:
    if token.dep_ in {"aux", "auxpass"}:
        return False
    if token.pos_ not in {"VERB", "AUX"} and not any(c.dep_ in {"aux", "auxpass"} for c in token.children):
        return False
    return bool(
        token.dep_ == "ROOT"
        or (
            token.dep_ in _HEADS
            and (has_subject(token) or token.dep_ == "conj" or any(c.dep_ == "expl" for c in token.children))
        )
    )


def chain_of(verb: Any) -> list[Any]:
    """Return a verb and what it governs down to the word that says what happens: *has*, *stopped*, *working*."""
    chain = [verb]
    for _ in range(_DEEPEST):
        governed = [c for c in chain[-1].children if _is_governed(c, chain[-1])]
        if not governed and chain == [verb] and (asked := _asked(verb)) is not None:
            return [verb, asked]
        if not governed:
            break
        chain.extend(governed[:2] if denying.is_operator(governed[0]) else governed[:1])
    return chain


def _asked(verb: Any) -> Any | None:
    """Return the participle of a question that the parser hangs on its subject: *is the kiln fired on Fridays?*."""
    if verb.lemma_ != "be" or verb.sent.text.rstrip()[-1:] != "?":
        return None
    subjects = (c for c in verb.children if c.dep_ in _SUBJECTS and c.i > verb.i)
    return next((g for c in subjects for g in c.children if g.dep_ == "acl" and g.tag_ == "VBN"), None)


def _is_governed(child: Any, verb: Any) -> bool:
    if child.i < verb.i or (has_subject(child) and child.dep_ != "attr"):
        return False
    copula = verb.lemma_ in _COPULAS
    if copula and child.dep_ in {"acomp", "oprd"}:
        return True
    if copula and child.dep_ == "attr":
        return child.pos_ in {"NOUN", "ADJ", "VERB"} and all(c.lower_ != "there" for c in verb.children)
    inner = child.dep_ in {"xcomp", "ccomp"} and child.pos_ in {"VERB", "AUX", "ADJ"}
    return inner and (denying.is_operator(verb) or copula)


def walk(token: Any, chain: list[Any], base: str | None, *, flipped: bool = False) -> Iterator[tuple[Any, bool]]:
    """Yield the words of a clause, each with whether its phrase has another polarity than the clause."""
    yield token, flipped
    for child in token.children:
        if child in chain:
            yield from walk(child, chain, base, flipped=flipped)
        elif is_head(child) or child.lower_ == "unlike":
            continue
        else:
            flip = (
                flipped
                ^ (denying.denies_phrase(child) and not denying.governs_denial(token, child))
                ^ _flips(child, token, chain)
            )
            if base and token in chain and denying.denies_phrase(child):
                flip = not flip  # what is refused without a loss is refused, and there is none
            yield from walk(child, chain, base, flipped=flip)


def _flips(child: Any, head: Any, chain: list[Any]) -> bool:
    """Whether a phrase denies its own thing and not its clause: *coins but no notes*, *at no cost*, *without losing pay*."""
    if child.dep_ == "dobj" and head not in chain and head.pos_ == "VERB" and denying.loses(head):
        return True
    if child.dep_ == "appos" and child.i > 1 and child.nbor(-1).lower_ == "not" and child.nbor(-2).text == ",":
        return True  # the wind, not rain, dried it
    if child.pos_ not in {"NOUN", "PROPN", "PRON", "VERB", "ADJ", "NUM"} or denying.is_no_way(child):
        return False
    return denying.denies_thing(child) and not (head in chain and child.dep_ in _SUBJECTS | {"dobj", "attr"})


def things(chain: list[Any], base: str | None) -> Iterator[str]:
    """Yield the things of which a clause says that there are none."""
    for each in chain:
        for child in each.children:
            if (child.dep_ in _SUBJECTS | {"dobj", "attr"} and denying.denies_thing(child)) or (
                base in denying.TAKEN_AWAY and each is chain[-1] and child.dep_ in {"dobj", "nsubjpass"}
            ):
                yield from _counted(child)
            elif denying.denies_phrase(child) or (base == "" and denying.governs_denial(each, child)):
                for inner in child.children:
                    if inner.dep_ == "pobj":
                        yield from _counted(inner)
                    elif inner.dep_ == "pcomp":
                        yield from (meaning(c) for c in inner.children if c.dep_ == "dobj")


def _counted(noun: Any) -> Iterator[str]:
    """Yield a noun, or what is counted by it, and those coordinated with it."""
    if noun.pos_ in {"NOUN", "PROPN", "VERB"} and noun.lower_ not in {"part", "none", "nothing"}:
        yield meaning(noun)
    else:
        yield from (
            meaning(g) for c in noun.children if c.dep_ == "prep" for g in c.children if g.dep_ in {"pobj", "pcomp"}
        )
    for child in noun.children:
        if child.dep_ == "conj":
            yield from _counted(child)


def objects(chain: list[Any]) -> Iterator[str]:
    for each in chain:
        for child in each.children:
            if child.dep_ in {"dobj", "attr"}:
                yield from _counted(child)


def within(chain: list[Any], openings: set[str]) -> Iterator[str]:
    """Yield the words of the phrases that one of these words opens, wherever they hang."""
    for each in chain:
        for token in each.subtree:
            if token.lower_ in openings and token.dep_ in {"prep", "mark", "pobj"}:
                yield from (meaning(t) for t in token.subtree if t is not token and tells(t))


def phrase(token: Any) -> Iterator[Any]:
    yield token
    for child in token.children:
        if child.dep_ not in {"relcl", "acl", "advcl"}:
            yield from phrase(child)


def is_noun(token: Any) -> bool:
    return (
        token.pos_ in {"NOUN", "PROPN"}
        and token.dep_ not in {"compound", "amod", "nmod"}
        and key_of(token) not in GENERAL
    )


def stands_for(subject: Any) -> bool:
    """Whether a subject stands for what is named elsewhere: a pronoun or a general noun."""
    return (subject.pos_ == "PRON" and subject.tag_ not in {"EX", "NN"}) or key_of(subject) in GENERAL


def tells(token: Any) -> bool:
    low = token.lower_
    if (
        token.pos_ in {"DET", "PRON", "CCONJ", "SCONJ", "AUX", "PART", "ADP", "PUNCT", "SPACE"}
        or low in _PLAIN | denying.NO
    ):
        return False
    if low == "part" and token.dep_ != "attr" and any(c.lower_ == "of" for c in token.children):
        return False
    return any(c.isalnum() for c in low) and (
        low not in STOP or low in DIRECTIONS or token.pos_ == "PROPN" or low == "use"
    )
