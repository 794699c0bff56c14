"""Ties: how near the words of a sentence stand to each party in it, whatever predicate joins them (SPEC-005 §5.3).

A frame is compared slot by slot, which needs a predicate of the same sense. Ties need none: *Corvo buys from growers and sells to
Mill & Co* ties *growers* to Corvo and not to Mill & Co, and so does *the growers deliver to Corvo*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.dpe.comparison.bindings.clauses import sense, sense_of
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, fillers
from interlock.dpe.comparison.bindings.frames import PredicateFrame
from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, SUBJECTS
from interlock.dpe.comparison.bindings.predicates import LIGHT
from interlock.dpe.values.frames import STOP

_LONGEST = 60
_MOST_PARTIES = 10
_PARTIES = frozenset({FillerKind.NAME, FillerKind.NOUN})
_TOLD = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "NUM"})
_PERSONAL = frozenset({"he", "she", "it", "they", "him", "them"})
_POINTING = frozenset({"this", "that", "these", "those"})
_REPEATING = frozenset({"every", "each"})
_CLAUSES = frozenset({"advcl", "relcl", "ccomp", "parataxis", "conj", "dep"})
_APART = 2  # how much farther another clause is
_ROLES = frozenset({"agent", "object", "to", "from"})


@dataclass(frozen=True)
class Tie:
    """A party of a sentence: the steps from it to each sense, the senses of its own phrase, and the roles that it has."""

    party: Filler
    steps: Mapping[str, int]
    inside: frozenset[str]
    roles: frozenset[str]


@dataclass(frozen=True)
class Ties:
    """The parties of a sentence with their ties, the steps to each sense from the pronoun nearest to it, and the senses of names."""

    parties: tuple[Tie, ...] = ()
    pronouns: Mapping[str, int] = field(default_factory=dict)
    names: frozenset[str] = frozenset()


NONE = Ties()


def ties(sentence: Any, frames: tuple[PredicateFrame, ...]) -> Ties:
    """Return the ties of a parsed sentence, a spaCy span. A very long one has none."""
    if not 0 < len(sentence) <= _LONGEST:
        return NONE
    heads = [(t, f) for t in sentence if _heads(t) and (f := fillers(t)[0]).kind in _PARTIES and f.words]
    if len(heads) > _MOST_PARTIES:
        return NONE
    told = [(t, sense(t)) for t in sentence if _tells(t)]
    roles = tuple(_roles(frames))
    parties = tuple(
        Tie(f, _steps(t, told), _inside(t, told), frozenset(r for r, other in roles if other.words & f.words))
        for t, f in heads
    )
    pronouns: dict[str, int] = {}
    for token in sentence:
        if _points(token):
            for word, far in _steps(token, told).items():
                pronouns[word] = min(far, pronouns.get(word, far))
    return Ties(parties, pronouns, frozenset(word for token, word in told if token.pos_ == "PROPN"))


def _points(token: Any) -> bool:
    """Whether a word stands for a party that is named elsewhere: *she*, and *that* of *the children from that stop*."""
    if token.lower_ in _POINTING:
        return bool(token.dep_ == "det")
    return token.lower_ in _PERSONAL and (token.lower_ != "it" or token.dep_ in SUBJECTS | PASSIVE_SUBJECTS)


def _heads(token: Any) -> bool:
    times = any(c.lower_ in _REPEATING and c.dep_ == "det" for c in token.children)  # after every storm
    return token.pos_ in {"NOUN", "PROPN"} and token.dep_ not in {"compound", "nmod", "npadvmod"} and not times


def _tells(token: Any) -> bool:
    low = token.lower_
    return (
        (token.pos_ in _TOLD or token.like_num)
        and low not in STOP
        and token.lemma_.lower() not in LIGHT
        and any(c.isalnum() for c in low)
    )


def _roles(frames: tuple[PredicateFrame, ...]) -> Iterator[tuple[str, Filler]]:
    for frame in frames:
        if frame.predicate not in LIGHT and not frame.negated:
            for slot, filler in frame.all():
                if slot in _ROLES:
                    yield f"{sense_of(frame.predicate)}:{slot}", filler


def _inside(head: Any, told: list[tuple[Any, str]]) -> frozenset[str]:
    """Return the senses of the phrase of a noun: its title, its complements, what is coordinated with it or in apposition to it."""
    top = head
    while (top.dep_ in {"appos", "conj"} or (top.dep_ == "pobj" and top.head.lower_ == "of")) and top.head.i != top.i:
        top = top.head if top.dep_ != "pobj" else top.head.head
    own = set(_phrase(top))
    return frozenset(word for token, word in told if token.i in own)


def _phrase(head: Any) -> Iterator[int]:
    yield head.i
    for child in head.children:
        if child.dep_ not in _CLAUSES - {"conj"} | {"acl"} and child.pos_ not in {"VERB", "AUX"}:
            yield from _phrase(child)


def _steps(head: Any, told: list[tuple[Any, str]]) -> dict[str, int]:
    up = {token.i: far for token, far in _upwards(head)}
    found: dict[str, int] = {}
    for token, word in told:
        for above, far in _upwards(token):
            if above.i in up:
                found[word] = min(far + up[above.i], found.get(word, 99))
                break
    return found


def _upwards(token: Any) -> Iterator[tuple[Any, int]]:
    """Yield a token and all that govern it, each with the steps to it."""
    far = 0
    yield token, far
    while token.head.i != token.i:
        far += 1 + (_APART if token.dep_ in _CLAUSES and token.pos_ in {"VERB", "AUX"} else 0)
        token = token.head
        yield token, far
