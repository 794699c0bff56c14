"""Laws of a decision that only watches, and of one that nobody can review (docs/profiles.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.breaker import BreakerState
from interlock.domain.budget import Micros
from interlock.domain.policy.decision import Situation, decide
from interlock.domain.policy.directives import NOTHING, Repetition, Tier
from interlock.domain.policy.enforcement import Action
from interlock.domain.policy.findings import ClaimBasis, Findings
from interlock.domain.policy.policy_text import parse
from interlock.domain.policy.remedies import SPENT, Progress
from interlock.domain.risk.risk import RiskLevel

pytestmark = pytest.mark.req("ATT-9")

POLICIES = (
    "", "halt-on HIGH", "oversight human-review", "oversight halt", "require-grounding 0.80", "require-quality A",
    "block-pii; upgrade-on-risk reflexive", "max-repetition MINOR", "block-ungrounded",
)  # fmt: skip
ROOM = Progress(
    remediable=True, redispatches=0, continuations=0, stitched=False, windows_left=3, no_cache=False, continues=True
)

situations = st.builds(
    Situation,
    policy=st.sampled_from(POLICIES).map(lambda text: parse(text) if text else NOTHING),
    report_only=st.sampled_from(POLICIES).map(lambda text: parse(text) if text else NOTHING),
    breaker=st.sampled_from(BreakerState),
    budget=st.integers(0, 1_000_000).map(Micros),
    charge=st.sampled_from([0, 50_000, 150_000, 350_000]).map(Micros),
    accept_risk=st.none() | st.sampled_from(RiskLevel),
    accept_quality=st.frozensets(st.sampled_from(Tier), max_size=2),
    no_store=st.booleans(),
    progress=st.sampled_from([SPENT, ROOM]),
    reviewed=st.booleans(),
)
found = st.builds(
    Findings,
    risk=st.sampled_from(RiskLevel),
    attributions=st.none() | st.frozensets(st.sampled_from(ClaimBasis)),
    grounding=st.none() | st.floats(0, 1),
    entailment=st.none() | st.floats(0, 1),
    flow=st.none() | st.floats(0, 1),
    completeness=st.none() | st.floats(0, 1),
    undefined=st.just(frozenset()),
    fabrications=st.none() | st.integers(0, 2),
    repetition=st.none() | st.sampled_from(Repetition),
    pii=st.none() | st.booleans(),
    tier=st.none() | st.sampled_from(Tier),
    prohibited=st.booleans(),
)


@given(situations, found)
def test_an_observed_response_is_always_delivered_and_says_what_would_have_been(situation, findings):
    """The outcome is delivery whatever was found, and ``would`` is exactly what enforcing does."""
    enforced = decide(situation, findings)
    watched = decide(replace(situation, observed=True), findings)

    assert watched.outcome.action is Action.DELIVER
    assert watched.would == (None if enforced.outcome.action is Action.DELIVER else enforced.outcome)
    assert (watched.broken, watched.reported) == ((), (*enforced.broken, *enforced.reported))
    assert enforced.would is None


@given(situations, found)
def test_without_a_reviewer_nothing_is_held_and_nothing_more_is_delivered(situation, findings):
    """Only a hold changes, and into a halt."""
    held = decide(replace(situation, reviewed=True), findings).outcome
    alone = decide(replace(situation, reviewed=False), findings).outcome

    assert alone.action is not Action.HOLD
    if held.action is Action.HOLD:
        assert (alone.action, alone.halt_reason) == (Action.HALT, "HUMAN_REVIEW_UNAVAILABLE")
    else:
        assert alone == held
