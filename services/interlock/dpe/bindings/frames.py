"""Predicate frames: who does what to whom, where, when and on whose word, read from the dependency parse of a sentence.

Passive voice, relative clauses, appositions, nominalisations and converse verbs are brought into one form, so that *the bank was
sued by the regulator* and *the regulator's lawsuit against the bank* fill the same slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from interlock.dpe.bindings import predicates
from interlock.dpe.bindings.fillers import Filler, Kind, clause, fillers, key_of
from interlock.dpe.text.wordlists import word_set

Slots = Mapping[str, tuple[Filler, ...]]
_SUBJECTS = frozenset({"nsubj", "csubj"})
_PASSIVE_SUBJECTS = frozenset({"nsubjpass", "csubjpass"})
_CLAUSES = frozenset({"ROOT", "conj", "advcl", "ccomp", "xcomp", "relcl", "acl", "pcomp", "parataxis", "dep"})
_BOUND_TO_NOUN = word_set("to from for against over at in on by into with")
_MUST = word_set("must shall")
_MAY = word_set("may might could can")
_OBLIGED = word_set("have need oblige require compel")
_CARRIED_OUT = word_set("begin start continue manage tend use come get commence proceed happen seem appear be")
_AS_ROLE = word_set("join serve work act appoint name hire elect nominate")
_MARKS = {"before": "precede", "after": "precede", "because": predicates.CAUSE}
_ORDERED = word_set("before after")
_PARTS = frozenset({"in favour of", "in favor of", "on behalf of", "because of", "due to", "instead of", "in front of"})
_AHEAD = word_set("ahead")
_RELATIVE = word_set("who which that")
_LINKING = word_set("and but or while whereas that which who")
_LONGEST_SUBJECT = 4
_MOST_FRAMES = 60


@dataclass(frozen=True)
class Frame:
    """A predicate with the fillers of its slots. ``noun``: it was read from a noun, which says less surely who did what.

    ``clause`` numbers the clauses with a subject of their own, from 1 (0: no such clause), and ``level`` tells which are
    coordinated: those of one level are.
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

    def all(self) -> Iterator[tuple[str, Filler]]:
        """Yield every filler with its slot."""
        for slot, filled in self.slots.items():
            for each in filled:
                yield slot, each


def frames(sentence: Any) -> tuple[Frame, ...]:
    """Return the frames of a parsed sentence, a spaCy span. A sentence of very many is no prose, and gives none."""
    found = [each for token in sentence for each in _of(token)]
    text = sentence.text.strip()
    return tuple(replace(_converted(each), text=text) for each in found) if len(found) <= _MOST_FRAMES else ()


def _of(token: Any) -> Iterator[Frame]:
    if token.pos_ in {"VERB", "AUX"} and token.dep_ in _CLAUSES:
        yield from _of_verb(token)
    elif token.pos_ in {"NOUN", "PROPN"}:
        yield from _of_noun(token)
    if token.lower_ == "according":
        yield from _according(token)


def _existing(verb: Any, slots: Slots, *, negated: bool) -> Iterator[Frame]:
    """Yield what has something that is there: *there are 30 stations on the line*."""
    for thing in (c for c in verb.children if c.dep_ == "attr"):
        around = {**_phrases(verb), **_phrases(thing)}
        for place in ("in", "on", "at"):
            if place in around:
                held = tuple(replace(f, inner=frozenset()) for f in slots["role"])
                yield Frame("have", {"agent": around[place], "object": held}, negated, at=verb.i, written=verb.text)


def _predicate(lemma: str, slots: Slots, verb: Any) -> str:
    """Return the predicate of a verb: *report to* is no saying, nor is any other that reports nothing."""
    if predicates.converse(lemma, frozenset(slots))[1] or (lemma in predicates.REPORTING and not _says(lemma, verb)):
        return lemma
    return predicates.canonical(lemma)


