"""Shifts: what leaves one place or party for another, what is preferred to another, and where a clause puts what it is about (SPEC-005 §5.3).

*The depot moved from Hull to Goole*, *Goole instead of Hull* and *Goole, and no longer Hull* leave Hull behind. *The depot is in Hull
now* puts it there all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.clauses import sense
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, fillers
from interlock.dpe.comparison.bindings.moods import is_negated
from interlock.dpe.comparison.bindings.relations.pronouns import own_tokens, subject_of
from interlock.dpe.text.wordlists import word_set

_MOVING = word_set(
    "move relocate transfer shift switch migrate change convert divert reroute drive push redirect resettle evacuate bring send take go"
)
_TOWARDS = word_set("to into towards toward onto")
_IN = word_set("in at")
_OLD = word_set("from")
_OVER = (("instead", "of"), ("rather", "than"), ("in", "place", "of"), ("in", "lieu", "of"), ("and", "no", "longer"), ("and", "not"),
    (",", "not"), ("as", "opposed", "to"), ("in", "preference", "to"),
)  # fmt: skip
_NOT = word_set("not n't never longer")
_LATER = word_set("will shall would")
_NEW = word_set("now new current currently today since meanwhile nowadays")
_PAST = word_set(
    "former formerly previous previously old once until before originally initially earlier used back left leave leaving away closed "
    "first first then return returned start started starting"
)
_PARTIES = frozenset({FillerKind.NAME, FillerKind.NOUN})
_TELLING = frozenset({"NOUN", "PROPN", "VERB", "ADJ"})
_OF_CUES = word_set("place lieu")
_NEAR = 5  # words from a cue to the noun that it is about
_LONGEST = 60


@dataclass(frozen=True)
class Shift:
    """What is left behind and what may have come in its place; ``about``: the senses of its sentence. ``later``: it is still to come."""

    old: Filler
    new: tuple[Filler, ...]
    about: frozenset[str]
    moved: bool = False
    later: bool = False


@dataclass(frozen=True)
class StatedPlace:
    """A place or party in which, or to which, a clause puts what it is about. ``now``: it is so, and was not only once.

    ``plain``: its sentence neither denies nor tells of what was before, and ``denied``: it denies something. ``event``: the verb that puts it there, empty for a noun.
    """

    where: Filler
    towards: bool
    now: bool
    later: bool
    about: frozenset[str]
    plain: bool = True
    event: str = ""
    denied: bool = False


def shifts(sentence: Any) -> tuple[Shift, ...]:
    """Return the shifts of a parsed sentence, a spaCy span; none of a very long one."""
    if not 0 < len(sentence) <= _LONGEST or "|" in sentence.text:
        return ()
    chunks = [
        (c.root.i, f)
        for c in sentence.noun_chunks
        if (f := fillers(c.root)[0]).kind in _PARTIES and f.words and c.root.lower_ not in _OF_CUES
    ]
    about = _senses(sentence)
    return (
        *_moves(sentence),
        *_preferred(sentence, chunks, about),
        *_denied(sentence, chunks, about),
        *_by_default(sentence, chunks, about),
    )


def standings(sentence: Any) -> tuple[StatedPlace, ...]:
    """Return where the clauses of a parsed sentence put what they are about; nothing of a very long one, or a question."""
    lows = {t.lower_ for t in sentence}
    if not 0 < len(sentence) <= _LONGEST or "|" in sentence.text or "?" in lows:
        return ()
    plain = not lows & (_PAST | _NOT | _OLD)
    about = _senses(sentence)
    return tuple(
        StatedPlace(
            f, towards, _is_now(verb, lows), _is_later(verb), about - f.all, plain, _event(t.head), bool(lows & _NOT)
        )
        for t in sentence
        if (towards := t.lower_ in _TOWARDS) or t.lower_ in _IN
        for verb in (_verb_of(t),)
        if verb is not None
        for noun in t.children
        if noun.dep_ == "pobj"
        for f in fillers(noun)
        if f.kind in _PARTIES and f.words
    )


def _senses(tokens: Any) -> frozenset[str]:
    return frozenset(sense(t) for t in tokens if t.pos_ in _TELLING)


def _moves(sentence: Any) -> Iterator[Shift]:
    """Yield what moves *from Hull to Goole*, or *away from the mill and towards the ford*."""
    for verb in (t for t in sentence if t.pos_ == "VERB" and t.lemma_.lower() in _MOVING and not is_negated(t)):
        inside = [t for t in verb.subtree if t.i > verb.i]
        olds, news = _objects_of(inside, _OLD), _objects_of(inside, _TOWARDS)
        if len(olds) == 1 and news and not olds[0].words & news[0].all:
            subject = subject_of(verb)
            told = _senses([verb, *own_tokens(verb), *(subject.subtree if subject is not None else ())])
            yield Shift(olds[0], (news[0],), told - olds[0].all - news[0].all, moved=True, later=_is_later(verb))


def _objects_of(tokens: Sequence[Any], prepositions: frozenset[str]) -> list[Filler]:
    found = [n for t in tokens if t.lower_ in prepositions for n in t.children if n.dep_ == "pobj"]
    return [f for n in found for f in fillers(n)[:1] if f.kind in _PARTIES and f.words]


def _preferred(sentence: Any, chunks: Sequence[tuple[int, Filler]], about: frozenset[str]) -> Iterator[Shift]:
    """Yield what stands *instead of*, *rather than* or *in place of* another, *and no longer* it."""
    lows = [t.lower_ for t in sentence]
    for n in range(len(lows)):
        cue = next((each for each in _OVER if tuple(lows[n : n + len(each)]) == each), None)
        if cue is None:
            continue
        at = sentence.start + n
        old = next((f for where, f in chunks if at + len(cue) <= where <= at + len(cue) + _NEAR), None)
        new = tuple(f for where, f in chunks if where < at)
        if old is not None and new:
            yield Shift(old, new, about)


def _denied(sentence: Any, chunks: Sequence[tuple[int, Filler]], about: frozenset[str]) -> Iterator[Shift]:
    """Yield what *is not given to staff, but to the bank*: what stands before *but* is denied, and what follows is not."""
    for but in (t for t in sentence if t.lower_ == "but"):
        before = [t for t in sentence if t.i < but.i]
        if not any(t.lower_ in _NOT for t in before) or any(t.lower_ in _NOT for t in sentence if t.i > but.i):
            continue
        at = max(t.i for t in before if t.lower_ in _NOT)
        old = [f for where, f in chunks if at < where < but.i]
        new = tuple(f for where, f in chunks if but.i < where <= but.i + _NEAR)
        if len(old) == 1 and new[:1]:
            yield Shift(old[0], new[:1], about)


def _by_default(sentence: Any, chunks: Sequence[tuple[int, Filler]], about: frozenset[str]) -> Iterator[Shift]:
    """Yield what comes *unless you ask for* another, which whoever asks prefers."""
    for mark in (t for t in sentence if t.lower_ == "unless"):
        inside = {t.i for t in mark.head.subtree}
        named = [(where in inside, f) for where, f in chunks if f.kind is FillerKind.NAME]
        new, old = tuple(f for within, f in named if within), [f for within, f in named if not within]
        if new and len(old) == 1:
            yield Shift(old[0], new, about)


def _event(head: Any) -> str:
    """Return the sense of the verb that a phrase stands by; nothing of one that may be of anything."""
    general = head.pos_ != "VERB" or head.lemma_.lower() in predicates.LIGHT
    return "" if general else sense(head)


def _verb_of(preposition: Any) -> Any:
    return next((a for a in preposition.ancestors if a.pos_ in {"VERB", "AUX"}), None)


def _is_now(verb: Any, lows: set[str]) -> bool:
    """Whether a clause tells of what is so: not in the past, unless it says *since* or *new*."""
    helped = {c.lower_ for c in verb.children if c.dep_ in {"aux", "auxpass"}}
    past = verb.tag_ == "VBD" or helped & {"was", "were", "had", "did"}
    return not past or bool(lows & _NEW)


def _is_later(verb: Any) -> bool:
    return any(c.lower_ in _LATER for a in (verb, *verb.ancestors) for c in a.children if c.dep_ == "aux") or any(
        c.lower_ == "to" and c.dep_ == "aux" for c in verb.children
    )
