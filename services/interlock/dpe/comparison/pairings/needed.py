"""Needs turned: a claim that can do without what its source says it needs, or needs what it can do without (SPEC-005 §5.3)."""

from __future__ import annotations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.needs import StatedNeed


def turned_need(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* needs, or does without, against all that its sources say of it; or ``None``."""
    stated = [(each, source) for source in evidence.passages for each in source.needs]
    for mine in claim.needs:
        about = [(its, source) for its, source in stated if _is_of_the_same(mine, its)]
        if not about or any(its.needed is mine.needed for its, _ in about):
            continue
        its, source = about[0]
        return Misbinding(
            NEGATION_FLIP,
            "condition",
            _told(its),
            _told(mine),
            source.text,
            source.fact_id,
            about=mine.around | mine.own,
        )
    return None


def _is_of_the_same(mine: StatedNeed, its: StatedNeed) -> bool:
    """Whether two needs are of one thing, for something that both speak of."""
    apart = mine.own - its.own and its.own - mine.own
    return mine.thing == its.thing and not apart and bool(mine.around & its.around)


def _told(need: StatedNeed) -> str:
    return f"{'needs' if need.needed else 'needs no'} {need.text}"
