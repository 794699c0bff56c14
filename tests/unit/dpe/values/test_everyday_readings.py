"""Readings of everyday figures: units of the kitchen, fractions of a unit, days of a range, LaTeX (SPEC-005 §5.2)."""

import pytest

from interlock.dpe.values.extraction import read


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("3/4 cup", 0.177441, "volume"),
        ("1 1/2 cups", 0.354882, "volume"),
        ("2 tbsp", 0.0295736, "volume"),
        ("8 fl oz", 0.236588, "volume"),
        ("half a pound", 0.5, "pound"),
        ("5/16 of an inch", 0.0079375, "length"),
        ("12 stone", 76.20348, "mass"),
        ("68 F", 20.0, "temperature"),
        (r"\(11{,}222.40\)", 11222.40, ""),
    ],
)
def test_an_everyday_amount_is_read(text, amount, unit):
    """One value with its unit."""
    (value,) = read(text).values
    assert value.amount == pytest.approx(amount)
    assert value.unit == unit


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize("text", ["open 24/7", "3 C batteries", "the 9/11 report"])
def test_what_only_looks_like_one_is_none(text):
    """24/7 is no fraction and C no degree of batteries."""
    assert all(not value.unit or value.label for value in read(text).values)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize("text", ["23 to 26 June 2026", "23–26 June 2026", "June 23–26, 2026"])
def test_both_days_of_a_range_are_dates(text):
    """The month and the year stand with one of them."""
    days = [value.moment for value in read(text).values]
    assert [(day.months, day.day) for day in days if day] == [((6, 6), 23), ((6, 6), 26)]


@pytest.mark.req("ATT-5")
def test_a_count_after_a_date_is_no_day():
    """May 3 to 5 people."""
    assert read("May 3 to 5 people").values[-1].moment is None
    hour = read("From May 3 to 7 pm").values[-1].moment
    assert hour is not None
    assert hour.minute == 19 * 60


@pytest.mark.req("ATT-5")
def test_a_short_weekday_belongs_to_its_date():
    """WED 6 MAY is one date."""
    (day,) = read("WED 6 MAY").values
    assert day.moment is not None
    assert (day.moment.day, day.moment.weekday) == (6, 2)
