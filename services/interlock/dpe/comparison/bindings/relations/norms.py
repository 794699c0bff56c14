"""Norms of a sentence: what may, must or must not be done, however it is worded (SPEC-005 §5.3).

*You may not sublet*, *subletting is prohibited*, *clause 7 does not allow you to sublet* and *never sublet* forbid one thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.clauses import sense, sense_of
from interlock.dpe.comparison.bindings.fillers import fillers, key
from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, contrasts, has_subject
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import STOP

_ALLOWING = word_set("allow permit let enable authorise authorize entitle free welcome able possible")
_FORBIDDING = word_set("forbid prohibit ban bar disallow outlaw impossible")
_USING = word_set("use take")
_REQUIRING = word_set("require oblige need have compel")
_NORMING = _ALLOWING | _FORBIDDING | _REQUIRING
MANDATORY = word_set("mandatory compulsory obligatory necessary essential indispensable")
OPTIONAL = word_set("optional voluntary unnecessary dispensable facultative")
_TELLING = word_set("say tell ask advise recommend instruct order")
_MAY, _MUST = word_set("may can could"), word_set("must shall should")
_NOT = word_set("not n't never no")
_NOBODY = word_set("nobody none neither nothing")
_LIMITING = word_set("only unless except until if when without but than before after outside other")
_GOVERNED = frozenset({"xcomp", "ccomp", "pcomp", "advcl", "acl"})
_CLAUSES = frozenset({"advcl", "relcl", "ccomp", "parataxis", "conj", "acl"})
_THINGS = frozenset({"dobj", "nsubjpass"})
_NAMING = frozenset({"NOUN", "PROPN"})
_TOLD = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "NUM"})


class Norm(Enum):
    """What a norm says of an act."""

    ALLOWED = "allowed"
    REQUIRED = "required"
    FORBIDDEN = "forbidden"
    NOT_REQUIRED = "not required"


@dataclass(frozen=True)
class Normed:
    """An act with the norm that a sentence states of it: its sense, the senses of what it is done to and of all around it.

    ``limited``: it holds in one case only; ``narrow``: of some only, *honey harvested in May*. ``excepted``: not in
    one case, *unless it is dry*.
    """

    norm: Norm
    act: str
    things: frozenset[str]
    around: frozenset[str]
    text: str
    limited: bool
    narrow: bool
    excepted: bool = False


def norms(sentence: Any) -> tuple[Normed, ...]:
    """Return the norms of a parsed sentence, a spaCy span. A question has none."""
    if sentence.text.rstrip().endswith("?"):
        return ()
    return tuple(each for token in sentence for each in _of(token))


def _of(token: Any) -> Iterator[Normed]:
    word = token.lemma_.lower()
    if token.pos_ not in {"VERB", "AUX"}:
        return
    norm = None if _is_awaited(token) else _norm(token)
    if norm is not None and (word not in predicates.LIGHT | _NORMING or (word in _USING and _things(token))):
        yield _normed(norm, token, sense(token), _things(token))
    yield from _of_adjective(token)
    if word in _NORMING and token.tag_ == "VBN":
        for thing in (c for c in token.children if c.dep_ in PASSIVE_SUBJECTS):
            if act := _named_act(thing):
                done_to = _things(thing) if thing.pos_ == "VERB" else []
                yield _normed(
                    _of_participle(word, denied=_is_denied(token) or _is_denied(thing)), token, act, done_to or [thing]
                )


def _is_awaited(verb: Any) -> bool:
    """Whether a clause only tells before what something else must be done: *before work may start, the plan is checked*."""
    return verb.dep_ in {"advcl", "pcomp"} and any(
        each.lower_ in {"before", "until"} for each in (*(c for c in verb.children if c.dep_ == "mark"), verb.head)
    )


def _of_adjective(verb: Any) -> Iterator[Normed]:
    """Yield the norm of an act that is said to be mandatory or optional: *attendance is voluntary*, *wearing a mask is compulsory*."""
    if (needed := said_needed(verb)) is None:
        return
    for act in (c for c in verb.children if c.dep_ in {"nsubj", "csubj"}):
        if named := _named_act(act):
            things = _things(act) or [
                c for p in act.children if p.dep_ == "prep" for c in p.children if c.dep_ == "pobj"
            ]
            yield _normed(Norm.REQUIRED if needed else Norm.NOT_REQUIRED, verb, named, things)


def said_needed(verb: Any) -> bool | None:
    """Return whether a form of *be* says that its subject is needed, or ``None`` where it says nothing of that."""
    told = next((c for c in verb.children if c.dep_ in {"acomp", "attr"} and c.lower_ in MANDATORY | OPTIONAL), None)
    if told is None or verb.sent.text.rstrip().endswith("?"):
        return None
    return (told.lower_ in MANDATORY) is not _is_denied(verb)


def _of_participle(word: str, *, denied: bool) -> Norm:
    if word in _REQUIRING:
        return Norm.NOT_REQUIRED if denied else Norm.REQUIRED
    return Norm.ALLOWED if (word in _ALLOWING) is not denied else Norm.FORBIDDEN


def _named_act(noun: Any) -> str:
    """Return the sense of the act that a noun names, or the empty string: *diving*, *the sale*."""
    verb = predicates.verb_of(noun.lemma_.lower())
    if verb or not noun.lower_.endswith("ing"):
        return sense_of(verb) if verb else ""
    return sense_of(noun.lemma_.lower()) if noun.pos_ == "VERB" else _sense_of_doing(noun.lower_)


def _sense_of_doing(noun: str) -> str:
    """Return the sense of the verb that a noun in *-ing* is of, as far as its letters tell: *gathering* is what gathers."""
    base = noun.removesuffix("ing")
    grouped = (sense_of(verb) for verb in (base, f"{base}e", base[:-1]) if sense_of(verb) != key(verb))
    return next(grouped, key(noun))


def _things(verb: Any) -> list[Any]:
    """Return what an act is done to. Of a participle whose parse has no subject, the first noun of its sentence."""
    own = [c for c in verb.children if c.dep_ in _THINGS]
    if own or not any(c.dep_ == "auxpass" for c in verb.children) or has_subject(verb):
        return own
    return [t for t in verb.doc[verb.sent.start : verb.i] if t.pos_ in {"NOUN", "PROPN"}][:1]


def _norm(verb: Any) -> Norm | None:
    """Return what a sentence says of an act, or ``None`` where it says only that it happens."""
    helped = {c.lower_ for c in verb.children if c.dep_ == "aux"}
    denied = _is_denied(verb) is not _lets_nobody(verb)
    if helped & _MAY:
        return Norm.FORBIDDEN if denied else Norm.ALLOWED
    if helped & _MUST:
        return Norm.FORBIDDEN if denied else Norm.REQUIRED
    if verb.dep_ in _GOVERNED and (found := _governed(verb)) is not None:
        return found
    if not helped - {"do"} and _commands(verb):
        return Norm.FORBIDDEN if denied else Norm.REQUIRED
    return None


def _commands(verb: Any) -> bool:
    """Whether a verb opens a sentence as a command: *never purge the queue*."""
    before = verb.doc[verb.sent.start : verb.i]
    opens = all(t.pos_ in {"ADV", "PART", "AUX", "PUNCT"} or t.lower_ in _NOT | {"please", "do"} for t in before)
    return opens and verb.tag_ in {"VB", "VBP"} and not has_subject(verb)


def _governed(verb: Any) -> Norm | None:
    head = verb.head if verb.dep_ != "pcomp" else verb.head.head
    told = next((c for c in head.children if c.dep_ == "acomp"), head)  # it is not possible to …
    word, denied, own = told.lemma_.lower(), _is_denied(head) or _lets_nobody(head), _is_denied(verb)
    if word in _ALLOWING:
        return Norm.FORBIDDEN if denied is not own else Norm.ALLOWED
    if word in _FORBIDDING:
        return Norm.ALLOWED if denied else Norm.FORBIDDEN
    if word in _REQUIRING and any(c.lower_ == "to" for c in verb.children):
        return Norm.NOT_REQUIRED if denied else (Norm.FORBIDDEN if own else Norm.REQUIRED)
    if word in _TELLING and any(c.lower_ == "to" for c in verb.children) and not denied:
        return Norm.FORBIDDEN if own else Norm.REQUIRED
    return None


def _is_denied(token: Any) -> bool:
    """Whether a word is denied; the *no* that answers a question before it denies nothing, nor does *…, not of the order* behind it."""
    return any(c.lower_ in _NOT and not _answers(c) and not (c.i > token.i and contrasts(c)) for c in token.children)


def _answers(word: Any) -> bool:
    is_cut_off = word.i + 1 < len(word.doc) and word.nbor().text in {",", ":", "–", "—"}
    return word.lower_ == "no" and (word.dep_ == "intj" or is_cut_off)


def _lets_nobody(verb: Any) -> bool:
    """Whether the subject of a verb is nobody, or nothing: *no work may begin*."""
    subjects = [c for c in verb.children if c.dep_ in {"nsubj", "nsubjpass"}]
    return any(c.lower_ in _NOBODY or any(g.lower_ in {"no", "neither"} for g in c.children) for c in subjects)


def _normed(norm: Norm, verb: Any, act: str, things: list[Any]) -> Normed:
    inside = list(_clause(verb))
    around = frozenset(sense(t) for t in (*inside, *things) if _tells(t)) - {act}
    limited = any(t.lower_ in _LIMITING for t in inside) or any(
        c.dep_ in {"advcl", "prep"} and c.lower_ in _LIMITING for c in verb.head.children
    )
    held = frozenset(word for thing in things if thing.pos_ in _NAMING for word in fillers(thing)[0].words) - {act}
    excepted = any(c.dep_ == "advcl" and any(g.lower_ == "unless" for g in c.children) for c in verb.children)
    narrow = any(_is_narrow(t, verb) for t in things)
    return Normed(norm, act, held, around, " ".join(t.text for t in inside), limited, narrow, excepted)


def _is_narrow(thing: Any, verb: Any) -> bool:
    """Whether a clause says which things are meant, or stands before the verb where the parse did not see that it does."""
    own = any(c.dep_ in {"acl", "relcl"} for c in thing.children)
    return own or (thing.head.i != verb.i and any(t.pos_ == "VERB" for t in verb.doc[thing.i : verb.i]))


def _tells(token: Any) -> bool:
    plain = token.lower_ not in STOP | MANDATORY | OPTIONAL
    return token.pos_ in _TOLD and plain and token.lemma_.lower() not in predicates.LIGHT


def _clause(verb: Any) -> list[Any]:
    """Return the tokens of a verb without other clauses, in order."""
    found = [verb]
    for child in verb.children:
        if not (child.dep_ in _CLAUSES and child.pos_ in {"VERB", "AUX"}):
            found += _clause(child)
    return sorted(found, key=lambda t: int(t.i))