def _is_misread(verb: Any) -> bool:
    """Whether a parse denies a verb the subject right before it: *port 443 is closed* with *port* as a verb."""
    if _has_subject(verb) or verb.dep_ not in {"conj", "ROOT", "ccomp", "advcl"}:
        return verb.dep_ == "dep"
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
        return Filler(text, Kind.UNKNOWN, "", frozenset())
    keys = frozenset(key_of(t) for t in named)
    labels = frozenset(key_of(t) for t in named if t.text.isdigit() or (len(t.text) <= 2 and not t.text.islower()))
    return Filler(
        text, Kind.NAME if labels else Kind.NOUN, key_of(named[0] if labels else named[-1]), keys, labels=labels
    )


def _of_verb(verb: Any) -> Iterator[Frame]:
    slots = _slots(verb)
    lemma = verb.lemma_.lower()
    word = _predicate(lemma, slots, verb)
    negated, modality = _negated(verb), _modality(verb)
    if lemma == "be" and "role" in slots and any(c.dep_ == "expl" for c in verb.children):
        yield from _existing(verb, slots, negated=negated)
    if lemma == "be" and (adjective := _adjective(verb)) is not None:
        word, subject = predicates.canonical(adjective.lemma_.lower()), slots.pop("agent", ())
        slots = {**({"object": subject} if subject else {}), **slots, **_phrases(adjective)}
        if word == "responsible" and (duty := _duty(subject, adjective)) is not None:
            yield replace(duty, negated=negated, at=verb.i)
    if _says(lemma, verb):
        for content in (c for c in verb.children if c.dep_ == "ccomp" and c.i != verb.i):
            slots.setdefault("object", (clause(content),))
    if not slots:
        return
    frame = Frame(
        word,
        slots,
        negated,
        modality,
        _hypothetical(verb),
        at=verb.i,
        finite=_is_finite(verb),
        clause=verb.i + 1 if _has_subject(verb) else 0,
        level=_level(verb),
        written=_verb_text(verb),
    )
    yield frame
    for cause in ("because of", "due to"):
        if cause in slots:
            yield replace(frame, predicate=predicates.CAUSE, slots={"agent": slots[cause], "object": (clause(verb),)})
    if lemma in _AS_ROLE and "as" in slots and (holder := slots.get("object") or slots.get("agent")):
        yield replace(frame, predicate=predicates.BE, slots={"agent": holder, "role": slots["as"]})
    yield from _linked(verb)


def _slots(verb: Any) -> dict[str, tuple[Filler, ...]]:
    """Return the slots of a verb: its own arguments, those that it shares, and its prepositional phrases."""
    slots: dict[str, tuple[Filler, ...]] = {}
    passive = _is_passive(verb)
    for child in verb.children:
        if child.dep_ in _SUBJECTS:
            slots["object" if passive else "agent"] = _resolved(child)
        elif child.dep_ in _PASSIVE_SUBJECTS:
            slots["object"] = _resolved(child)
        elif child.dep_ == "dobj" and child.tag_ not in {"WDT", "WP"}:
            slots["object"] = fillers(child)
        elif child.dep_ == "dative" and child.pos_ != "ADP":
            slots["to"] = fillers(child)
        elif child.dep_ == "attr":
            slots["role"] = fillers(child)
    if ("object" if passive else "agent") not in slots:
        place = "object" if passive else "agent"
        before = _subject_before(verb) if _is_misread(verb) else None
        slots = {**({place: (before,)} if before else _shared(verb, passive=passive)), **slots}
    for child in verb.children:  # a phrase after the object may be the verb's: exports cars to China
        if child.dep_ in {"dobj", "nsubjpass"} and child.tag_ not in {"WDT", "WP"}:
            slots = {**{k: v for k, v in _phrases(child).items() if k in _BOUND_TO_NOUN and k != "by"}, **slots}
    phrases = _phrases(verb)
    for name in _repeated(verb):  # wool from Peru and cotton from Egypt: which belongs to which is not clear
        slots.pop(name, None)
        phrases.pop(name, None)
    if passive and "by" in phrases:
        slots["agent"] = phrases.pop("by")
    for child in verb.children:  # the trial was presided over by …
        if passive and child.dep_ in {"prep", "prt"} and not any(True for _ in child.children) and "object" in slots:
            slots[child.lower_] = slots.pop("object")
    return {**slots, **phrases}


