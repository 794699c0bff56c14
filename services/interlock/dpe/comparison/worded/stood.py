"""Places of an event: *the drums are stored in Pier Lane*, where the only storing that the sources tell of is in Mill Lane (SPEC-005 §5.3).

An event that the sources tell of once is known by its verb. Who or what it is done to may be a pronoun there, or be worded otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import Evidence, near
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.shifts import StatedPlace

_MOSTLY = 0.5


def stood(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the place in which *claim* puts an event that its sources put in another, or ``None``."""
    for mine in claim.standings:
        if mine.denied or not mine.event or mine.where.kind is not FillerKind.NAME:
            continue
        for its, source in _told(mine, evidence):
            if not _are_two(mine.where, its.where, evidence) or not _is_close(mine, its, claim, source):
                continue
            if _is_known(mine.where, evidence) and not _may_be_there(mine, source, evidence):
                return Misbinding(
                    ENTITY_SUBSTITUTED, "place", its.where.text, mine.where.text, source.text, source.fact_id,
                    about=claim.content,
                )  # fmt: skip
    return None


def _told(mine: StatedPlace, evidence: Evidence) -> Iterator[tuple[StatedPlace, ReadSentence]]:
    """Yield where the one sentence of the sources that tells of an event puts it, where it tells of one place only."""
    about = [each for each in evidence.passages if mine.event in each.bag]
    if len(about) != 1:
        return
    placed = [each for each in about[0].standings if each.event == mine.event and each.towards == mine.towards]
    if len(placed) == 1 and placed[0].where.kind is FillerKind.NAME:
        yield placed[0], about[0]


def _are_two(one: Filler, other: Filler, evidence: Evidence) -> bool:
    """Whether two names are of two places of one sort: a street is not told from its town, nor one place from what it lies in."""
    alike = (len(one.words) > 1) is (len(other.words) > 1)
    if not alike or near(one, other) or one.all & other.all:
        return False
    return not evidence.lies_in(one, other)


def _is_close(mine: StatedPlace, its: StatedPlace, claim: ReadSentence, source: ReadSentence) -> bool:
    """Whether a claim says little else than the source, with something besides the event, and names not the source's place too."""
    told = mine.about - mine.where.all - {mine.event}
    shared = told & (its.about | source.bag)
    return bool(shared) and len(shared) >= _MOSTLY * len(told) and not its.where.words & claim.content


def _is_known(place: Filler, evidence: Evidence) -> bool:
    """Whether the sources have a name, so that it is no other word for the place that they give."""
    return any(place.text.casefold() in each.text.casefold() for each in evidence.passages)


def _may_be_there(mine: StatedPlace, source: ReadSentence, evidence: Evidence) -> bool:
    """Whether another sentence has the place with more of the claim's words than its name."""
    return any(
        each is not source and mine.where.words <= each.content and len(each.bag & mine.about - mine.where.all) > 1
        for each in evidence.passages
    )
