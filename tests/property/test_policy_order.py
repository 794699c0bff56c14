"""Laws of the tightening order (SPEC-012 §4.2) and of its join, on random policies (reliability.md A-12)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.domain.breaker import BreakerState
from interlock.domain.budget import Micros
from interlock.domain.errors import Refused
from interlock.domain.policy.decision import Situation, decide
from interlock.domain.policy.directives import NOTHING, Oversight, Policy, Source
from interlock.domain.policy.enforcement import Action
from interlock.domain.policy.policy_order import INHERITED, merge, relaxations
from tests.support.policy.policies import findings, joinable, policies

pytestmark = pytest.mark.req("POL-4")

INHERITED_FIELDS = tuple(name.replace("-", "_") for name in INHERITED)
SEVERITY = [Action.DELIVER, Action.REJECT_QUALITY, Action.HOLD, Action.HALT]


def compared(policy: Policy) -> Policy:
    """The policy without the directives that no child can relax."""
    return policy._replace(**{field: getattr(NOTHING, field) for field in INHERITED_FIELDS})


def at_least_as_strict(parent: Policy, child: Policy) -> bool:
    return not relaxations(parent, child)


@given(policies())
def test_reflexive(policy):
    """Every policy is at least as strict as itself."""
    assert relaxations(policy, policy) == []


@given(joinable(), joinable(), joinable(), st.booleans())
@settings(max_examples=300)
def test_transitive(one, two, three, nested):
    """A policy that may stand below a child may stand below the child's parent."""
    if nested:  # unrelated policies are hardly ever comparable
        two, three = merge(one, two), merge(merge(one, two), three)
    if at_least_as_strict(one, two) and at_least_as_strict(two, three):
        assert at_least_as_strict(one, three)


@given(policies(), policies(), st.booleans())
def test_antisymmetric(one, two, same):
    """Two policies that are each at least as strict as the other demand the same."""
    if same:
        two = one._replace(report_to=two.report_to, upgrade_on_risk=two.upgrade_on_risk)
    if at_least_as_strict(one, two) and at_least_as_strict(two, one):
        assert compared(one) == compared(two)


@given(joinable(), joinable())
def test_merge_is_at_least_as_strict_as_both(one, two):
    """The join relaxes neither of its sides."""
    both = merge(one, two)

    assert relaxations(one, both) == []
    assert relaxations(two, both) == []


@given(joinable(), joinable())
def test_merge_is_commutative(one, two):
    """The order of two layers does not matter."""
    assert merge(one, two) == merge(two, one)


@given(joinable(), joinable(), joinable())
def test_merge_is_associative(one, two, three):
    """The grouping of three layers does not matter."""
    assert merge(merge(one, two), three) == merge(one, merge(two, three))


@given(policies())
def test_merge_is_idempotent(policy):
    """A layer that is said twice is said once."""
    assert merge(policy, policy) == policy


@given(joinable(), joinable(), joinable())
@settings(max_examples=300)
def test_merge_is_the_loosest(one, two, three):
    """Whatever is at least as strict as both sides is at least as strict as their join."""
    bound = merge(merge(one, two), three)

    assert at_least_as_strict(one, bound)
    assert at_least_as_strict(two, bound)
    assert at_least_as_strict(merge(one, two), bound)


@given(joinable(), joinable(), st.booleans())
@settings(max_examples=200)
def test_order_is_that_of_the_join(one, two, nested):
    """A child is at least as strict exactly when joining the parent to it changes nothing but what it inherits."""
    two = merge(one, two) if nested else two
    unchanged = compared(merge(one, two)) == compared(two)

    assert at_least_as_strict(one, two) == unchanged


@given(policies(max_size=2), policies(max_size=2))
def test_a_join_without_a_common_tier_is_refused(one, two):
    """Two policies that accept no tier in common have no join, and only they."""
    disjoint = bool(one.require_quality and two.require_quality and not one.require_quality & two.require_quality)
    try:
        merge(one, two)
    except Refused as refused:
        assert (disjoint, refused.reason) == (True, "POLICY_UNSATISFIABLE")
    else:
        assert not disjoint


@given(policies(), policies())
@settings(max_examples=300)
def test_every_difference_is_a_relaxation_one_way_or_incomparable(one, two):
    """Policies that differ in what is compared cannot both stand below each other."""
    if compared(one) != compared(two):
        assert relaxations(one, two) or relaxations(two, one)


def outcome(policy: Policy, found, state: BreakerState) -> int:
    situation = Situation(
        policy=policy, report_only=NOTHING, breaker=state, budget=Micros(1_000_000), charge=Micros(0),
        accept_risk=None, accept_quality=frozenset(), no_store=True,
    )  # fmt: skip
    return SEVERITY.index(decide(situation, found).outcome.action)


@given(joinable(), joinable(), findings(), st.sampled_from([BreakerState.CLOSED, BreakerState.HALF_OPEN]))
@settings(max_examples=500)
def test_a_tighter_policy_never_releases_what_a_looser_one_keeps(one, two, found, state):
    """What a join decides about a response is the graver of what its sides decide (I7)."""
    both = outcome(merge(one, two), found, state)

    assert both == max(outcome(one, found, state), outcome(two, found, state))


@given(st.frozensets(st.sampled_from(Source)))
def test_an_added_default_src_relaxes_unless_it_is_inside_the_default(sources):
    """A parent without default-src trusts `context parametric` (SPEC-006 §3.1), so a child may name only these."""
    found = relaxations(NOTHING, Policy(default_src=sources))

    assert bool(found) == (not sources <= {Source.CONTEXT, Source.PARAMETRIC})


@given(st.sampled_from(Oversight))
def test_an_added_oversight_relaxes_only_as_log_only(mode):
    """A parent without oversight has `auto`, and log-only lies below it (SPEC-012 §4.2)."""
    assert bool(relaxations(NOTHING, Policy(oversight=mode))) == (mode is Oversight.LOG_ONLY)
