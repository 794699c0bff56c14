"""The composite risk: weights, amplifiers, floors, classes (SPEC-005 §7, §16, §17)."""

from __future__ import annotations

import math

import pytest

from interlock.domain.risk.composite import (
    Amplifier,
    Calibration,
    Floor,
    RiskSignals,
    Weights,
    compose,
    fidelity_score,
)
from interlock.domain.risk.risk import RiskLevel

BEST, WORST = RiskSignals(0.0, 0.0, 0.0, 0.0), RiskSignals(1.0, 1.0, 1.0, 1.0)
DEFAULT = Calibration()


@pytest.mark.req("DPE-14")
def test_weights_are_those_of_the_settled_reading():
    """Attribution 0.35, fidelity 0.25, entailment 0.25, specificity 0.15 (reading 9)."""
    assert DEFAULT.weights == Weights(0.35, 0.25, 0.25, 0.15)


@pytest.mark.req("DPE-14")
@pytest.mark.parametrize(
    "weights",
    [
        (0.35, 0.25, 0.25, 0.16),
        (0.25, 0.25, 0.25, 0.25),
        (0.25, 0.35, 0.25, 0.15),
        (0.40, 0.25, 0.20, 0.15),
        (0.40, 0.20, 0.20, 0.20),
        (0.60, 0.25, 0.25, -0.10),
    ],
)
def test_weights_that_break_the_specification_are_refused(weights):
    """A sum other than 1.0, or another order than that of §16.2, does not start."""
    with pytest.raises(ValueError, match=r"weigh"):
        Weights(*weights)


@pytest.mark.req("DPE-14")
def test_weights_in_the_order_of_the_specification_are_taken():
    """A deployment may weigh otherwise within §16.3."""
    assert Weights(0.40, 0.25, 0.25, 0.10).attribution == 0.40


@pytest.mark.req("DPE-14")
def test_factors_keep_the_order_of_the_specification():
    """Substantial over significant over moderate over light over none (§17)."""
    factors = DEFAULT.factors
    moderate = {factors[a] for a in (Amplifier.FINANCIAL_OR_MEDICAL, Amplifier.LOOP_DEPTH)}

    assert moderate == {factors[Amplifier.CROSS_WINDOW_CONTRADICTION]}
    assert (
        factors[Amplifier.GDPR_PII]
        > factors[Amplifier.EU_AI_ACT_HIGH_RISK]
        > max(moderate)
        > factors[Amplifier.SEVERE_REPETITION]
        > 1.0
    )


@pytest.mark.req("DPE-14")
@pytest.mark.parametrize(
    ("amplifier", "factor"),
    [(Amplifier.GDPR_PII, 1.20), (Amplifier.SEVERE_REPETITION, 1.0), (Amplifier.LOOP_DEPTH, 1.30)],
)
def test_factors_out_of_order_are_refused(amplifier, factor):
    """A factor that overtakes one that must be above it does not start."""
    with pytest.raises(ValueError, match="order"):
        Calibration(factors={**DEFAULT.factors, amplifier: factor})


@pytest.mark.req("DPE-5", "DPE-14")
@pytest.mark.parametrize(
    ("signals", "base"),
    [
        (BEST, 0.0),
        (WORST, 1.0),
        (RiskSignals(1.0, 0.0, 0.0, 0.0), 0.35),
        (RiskSignals(0.0, 1.0, 0.0, 0.0), 0.25),
        (RiskSignals(0.0, 0.0, 1.0, 0.0), 0.25),
        (RiskSignals(0.0, 0.0, 0.0, 1.0), 0.15),
    ],
)
def test_base_is_the_weighted_sum(signals, base):
    """The base composite is linear in its four signals (§7.2)."""
    assert compose(signals, calibration=DEFAULT).base == pytest.approx(base)


