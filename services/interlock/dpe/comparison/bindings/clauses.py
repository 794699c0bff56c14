"""Clauses: a verb with its subject and all that it governs, as a bag of senses, for texts that word one thing differently.

A frame is compared slot by slot, which needs the same predicate. A clause is compared by what is spoken of in it, so that *the boiler
was put in by Hale* and *Hale installed the boiler* are of one thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, fillers, key, key_of
from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, SUBJECTS, contrasts, has_subject, is_hypothetical
from interlock.dpe.text.parse.memo import of_token
from interlock.dpe.text.wordlists import lines, word_set
from interlock.dpe.values.frames import DIRECTIONS, STOP

_CLAUSES = frozenset({"ROOT", "conj", "advcl", "ccomp", "relcl", "parataxis", "dep"})
_APART = frozenset({"conj", "advcl", "relcl", "parataxis", "dep"})
_MOVING = word_set("go come move climb bring push")
_SWITCHING = word_set("turn switch put")
_WAYS = {"up": "increase+", "down": "increase-", "on": "enable", "off": "disable"}
_MORE = {"more": "increase+", "greater": "increase+", "higher": "increase+", "fewer": "increase-", "less": "increase-"}
_VAGUE = word_set("take put get give bring come go make set turn let hold run keep call look break pick fall")
_WITHIN = frozenset({"amod", "compound", "nummod", "nmod"})
_OF = frozenset({"of", "per"})
_UNITS = word_set("million billion thousand percent chf eur usd gbp kes hour minute day week month year second time")
_NOT = word_set("not n't never no nor none neither without cannot nobody nothing")
_DENYING = word_set("not neither no")
_MARKS = word_set("than only except unless instead by i we")
_RELATIVE = word_set("who which that")
_POINTING = word_set("it them him her its his their this these those")
_WHEN = word_set("when whenever while once")
_PLAIN = word_set("also too as well so then while whereas although yes there here just even still most very be have do")


def _groups(wanted: str = "sense") -> dict[str, str]:
    """Read the groups of one sense, or of one kind of near senses: each word with the first word of its group."""
    found: dict[str, str] = {}
    for line in lines("predicates.txt"):
        kind, _, words = line.partition("|")
        if kind == wanted:
            first, *_ = group = words.split()
            for word in group:
                found.setdefault(word, first)
    return found


_GROUPS = _groups()
_PAIRED = frozenset(
    word
    for line in lines("predicates.txt")
    if line.startswith(("antonym|", "opposite|"))
    for pair in line.partition("|")[2].split()
    for word in pair.split("=")
)


@dataclass(frozen=True)
class SenseBag:
    """A clause: who acts in it, the names in it, the senses of its other words, and how often it denies.

    ``words`` has the keys of all its words as they are written, and ``marks`` those that compare
    or limit. ``pronoun``: what it is about stands elsewhere. ``refers``: so does something else in it, *we may keep them*.
    ``denied`` are the senses that it lists only to deny them: *coins, but neither notes nor cards*.
    ``qualified`` has each word that qualifies another, with that one, ``attached`` also those that only say which one is meant, *the fee
    of £2 a copy*, and ``case``: it tells when something else holds. ``undergoing`` are those of its actors to whom something is done,
    and ``compounds`` has each noun that stands before another, with that one: *insulin* of *insulin pump*.
    """

    actors: tuple[Filler, ...]
    names: tuple[Filler, ...]
    senses: frozenset[str]
    words: frozenset[str]
    marks: frozenset[str] = frozenset()
    negated: bool = False
    hypothetical: bool = False
    pronoun: bool = False
    event: str = ""
    qualified: frozenset[tuple[str, str]] = frozenset()
    case: bool = False
    refers: bool = False
    denied: frozenset[str] = frozenset()
    attached: frozenset[tuple[str, str]] = frozenset()
    undergoing: tuple[Filler, ...] = ()
    compounds: frozenset[tuple[str, str]] = frozenset()


def clauses(sentence: Any) -> tuple[SenseBag, ...]:
    """Return the clauses of a parsed sentence, a spaCy span."""
    return tuple(_clause(token) for token in sentence if _is_head(token))


def _is_head(token: Any) -> bool:
    if token.dep_ == "ROOT":
        return True
    return token.pos_ in {"VERB", "AUX"} and token.dep_ in _CLAUSES and has_subject(token)


def _stays(child: Any, verb: Any) -> bool:
    """Whether what a verb governs is part of its clause. A complement before its verb is a clause read wrongly."""
    if child.dep_ == "ccomp":
        return bool(child.i > verb.i)
    return not (child.dep_ in _APART and child.pos_ in {"VERB", "AUX"} and has_subject(child))


def _own(token: Any) -> Iterator[Any]:
    yield token
    for child in token.children:
        if _stays(child, token):
            yield from _own(child)


def _clause(verb: Any) -> SenseBag:
    tokens = sorted(_own(verb), key=lambda t: int(t.i))
    subjects = [c for c in verb.children if c.dep_ in SUBJECTS | PASSIVE_SUBJECTS]
    agents = [n for c in tokens if c.dep_ == "agent" for n in c.children if n.dep_ == "pobj"]
    actors = tuple(f for s in (*subjects, *agents) for f in _resolved(s))
    set_apart = _denied_members(tokens)
    told = [t for t in tokens if tells(t) and t.i not in set_apart]
    apposed = {t.i for c in tokens if c.dep_ == "appos" for t in c.subtree}
    return SenseBag(
        actors=tuple(f for f in actors if f.kind in {FillerKind.NAME, FillerKind.NOUN}),
        names=tuple(_names(tokens)) + tuple(f for f in actors if f.kind is FillerKind.NAME),
        senses=frozenset(sense(t) for t in told if t.i not in apposed and not _is_frame(t)),
        words=frozenset(key_of(t) for t in told),
        marks=frozenset(t.lower_ for t in tokens if t.lower_ in _MARKS),
        negated=sum(
            t.lower_ in _NOT and not (_answers(t) or _is_either(t) or _is_second(t) or (t.i > verb.i and contrasts(t)))
            for t in tokens
            if t.i not in set_apart
        )
        % 2
        == 1,
        hypothetical=is_hypothetical(verb),
        pronoun=any(f.kind is FillerKind.UNKNOWN for f in actors) or not subjects,
        qualified=frozenset((sense(t), sense(t.head)) for t in told if t.dep_ == "amod"),
        attached=frozenset((sense(t), sense(whole)) for t in told for whole in _whole_of(t)),
        undergoing=tuple(f for s in subjects if s.dep_ in PASSIVE_SUBJECTS for f in _resolved(s)),
        compounds=frozenset((sense(t), sense(t.head)) for t in told if t.dep_ == "compound"),
        case=verb.dep_ == "advcl" and any(c.lower_ in _WHEN for c in verb.children),
        refers=any(_points(t) for t in tokens),
        denied=frozenset(sense(t) for t in tokens if t.i in set_apart and tells(t)),
        event=sense(verb) if verb.pos_ == "VERB" and verb.lemma_.lower() not in predicates.LIGHT else "",
    )


def _whole_of(token: Any) -> Iterator[Any]:
    """Yield the noun of whose phrase a word is a part: by standing before it, or behind an *of*."""
    if token.dep_ in _WITHIN:
        yield token.head
    elif token.dep_ == "pobj" and token.head.lower_ in _OF and token.head.head.pos_ in {"NOUN", "PROPN"}:
        yield token.head.head


def _denied_members(tokens: list[Any]) -> frozenset[int]:
    """Return the places of what is listed only to be denied: *it takes coins, but neither notes nor cards*."""
    found: set[int] = set()
    for token in tokens:
        if token.dep_ == "conj" and token.pos_ in {"NOUN", "PROPN"}:
            before = token.doc[max(token.sent.start, token.left_edge.i - 2) : token.i]
            lows = [t.lower_ for t in before]
            if "but" in lows and _DENYING & set(lows[lows.index("but") :]):
                found |= {t.i for t in before if t.lower_ in _DENYING} | {t.i for t in token.subtree}
    return frozenset(found)


def _is_second(token: Any) -> bool:
    """Whether a *nor* goes with the *neither* before it, which denies both already."""
    return bool(token.lower_ == "nor" and any(t.lower_ == "neither" for t in token.doc[token.sent.start : token.i]))


def _points(token: Any) -> bool:
    """Whether a word stands for something that its clause does not name, and is not its subject."""
    return token.lower_ in _POINTING and token.dep_ in {"dobj", "pobj", "poss", "dative"}


def _resolved(subject: Any) -> tuple[Filler, ...]:
    related = subject.lower_ in _RELATIVE and subject.head.dep_ == "relcl"
    named = (f for c in subject.children if c.dep_ == "appos" and c.pos_ == "PROPN" for f in fillers(c)[:1])
    return fillers(subject.head.head) if related else (*fillers(subject), *named)


def _names(tokens: list[Any]) -> Iterator[Filler]:
    """Yield the names among tokens, each once: *Hale*, not its first name too."""
    for token in tokens:
        if token.pos_ == "PROPN" and not (token.dep_ == "compound" and token.head.pos_ == "PROPN"):
            found = fillers(token)[0]
            if found.kind is FillerKind.NAME and not found.labels:
                yield found


def tells(token: Any) -> bool:
    """Whether a word says something of its own."""
    low = token.lower_
    if token.pos_ == "NUM" or token.like_num or _is_state(token):
        return True
    if (
        token.is_punct
        or token.is_space
        or low in _PLAIN
        or token.pos_ in {"DET", "PRON", "CCONJ", "SCONJ", "AUX", "PART"}
    ):
        return False
    return any(c.isalnum() for c in low) and (
        low not in STOP or low in DIRECTIONS or low in _MORE or token.pos_ == "PROPN"
    )


def _is_state(token: Any) -> bool:
    """Whether *on* or *off* is how something is: *the alarm is off at night*."""
    alone = not any(c.dep_ in {"pobj", "pcomp"} for c in token.children)
    if token.lower_ in {"up", "down"}:
        told = any(
            c.dep_ == "prep" and c.lower_ in {"on", "by", "from", "to"} for c in (*token.children, *token.head.children)
        )
        return token.head.lemma_ == "be" and alone and told
    return token.lower_ in {"on", "off"} and token.head.lemma_ == "be" and alone


def _is_frame(token: Any) -> bool:
    """Whether a word says nothing of its own: a unit, or the verb that reports what somebody says."""
    return token.lemma_.lower() in _UNITS or (token.pos_ == "VERB" and token.lemma_.lower() in predicates.REPORTING)


def _answers(token: Any) -> bool:
    """Whether a word answers the question, and is no part of its sentence: *No, it is free*."""
    return bool(token.i == token.sent.start and token.i + 1 < len(token.doc) and token.nbor().is_punct)


def _is_either(token: Any) -> bool:
    """Whether a word only names the other of two cases: *insured or not*."""
    return bool(token.i > token.sent.start and token.nbor(-1).lower_ == "or")


@of_token
def sense(token: Any) -> str:
    """Return what a word says, the same for words of one meaning and of one direction: *fell* and *drop*."""
    low, lemma = token.lower_, token.lemma_.lower()
    particles = [c.lower_ for c in token.children if c.lower_ in _WAYS and c.dep_ in {"prt", "advmod", "prep"}]
    particle = next((p for p in particles if lemma in (_MOVING if p in {"up", "down"} else _SWITCHING)), "")
    if particle:
        return key(_WAYS[particle])
    if _is_state(token):
        return key(_WAYS[low])
    if token.pos_ == "VERB" and (whole := _phrasal(token, lemma)):
        return sense_of(whole)
    if low in _MORE and not _compares(token):
        return _MORE[low]
    if token.pos_ == "PROPN" and not (low in _GROUPS and token.i == token.sent.start):
        return key_of(token)
    if low == "short" and any(c.lower_ == "of" for c in token.children):
        low = lemma = "lack"  # short of rooms
    grouped = next((word for word in (low, lemma) if word in _GROUPS), low if low in DIRECTIONS else _graded(lemma))
    return sense_of(grouped)


def _phrasal(verb: Any, lemma: str) -> str:
    """Return the verb that says what a verb and its particle say: *turn down* and *reject*, but not *taken on 3 May*.

    What is *taken out* is not taken: with a particle that is not listed, such a verb is another one.
    """
    if lemma == "decline" and any(c.dep_ in {"dobj", "xcomp"} for c in verb.children):
        return "reject"
    alone = [c for c in verb.children if not any(g.dep_ in {"pobj", "pcomp"} for g in c.children)]
    known = next((predicates.PHRASAL[lemma, c.lower_] for c in alone if (lemma, c.lower_) in predicates.PHRASAL), "")
    apart = next((c.lower_ for c in alone if c.dep_ == "prt"), "") if lemma in _VAGUE else ""
    return known or (f"{lemma} {apart}" if apart else "")


def _compares(token: Any) -> bool:
    return bool(token.i + 1 < len(token.doc) and token.nbor().lower_ == "than")


@cache
def sense_of(word: str) -> str:
    """Return what a word says, in small letters."""
    if word in _GROUPS:
        return key(_GROUPS[word])
    if word in DIRECTIONS:
        family, side = DIRECTIONS[word]
        return f"{family}{'+-'[side]}"
    return key(predicates.verb_of(word) or predicates.canonical(word))


@cache
def _near() -> dict[str, str]:
    """Return the senses that are near each other, each with the first of its group."""
    near = {sense_of(word): sense_of(first) for word, first in _groups("near").items()}
    return {said: first for said, first in near.items() if said[-1] not in "+-"}


def loosely(said: str) -> str:
    """Return the first of the senses that are near one: *oppose* and *reject* are, in two tellings of one event."""
    return _near().get(said, said)


@cache
def _graded(word: str) -> str:
    """Return the plain form of a comparative that the parser took for a word of its own: *moister*."""
    for ending in ("er", "est"):
        plain = word.removesuffix(ending)
        for base in (plain, plain + "e", plain.removesuffix("i") + "y", plain[:-1]):
            if plain != word and (base in _GROUPS or base in _PAIRED):
                return base
    return word
