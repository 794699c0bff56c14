"""Stage 10, omission: important facts that an answer leaves out (SPEC-005 §12)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.inference.port import Floats

COVERED_FROM = 0.60
_SEVERITIES = (("CRITICAL", 0.90), ("HIGH", 0.80), ("MEDIUM", 0.70))


@dataclass(frozen=True)
class Omission:
    """A fact that no sentence covers, with the highest similarity of any sentence."""

    fact_id: str
    severity: str
    similarity: float


def omissions(envelope: Envelope, vectors: Floats, used: Collection[str]) -> list[Omission]:
    """Return the omitted facts in envelope order.

    *vectors* has one row for each sentence and claim of the answer. *used* are the ids of facts that a grounded claim
    rests on; such a fact is not omitted, however differently the answer puts it.
    """
    found = []
    for number, fact in enumerate(envelope.facts):
        severity = next((name for name, bound in _SEVERITIES if fact.importance >= bound), "")
        if not severity or fact.id in used:
            continue
        best = max((envelope.similarity(number, row) for row in vectors), default=0.0)
        if best < COVERED_FROM:
            found.append(Omission(fact.id, severity, best))
    return found
