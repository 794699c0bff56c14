"""Passages: what a part of a source has of a claim, its words, its figures, or a unit of the envelope (ATT-7)."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.dpe.comparison.value_conflicts import EnvelopeValues, untraced
from interlock.dpe.document import Claim
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.support import content_stems
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import Value

_SMALL = 12


def shared(claim: str, text: str) -> float:
    """Return the share of a claim's words that a text has."""
    words = content_stems(claim)
    return len(words & content_stems(text)) / len(words) if words else 0.0


def values_elsewhere(claim: Claim, cited: str, envelope: Envelope) -> bool:
    """Whether a figure of a claim stands in the facts, and not in the cited ones."""
    lacking = {value.text for value in untraced(claim.text, _values([cited])) if _tells_apart(value)}
    if not lacking:
        return False
    nowhere_at_all = {value.text for value in untraced(claim.text, _values([fact.content for fact in envelope.facts]))}
    return bool(lacking - nowhere_at_all)


def _tells_apart(value: Value) -> bool:
    """Whether a value shows which source it is from: not a bare small count, which stands in many."""
    return bool(value.unit) or value.moment is not None or abs(value.amount or 0.0) > _SMALL


def _values(texts: Sequence[str]) -> EnvelopeValues:
    return EnvelopeValues([value for text in texts for value in read(text).values if not value.vague])


def stands_in(unit: str, passages: Sequence[str], content: str) -> bool:
    """Whether a unit of a fact is a part of these passages of it."""
    if any(len(passage) >= len(content) - 12 for passage in passages):
        return True
    plain = " ".join(unit.split()).casefold()
    tail = plain[-40:]
    return any(tail in " ".join(passage.split()).casefold() for passage in passages)
