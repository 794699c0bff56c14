"""Plans told as facts: *the regulator approved the merger*, where the merger still needs the approval (SPEC-005 §5.3).

A claim that tells an event as done is held against every sentence of the sources that tells of that event and shares a word with it.
If each of them only plans it, awaits it or asks for it, nobody said that it happened.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.events import ToldEvent


def realised(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the event that *claim* tells as done and its sources only as still to come, or ``None``."""
    coming = {each.event for each in claim.events if not each.done}
    for mine in claim.events:
        if not mine.done or mine.event in coming:
            continue
        about = [
            (its, source) for source in evidence.passages for its in source.events if _is_the_same(mine, its, source)
        ]
        if about and not any(its.done for its, _ in about) and not _is_told_again(mine, about, evidence):
            its, source = about[0]
            return Misbinding(
                CONTEXT_STRIPPED, "certainty", its.text, mine.text, source.text, source.fact_id, about=claim.content
            )
    return None


def _is_told_again(mine: ToldEvent, about: Sequence[tuple[ToldEvent, ReadSentence]], evidence: Evidence) -> bool:
    """Whether another sentence of the sources speaks of the event, which may say what became of it: *the vote took place*."""
    known = {source.text for _, source in about}
    names = {key(mine.event), *(key(word.lower()) for its, _ in about for word in its.text.split()[-1:])}
    return any(names & source.content for source in evidence.passages if source.text not in known)


def _is_the_same(mine: ToldEvent, its: ToldEvent, source: ReadSentence) -> bool:
    """Whether two events have one verb, and something around them in common, unless the claim says nothing else."""
    shared = mine.around & (its.around | source.content)
    return mine.event == its.event and (bool(shared) or not mine.around)
