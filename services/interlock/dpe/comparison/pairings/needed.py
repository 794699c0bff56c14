"""Needs turned: a claim that can do without what its source says it needs, or needs what it can do without (SPEC-005 §5.3)."""

from __future__ import annotations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.needs import StatedNeed
from interlock.dpe.comparison.bindings.relations.norms import Norm, Normed
from interlock.dpe.text.patterns import pattern

_STRICT = pattern(r"\b(?:must|has to|have to|obliged|required|compulsory|mandatory|obligatory)\b", ignore_case=True)
"""*Should* may tell what is recommended."""


def turned_need(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* needs, or does without, against all that its sources say of it; or ``None``."""
    stated = [(each, source) for source in evidence.passages for each in source.needs]
    for mine in (each for each in claim.needs if not each.advised):
        about = [(its, source) for its, source in stated if _is_of_the_same(mine, its)]
        if not about or any(its.needed is mine.needed for its, _ in about):
            continue
        its, source = about[0]
        if _is_told_shortly(mine, claim, source):
            continue
        return Misbinding(
            NEGATION_FLIP,
            "condition",
            _told(its),
            _told(mine),
            source.text,
            source.fact_id,
            about=mine.around | mine.own,
        )
    return _demanded(claim, evidence) or _obliged(claim, evidence)


def _obliged(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the thing with which *claim* says something must be done, and that its source only recommends or leaves open."""
    if _STRICT.search(claim.text) is None:
        return None
    for mine in claim.norms:
        if mine.norm is not Norm.REQUIRED or mine.limited or not mine.things or _is_demanded_elsewhere(mine, evidence):
            continue
        for source in evidence.passages:
            for its in source.needs:
                if its.said and not its.needed and mine.things == frozenset(map(key, its.words)):
                    return Misbinding(
                        NEGATION_FLIP, "condition", _told(its), f"must {mine.text}", source.text, source.fact_id,
                        about=mine.around | {mine.act},
                    )  # fmt: skip
    return None


def _is_demanded_elsewhere(mine: Normed, evidence: Evidence) -> bool:
    """Whether a source demands something of the same things itself."""
    return any(
        its.norm is Norm.REQUIRED and bool(its.things & mine.things) for each in evidence.passages for its in each.norms
    ) or any(
        its.needed and bool(frozenset(map(key, its.words)) & mine.things)
        for each in evidence.passages
        for its in each.needs
    )


def _is_told_shortly(mine: StatedNeed, claim: ReadSentence, source: ReadSentence) -> bool:
    """Whether a source tells a claim's need of its own subject without repeating it: *two-node clusters need one, three-node ones do not*."""
    return any(
        bool(each.senses) and not each.event and each.negated is not mine.needed and each.senses <= claim.bag
        for each in source.clauses
        if not each.senses & mine.own
    )


def _demanded(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the thing that *claim* needs and its source only allows, or needs and may leave, as its acts tell; or ``None``."""
    for mine in (each for each in claim.needs if not each.advised):
        stated = [(its, source) for source in evidence.passages for its in source.norms if _is_done_to(its, mine)]
        if any((its.norm is Norm.REQUIRED) is mine.needed for its, _ in stated):
            continue
        for its, source in stated:
            return Misbinding(
                NEGATION_FLIP, "condition", f"{its.norm.value}: {its.text}", _told(mine), source.text, source.fact_id,
                about=mine.around | mine.own,
            )  # fmt: skip
    return None


def _is_done_to(norm: Normed, need: StatedNeed) -> bool:
    """Whether a norm that no case limits is of an act done to just what is needed."""
    plain = not (norm.limited or norm.narrow or norm.excepted) and norm.norm is not Norm.FORBIDDEN
    return plain and bool(norm.things) and norm.things == frozenset(map(key, need.words))


def _is_of_the_same(mine: StatedNeed, its: StatedNeed) -> bool:
    """Whether two needs are of one thing, for something that both speak of."""
    apart = mine.own - its.own and its.own - mine.own
    if its.excepted and mine.needed is not its.needed and mine.around - its.around:
        return False  # of a case of its own, which may be the one that the source excepts
    return (
        mine.thing == its.thing and not apart and (bool(mine.around & its.around) or (its.said and mine.own == its.own))
    )


def _told(need: StatedNeed) -> str:
    return f"{'needs' if need.needed else 'needs no'} {need.text}"
