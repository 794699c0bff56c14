"""The statistics of the standard signals, on series with known answers (DEC-11)."""

from __future__ import annotations

import math

import pytest

from interlock.client.decision.reference import statistics

pytestmark = pytest.mark.req("DEC-11")

FLAT = [1.0] * 10
STEADY = [0.30, 0.31, 0.29, 0.30, 0.32, 0.28, 0.30, 0.31, 0.29, 0.30]


def test_the_running_best_never_rises():
    """It is the best loss so far."""
    assert statistics.running_best([3, 5, 2, 4, 1]) == [3, 3, 2, 2, 1]


def test_the_slope_of_a_line_is_its_own_and_without_error():
    """y = 2x + 1."""
    found, error = statistics.slope([1, 3, 5, 7, 9])

    assert found == pytest.approx(2)
    assert error == pytest.approx(0, abs=1e-9)


def test_the_slope_and_its_error_are_those_of_the_text_book():
    """x = 0..4, y = 1, 2, 1.3, 3.75, 2.25: slope 0.425, standard error 0.305 (R: summary(lm(y ~ x)))."""
    found, error = statistics.slope([1, 2, 1.3, 3.75, 2.25])

    assert found == pytest.approx(0.425)
    assert error == pytest.approx(0.3047, abs=1e-3)


def test_a_series_that_stands_still_is_a_plateau_and_nearly_sure():
    """Its slope is 0, and no more than 0.99 is claimed."""
    assert statistics.plateau(FLAT) == statistics.SeriesFinding(0.0, 0.99)


@pytest.mark.parametrize("losses", [FLAT[:9], [1 - 0.05 * n for n in range(12)], []])
def test_a_short_or_falling_series_is_no_plateau(losses):
    """Nine trials say nothing, and 5 % per trial is not flat."""
    assert statistics.plateau(losses) is None


def test_a_worse_trial_does_not_end_a_plateau():
    """The best loss counts, not the latest one."""
    assert statistics.plateau([*FLAT, 9.0, 5.0]) is not None


@pytest.mark.parametrize(
    ("losses", "rises", "confidence"),
    [([1, 2, 3, 4], 3, 1 - 1 / 24), ([5, 1, 2, 3, 4, 5], 4, 0.99), ([*range(9)], 8, 0.99)],
)
def test_three_rises_in_a_row_are_a_divergence(losses, rises, confidence):
    """k + 1 values are in order by chance once in (k + 1)!; no more than 0.99 is claimed."""
    assert statistics.divergence(losses) == statistics.SeriesFinding(rises, pytest.approx(confidence))


@pytest.mark.parametrize("losses", [[1, 2, 3], [1, 2, 3, 3], [1, 2, 3, 4, 3], []])
def test_two_rises_or_an_end_that_does_not_rise_are_none(losses):
    """It must be three, at the end, each above the one before it."""
    assert statistics.divergence(losses) is None


def test_a_coefficient_of_variation_above_three_tenths_is_high():
    """1 to 5: standard deviation 1.5811, mean 3."""
    found = statistics.high_variance([1, 2, 3, 4, 5])

    assert found is not None
    assert found.value == pytest.approx(0.52705, abs=1e-5)
    assert 0.5 < found.confidence < 0.99


@pytest.mark.parametrize("values", [STEADY, [1, 2, 3, 4], [1, -1, 1, -1, 0]])
def test_a_low_variance_few_values_or_no_mean_are_not_high(values):
    """At 0.3 and below, with fewer than five values, and around zero nothing is said."""
    assert statistics.high_variance(values) is None


def test_more_of_the_same_spread_is_surer():
    """Evidence grows with the number of trials."""
    few, many = statistics.high_variance([1, 2, 3, 4, 5]), statistics.high_variance([1, 2, 3, 4, 5] * 8)

    assert few is not None
    assert many is not None
    assert many.confidence > few.confidence


def test_cusum_finds_a_shift_of_the_mean_at_the_step_that_the_sums_say():
    """Each step adds (x - mean) / s - 0.5: with two deviations up 1.5, so the fourth passes 5."""
    mean, deviation = 0.30, 0.0115470
    shifted = [*STEADY, *[mean + 2 * deviation] * 4]

    assert statistics.drift(shifted[:-1]) is None
    found = statistics.drift(shifted)
    assert found is not None
    assert found.value == pytest.approx(6.0, abs=0.01)
    assert found.confidence == min(0.99, math.exp(-4 / 465))


def test_cusum_tells_a_fall_by_its_sign():
    """The lower sum."""
    found = statistics.drift([*STEADY, *[0.2] * 3])

    assert found is not None
    assert found.value < -5


@pytest.mark.parametrize("values", [STEADY, [*STEADY, *STEADY], [0.3] * 10 + [9.0]])
def test_cusum_says_nothing_of_a_steady_series_or_without_a_deviation(values):
    """Ten values are the baseline; a baseline that never moved has no scale."""
    assert statistics.drift(values) is None


def test_an_outlier_has_a_modified_z_score_above_three_and_a_half():
    """Median 0.3, median deviation 0.01: 0.4 scores 0.6745 * 0.1 / 0.01."""
    found = statistics.outlier([0.29, 0.30, 0.31, 0.29, 0.31, 0.30, 0.40])

    assert found is not None
    assert found.value == pytest.approx(6.745)
    assert statistics.outlier([0.29, 0.30, 0.31, 0.29, 0.31, 0.30, 0.32]) is None
    assert statistics.outlier([0.29, 0.30, 0.31, 0.29, 0.31, 0.30, 0.10]) is None


def test_a_flat_search_has_best_trials_close_together():
    """The eight best of sixteen lie within 2 % of one another."""
    flat = statistics.flatness([1.0, 1.01] * 8)

    assert flat is not None
    assert flat.value == 0
    assert statistics.flatness([1.0 + n / 10 for n in range(16)]) is None
    assert statistics.flatness([1.0] * 15) is None


def test_the_use_of_a_budget_is_a_part_of_it():
    """80 % of 50 is 40; of nothing all is used."""
    assert statistics.utilization(40, 50) == pytest.approx(0.8)
    assert statistics.utilization(0, 0) == 1
