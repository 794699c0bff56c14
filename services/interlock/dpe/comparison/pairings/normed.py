"""Norms turned: a claim that allows or demands what its source forbids, or forbids what it allows, in other words (SPEC-005 §5.3)."""

from __future__ import annotations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.norms import Norm, Normed
from interlock.dpe.comparison.cues import NORM
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_LEAST = 2
_ELIDED = pattern(
    r"[,;]\s*(?:(?:but|and|while|whereas)\s)?([^,;]+)\s(?:can|may|must|do|does|is|are|will)[.]?\s*\z", ignore_case=True
)
"""What the other half of a sentence is about whose verb is left out: *…, those with a ramp can*."""
_AWAITING, _THEN = word_set("before until"), word_set("after once when following")
_TURNED = frozenset(
    {
        frozenset({Norm.ALLOWED, Norm.FORBIDDEN}),
        frozenset({Norm.REQUIRED, Norm.FORBIDDEN}),
        frozenset({Norm.REQUIRED, Norm.NOT_REQUIRED}),
        frozenset({Norm.FORBIDDEN, Norm.NOT_REQUIRED}),
    }
)


def turned_norm(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the norm that *claim* turns and that no source states as it does, or ``None``."""
    for mine in claim.norms:
        for source in evidence.passages:
            for its in source.norms:
                if _is_turned(mine, its) and not (
                    _is_of_others(mine, its, source) or _comes_then(claim, source) or _is_told(mine, evidence)
                ):
                    return Misbinding(
                        NEGATION_FLIP, NORM, f"{its.norm.value}: {its.text}", f"{mine.norm.value}: {mine.text}", source.text,
                        source.fact_id, about=mine.around | {mine.act},
                    )  # fmt: skip
    return None


def _is_turned(mine: Normed, its: Normed) -> bool:
    turned = frozenset({mine.norm, its.norm}) in _TURNED or _is_demanded(mine, its)
    if not turned or its.limited or (its.excepted and mine.limited):
        return False
    wide = not its.narrow and its.norm is Norm.FORBIDDEN
    return (mine.narrow is its.narrow or wide) and _is_of_the_same(mine, its)


def _is_demanded(mine: Normed, its: Normed) -> bool:
    """Whether a claim says *must* of what its source says *may*, in every case: how to do a thing is often told as a duty."""
    strict = "must" in mine.text.split() and not mine.limited
    return strict and mine.norm is Norm.REQUIRED and its.norm is Norm.ALLOWED and mine.things == its.things


def _is_of_the_same(mine: Normed, its: Normed) -> bool:
    """Whether two norms are of one act, done to the same, and of no other place or time as far as both tell."""
    if mine.act != its.act:
        return False
    around, other = mine.around - mine.things, its.around - its.things
    if mine.things and its.things:
        apart = mine.things - its.things and its.things - mine.things
        return bool(mine.things & its.things) and not apart and (not (around and other) or bool(around & other))
    shared = mine.around & its.around
    if its.things and not mine.things:  # what the claim is about was not read, and its place alone is no act
        return bool(its.things & shared) or len(shared) >= _LEAST
    return bool(shared)


def _is_of_others(mine: Normed, its: Normed, source: ReadSentence) -> bool:
    """Whether a norm is of some and the other of others whom the same sentence tells of: *those with a ramp may, those with steps may not*."""
    own, other = mine.around - its.around, its.around - mine.around
    elided = _ELIDED.search(source.text)
    named = {key(word) for word in elided[1].lower().split()} - {mine.act} if elided else set()
    return bool(other) and bool(own & source.bag or (mine.around | mine.things) & named)


def _comes_then(claim: ReadSentence, source: ReadSentence) -> bool:
    """Whether one of them tells what may be done once that is done before which the other forbids it."""
    said = [set(each.text.lower().split()) for each in (claim, source)]
    return any(bool(_AWAITING & one and _THEN & other and not _AWAITING & other) for one, other in (said, said[::-1]))


def _is_told(mine: Normed, evidence: Evidence) -> bool:
    """Whether a source states a norm of the act as the claim does, of anything that the claim speaks of."""
    return any(
        its.norm is mine.norm and its.act == mine.act and bool(its.around & mine.around)
        for each in evidence.passages
        for its in each.norms
    )
