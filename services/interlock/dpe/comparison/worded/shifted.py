"""Shifts turned round: *the depot is in Hull now*, where the source has it move from Hull to Goole (SPEC-005 §5.3).

A claim is held against what its sources leave behind: it may not put the same thing there, and what it prefers may not be what they
prefer another to.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, same
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.shifts import Shift, StatedPlace
from interlock.dpe.text.patterns import pattern

_BACK = pattern(
    r"\b(?:(?:and|move[sd]?|moving|went|goes?|c[ao]mes?|brought) back|returned|vice versa|temporar\w*)\b",
    ignore_case=True,
)


def shifted(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* keeps in the place that it left, or prefers to what is preferred to it, or ``None``."""
    for source in evidence.passages:
        for its in source.shifts if not _BACK.search(source.text) else ():
            for said, stated in (*_stayed(claim, its, source, evidence), *_turned(claim, its, evidence)):
                return Misbinding(
                    ENTITY_SUBSTITUTED, "place" if its.moved else "choice", stated.text, said.text, source.text,
                    source.fact_id, about=claim.content,
                )  # fmt: skip
    return None


def _stayed(
    claim: ReadSentence, its: Shift, source: ReadSentence, evidence: Evidence
) -> Iterator[tuple[Filler, Filler]]:
    """Yield where a claim puts something, and where the source moved it from there."""
    if not its.moved or _names(claim, its.new[0]):
        return
    for mine in (each for each in claim.standings if each.plain):
        if not _is_one(mine.where, its.old) or _is_one(mine.where, its.new[0]) or not _holds_then(mine, its):
            continue
        if mine.about & its.about - its.old.all and not _is_told(mine, its, source, evidence):
            yield mine.where, its.new[0]


def _holds_then(mine: StatedPlace, its: Shift) -> bool:
    """Whether a claim speaks of the time after the move: of one that is still to come, it must do so itself."""
    return mine.towards or (mine.later if its.later else mine.now)


def _is_told(mine: StatedPlace, its: Shift, source: ReadSentence, evidence: Evidence) -> bool:
    """Whether another sentence of the sources has the place and what the claim says of it."""
    told = mine.about - its.old.all
    return any(
        each is not source and its.old.words <= each.content and 2 * len(told & each.bag) > len(told)
        for each in evidence.passages
    )


def _turned(claim: ReadSentence, its: Shift, evidence: Evidence) -> Iterator[tuple[Filler, Filler]]:
    """Yield what a claim prefers to another, of which the source prefers the other to it."""
    for mine in claim.shifts:
        preferred = [f for f in mine.new if _is_one(f, its.old)]
        crossed = any(_is_one(mine.old, f) for f in its.new) and not _is_one(mine.old, its.old)
        if crossed and not any(_agrees(mine, each) for e in evidence.passages for each in e.shifts):
            yield from ((f, mine.old) for f in preferred)


def _agrees(mine: Shift, other: Shift) -> bool:
    """Whether a source leaves behind the same."""
    return _is_one(mine.old, other.old) and any(_is_one(f, g) for f in mine.new for g in other.new)


def _names(claim: ReadSentence, place: Filler) -> bool:
    return bool(place.words) and place.words <= claim.content


def _is_one(one: Filler, other: Filler) -> bool:
    return same(one, other) or (one.kind is other.kind is FillerKind.NAME and bool(one.words & other.words))
