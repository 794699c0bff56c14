"""Stage 4, entailment: how far the whole answer follows from the envelope (SPEC-005 §6).

The chunks are the checked claims: each fits the model whole, together with its evidence. The weakest chunk counts, so
true text around a claim cannot outweigh it. A claim without checkable content is no chunk: nothing entails a greeting,
and it cannot be false either. Without facts nothing is entailed.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.dpe.document import NliScores


def weakest(scores: Sequence[NliScores]) -> NliScores | None:
    """Return the scores of the least entailed chunk, or ``None`` without a chunk."""
    return min(scores, key=lambda one: (one.entailment, -one.contradiction), default=None)
