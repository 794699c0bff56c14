"""Frequencies: how often something happens follows in whatever words, and another frequency does not (ATT-5, SPEC-005 §5.2)."""

import pytest

from interlock.dpe.values.reckoning.frequencies import settled_frequencies


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "value", "wrong", "source"),
    [
        ("Change the oil every {}.", "three months", "two months", "The oil is changed four times a year."),
        ("They are paid {} a year.", "four times", "five times", "The staff is paid quarterly."),
        ("The boat calls every {}.", "seven days", "five days", "The boat calls once a week."),
        ("Once every {} the tank is rinsed.", "seven days", "ten days", "Rinse the tank weekly."),
        ("The bus runs {} a week.", "two times", "three times", "The bus runs on Mondays and Fridays."),
        ("The bus runs {} each week.", "three times", "four times", "The bus runs Mondays, Wednesdays and Fridays."),
        ("The board meets every {}.", "six months", "five months", "The board meets twice a year."),
        ("A dose is due every {}.", "12 hours", "8 hours", "The dose is taken twice daily."),
        ("The lift is checked {} a year.", "six times", "seven times", "The lift is checked every other month."),
        ("It is read every {}.", "14 days", "21 days", "It is read fortnightly."),
    ],
)
def test_how_often_follows_in_other_words(claim, value, wrong, source):
    """The same frequency is settled, another one is not."""
    assert settled_frequencies(claim.format(value), [source]) == {value}
    assert settled_frequencies(claim.format(wrong), [source]) == frozenset()


@pytest.mark.req("ATT-5")
def test_a_stated_value_follows_from_nothing():
    """What a source states as it is may be in another place: the comparison of both tells."""
    source = "The tank is rinsed every three months, the filter four times a year."
    assert settled_frequencies("The filter is rinsed every three months.", [source]) == frozenset()


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize("source", ["Two a year are lost.", "The year was wet.", "It comes four times."])
def test_what_is_no_frequency(source):
    """A rate of things, a year, and a number of times without a period say nothing of how often."""
    assert settled_frequencies("It comes every three months.", [source]) == frozenset()


@pytest.mark.req("ATT-5")
def test_a_day_is_no_other_word_for_another_one():
    """Both come once a week."""
    assert settled_frequencies("It is free on Saturdays.", ["It is free on Sundays."]) == frozenset()
