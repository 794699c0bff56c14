"""Cells in words: what a claim about one record takes from a sibling, such as the role of another person (SPEC-005 §5.3).

Figures are compared in ``misplaced``. A record is known by its first field that names it, and a claim that names two records of one
group compares them, so that nothing is found.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.cues import ENTITY_SUBSTITUTED
from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.placing.scopes import Scope, Scopes, Slot
from interlock.dpe.text.wordlists import word_set

_COMPARING = word_set("than unlike instead whereas while both except not")
_SHORTEST, _SHORTEST_OWN = 3, 2


def taken(claim: Claim, known: Scopes) -> Iterator[Distortion]:
    """Yield each cell in words that *claim* gives to a record and that a sibling has in its place."""
    words = _plain(claim.text).split()
    if any(word in _COMPARING or is_negator(word) for word in words):
        return
    text = f" {' '.join(words)} "
    for scope in _named(text, known):
        for place, slot in enumerate(scope.slots):
            if not _is_wordy(slot, _SHORTEST_OWN) or slot is _identity(scope) or _has(text, slot.written):
                continue
            others = (each.slots[place] for each in known.siblings(scope) if place < len(each.slots))
            other = next((o for o in others if _is_wordy(o) and _has(text, o.written) and not _is_own(o, scope)), None)
            if other is not None:
                yield Distortion(
                    ENTITY_SUBSTITUTED, slot.field.value, other.field.value, scope.fact_id, slot.field.key.noun
                )


def shared(claim: Claim, known: Scopes) -> Iterator[Distortion]:
    """Yield each cell in words that *claim* gives to two records together, *X and Y are*, and that only one of them has."""
    words = _plain(claim.text).split()
    if any(word in _COMPARING - {"both"} or is_negator(word) for word in words):
        return
    text = f" {' '.join(words)} "
    for one, other in _joined(text, known):
        for slot, beside in zip(one.slots, other.slots, strict=True):
            told = [each for each in (slot, beside) if _is_wordy(each) and _has(text, each.written)]
            untold = [each for each in (slot, beside) if each not in told]
            named = slot is _identity(one) or beside is _identity(other)
            if len(told) == len(untold) == 1 and _is_wordy(untold[0], _SHORTEST_OWN) and not named:
                yield Distortion(
                    ENTITY_SUBSTITUTED, untold[0].field.value, told[0].field.value, one.fact_id, slot.field.key.noun
                )


def _joined(text: str, known: Scopes) -> Iterator[tuple[Scope, Scope]]:
    """Yield the two records of a group that a text names one after the other, and no third."""
    groups: dict[frozenset[str], list[Scope]] = {}
    for scope in known.all:
        identity = _identity(scope)
        if identity is not None and _has(text, identity.written):
            groups.setdefault(scope.group, []).append(scope)
    for named in groups.values():
        marks = [identity.written for scope in named if (identity := _identity(scope)) is not None]
        together = len(named) == 2 and any(f" {a} and {b} " in text for a, b in (marks, marks[::-1]))
        if together and len(named[0].slots) == len(named[1].slots):
            yield named[0], named[1]


def _named(text: str, known: Scopes) -> Iterator[Scope]:
    """Yield the record of each group that a text names alone."""
    groups: dict[frozenset[str], list[Scope]] = {}
    for scope in known.all:
        identity = _identity(scope)
        if identity is not None and _has(text, identity.written):
            groups.setdefault(scope.group, []).append(scope)
    return (named[0] for named in groups.values() if len(named) == 1)


def _identity(scope: Scope) -> Slot | None:
    return next((slot for slot in scope.slots if _plain(slot.field.value) in scope.marks), None)


def _is_wordy(slot: Slot, shortest: int = _SHORTEST) -> bool:
    value = slot.field.value
    return not slot.values and len(value) >= shortest and any(map(str.isalpha, value)) and value not in {"yes", "no"}


def _is_own(slot: Slot, scope: Scope) -> bool:
    """Whether a record has a sibling's value itself, in whatever field, or as a part of its own."""
    return any(_has(f" {_plain(own.field.value)} ", _plain(slot.field.value)) for own in scope.slots)


def _has(text: str, value: str) -> bool:
    return bool(value.strip()) and f" {_plain(value)} " in text


def _plain(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())
