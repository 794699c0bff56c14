"""When a remedied answer may take the place of the draft: worse on nothing that was judged, better where it was to be."""

from __future__ import annotations

import math

import pytest

from interlock.domain.policy.improvement import Axis, better_on, is_improvement, worse_on

CLEAN = dict.fromkeys(Axis, 0.0)


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize("axis", sorted(set(Axis) - {Axis.ENTAILMENT, Axis.FIDELITY}))
def test_one_axis_that_is_worse_keeps_the_draft(axis):
    """However much better everything else is."""
    draft = {**dict.fromkeys(Axis, 1.0), axis: 0.6}
    other = {**CLEAN, axis: 0.601}

    assert worse_on(draft, other) == {axis}
    assert not is_improvement(draft, other, set(Axis) - {axis})
    assert is_improvement(draft, {**other, axis: 0.6}, set(Axis) - {axis})


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize(
    ("axis", "same", "worse"), [(Axis.COMPOSITE, 0.199, 0.2), (Axis.FLOW, 0.5, 0.501)], ids=["composite", "flow"]
)
def test_a_score_that_stays_without_fault_is_not_worse(axis, same, worse):
    """Within class LOW, and a flow that is no break; where it called for the remedy, any loss counts."""
    assert not worse_on({axis: 0.0}, {axis: same})
    assert worse_on({axis: 0.0}, {axis: worse}) == {axis}
    assert worse_on({axis: 0.0}, {axis: same}, {axis}) == {axis}


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize("axis", [Axis.ENTAILMENT, Axis.FIDELITY])
def test_a_part_of_the_composite_counts_where_it_called(axis):
    """Otherwise the composite tells."""
    assert not worse_on({axis: 0.1}, {axis: 0.9})
    assert worse_on({axis: 0.1}, {axis: 0.9}, {axis}) == {axis}


@pytest.mark.req("ATT-10")
def test_the_axis_that_called_must_become_better():
    """An answer that is better elsewhere is another answer, not a remedied one."""
    draft = {**CLEAN, Axis.FLOW: 0.8, Axis.GROUNDING: 0.5}

    assert not is_improvement(draft, {**draft, Axis.GROUNDING: 0.0}, {Axis.FLOW})
    assert not is_improvement(draft, draft, {Axis.FLOW})
    assert is_improvement(draft, {**draft, Axis.FLOW: 0.7}, {Axis.FLOW})
    assert better_on(draft, {**draft, Axis.FLOW: 0.7}, {Axis.FLOW, Axis.RISK}) == {Axis.FLOW}


@pytest.mark.req("ATT-10")
def test_what_nobody_called_for_is_no_improvement():
    """A policy service that names no axis gets no remedied answer released."""
    assert not is_improvement({Axis.RISK: 4.0}, {Axis.RISK: 1.0}, ())


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize("unknown", [{}, {Axis.RISK: math.nan}])
def test_an_axis_that_can_no_longer_be_told_counts_as_worse(unknown):
    """A stage that did not run for the second answer, and a number that is none, are no proof."""
    assert worse_on({Axis.RISK: 4.0}, unknown) == {Axis.RISK}
    assert worse_on({Axis.RISK: math.nan}, {Axis.RISK: 1.0}) == {Axis.RISK}


def test_a_difference_that_no_header_shows_is_none():
    """Three decimals are compared: measured scores differ in the last ones from run to run."""
    assert not worse_on({Axis.GROUNDING: 0.05}, {Axis.GROUNDING: 0.0504})
    assert not better_on({Axis.GROUNDING: 0.0504}, {Axis.GROUNDING: 0.05}, {Axis.GROUNDING})
    assert worse_on({Axis.GROUNDING: 0.05}, {Axis.GROUNDING: 0.051})