def _repeated(verb: Any) -> frozenset[str]:
    """Return the prepositions that occur twice in what a verb governs, with a coordination between."""
    inside = [t for t in _own(verb) if t.i > verb.i]
    names = [t.lower_ for t in inside if t.dep_ in {"prep", "dative"}]
    joined = any(t.dep_ == "cc" for t in inside)
    return frozenset(name for name in names if joined and names.count(name) > 1 and name != "by")


def _own(head: Any) -> Iterator[Any]:
    """Yield the tokens that a verb governs without those of other clauses."""
    for child in head.children:
        if child.pos_ not in {"VERB", "AUX"} or child.dep_ not in _CLAUSES:
            yield child
            yield from _own(child)


def _is_passive(verb: Any) -> bool:
    helped = any(c.dep_ == "auxpass" for c in verb.children)
    reduced = verb.dep_ in {"acl", "advcl"} and verb.tag_ == "VBN" and not any(c.dep_ == "aux" for c in verb.children)
    shared = verb.dep_ == "conj" and verb.tag_ == "VBN" and _is_passive(verb.head) and not _has_subject(verb)
    return helped or reduced or (shared and not any(c.dep_ in {"aux", "dobj"} for c in verb.children))


def _has_subject(verb: Any) -> bool:
    return any(c.dep_ in _SUBJECTS | _PASSIVE_SUBJECTS for c in verb.children)


def _resolved(subject: Any) -> tuple[Filler, ...]:
    """Return the fillers of a subject: of a relative pronoun, its antecedent."""
    if subject.lower_ in _RELATIVE and subject.head.dep_ == "relcl":
        return _borrowed(fillers(subject.head.head))
    return (clause(subject),) if subject.pos_ in {"VERB", "AUX"} else fillers(subject)


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
    above = next((c for c in verb.head.children if c.dep_ in _SUBJECTS | _PASSIVE_SUBJECTS), None)
    if above is not None:
        return {place: _resolved(above)}
    return {place: found for found in _shared(verb.head, passive=False).values()}


def _phrases(head: Any) -> dict[str, tuple[Filler, ...]]:
    """Return the prepositional phrases of a verb, adjective or noun by preposition. Times have a slot of their own."""
    found: dict[str, tuple[Filler, ...]] = {}
    for child in head.children:
        if child.dep_ == "advmod" and child.lower_ in _AHEAD:
            for inner in (c for c in child.children if c.dep_ == "prep"):
                filled = tuple(f for c in inner.children if c.dep_ == "pobj" for f in fillers(c))
                found |= {f"{child.lower_} {inner.lower_}": filled} if filled else {}
        if child.dep_ == "pcomp" and child.lower_ == "to" and head.lower_ == "due":
            found["to"] = tuple(f for c in child.children if c.dep_ == "pobj" for f in fillers(c))
        if child.dep_ not in {"prep", "agent", "dative"} or child.pos_ not in {"ADP", "SCONJ", "ADJ", "ADV", "VERB"}:
            continue
        name, at = child.lower_, child
        if name == "according":
            continue
        for inner in child.children:
            if inner.dep_ in {"prep", "pcomp"} and f"{name} {inner.lower_}" in _PARTS:
                name, at = f"{name} {inner.lower_}", inner
            elif name == "than" and inner.dep_ == "prep":
                at = inner
            elif inner.dep_ == "pobj":
                for nested in inner.children:
                    if nested.dep_ == "prep" and f"{name} {inner.lower_} {nested.lower_}" in _PARTS:
                        name, at = f"{name} {inner.lower_} {nested.lower_}", nested
        filled = tuple(
            f
            for c in (*at.children, *(child.children if at is not child else ()))
            if c.dep_ == "pobj" and c.lower_ not in {"favour", "favor"}
            for f in fillers(c)
        )
        filled += tuple(clause(c) for c in at.children if c.dep_ == "pcomp" and c.pos_ == "VERB")
        times = tuple(f for f in filled if f.kind is Kind.TIME and name not in _ORDERED)
        rest = tuple(f for f in filled if f not in times)
        if times:
            found["when"] = times
        if rest:
            found[name] = (*found.get(name, ()), *rest)
    return found


