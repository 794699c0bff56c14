"""Chains: figures that two operations make, and the coincidences that show nothing (SPEC-005 §5.2)."""

import pytest

from interlock.dpe.values.extraction import read
from interlock.dpe.values.reckoning.chains import follows_in_steps


def _follows(target: str, near: str, *groups: str) -> bool:
    listed = [read(group).values for group in groups]
    return follows_in_steps(read(target).values[-1], read(near).values, listed)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("target", "wrong", "near", "groups"),
    [
        ("€181.36", "€187.36", "€163.60 net, less €11.20, with 19 % tax", []),
        ("£1,140.50", "£1,410.50", "12 payments at £107.50 less £149.50", []),
        ("39.5%", "41.5%", "a salary of €2,980", ["€945, €84.50, €147.25"]),
        ("£8.60", "£9.60", "", ["£1.30, £2.05, £5.25"]),
        ("82.7", "84.7", "", ["72, 85, 91"]),
        ("304 g", "314 g", "8 slices with 38 g each", []),
    ],
)
def test_two_steps_reach_an_exact_figure(target, wrong, near, groups):
    """A sum and then its share, a price less a part and with its tax; the same figure a little off is not reached."""
    assert _follows(target, near, *groups)
    assert not _follows(wrong, near, *groups)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize("target", ["64", "100 days", "25 litres", "fifteen days", "€40"])
def test_round_figures_are_no_evidence(target):
    """Nearly every small or round figure is a step or two away from some others."""
    assert not _follows(target, "140 boys, 46 days, 18 litres, 8 weeks, €12, €28, 10 litres, 200 days")


@pytest.mark.req("ATT-5")
def test_an_operand_is_used_once():
    """10 litres times 10 litres is nothing."""
    assert not _follows("112 litres", "10.6 litres for one week")


@pytest.mark.req("ATT-5")
def test_many_figures_reach_any_other_by_chance():
    """What follows from a few exact figures does not follow from a crowd of them."""
    assert _follows("£107.38", "£99.38 and £8")
    assert not _follows("107", "1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73")


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize("target", ["4 May", "Article 22", "the third", "20 °C"])
def test_what_is_no_amount_does_not_follow(target):
    """Dates, labels, ordinals and temperatures are no results."""
    assert not _follows(target, "2 and 20 and 22")


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("target", "wrong", "near"),
    [
        ("2,800", "2,700", "4,100 boxes, of which 1,300 were unloaded"),
        ("£4.90", "£4.70", "£5.30 with oat milk, £0.40 off"),
        ("3,700", "3,600", "a deposit of 1,500 of 5,200"),
        ("18 km", "19 km", "26 km by road, 8 km by boat"),
    ],
)
def test_a_sum_or_a_difference_of_few_figures_shows_one_of_two_digits(target, wrong, near):
    """As long as the source has few of its unit; another figure is not reached."""
    assert _follows(target, near)
    assert not _follows(wrong, near)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("target", "near"),
    [("64", "46 girls aged 8 to 18"), ("28 km", "26 km, 2 km, 17 km, 11 km, 45 km, 31 km")],
)
def test_figures_that_stand_beside_each_other_show_none(target, near):
    """Ages and counts below a hundred, or many lengths, make each other by chance."""
    assert not _follows(target, near)
