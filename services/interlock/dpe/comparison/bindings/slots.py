"""Slots of a verb: its own arguments, those that it shares with other verbs, and its prepositional phrases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, clause, fillers, key, key_of, named
from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, SUBJECTS, has_subject
from interlock.dpe.comparison.bindings.phrases import phrases_of
from interlock.dpe.text.wordlists import word_set

Slots = Mapping[str, tuple[Filler, ...]]
CLAUSES = frozenset({"ROOT", "conj", "advcl", "ccomp", "xcomp", "relcl", "acl", "pcomp", "parataxis", "dep"})
_BOUND_TO_NOUN = word_set("to from for against over at in on into with when")
PARTICLES = frozenset({"on", "off"})
_TIMES = word_set("once twice thrice hourly daily weekly monthly quarterly yearly annually")
_RELATIVE = word_set("who which that")
_LINKING = word_set("and but or while whereas that which who")
_UNITS = frozenset(
    map(
        key,
        word_set(
            "second minute hour day week month year percent degree metre meter kilometre mile foot inch kilo kilogram gram tonne litre"
            " euro dollar pound franc cent vote point goal seat run length"
        ),
    )
)
_MEANS = frozenset(
    map(
        key,
        word_set(
            "telephone phone email mail post letter fax text sms courier hand bus train tram car taxi boat ship ferry plane air sea road rail"
            " bicycle bike cash card cheque transfer law default mistake accident chance name number weight vote lot appointment"
        ),
    )
)
_LONGEST_SUBJECT = 4


def slots_of(verb: Any) -> dict[str, tuple[Filler, ...]]:
    """Return the slots of a verb. What a passive does to its agent and its object is undone."""
    passive = _is_passive(verb)
    slots = _arguments(verb, passive=passive)
    place = "object" if passive else "agent"
    if place not in slots:
        before = _subject_before(verb) if is_misread(verb) else None
        slots |= {place: (before,)} if before else _shared(verb, passive=passive)
    phrases = {**_of_object(verb), **phrases_of(verb)}
    for name in _repeated(verb):  # wool from Peru and cotton from Egypt: which belongs to which is not clear
        phrases.pop(name, None)
    if passive and "by" in phrases and not any(_is_means(f) for f in phrases["by"]):
        slots["agent"] = phrases.pop("by")
    stranded = next(
        (
            c.lower_
            for c in verb.children
            if c.dep_ in {"prep", "prt"}
            and c.lower_ not in PARTICLES
            and (verb.lemma_.lower(), c.lower_) not in predicates.PHRASAL
            and not any(True for _ in c.children)
        ),
        "",
    )
    if passive and stranded and "object" in slots:  # the trial was presided over by …
        slots[stranded] = slots.pop("object")
    return {**phrases, **slots}


def _is_means(filler: Filler) -> bool:
    """Whether a phrase with *by* tells how, or how much, and nobody who acts: *by telephone*, *by five minutes*."""
    measured = filler.kind in {FillerKind.VALUE, FillerKind.TIME} or (bool(filler.amount) and filler.head in _UNITS)
    return measured or (filler.words == {filler.head} and filler.head in _MEANS and " " not in filler.text)


def _arguments(verb: Any, *, passive: bool) -> dict[str, tuple[Filler, ...]]:
    slots: dict[str, tuple[Filler, ...]] = {}
    for child in verb.children:
        if child.dep_ in SUBJECTS | PASSIVE_SUBJECTS:
            slots["object" if passive or child.dep_ in PASSIVE_SUBJECTS else "agent"] = _resolved(child)
        elif child.dep_ == "dobj" and child.tag_ not in {"WDT", "WP"}:
            slots["object"] = named(child)
        elif child.dep_ == "dative" and child.pos_ != "ADP":
            slots["to"] = fillers(child)
        elif child.dep_ == "attr":
            slots["role"] = fillers(child)
        elif child.dep_ == "advmod" and child.lower_ in _TIMES:
            slots["how"] = (Filler(child.text, FillerKind.VALUE, child.lower_, frozenset({child.lower_})),)
    return slots


def _of_object(verb: Any) -> dict[str, tuple[Filler, ...]]:
    """Return the phrases of an object that may be the verb's: *exports cars to China*."""
    objects = [c for c in verb.children if c.dep_ in {"dobj", "nsubjpass"} and c.tag_ not in {"WDT", "WP"}]
    return {k: v for each in objects for k, v in phrases_of(each).items() if k in _BOUND_TO_NOUN}


def _repeated(verb: Any) -> frozenset[str]:
    """Return the prepositions that occur twice in what a verb governs, with a coordination between."""
    inside = [t for t in _own(verb) if t.i > verb.i]
    names = [t.lower_ for t in inside if t.dep_ in {"prep", "dative"}]
    joined = any(t.dep_ == "cc" for t in inside)
    return frozenset(name for name in names if joined and names.count(name) > 1 and name != "by")


