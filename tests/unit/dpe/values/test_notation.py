"""Notation: equal values are written as the source writes them, others are left (SPEC-005 §4)."""

import pytest

from interlock.dpe.values.notation import in_notation_of


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "source", "read"),
    [
        ("It must be told within three days.", "It must be told within 72 hours.", "It must be told within 72 hours."),
        ("a 24-month warranty", "the warranty lasts two years", "a two years warranty"),
        ("a staff of twelve hundred", "employs 1,200 people", "a staff of 1,200"),
        ("a dozen eggs", "12 eggs", "12 eggs"),
        ("The rent is £900.", "a rent of 900 pounds", "The rent is 900 pounds."),
        ("It opens at 2 pm.", "opening: 14:00", "It opens at 14:00."),
        ("It is 2.5 km long.", "2500 m", "It is 2500 m long."),
    ],
)
def test_an_equal_value_takes_the_notation_of_the_source(claim, source, read):
    """Units, words and figures of one value."""
    assert in_notation_of(claim, source) == read


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("within four days", "within 72 hours"),
        ("about 70 hours", "72 hours"),
        ("the third day", "3 days"),
        ("in 2024", "2,024 people"),
        ("Article 12", "12 eggs"),
        ("15 people", "15% of people"),
    ],
)
def test_another_value_is_left(claim, source):
    """What is not exactly equal, or is of another kind, stays as it is written."""
    assert in_notation_of(claim, source) == claim
