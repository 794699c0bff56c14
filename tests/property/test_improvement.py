"""Laws of the comparison of a draft and a remedied answer (ATT-10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.policy.continuation import adds, is_cut_off, joined
from interlock.domain.policy.improvement import PRECISION, Axis, is_improvement, worse_on

_bad = st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0, float("nan")]) | st.floats(0, 4)
_judged = st.dictionaries(st.sampled_from(Axis), _bad)
_NO_FAULT = {Axis.COMPOSITE: 0.2, Axis.FLOW: 0.5}
_called = st.frozensets(st.sampled_from(Axis))
_text = st.text(alphabet="ab c.,!?\n-1{[\"'`", max_size=60)


@pytest.mark.req("ATT-10")
@given(_judged, _judged, _called)
def test_what_is_released_is_worse_on_no_axis_that_was_judged(draft, other, called):
    """Whoever gets the remedied answer loses nothing that is a fault, and something that called for the remedy is better."""
    if is_improvement(draft, other, called):
        for axis, bad in draft.items():
            no_fault = _NO_FAULT.get(axis, 0.0) if axis not in called else 0.0
            ignored = axis in {Axis.ENTAILMENT, Axis.FIDELITY} - called
            assert ignored or round(other[axis], PRECISION) <= max(round(bad, PRECISION), no_fault)
        assert any(other[axis] < draft[axis] for axis in called if axis in draft)


@pytest.mark.req("ATT-10")
@given(_judged, _judged, _called)
def test_no_two_answers_each_improve_the_other(draft, other, called):
    """Remedies cannot go round in a circle, and nothing improves itself."""
    assert not (is_improvement(draft, other, called) and is_improvement(other, draft, called))
    assert not is_improvement(draft, draft, called)


@pytest.mark.req("ATT-10")
@given(_judged, _judged, _judged, _called, _called)
def test_an_improvement_of_an_improvement_is_no_harm_to_the_first(first, second, third, one, two):
    """After any number of rounds, whatever each was for, the answer is worse than the first draft on nothing."""
    if is_improvement(first, second, one) and is_improvement(second, third, two):
        assert not worse_on(first, third)


@pytest.mark.req("ATT-10")
@given(_text)
def test_a_text_never_adds_to_itself(text):
    """Whatever the text is, saying it again is nothing new."""
    assert not adds(text, text)
    assert not adds(text, f"{text}\n\n{text}")


@pytest.mark.req("ATT-10")
@given(_text, _text)
def test_a_joined_text_loses_nothing_of_the_first(before, more):
    """The draft stands in front as it was, and nothing is looked at twice without an end."""
    assert joined(before, more).startswith(before.rstrip())
    assert isinstance(is_cut_off(before, "stop"), bool)
