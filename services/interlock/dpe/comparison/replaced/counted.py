"""Counts of another size: *two dogs*, where each family may bring *one dog* (SPEC-005 §5.2).

A number is compared with those that the sources give to the same noun, in sentences that speak of all that the claim speaks of: so many
of some of them are another count. If none of them is the claim's, it is not the source's, wherever else in the sources the number stands.
"""

from __future__ import annotations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.counts import Count
from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.replaced.own_piece import is_part_of, stands_in_own_piece
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import frame
from interlock.dpe.values.quantities import same

_YOURS = pattern(
    r"\b(?:you have|you've|your|yours|i have|i've|my|if|only|instead|rather|more|fewer|less|other|another|extra"
    r"|about|around|roughly|nearly|almost|some|over|approximately|up to|in (?:two|three|four|five|six|seven|eight|nine|ten|\d+)|of (?:the|these|those|them))\b",
    ignore_case=True,
)
"""What the user has, a case, or a comparison: none of it is a count of the sources'."""

COUNT = "count"
_LIGHT = frozenset(map(key, word_set("take bring get have allow permit need use carry hold total person least most")))


def counted(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the count of *claim* that its sources give otherwise, or ``None``."""
    nouns = [one.noun for one in claim.counts]
    if not nouns or len(set(nouns)) < len(nouns) or has_negator(claim.text) or _YOURS.search(claim.text):
        return None
    for mine in claim.counts:
        told = [(its, source) for source in evidence.passages for its in source.counts if its.noun == mine.noun]
        if not told or any(its.amount == mine.amount for its, _ in told):
            continue
        rest = claim.content - _LIGHT - {mine.noun, key(mine.text.lower())}
        for its, source in told:
            if (
                rest <= source.content
                and not has_negator(source.text)
                and not _is_another_part(mine, its, claim, source)
            ):
                return Misbinding(
                    NUMBER_CHANGED, COUNT, its.text, mine.text, source.text, source.fact_id, about=claim.content
                )
    return None


def _is_another_part(mine: Count, its: Count, claim: ReadSentence, source: ReadSentence) -> bool:
    """Whether a source's count is of the whole, and the claim's of a part that it gives: *18 of the 24 pallets*, *of eleven dogs, eight passed*."""
    claimed, told = frame(claim.text), frame(source.text)
    values = [each for each in claimed.values if each.amount == mine.amount and not each.unit]
    rivals = [each for each in told.values if each.amount == its.amount and not each.unit]
    return any(
        stands_in_own_piece(value, rival, claimed, told)
        or any(same(value, each) and is_part_of(each, rival, told) for each in told.values)
        for value in values
        for rival in rivals
    )