@pytest.mark.req("DPE-14")
def test_amplifiers_multiply_and_are_capped():
    """Two amplifiers multiply; the composite ends at 1.0."""
    signals = RiskSignals(0.4, 0.4, 0.4, 0.4)
    both = compose(signals, amplifiers=[Amplifier.LOOP_DEPTH, Amplifier.GDPR_PII], calibration=DEFAULT)

    assert both.score == pytest.approx(0.4 * 1.30 * 1.15)
    assert both.amplifiers == (Amplifier.GDPR_PII, Amplifier.LOOP_DEPTH)
    assert compose(WORST, amplifiers=list(Amplifier), calibration=DEFAULT).score == 1.0


@pytest.mark.req("DPE-14")
def test_an_amplifier_leaves_a_flawless_answer_alone():
    """Personal data in an answer without any flaw does not make it risky."""
    assert compose(BEST, amplifiers=[Amplifier.GDPR_PII], calibration=DEFAULT).level is RiskLevel.LOW


OF_CALLS = {
    Floor.MISBINDING_FOUND: RiskLevel.HIGH,
    Floor.FINDING_CONFIRMED: RiskLevel.HIGH,
    Floor.UNDECLARED_TOOL: RiskLevel.CRITICAL,
    Floor.UNGROUNDED_ARGUMENT: RiskLevel.HIGH,
    Floor.UNSAID_TOOL_VALUE: RiskLevel.HIGH,
}
"""A tool call acts: one wrong amount is enough."""


@pytest.mark.req("DPE-5", "ATT-5")
@pytest.mark.parametrize("floor", list(Floor))
def test_a_floor_keeps_an_answer_from_being_low(floor):
    """One finding among many claims cannot be averaged away (reliability.md section 7, row 25)."""
    found = compose(BEST, floors=[floor], calibration=DEFAULT)

    assert (found.level, found.floors) == (OF_CALLS.get(floor, RiskLevel.MEDIUM), (floor,))


@pytest.mark.req("DPE-5")
def test_a_floor_lowers_nothing():
    """What is above the floor stays where it is."""
    assert compose(WORST, floors=[Floor.DISTORTION_FOUND], calibration=DEFAULT).level is RiskLevel.CRITICAL


@pytest.mark.req("DPE-5")
@pytest.mark.parametrize(
    ("score", "level"),
    [(0.1999, "LOW"), (0.20, "MEDIUM"), (0.4499, "MEDIUM"), (0.45, "HIGH"), (0.6999, "HIGH"), (0.70, "CRITICAL")],
)
def test_classes_begin_where_the_specification_says(score, level):
    """The thresholds of §7.4 belong to the higher class."""
    assert compose(RiskSignals(score, score, score, score), calibration=DEFAULT).level.name == level


@pytest.mark.parametrize("position", range(4))
def test_a_signal_that_is_no_number_is_critical(position):
    """A-40: NaN never averages into something harmless."""
    values = [0.0] * 4
    values[position] = math.nan

    assert compose(RiskSignals(*values), calibration=DEFAULT).level is RiskLevel.CRITICAL


@pytest.mark.parametrize(("value", "base"), [(math.inf, 1.0), (-math.inf, 0.0), (7.0, 1.0), (-0.0, 0.0)])
def test_a_signal_out_of_range_is_clamped(value, base):
    """A-40: no signal counts for more than 1.0 or less than 0.0."""
    assert compose(RiskSignals(value, value, value, value), calibration=DEFAULT).base == base


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("counts", "score"),
    [((0, 0, 0, 5), 1.0), ((1, 0, 0, 1), 0.7), ((0, 1, 0, 1), 0.8), ((0, 0, 1, 1), 0.85), ((1, 1, 1, 10), 0.935), ((9, 9, 9, 2), 0.0), ((0, 0, 0, 0), 1.0)],
)  # fmt: skip
def test_fidelity_is_the_formula_of_the_specification(counts, score):
    """§5.5, clamped, with the claims in the denominator and never zero."""
    fabrications, distortions, contradictions, claims = counts
    found = fidelity_score(
        fabrications=fabrications, distortions=distortions, contradictions=contradictions, claims=claims
    )
    assert found == pytest.approx(score)
