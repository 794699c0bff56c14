"""Equations written out: right ones are seen as right, wrong ones as wrong (SPEC-005 §5.2)."""

import pytest

from interlock.dpe.values.extraction import read
from interlock.dpe.values.reckoning.equations import equations, series_step


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("0.2 + 0.4 + 0.8 + 1.6 = 3.0 seconds", "3.6 seconds"),
        ("12 × £1,150 = £13,800 a year", "£14,800"),
        ("5 x 8 = 40 boxes", "45"),
        ("240,000 / 4 = 60,000", "80,000"),
        ("28 + 3 - 12 - 5 = 14 days", "16 days"),
        ("3 × €18.50 = €55.50", "€65.50"),
        ("2 × 3 + 4 = 10", "14"),
        ("30 kg + 12 kg = 42 kg", "44 kg"),
        ("100 / 3 ≈ 33.3", "34.3"),
    ],
)
def test_a_right_equation_is_right_and_a_bent_one_is_not(text, wrong):
    """The same left side with another result is wrong."""
    result = text.split("=")[-1].split("≈")[-1]
    right = read(text).values[-1].text
    assert [each.right for each in equations(read(text))] == [True]
    bent = text.replace(result, result.replace(right, wrong))
    assert [each.right for each in equations(read(bent))] == [False]


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    "text", ["Between 3 and 5 = odd", "The ratio is 4 : 3.", "In 2023 x rose to 5.", "a = 3 and b = 4"]
)
def test_prose_is_no_equation(text):
    """Signs alone make none."""
    assert list(equations(read(text))) == []


@pytest.mark.req("ATT-5")
def test_a_series_needs_three_amounts_and_one_factor():
    """Doubling is a factor of two; uneven steps are none."""
    assert series_step([0.2, 0.4, 0.8]) == 2.0
    assert series_step([0.2, 0.4]) is None
    assert series_step([1, 2, 5]) is None
