"""What lint says has no effect has none: without it, no answer is decided otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from interlock.domain.breaker import BreakerState
from interlock.domain.policy.directives import NOTHING, Policy, Repetition, Tier, canonical
from interlock.domain.policy.policy_order import Tightness, changes, merge, relaxations
from interlock.domain.policy.policy_text import parse
from interlock.domain.policy.workbench.rules import MOOT, VACUOUS, remarks
from interlock.domain.policy.workbench.trial import CLEAN, FRESH, Trial, tried
from tests.support.policy.policies import findings, policies

pytestmark = pytest.mark.req("POL-3")

FIELDS = {name.replace("_", "-"): name for name in Policy._fields}


def without(policy: Policy, directive: str) -> Policy:
    return policy._replace(**{FIELDS[directive]: getattr(NOTHING, FIELDS[directive])})


def decided(policy: Policy, trial: Trial):
    """What happens: the action, whether a reviewer may release it, and the remedies before it."""
    last, first = tried(policy, trial).outcome, tried(policy, trial, FRESH).outcome
    return last.action, last.oversight_required, first.action, frozenset(first.remedies)


def complete(found):
    """The same findings where every stage ran and every figure is one."""
    scores = {
        name: 0.5
        if getattr(found, name) is None or getattr(found, name) != getattr(found, name)
        else getattr(found, name)
        for name in ("grounding", "entailment", "flow", "completeness", "cannot_tell")
    }
    return replace(
        found, **scores, attributions=found.attributions or frozenset(), repetition=found.repetition or Repetition.NONE,
        tier=found.tier or Tier.D, pii=bool(found.pii), fabrications=found.fabrications or 0,
        refused_actions=found.refused_actions or 0,
    )  # fmt: skip


@given(policy=policies(), found=findings(), breaker=st.sampled_from(BreakerState), reviewed=st.booleans())
@example(
    policy=parse("halt-on HIGH; warn-on CRITICAL; oversight human-review"),
    found=None,
    breaker=BreakerState.CLOSED,
    reviewed=True,
)
@example(
    policy=parse("default-src context; block-parametric; block-ungrounded"),
    found=None,
    breaker=BreakerState.CLOSED,
    reviewed=True,
)
def test_a_moot_directive_changes_no_decision(policy, found, breaker, reviewed):
    """Leaving out what is called moot changes no decision about any answer, whatever stages ran."""
    trial = (
        Trial(breaker=breaker, reviewed=reviewed)
        if found is None
        else Trial(findings=found, breaker=breaker, reviewed=reviewed)
    )
    for remark in remarks(policy):
        if remark.code == MOOT:
            assert decided(without(policy, remark.directive), trial) == decided(policy, trial), remark


@given(policy=policies(), found=findings(), breaker=st.sampled_from(BreakerState))
@example(policy=parse("require-completeness 0.00"), found=replace(CLEAN, completeness=0.5), breaker=BreakerState.CLOSED)
def test_a_vacuous_bound_stops_no_answer_that_was_analysed(policy, found, breaker):
    """Leaving out what is called vacuous changes no decision about an answer whose stages all ran."""
    trial = Trial(findings=complete(found), breaker=breaker)
    for remark in remarks(policy):
        if remark.code == VACUOUS:
            assert decided(without(policy, remark.directive), trial) == decided(policy, trial), remark


@given(before=policies(), after=policies())
def test_directions_agree_with_the_order(before, after):
    """What diff calls looser is what a child may not do, and what a child may not do is looser or left out."""
    moved = {one.directive: one.direction for one in changes(before, after)}
    relaxed = {one.directive for one in relaxations(before, after)}
    loosened = {name for name, direction in moved.items() if direction in {Tightness.LOOSER, Tightness.MIXED}}

    # To leave something out counts as a relaxation of an inherited policy, even what is as loose as its absence.
    assert relaxed <= loosened | {one.directive for one in changes(before, after) if not one.after}
    assert loosened - {"upgrade-on-risk", "report-uri", "report-to"} <= relaxed


@given(one=policies(), other=policies())
def test_a_join_is_never_looser(one, other):
    """From a policy to its join with another, every change is stricter or none."""
    tiers = [policy.require_quality for policy in (one, other) if policy.require_quality is not None]
    assume(len(tiers) < 2 or tiers[0] & tiers[1])

    assert {change.direction for change in changes(one, merge(one, other))} <= {Tightness.STRICTER, Tightness.SAME}


@given(policy=policies())
def test_a_policy_does_not_differ_from_its_own_text(policy):
    """Written and read again, nothing is changed."""
    text = canonical(policy)
    assume(text)

    assert changes(policy, parse(text)) == []
