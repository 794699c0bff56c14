"""Predicate frames: who does what to whom, where, when and on whose word, read from the dependency parse of a sentence.

Passive voice, relative clauses, appositions, nominalisations and converse verbs are brought into one form, so that *the bank was
sued by the regulator* and *the regulator's lawsuit against the bank* fill the same slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.fillers import Filler, clause, fillers, key
from interlock.dpe.comparison.bindings.moods import (
    has_subject,
    is_conditional,
    is_finite,
    is_hypothetical,
    is_negated,
    level_of,
    modality_of,
    prefers,
)
from interlock.dpe.comparison.bindings.phrases import CAUSES, phrases_of
from interlock.dpe.comparison.bindings.relations.successions import SUCCEED, succession
from interlock.dpe.comparison.bindings.slots import CLAUSES, PARTICLES, Slots, slots_of
from interlock.dpe.text.wordlists import word_set

_AS_ROLE = word_set("join serve work act appoint name hire elect nominate confirm")
_MARKS = {"before": "precede", "after": "precede", "because": predicates.CAUSE}
_SUPPORTING = word_set("give make grant file place lodge conduct perform run submit issue take")
_ORDERED = word_set("before after")
_MOST_FRAMES = 60


@dataclass(frozen=True)
class PredicateFrame:
    """A predicate with the fillers of its slots. ``noun``: it was read from a noun, which says less surely who did what.

    ``clause`` numbers the clauses with a subject of their own, from 1 (0: no such clause), and ``level`` tells which are
    coordinated: those of one level are. ``conditional``: it holds in one case, or of one phrase, only.
    """

    predicate: str
    slots: Slots
    negated: bool = False
    modality: str = ""
    hypothetical: bool = False
    text: str = ""
    at: int = 0
    noun: bool = False
    finite: bool = True
    clause: int = 0
    level: int = 0
    written: str = field(default="", compare=False)
    conditional: bool = False

    def all(self) -> Iterator[tuple[str, Filler]]:
        """Yield every filler with its slot."""
        for slot, filled in self.slots.items():
            for each in filled:
                yield slot, each

    @cached_property
    def words(self) -> frozenset[str]:
        """The keys of its predicate, as it is written too, and of its fillers."""
        own = {self.predicate, *map(key, (self.predicate, *self.written.split()))}
        return frozenset(own | {word for _, filler in self.all() for word in filler.all})


def frames(sentence: Any) -> tuple[PredicateFrame, ...]:
    """Return the frames of a parsed sentence, a spaCy span. A sentence of very many is no prose, and gives none."""
    found = [each for token in sentence for each in _of(token)]
    text = sentence.text.strip()
    return tuple(replace(_converted(each), text=text) for each in found) if len(found) <= _MOST_FRAMES else ()


def _of(token: Any) -> Iterator[PredicateFrame]:
    if token.pos_ in {"VERB", "AUX"} and token.dep_ in CLAUSES:
        yield from _of_verb(token)
    elif token.pos_ in {"NOUN", "PROPN"}:
        yield from _of_noun(token)
    if token.lower_ == "according":
        yield from _according(token)


def _existing(verb: Any, slots: Slots, *, negated: bool) -> Iterator[PredicateFrame]:
    """Yield what has something that is there: *there are 30 stations on the line*."""
    for thing in (c for c in verb.children if c.dep_ == "attr"):
        around = {**phrases_of(verb), **phrases_of(thing)}
        for place in ("in", "on", "at"):
            if place in around:
                held = tuple(replace(f, inner=frozenset()) for f in slots["role"])
                yield PredicateFrame(
                    "have", {"agent": around[place], "object": held}, negated, at=verb.i, written=verb.text
                )


def _predicate(lemma: str, slots: Slots, verb: Any) -> str:
    """Return the predicate of a verb: *report to* is no saying, nor is any other that reports nothing."""
    if predicates.converse(lemma, frozenset(slots))[1] or (lemma in predicates.REPORTING and not _says(lemma, verb)):
        return lemma
    particle = next((c.lower_ for c in verb.children if c.dep_ == "prt"), "")
    if (lemma, particle) in predicates.PHRASAL and "object" in slots:
        return predicates.canonical(predicates.PHRASAL[lemma, particle])
    return f"{lemma} {particle}" if particle in PARTICLES else predicates.canonical(lemma)


def _of_verb(verb: Any) -> Iterator[PredicateFrame]:
    slots = slots_of(verb)
    lemma = verb.lemma_.lower()
    word = _predicate(lemma, slots, verb)
    negated, modality = is_negated(verb), modality_of(verb)
    if lemma == "be" and "role" in slots and any(c.dep_ == "expl" for c in verb.children):
        yield from _existing(verb, slots, negated=negated)
    if lemma == "be" and (adjective := _adjective(verb)) is not None:
        word, subject = predicates.canonical(adjective.lemma_.lower()), slots.pop("agent", ())
        slots = {**({"object": subject} if subject else {}), **slots, **phrases_of(adjective)}
        if word == "responsible" and (duty := _duty(subject, adjective)) is not None:
            yield replace(duty, negated=negated, at=verb.i)
    if _says(lemma, verb):
        for content in (c for c in verb.children if c.dep_ == "ccomp" and c.i != verb.i):
            slots.setdefault("object", (clause(content),))
    if not slots:
        return
    frame = PredicateFrame(
        word,
        slots,
        negated,
        modality,
        is_hypothetical(verb),
        at=verb.i,
        finite=is_finite(verb),
        clause=verb.i + 1 if has_subject(verb) else 0,
        level=level_of(verb),
        written=_verb_text(verb),
        conditional=is_conditional(verb) or (negated and prefers(verb)),
    )
    yield frame
    for cause in CAUSES:
        if cause in slots:
            yield replace(frame, predicate=predicates.CAUSE, slots={"agent": slots[cause], "object": (clause(verb),)})
    yield from _supported(frame, verb)
    yield from _succeeding(frame, verb, slots)
    if lemma in _AS_ROLE and "as" in slots and (holder := slots.get("object") or slots.get("agent")):
        yield replace(frame, predicate=predicates.BE, slots={"agent": holder, "role": slots["as"]})
    yield from _linked(verb)


def _supported(frame: PredicateFrame, verb: Any) -> Iterator[PredicateFrame]:
    """Yield the event that the object of a verb names: *gave the club a loan*, *received a loan from Ashby*."""
    noun = next((c for c in verb.children if c.dep_ in {"dobj", "nsubjpass"} and c.pos_ == "NOUN"), None)
    named = predicates.verb_of(noun.lemma_.lower()) if noun is not None else ""
    plain = _converted(frame)
    if not named or plain.predicate not in _SUPPORTING:
        return
    thing = phrases_of(noun).get("of", ())
    slots = {**{k: v for k, v in plain.slots.items() if k != "object"}, **({"object": thing} if thing else {})}
    yield replace(plain, predicate=named, slots=slots)


def _succeeding(frame: PredicateFrame, verb: Any, slots: Slots) -> Iterator[PredicateFrame]:
    """Yield who takes whose place, where a verb tells of it."""
    if places := succession(verb, slots):
        yield replace(frame, predicate=SUCCEED, slots=places, modality="")


def _adjective(verb: Any) -> Any:
    return next((c for c in verb.children if c.dep_ == "acomp" and c.pos_ == "ADJ"), None)


def _duty(subject: tuple[Filler, ...], adjective: Any) -> PredicateFrame | None:
    """Return what someone is responsible for as what they must do: *responsible for repairs to the roof*."""
    for child in adjective.children:
        for noun in (c for c in child.children if child.lower_ == "for" and c.dep_ == "pobj"):
            verb = predicates.verb_of(noun.lemma_.lower())
            inner = phrases_of(noun)
            thing = inner.get("of") or inner.get("to")
            if verb and subject and thing:
                return PredicateFrame(verb, {"agent": subject, "object": thing}, modality="must", noun=True)
    return None


def _says(lemma: str, verb: Any) -> bool:
    return lemma in predicates.REPORTING and any(c.dep_ == "ccomp" for c in verb.children)


def _verb_text(verb: Any) -> str:
    near = [c for c in verb.children if c.dep_ in {"aux", "auxpass", "neg", "acomp", "prt"} and abs(c.i - verb.i) <= 4]
    return " ".join(t.text for t in sorted((verb, *near), key=lambda t: int(t.i)))


def _linked(verb: Any) -> Iterator[PredicateFrame]:
    """Yield the order or the cause that joins two clauses: *close the valve before opening the tank*."""
    for child in verb.children:
        if (
            child.dep_ in {"conj", "dep"}
            and child.pos_ == "VERB"
            and any(c.lower_ == "then" for c in (*child.children, *verb.children))
        ):
            inside = frozenset(t.i for t in child.subtree)
            yield PredicateFrame(
                "precede", {"agent": (clause(verb, inside),), "object": (clause(child),)}, at=verb.i, written="then"
            )
        mark = next((c for c in child.children if c.dep_ == "mark" and c.lower_ in _MARKS), None)
        inner = child if child.dep_ == "advcl" and mark is not None else None
        if mark is None and child.dep_ == "prep" and child.lower_ in _ORDERED:
            mark, inner = child, next((c for c in child.children if c.dep_ == "pcomp" and c.pos_ == "VERB"), None)
        if mark is None or inner is None:
            continue
        inside = frozenset(t.i for t in child.subtree)
        outer, other = clause(verb, inside), clause(inner, frozenset({mark.i}))
        before = mark.lower_ == "before"
        if mark.lower_ in _ORDERED and is_negated(verb):
            if not before:
                continue  # not after the meal: any time but then
            before = False  # not before it is approved: once it is
        first, second = (outer, other) if before else (other, outer)
        yield PredicateFrame(
            _MARKS[mark.lower_], {"agent": (first,), "object": (second,)}, at=verb.i, written=mark.lower_
        )


def _of_noun(noun: Any) -> Iterator[PredicateFrame]:
    """Yield what a noun phrase asserts: the role of an apposition or a title, and the event that a noun nominalises."""
    for child in noun.children:
        if (
            child.dep_ == "appos"
            and child.pos_ in {"NOUN", "PROPN"}
            and not any(c.dep_ == "conj" for c in noun.children)
        ):
            name, role = (noun, child) if noun.pos_ == "PROPN" else (child, noun)
            if name.pos_ == "PROPN" and (role.pos_ == "NOUN" or any(c.dep_ == "prep" for c in role.children)):
                yield PredicateFrame(
                    predicates.BE,
                    {"agent": fillers(name)[:1], "role": fillers(role)[:1]},
                    at=noun.i,
                    noun=True,
                    written="is",
                )
    verb = predicates.verb_of(noun.lemma_.lower())
    if verb:
        phrases = phrases_of(noun)
        owner = tuple(f for c in noun.children if c.dep_ == "poss" and c.pos_ != "PRON" for f in fillers(c))
        thing = phrases.pop("against", ()) or phrases.pop("of", ()) or phrases.pop("on", ())
        agent = phrases.pop("by", ()) or owner
        slots = {**({"agent": agent} if agent else {}), **({"object": thing} if thing else {}), **phrases}
        if len(slots) > 1:
            yield PredicateFrame(verb, slots, at=noun.i, noun=True, written=noun.text)


def _according(token: Any) -> Iterator[PredicateFrame]:
    """Yield who says what: *according to Dana Cole, the delay …*."""
    verb = token.head
    for child in token.children:
        for speaker in (c for c in child.children if child.lower_ == "to" and c.dep_ == "pobj"):
            if verb.pos_ in {"VERB", "AUX"}:
                inside = frozenset(t.i for t in token.subtree)
                yield PredicateFrame(
                    predicates.SAY,
                    {"agent": fillers(speaker), "object": (clause(verb, inside),)},
                    at=verb.i,
                    written="according to",
                )


def _converted(frame: PredicateFrame) -> PredicateFrame:
    """Return a frame of the verb that its own is the converse of: B buys from A for A sells to B."""
    word, renamed = predicates.converse(frame.predicate, frozenset(frame.slots))
    if not renamed:
        return replace(frame, predicate=word)
    names = dict(renamed)
    slots = {names.get(slot, slot): filled for slot, filled in frame.slots.items() if names.get(slot, slot)}
    return replace(frame, predicate=word, slots=slots)
