"""Laws of remediation over every policy, finding and progress (SPEC-005 §19)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.domain.breaker import BreakerState
from interlock.domain.budget import FULL, Micros
from interlock.domain.policy.decision import Situation, decide
from interlock.domain.policy.directives import NOTHING, Tier
from interlock.domain.policy.enforcement import Action
from interlock.domain.policy.findings import Findings
from interlock.domain.policy.remedies import MOST_REDISPATCHES, SPENT, Progress, RemedyKind
from interlock.domain.risk.risk import RiskLevel
from tests.support.policy.policies import findings, policies

REMEDIES = {Action.REDISPATCH, Action.CONTINUE, Action.STITCH}

_micros = st.sampled_from([0, 100_000, 100_001, 400_000, 500_000, FULL]).map(Micros)
_progress = st.builds(
    Progress,
    remediable=st.booleans(),
    redispatches=st.integers(0, 3),
    continuations=st.integers(0, 2),
    stitched=st.booleans(),
    windows_left=st.integers(0, 3),
    no_cache=st.booleans(),
    continues=st.booleans(),
    enabled=st.frozensets(st.sampled_from(RemedyKind)),
)
_situations = st.builds(
    Situation,
    policy=policies(),
    report_only=policies(),
    breaker=st.sampled_from(BreakerState),
    budget=_micros,
    charge=st.sampled_from([0, 50_000, 150_000, 350_000]).map(Micros),
    accept_risk=st.none() | st.sampled_from(RiskLevel),
    accept_quality=st.frozensets(st.sampled_from(Tier)),
    no_store=st.booleans(),
    progress=_progress,
)
_findings = st.tuples(findings(), st.booleans(), st.none() | st.sampled_from(Tier)).map(
    lambda drawn: replace(drawn[0], contradicted=drawn[1], envelope_tier=drawn[2])
)
FRESH = Progress(
    remediable=True, redispatches=0, continuations=0, stitched=False, windows_left=4, no_cache=False, continues=True,
    enabled=frozenset(RemedyKind),
)  # fmt: skip


@pytest.mark.req("DPE-16")
@given(_situations, _findings)
@settings(max_examples=150)
def test_a_remedy_is_only_what_is_left(situation: Situation, found: Findings):
    """Never a third re-dispatch, a second continuation or bridge, nor any where nothing can be asked for."""
    action, progress = decide(situation, found).outcome.action, situation.progress

    if action in REMEDIES:
        assert progress.remediable
        assert not found.prohibited
        assert situation.breaker is not BreakerState.OPEN
    if action is Action.REDISPATCH:
        assert progress.redispatches < MOST_REDISPATCHES
    if action is Action.CONTINUE:
        assert progress.continuations == 0
        assert progress.windows_left > 0
        assert not progress.no_cache
    if action is Action.STITCH:
        assert not progress.stitched
        assert RemedyKind.STITCH in progress.enabled


_NAMING = ("upgrade_on_risk", "require_flow", "require_completeness", "block_repetition")


@pytest.mark.req("ATT-10")
@given(_situations, _findings)
@settings(max_examples=150)
def test_no_remedy_that_nobody_asked_for(situation: Situation, found: Findings):
    """Without a setting and without a directive that names one, every answer is decided as it came."""
    named = situation.policy._replace(**{name: NOTHING._asdict()[name] for name in _NAMING})
    off = replace(situation, policy=named, progress=replace(situation.progress, enabled=frozenset()))

    assert decide(off, found).outcome.action not in REMEDIES


@pytest.mark.req("DPE-16")
@given(_situations, _findings)
@settings(max_examples=150)
def test_a_remedy_changes_the_action_and_nothing_else(situation: Situation, found: Findings):
    """Whoever is not remedied gets the decision of a spent window, and breaches and oversight are always the same."""
    answer, spent = decide(situation, found), decide(replace(situation, progress=SPENT), found)

    assert spent.outcome.action not in REMEDIES
    assert replace(answer, outcome=spent.outcome) == spent
    if answer.outcome.action not in REMEDIES:
        assert answer.outcome == spent.outcome


@pytest.mark.req("DPE-16")
@given(_situations, st.lists(_findings, min_size=8, max_size=8))
@settings(max_examples=80)
def test_every_window_comes_to_an_end(situation: Situation, answers: list[Findings]):
    """However bad the answers are, four remedies at most are tried, two of them re-dispatches."""
    progress, tried = FRESH, []
    for found in answers:
        action = decide(replace(situation, progress=progress), found).outcome.action
        if action not in REMEDIES:
            break
        tried.append(action)
        progress = replace(
            progress,
            redispatches=progress.redispatches + (action is Action.REDISPATCH),
            continuations=progress.continuations + (action is Action.CONTINUE),
            stitched=progress.stitched or action is Action.STITCH,
        )

    assert len(tried) <= 4
    assert tried.count(Action.REDISPATCH) <= MOST_REDISPATCHES
    assert tried.count(Action.CONTINUE) <= 1
    assert tried.count(Action.STITCH) <= 1
