"""Counts of another size: *two dogs*, where each family may bring *one dog* (SPEC-005 §5.2).

A number is compared with those that the sources give to the same noun, in sentences that speak of something else that the claim speaks
of too. If none of them is the claim's, it is not the source's, wherever else in the sources the number stands.
"""

from __future__ import annotations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_YOURS = pattern(
    r"\b(?:you have|you've|your|yours|i have|i've|my|if|only|instead|rather|more|fewer|other|another|extra)\b",
    ignore_case=True,
)
"""What the user has, a case, or a comparison: none of it is a count of the sources'."""

COUNT = "count"
_LIGHT = frozenset(map(key, word_set("take bring get have allow permit need use carry hold total person")))


def counted(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the count of *claim* that its sources give otherwise, or ``None``."""
    if not claim.counts or has_negator(claim.text) or _YOURS.search(claim.text):
        return None
    for mine in claim.counts:
        told = [(its, source) for source in evidence.passages for its in source.counts if its.noun == mine.noun]
        if not told or any(its.amount == mine.amount for its, _ in told):
            continue
        rest = claim.content - _LIGHT - {mine.noun}
        for its, source in told:
            if len(rest & source.content) >= min(len(rest), 1) and not has_negator(source.text):
                return Misbinding(
                    NUMBER_CHANGED, COUNT, its.text, mine.text, source.text, source.fact_id, about=claim.content
                )
    return None
