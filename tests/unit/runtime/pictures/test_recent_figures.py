"""What is kept of the last day: bounded, by the minute, with times that are right to a bin's width (OBS-5)."""

from __future__ import annotations

import random

import pytest

from interlock.runtime.pictures.recent import BINS, KEPT, LEAST_S, STEPS, Distribution, RecentFigures, bin_of, upper_of

pytestmark = pytest.mark.req("OBS-5")


class Clock:
    now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_what_happened_is_in_its_minute(clock):
    """Calls by risk, their time, the first token and what was spent; the minute that runs is the last column."""
    recent = RecentFigures(clock)
    recent.called("HIGH", 0.2)
    clock.now_s += 120
    recent.called("LOW", 0.1)
    recent.called("", 0.001)
    recent.first_token(0.05)
    recent.spent(usd_micros=1_500, tokens=30)
    early, between, last = recent.columns(3, 1)

    assert (early.calls["HIGH"], sum(between.calls.values()), last.calls["LOW"], last.calls["NONE"]) == (1, 0, 1, 1)
    assert (last.usd_micros, last.tokens, last.first.quantile(0.5)) == (1_500, 30, pytest.approx(0.05, rel=0.2))
    assert sum(recent.columns(2, 24)[-1].calls.values()) == 3


def test_no_more_than_a_day_is_kept(clock):
    """However long a process runs, and however many calls it has, it keeps so many minutes."""
    recent = RecentFigures(clock)
    for _ in range(KEPT + 50):
        recent.called("LOW", 0.1)
        clock.now_s += 60

    assert len(recent._minutes) == KEPT
    assert {len(one.took.counts) for one in recent._minutes.values()} == {BINS}


@pytest.mark.parametrize("share", [0.5, 0.95, 1.0])
def test_a_quantile_is_right_to_a_bins_width(share):
    """Against the sorted times themselves."""
    drawn = random.Random(7)
    times = sorted(drawn.lognormvariate(-1, 1) for _ in range(2_000))
    kept = Distribution()
    for one in times:
        kept.add(one)
    exact = times[max(0, round(share * len(times)) - 1)]

    assert exact <= kept.quantile(share) * 1.0001
    assert kept.quantile(share) <= exact * 2 ** (1 / STEPS) * 1.0001


@pytest.mark.parametrize("seconds", [0.0, -1.0, LEAST_S, 1e-9, 1e9])
def test_every_time_has_a_bin(seconds):
    """None is lost, and none is an error."""
    assert 0 <= bin_of(seconds) < BINS
    assert upper_of(bin_of(seconds)) >= min(seconds, upper_of(BINS - 1))


def test_nothing_has_no_quantile():
    """A column without calls shows no time of zero."""
    assert Distribution().quantile(0.5) is None
