"""The quality score and the tier that it allows (SPEC-005 §18)."""

from __future__ import annotations

import math

import pytest

from interlock.domain.policy.directives import Tier
from interlock.domain.policy.quality import QualityWeights, capped, contradiction_ratio, quality_score, tier_cap

WEIGHTS = QualityWeights()


def score(**inputs: float) -> float:
    perfect = {"repetition": 0.0, "completeness": 1.0, "flow": 1.0, "coherence": 1.0}
    return quality_score(**{**perfect, **inputs}, weights=WEIGHTS)


@pytest.mark.req("DPE-15")
@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({}, 1.00),
        ({"repetition": 1.0}, 0.75),
        ({"completeness": 0.0}, 0.65),
        ({"flow": 0.0}, 0.75),
        ({"coherence": 0.0}, 0.85),
        ({"repetition": 0.28, "completeness": 0.60, "flow": 0.34, "coherence": 0.50}, 0.18 + 0.21 + 0.085 + 0.075),
    ],
)
def test_the_weights_are_those_of_the_text(inputs, expected):
    """0.25 repetition, 0.35 completeness, 0.25 flow, 0.15 coherence (§18.2)."""
    assert score(**inputs) == pytest.approx(expected)


@pytest.mark.req("DPE-15")
@pytest.mark.parametrize(
    "weights",
    [{"flow": 0.30}, {"repetition": 0.0}, {"repetition": -0.25, "completeness": 0.85}, {"flow": math.nan}],
)
def test_weights_that_do_not_sum_to_one_are_not_made(weights):
    """Checked when they are made, so at start."""
    with pytest.raises(ValueError, match=r"sum to 1\.0"):
        QualityWeights(**weights)


@pytest.mark.req("DPE-15")
@pytest.mark.parametrize(
    ("value", "tier"),
    [
        (1.0, "S"), (0.85, "S"), (0.8499, "A"), (0.84, "A"), (0.70, "A"), (0.6999, "B"), (0.62, "B"), (0.50, "B"),
        (0.4999, "C"), (0.30, "C"), (0.2999, "D"), (0.0, "D"), (math.nan, "D"), (0.25 + 0.35 + 0.25, "S"),
    ],
)  # fmt: skip
def test_bands_of_the_tier_cap(value, tier):
    """At and around each boundary of §18.4."""
    assert tier_cap(value) == tier


@pytest.mark.req("DPE-15")
def test_the_score_lowers_a_tier_and_never_raises_it():
    """The example of §18.4, its opposite, and a score that is not known."""
    assert capped(Tier.A, 0.62) is Tier.B
    assert capped(Tier.C, 1.0) is Tier.C
    assert capped(Tier.D, None) is Tier.D


@pytest.mark.req("DPE-15")
def test_an_input_that_is_no_number_is_worst():
    """A-40: what cannot be said is not good."""
    assert score(flow=math.nan) == 0.0


@pytest.mark.req("DPE-6")
def test_the_contradiction_ratio_is_a_share_of_the_checked_claims():
    """Of none there is no share; of more than all there is all."""
    assert contradiction_ratio(contradicted=1, claims=4) == 0.25
    assert contradiction_ratio(contradicted=0, claims=0) == 0.0
    assert contradiction_ratio(contradicted=9, claims=4) == 1.0