def _own(head: Any) -> Iterator[Any]:
    """Yield the tokens that a verb governs without those of other clauses."""
    for child in head.children:
        if child.pos_ not in {"VERB", "AUX"} or child.dep_ not in CLAUSES:
            yield child
            yield from _own(child)


def _is_passive(verb: Any) -> bool:
    helped = any(c.dep_ == "auxpass" for c in verb.children)
    reduced = verb.dep_ in {"acl", "advcl"} and verb.tag_ == "VBN" and not any(c.dep_ == "aux" for c in verb.children)
    shared = verb.dep_ == "conj" and verb.tag_ == "VBN" and _is_passive(verb.head) and not has_subject(verb)
    named = verb.dep_ == "conj" and verb.tag_ in {"VBN", "VBD"} and any(c.dep_ == "agent" for c in verb.children)
    return helped or reduced or named or (shared and not any(c.dep_ in {"aux", "dobj"} for c in verb.children))


def _resolved(subject: Any) -> tuple[Filler, ...]:
    """Return the fillers of a subject: of a relative pronoun, its antecedent."""
    if subject.lower_ in _RELATIVE and subject.head.dep_ == "relcl":
        return _borrowed(fillers(subject.head.head))
    return (clause(subject),) if subject.pos_ in {"VERB", "AUX"} else named(subject)


def _borrowed(filled: tuple[Filler, ...]) -> tuple[Filler, ...]:
    return tuple(replace(each, borrowed=True) for each in filled)


def _shared(verb: Any, *, passive: bool) -> dict[str, tuple[Filler, ...]]:
    """Return the subject that a verb takes from its head: the antecedent, or the subject of its governor or neighbour."""
    place = "object" if passive else "agent"
    if verb.dep_ == "acl":
        return {place: _borrowed(fillers(verb.head))} if verb.tag_ in {"VBN", "VBG"} else {}
    if verb.dep_ not in {"conj", "xcomp"} or verb.head.pos_ not in {"VERB", "AUX"} or verb.head.i == verb.i:
        return {}
    if verb.dep_ == "xcomp" and any(c.dep_ == "dobj" for c in verb.head.children):
        return {place: _borrowed(fillers(next(c for c in verb.head.children if c.dep_ == "dobj")))}
    above = next((c for c in verb.head.children if c.dep_ in SUBJECTS | PASSIVE_SUBJECTS), None)
    if above is not None:
        return {place: _resolved(above)}
    inherited = next(iter(_shared(verb.head, passive=False).values()), ())
    return {place: inherited} if inherited else {}


def is_misread(verb: Any) -> bool:
    """Whether a parse denies a verb the subject right before it: *port 443 is closed* with *port* as a verb."""
    if has_subject(verb) or verb.dep_ not in {"conj", "ROOT", "ccomp", "advcl"}:
        return bool(verb.dep_ == "dep")
    first = min((verb, *(c for c in verb.children if c.dep_ in {"aux", "auxpass"})), key=lambda t: int(t.i))
    if first.i == verb.sent.start or first.tag_ not in {"VBZ", "VBP", "VBD", "MD"}:
        return verb.dep_ == "conj" and verb.tag_ == "VB" and verb.head.tag_ in {"VBZ", "VBD"} and first is verb
    return verb.doc[first.i - 1].pos_ in {"NOUN", "PROPN", "NUM"}


def _subject_before(verb: Any) -> Filler | None:
    """Return the subject that stands right before a verb, whose parse missed it; an unknown one where it is not clear."""
    first = min((verb, *(c for c in verb.children if c.dep_ in {"aux", "auxpass"})), key=lambda t: int(t.i))
    words: list[Any] = []
    for token in reversed(verb.doc[verb.sent.start : first.i]):
        if token.is_punct or token.dep_ == "cc" or token.lower_ in _LINKING or len(words) == _LONGEST_SUBJECT:
            break
        words.append(token)
    named = [t for t in reversed(words) if t.pos_ != "DET"]
    text = " ".join(t.text for t in reversed(words))
    sure = 0 < len(named) < _LONGEST_SUBJECT and not any(t.dep_ in {"aux", "auxpass", "prep"} for t in named)
    if not sure:
        return Filler(text, FillerKind.UNKNOWN, "", frozenset())
    keys = frozenset(key_of(t) for t in named)
    labels = frozenset(key_of(t) for t in named if t.text.isdigit() or (len(t.text) <= 2 and not t.text.islower()))
    return Filler(
        text,
        FillerKind.NAME if labels else FillerKind.NOUN,
        key_of(named[0] if labels else named[-1]),
        keys,
        labels=labels,
    )
