"""The quality score, which rates usefulness rather than truth, and the best tier that it allows (SPEC-005 §18)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from interlock.domain.policy.directives import Tier

_SLACK = 1e-9
FIRST_WINDOW_FLOW = 1.0
"""Flow of an answer without an earlier one: nothing was interrupted, so it has no penalty."""

TIER_BOUNDS = ((Tier.S, 0.85), (Tier.A, 0.70), (Tier.B, 0.50), (Tier.C, 0.30))
"""Lowest score → best tier, best first. Below the last score the tier is D (§18.4)."""


@dataclass(frozen=True)
class QualityWeights:
    """Weight of each input (§18.2). Raises ``ValueError`` unless the weights sum to 1.0."""

    repetition: float = 0.25
    completeness: float = 0.35
    flow: float = 0.25
    coherence: float = 0.15

    def __post_init__(self) -> None:
        """Check that the weights sum to 1.0 and that none is negative."""
        weights = asdict(self).values()
        if not all(weight >= 0.0 for weight in weights) or abs(math.fsum(weights) - 1.0) > _SLACK:
            raise ValueError("the quality weights must be 0.0 or more and sum to 1.0 (SPEC-005 §18.2)")


def quality_score(
    *, repetition: float, completeness: float, flow: float, coherence: float, weights: QualityWeights
) -> float:
    """Return the quality score, 0.0 worst, 1.0 best (§18.2).

    *repetition* is the repetition ratio: the larger of 4-gram overlap and semantic ratio, because either alone makes an
    answer repetitive (§9.2). *coherence* is 1.0 less the contradiction ratio. NaN as an input makes the score 0.0; an
    input out of range is clamped.
    """
    inputs = {"repetition": 1.0 - repetition, "completeness": completeness, "flow": flow, "coherence": coherence}
    if any(math.isnan(value) for value in inputs.values()):
        return 0.0
    return _clamped(math.fsum(weight * _clamped(inputs[name]) for name, weight in asdict(weights).items()))


def contradiction_ratio(*, contradicted: int, claims: int) -> float:
    """Return the share of the checked claims that contradict another claim, of this window or an earlier one."""
    return _clamped(contradicted / claims) if claims > 0 else 0.0


def tier_cap(score: float) -> Tier:
    """Return the best tier that *score* allows (§18.4). NaN allows D."""
    return next((tier for tier, bound in TIER_BOUNDS if score >= bound - _SLACK), Tier.D)


def capped(tier: Tier, score: float | None) -> Tier:
    """Return *tier*, lowered to what *score* allows and never raised. An unknown score changes nothing."""
    order = list(Tier)
    return tier if score is None else max(tier, tier_cap(score), key=order.index)


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))
