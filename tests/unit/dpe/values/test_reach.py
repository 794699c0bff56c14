"""Reach: figures one operation away from stated ones are within it, and others are not (SPEC-005 §5.2)."""

import time

import pytest

from interlock.dpe.values.extraction import read
from interlock.dpe.values.reach import between_times, in_reach, scaled


def _last(text: str):
    return read(text).values[-1]


def _reached(target: str, near: str, far: str = "") -> bool:
    return in_reach(_last(target), read(near).values, read(far).values)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("target", "wrong", "near", "far"),
    [
        ("€46", "€47", "€12 and €34", ""),
        ("€22", "€24", "€12", "€34"),
        ("72 kg", "78 kg", "12 kg, 25 kg, 35 kg", ""),
        ("£51", "£57", "three at £17", ""),
        ("€360", "€390", "12 payments of €30", ""),
        ("40 days", "30 days", "5 a day from a bottle of 200", ""),
        ("25%", "35%", "20 boats of 80 boats", ""),
        ("€9", "€12", "15% of €60", ""),
        ("€51", "€57", "€60 less 15%", ""),
        ("6 hours", "7 hours", "from 08:15 to 14:15", ""),
        ("19 days", "25 days", "from 4 March 2024 to 23 March 2024", ""),
        ("26 May", "28 May", "19 May and 7 days", ""),
        ("17:10", "17:30", "18:00 and 50 minutes", ""),
        ("5:30", "5:50", "33 minutes for 6 km", ""),
        ("four times", "nine times", "every 6 hours", ""),
        ("three times", "seven times", "£18 make £54", ""),
        ("£57", "£59", "three at £17, and £6", ""),
        ("210 MW", "230 MW", "a total of 340 MW, of which solar has 130 MW", ""),
    ],
)
def test_a_figure_one_operation_away_is_within_reach(target, wrong, near, far):
    """The same figure a little off is not."""
    assert _reached(target, near, far)
    assert not _reached(wrong, near, far)


@pytest.mark.req("ATT-5")
def test_one_operand_must_be_near():
    """Two figures far off make no figure of a claim."""
    assert _reached("€46", "€12", "€34")
    assert not _reached("€46", "€90", "€12 and €34")
    assert not _reached("€46", "", "€12 and €34")


@pytest.mark.req("ATT-5")
def test_another_unit_is_out_of_reach():
    """Kilograms are no sum of euros."""
    assert not _reached("46 kg", "€12 and €34")


@pytest.mark.req("ATT-5")
def test_a_label_and_a_rank_are_no_results():
    """Version 4.2 is no sum of versions, and the seventh none of two ranks."""
    assert not _reached("version 4.2", "2 and 2.2")
    assert not _reached("7th", "3 and 4")


@pytest.mark.req("ATT-5")
def test_the_time_between_two_stated_times_is_within_reach():
    """To the minute, and over midnight."""
    stated = read("paged at 22:10, answered at 22:18, solved at 00:40").values
    assert between_times(_last("8 minutes"), stated)
    assert between_times(_last("two and a half hours"), stated)
    assert not between_times(_last("11 minutes"), stated)
    assert between_times(_last("480 seconds"), stated), "of times without seconds as well"
    assert not between_times(_last("8 days"), stated)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(("target", "factor"), [("250 g", 2.0), ("62.5 g", 0.5)])
def test_a_named_factor_scales_a_stated_figure(target, factor):
    """A bare figure of a record counts as the target does."""
    stated = read("rice 125, beans 90").values
    assert scaled(_last(target), factor, stated)
    assert not scaled(_last(target), 3.0, stated)


@pytest.mark.req("ATT-5")
def test_many_figures_are_looked_at_in_bounded_time():
    """A long list of figures costs no more than the first of them."""
    many = read(", ".join(f"{n * 7} kg" for n in range(1, 400))).values
    target = _last("123456 kg")
    started = time.process_time()
    assert not in_reach(target, many, many)
    assert time.process_time() - started < 1.0
