"""Transfers turned round: *the parish rents the hall from the museum*, where the source has the museum rent it (SPEC-005 §5.3).

Who gives and who receives is held against the sources whatever verb says it. A source in which something of the kind passes the
claim's way supports it, and so may one that does not say who is meant.
"""

from __future__ import annotations

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, same
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.transfers import TELLS, Handover
from interlock.dpe.text.wordlists import word_set

_SPEAKING = frozenset(map(predicates.canonical, predicates.REPORTING | word_set("ask order instruct advise answer agree refuse request write"))) - {
    "warn", "report", "announce"
}  # fmt: skip
_SLOTS = {TELLS: "told-by"}


def transferred(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return who gives in *claim* what its sources have him receive, or ``None``."""
    for mine in claim.transfers if "|" not in claim.text else ():
        told = [(its, source) for source in evidence.passages for its in source.transfers if its.kind == mine.kind]
        straight = [
            its
            for its, _ in told
            if _matches(mine.giver, its.giver, evidence) and _matches(mine.receiver, its.receiver, evidence)
        ]
        for its, source in told:
            if mine.kind == TELLS and _speaks(mine.giver, evidence):
                continue
            if _is_turned(mine, its, evidence) and not any(_supports(mine, each, its) for each in straight):
                return Misbinding(
                    ENTITY_SUBSTITUTED, _SLOTS.get(mine.kind, "giver"), its.giver.text, mine.giver.text, source.text,
                    source.fact_id, about=frozenset({*mine.giver.words, *mine.receiver.words, mine.verb, *mine.thing}),
                )  # fmt: skip
    return None


def _is_turned(mine: Handover, its: Handover, evidence: Evidence) -> bool:
    """Whether two transfers are of one thing, as far as both name it, and each party is at the other end."""
    if not (_matches(mine.giver, its.receiver, evidence) and _matches(mine.receiver, its.giver, evidence)):
        return False
    crossed = _alike(mine.giver, its.receiver) + _alike(mine.receiver, its.giver)
    kept = _alike(mine.giver, its.giver) + _alike(mine.receiver, its.receiver)
    return crossed > kept and (bool(mine.thing & its.thing) or mine.verb == its.verb or mine.kind != "hands")


def _speaks(giver: Filler, evidence: Evidence) -> bool:
    """Whether the sources have somebody say, ask or answer something, so that he may have told it to the one who told him."""
    return any(
        each.frame.predicate in _SPEAKING and any(_is_one(giver, f) for f in each.frame.slots.get("agent", ()))
        for each in evidence.bound
    )


def _supports(mine: Handover, straight: Handover, turned: Handover) -> bool:
    """Whether a source's transfer the claim's way may be the claim's: not where it is of another thing than the turned one's."""
    other = bool(mine.thing and straight.thing) and not mine.thing & straight.thing
    return not (other and mine.thing & turned.thing)


def _matches(one: Filler, other: Filler, evidence: Evidence) -> bool:
    return _is_one(one, other) or evidence.linked(one, other)


def _is_one(one: Filler, other: Filler) -> bool:
    return same(one, other) or (one.kind is other.kind is FillerKind.NAME and bool(one.words & other.words))


def _alike(one: Filler, other: Filler) -> float:
    """Return how much of two parties' words both have: of *the insurer* and *Anna's insurer*, a part."""
    return len(one.all & other.all) / len(one.all | other.all) if one.all | other.all else 0.0
