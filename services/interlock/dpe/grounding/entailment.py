"""Stage 4, entailment: how far the whole answer follows from the envelope (SPEC-005 §6).

The chunks are the checked claims: each fits the model whole, with its evidence. The weakest one counts, so that nothing
true around a claim can carry it. A claim that says nothing to check is no chunk: a greeting is not entailed by
anything, and it cannot be a lie either. Without facts nothing is entailed.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.dpe.document import NliScores


def weakest(scores: Sequence[NliScores]) -> NliScores | None:
    """Return the scores of the chunk that follows least; ``None`` when there is no chunk."""
    return min(scores, key=lambda one: (one.entailment, -one.contradiction), default=None)