def _adjective(verb: Any) -> Any:
    return next((c for c in verb.children if c.dep_ == "acomp" and c.pos_ == "ADJ"), None)


def _duty(subject: tuple[Filler, ...], adjective: Any) -> Frame | None:
    """Return what someone is responsible for as what they must do: *responsible for repairs to the roof*."""
    for child in adjective.children:
        for noun in (c for c in child.children if child.lower_ == "for" and c.dep_ == "pobj"):
            verb = predicates.verb_of(noun.lemma_.lower())
            inner = _phrases(noun)
            thing = inner.get("of") or inner.get("to")
            if verb and subject and thing:
                return Frame(verb, {"agent": subject, "object": thing}, modality="must", noun=True)
    return None


def _says(lemma: str, verb: Any) -> bool:
    return lemma in predicates.REPORTING and any(c.dep_ == "ccomp" for c in verb.children)


def _negated(verb: Any) -> bool:
    own = any(c.dep_ == "neg" or c.lower_ in {"never", "not"} or _is_no_longer(c) for c in verb.children)
    none = any(
        c.dep_ in {*_SUBJECTS, *_PASSIVE_SUBJECTS, "dobj"}
        and (c.lower_ in {"nobody", "none", "nothing"} or any(g.lower_ in {"no", "neither"} for g in c.children))
        for c in verb.children
    )
    above = verb.dep_ == "xcomp" and verb.head.pos_ in {"VERB", "AUX", "ADJ"} and verb.head.i != verb.i
    governed = above and (verb.head.lemma_.lower() in predicates.REFUSING) != _negated(verb.head)
    return (own or none) != bool(governed)


def _is_no_longer(adverb: Any) -> bool:
    return adverb.lower_ in {"longer", "more"} and any(c.lower_ == "no" for c in adverb.children)


def _modality(verb: Any) -> str:
    helped = {c.lower_ for c in verb.children if c.dep_ == "aux"}
    if helped & _MUST or (verb.dep_ == "xcomp" and verb.head.lemma_.lower() in _OBLIGED):
        return "must"
    return "may" if helped & _MAY else ""


def _hypothetical(verb: Any) -> bool:
    """Whether a clause states no event: a condition, a question, what somebody wants or asks for."""
    if any(c.lower_ == "to" and c.dep_ == "aux" for c in verb.children) and not _is_carried_out(verb):
        return True
    for token in (verb, *verb.ancestors):
        if any(c.dep_ == "mark" and c.lower_ in {"if", "unless", "whether"} for c in token.children):
            return True
        if token.dep_ in {"xcomp", "ccomp"} and token.head.lemma_.lower() in predicates.HYPOTHETICAL:
            return True
        if token.dep_ in {"ROOT", "relcl"}:
            break
    return verb.sent.text.rstrip().endswith("?")


def _level(verb: Any) -> int:
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


def _is_carried_out(verb: Any) -> bool:
    """Whether an infinitive is what happens or must: *has to pay*, *failed to pay*, *began to pay*, but not *a bid to pay*."""
    return verb.dep_ == "xcomp" and verb.head.lemma_.lower() in _OBLIGED | predicates.REFUSING | _CARRIED_OUT


