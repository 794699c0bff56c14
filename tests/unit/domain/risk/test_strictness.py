"""Strictness: each setting acts on all that the one before does, and the recommendation keeps to the share of false alarms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.risk.risk import RiskLevel
from interlock.domain.risk.strictness import (
    LEAST_OF_EACH,
    LabelledVerdict,
    Share,
    Strictness,
    operating_points,
    recommended,
    too_few,
)

LOW, MEDIUM, HIGH = RiskLevel.LOW, RiskLevel.MEDIUM, RiskLevel.HIGH


@pytest.mark.req("DPE-5")
@given(st.sampled_from(RiskLevel), st.booleans())
def test_a_stricter_setting_acts_on_more(level, doubt):
    """LENIENT implies BALANCED implies STRICT."""
    acts = [each.acts(level, cannot_tell=doubt) for each in Strictness]

    assert acts == sorted(acts)


@pytest.mark.req("DPE-5")
def test_what_each_setting_acts_on():
    """HIGH alone; MEDIUM too; what it cannot tell of, too."""
    assert [each.acts(HIGH, cannot_tell=False) for each in Strictness] == [True, True, True]
    assert [each.acts(MEDIUM, cannot_tell=False) for each in Strictness] == [False, True, True]
    assert [each.acts(LOW, cannot_tell=True) for each in Strictness] == [False, False, True]
    assert [each.acts(LOW, cannot_tell=False) for each in Strictness] == [False, False, False]


@pytest.mark.req("DPE-5")
def test_the_recommendation_keeps_to_the_false_alarms():
    """The most recall among the settings with few enough false alarms; none where none has."""
    good = [LabelledVerdict(True, LOW, cannot_tell=n < 50) for n in range(95)] + [
        LabelledVerdict(True, MEDIUM, cannot_tell=False)
    ] * 5
    bad = [LabelledVerdict(False, HIGH, cannot_tell=False)] * 30 + [
        LabelledVerdict(False, MEDIUM, cannot_tell=False)
    ] * 20
    bad += [LabelledVerdict(False, LOW, cannot_tell=True)] * 50
    points = operating_points([*good, *bad])

    assert [(one.recall.value, one.false_alarms.value) for one in points] == [(0.3, 0.0), (0.5, 0.05), (1.0, 0.55)]
    assert recommended(points, 0.10).strictness is Strictness.BALANCED
    assert recommended(points, 0.01).strictness is Strictness.LENIENT
    assert recommended(points, 0.60).strictness is Strictness.STRICT
    assert recommended(operating_points([LabelledVerdict(True, HIGH, cannot_tell=False), *bad])) is None


@pytest.mark.req("DPE-5")
def test_of_two_equal_settings_the_lenient_one():
    """What adds no recall is not recommended."""
    told = [LabelledVerdict(True, LOW, cannot_tell=False), LabelledVerdict(False, HIGH, cannot_tell=False)]

    assert recommended(operating_points(told)).strictness is Strictness.LENIENT


@pytest.mark.req("DPE-5")
def test_too_few_answers_are_named():
    """Both labels need enough; the count of the one that has too few is told."""
    good, bad = LabelledVerdict(True, LOW, cannot_tell=False), LabelledVerdict(False, LOW, cannot_tell=False)

    assert too_few([good] * LEAST_OF_EACH + [bad] * LEAST_OF_EACH) == ""
    assert too_few([good] * LEAST_OF_EACH + [bad] * 3) == "3 unfaithful"
    assert too_few([]) == "0 faithful, 0 unfaithful"


@pytest.mark.req("DPE-5")
@given(st.integers(0, 400), st.integers(0, 400))
def test_an_interval_holds_its_share(hits, more):
    """Wilson's interval lies within 0 and 1 around the share; of no answers it says nothing."""
    share = Share.of(hits, hits + more)

    assert 0.0 <= share.low <= share.high <= 1.0
    assert math.isnan(share.value) if hits + more == 0 else share.low - 1e-9 <= share.value <= share.high + 1e-9
