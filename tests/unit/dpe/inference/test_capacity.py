"""How many answers may be on their way: the rule, without a clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.dpe.inference.capacity import (
    MOST_PROMISED_S,
    Capacity,
    Demand,
    drained,
    promised_s,
    rate_of,
)

RATES = st.floats(0.01, 10_000)


@pytest.mark.finding("F-20")
@given(workers=st.integers(1, 64), rate=RATES, held=st.integers(0, 200), level=st.floats(0, 1000))
def test_there_is_always_room_for_what_keeps_the_workers_busy(workers, rate, held, level):
    """However bad the measurement was: a wrong figure never closes the door for good."""
    found = Capacity(workers, rate)
    if held < found.least:
        assert found.admits(Demand(held, {"": held}, {"": level}))


@pytest.mark.finding("F-20")
@given(rate=RATES, level=st.floats(0, 1e6), judging=st.integers(0, 1000))
def test_after_the_time_that_is_told_there_is_room(rate, level, judging):
    """Where nothing else comes and answers end at the measured rate, a call that comes back then is admitted."""
    found = Capacity(2, rate)
    now = Demand(held=max(judging, 9), judged={"": judging}, levels={"": level})
    if found.admits(now):
        return
    wait_s = found.wait_s(now)
    left = Demand(now.held, {"": max(0, judging - int(wait_s * rate + 1e-6))}, drained(now.levels, wait_s, rate))

    assert left.level + 1 <= found.room + 1e-6 * max(1.0, level)
    assert left.judging < found.room + 1


@pytest.mark.finding("F-20")
def test_each_refused_call_is_told_a_later_time():
    """All coming back at once would be refused again."""
    last, told = 0.0, []
    for _ in range(5):
        last = promised_s(0.3, now_s=100.0, last_s=last, rate=10.0)
        told.append(last - 100.0)

    assert told == pytest.approx([0.3, 0.4, 0.5, 0.6, 0.7])
    assert promised_s(0.3, now_s=100.0, last_s=500.0, rate=10.0) == 100.0 + MOST_PROMISED_S


@pytest.mark.finding("F-20")
def test_one_long_answer_does_not_lower_the_rate():
    """It takes turns with the others, and does not stop them."""
    assert rate_of([0.05] * 19 + [25.0]) == pytest.approx(20.0)
    assert rate_of([0.1, 0.3]) == pytest.approx(5.0)


@pytest.mark.finding("F-20")
def test_more_may_be_away_at_a_slow_provider():
    """Beside ten seconds there, two more do not matter."""
    assert Capacity(2, 20.0, away_s=10.0).room == pytest.approx(48.0)
    assert Capacity(2, 20.0, away_s=0.0).room == pytest.approx(8.0)
