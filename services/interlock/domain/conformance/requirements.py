"""Checks that the calibration in use meets the normative figures (SPEC-005 §7.4, §16, §17, §18; SPEC-012 §2).

``Calibration``, ``QualityWeights`` and ``Decrements`` reject invalid values when they are made. The specification also fixes
constants. They are compared with the printed figures, so that a changed constant stops the service instead of shifting every
verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise

from interlock.domain.budget import (
    CAUTION_FROM,
    DEFAULT_DECREMENTS,
    EXHAUSTED_AT,
    HALF_OPEN_AT,
    OPEN_AT,
    RANGES,
    Decrements,
    as_decimal,
)
from interlock.domain.policy import quality
from interlock.domain.policy.directives import Tier
from interlock.domain.policy.quality import QualityWeights
from interlock.domain.risk import risk
from interlock.domain.risk.composite import Amplifier, Calibration

RISK_THRESHOLDS = {"CRITICAL": 0.70, "HIGH": 0.45, "MEDIUM": 0.20}
QUALITY_WEIGHTS = {"repetition": 0.25, "completeness": 0.35, "flow": 0.25, "coherence": 0.15}
TIER_BOUNDS = ((Tier.S, 0.85), (Tier.A, 0.70), (Tier.B, 0.50), (Tier.C, 0.30))
BUDGET_BANDS = {"caution": 500_000, "low": 250_000, "depleted": 100_000, "exhausted": 0}
_SLACK = 1e-9


@dataclass(frozen=True)
class Check:
    """One requirement of the specification and whether it is met. ``found`` describes the values in use."""

    demand: str
    source: str
    met: bool
    found: str


def checks(calibration: Calibration, weights: QualityWeights, decrements: Decrements) -> tuple[Check, ...]:
    """Return every check, in the order of the specification."""
    return (
        *_risk(calibration),
        *_quality(weights),
        *_budget(decrements),
    )


def require(calibration: Calibration, weights: QualityWeights, decrements: Decrements = DEFAULT_DECREMENTS) -> None:
    """Raise ``ValueError`` with the first requirement that is not met. A service calls it at its start."""
    for check in checks(calibration, weights, decrements):
        if not check.met:
            raise ValueError(f"{check.demand} ({check.source}); in use: {check.found}")


def _risk(calibration: Calibration) -> Iterator[Check]:
    used = {"CRITICAL": risk.CRITICAL_FROM, "HIGH": risk.HIGH_FROM, "MEDIUM": risk.MEDIUM_FROM}
    yield Check("risk thresholds are 0.70, 0.45 and 0.20", "SPEC-005 §7.4", used == RISK_THRESHOLDS, _told(used))
    bounds = [
        (bound + shift, level if shift >= 0 else level - 1)
        for level, bound in zip(risk.RiskLevel, (None, *sorted(RISK_THRESHOLDS.values())), strict=True)
        if bound is not None
        for shift in (0.0, -1e-6)
    ]
    right = all(risk.classify(score) == level for score, level in bounds)
    yield Check("a score at a threshold has the higher class", "SPEC-005 §7.4", right, "as classified")
    given = asdict(calibration.weights)
    total = math.fsum(given.values())
    yield Check("the composite's weights sum to 1.0", "SPEC-005 §16.3", abs(total - 1.0) <= _SLACK, f"{total:.9g}")
    first, second, third, last = (given[name] for name in ("attribution", "fidelity", "entailment", "specificity"))
    ordered = first > second > last >= 0.0 and math.isclose(second, third, abs_tol=_SLACK)
    yield Check(
        "attribution weighs most, fidelity and entailment the same, specificity least", "SPEC-005 §16.2", ordered,
        _told(given),
    )  # fmt: skip
    factors = {amplifier.value: calibration.factors[amplifier] for amplifier in Amplifier}
    yield Check(
        "amplifiers keep their order: substantial, significant, moderate, light", "SPEC-005 §17",
        _amplifiers_ordered(calibration), _told(factors),
    )  # fmt: skip


def _amplifiers_ordered(calibration: Calibration) -> bool:
    of = calibration.factors
    moderate = (of[Amplifier.FINANCIAL_OR_MEDICAL], of[Amplifier.LOOP_DEPTH], of[Amplifier.CROSS_WINDOW_CONTRADICTION])
    ranks = [
        (of[Amplifier.GDPR_PII],), (of[Amplifier.EU_AI_ACT_HIGH_RISK],), moderate, (of[Amplifier.SEVERE_REPETITION],),
        (1.0,),
    ]  # fmt: skip
    return all(min(above) > max(below) for above, below in pairwise(ranks))


def _quality(weights: QualityWeights) -> Iterator[Check]:
    given = asdict(weights)
    yield Check(
        "the quality score weighs 0.25, 0.35, 0.25 and 0.15", "SPEC-005 §18.2",
        given.keys() == QUALITY_WEIGHTS.keys()
        and all(math.isclose(given[name], QUALITY_WEIGHTS[name], abs_tol=_SLACK) for name in given),
        _told(given),
    )  # fmt: skip
    tiers = list(Tier)
    edges = [(bound, tier) for tier, bound in TIER_BOUNDS]
    edges += [(bound - 0.001, tiers[tiers.index(tier) + 1]) for tier, bound in TIER_BOUNDS]
    edges += [(1.0, Tier.S), (0.0, Tier.D)]
    yield Check(
        "the quality score caps the tier at 0.85, 0.70, 0.50 and 0.30", "SPEC-005 §18.4",
        all(quality.tier_cap(score) is tier for score, tier in edges),
        _told({tier.value: bound for tier, bound in quality.TIER_BOUNDS}),
    )  # fmt: skip
    kept = (
        all(tiers.index(quality.capped(tier, score)) >= tiers.index(tier) for tier in tiers for score, _ in edges)
        and quality.capped(Tier.A, 0.62) is Tier.B
    )
    yield Check("a quality score lowers a tier and never raises it", "SPEC-005 §18.4", kept, "A at 0.62 is B")


def _budget(decrements: Decrements) -> Iterator[Check]:
    costs = {level.name: decrements.of(level) for level in RANGES}
    yield Check(
        "each decrement is within its range", "SPEC-012 §2.2",
        all(least <= costs[level.name] <= most for level, (least, most) in RANGES.items()),
        ", ".join(f"{name} {as_decimal(cost)}" for name, cost in costs.items()),
    )  # fmt: skip
    bands = {
        "caution": HALF_OPEN_AT, "low": CAUTION_FROM, "depleted": OPEN_AT, "exhausted": EXHAUSTED_AT,
    }  # fmt: skip
    yield Check(
        "the budget's bands end at 0.50, 0.25, 0.10 and 0.00", "SPEC-012 §2.3",
        {name: int(bound) for name, bound in bands.items()} == BUDGET_BANDS,
        ", ".join(f"{name} {as_decimal(bound)}" for name, bound in bands.items()),
    )  # fmt: skip


def _told(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())