def _is_finite(verb: Any) -> bool:
    helped = any(c.dep_ in {"aux", "auxpass"} and c.lower_ != "to" for c in verb.children)
    return (
        helped
        or verb.tag_ in {"VBD", "VBZ", "VBP"}
        or (verb.dep_ == "xcomp" and _is_carried_out(verb))
        or (verb.tag_ == "VB" and verb.dep_ in {"ROOT", "conj"})
    )


def _verb_text(verb: Any) -> str:
    near = [c for c in verb.children if c.dep_ in {"aux", "auxpass", "neg", "acomp", "prt"} and abs(c.i - verb.i) <= 4]
    return " ".join(t.text for t in sorted((verb, *near), key=lambda t: int(t.i)))


def _linked(verb: Any) -> Iterator[Frame]:
    """Yield the order or the cause that joins two clauses: *close the valve before opening the tank*."""
    for child in verb.children:
        if (
            child.dep_ in {"conj", "dep"}
            and child.pos_ == "VERB"
            and any(c.lower_ == "then" for c in (*child.children, *verb.children))
        ):
            inside = frozenset(t.i for t in child.subtree)
            yield Frame(
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
        first, second = (outer, other) if mark.lower_ == "before" else (other, outer)
        yield Frame(_MARKS[mark.lower_], {"agent": (first,), "object": (second,)}, at=verb.i, written=mark.lower_)


def _of_noun(noun: Any) -> Iterator[Frame]:
    """Yield what a noun phrase asserts: the role of an apposition or a title, and the event that a noun nominalises."""
    for child in noun.children:
        if (
            child.dep_ == "appos"
            and child.pos_ in {"NOUN", "PROPN"}
            and not any(c.dep_ == "conj" for c in noun.children)
        ):
            name, role = (noun, child) if noun.pos_ == "PROPN" else (child, noun)
            if name.pos_ == "PROPN" and (role.pos_ == "NOUN" or any(c.dep_ == "prep" for c in role.children)):
                yield Frame(
                    predicates.BE,
                    {"agent": fillers(name)[:1], "role": fillers(role)[:1]},
                    at=noun.i,
                    noun=True,
                    written="is",
                )
    verb = predicates.verb_of(noun.lemma_.lower())
    if verb:
        phrases = _phrases(noun)
        owner = tuple(f for c in noun.children if c.dep_ == "poss" and c.pos_ != "PRON" for f in fillers(c))
        thing = phrases.pop("against", ()) or phrases.pop("of", ()) or phrases.pop("on", ())
        agent = phrases.pop("by", ()) or owner
        slots = {**({"agent": agent} if agent else {}), **({"object": thing} if thing else {}), **phrases}
        if len(slots) > 1:
            yield Frame(verb, slots, at=noun.i, noun=True, written=noun.text)


def _according(token: Any) -> Iterator[Frame]:
    """Yield who says what: *according to Dana Cole, the delay …*."""
    verb = token.head
    for child in token.children:
        for speaker in (c for c in child.children if child.lower_ == "to" and c.dep_ == "pobj"):
            if verb.pos_ in {"VERB", "AUX"}:
                inside = frozenset(t.i for t in token.subtree)
                yield Frame(
                    predicates.SAY,
                    {"agent": fillers(speaker), "object": (clause(verb, inside),)},
                    at=verb.i,
                    written="according to",
                )


def _converted(frame: Frame) -> Frame:
    """Return a frame of the verb that its own is the converse of: B buys from A for A sells to B."""
    word, renamed = predicates.converse(frame.predicate, frozenset(frame.slots))
    if not renamed:
        return replace(frame, predicate=word)
    names = dict(renamed)
    slots = {names.get(slot, slot): filled for slot, filled in frame.slots.items() if names.get(slot, slot)}
    return replace(frame, predicate=word, slots=slots)
