"""Which remedy an answer gets: each condition, each bound, and what no remedy could cure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.domain.breaker import BreakerState
from interlock.domain.budget import Micros
from interlock.domain.policy.decision import Situation, Verdict, decide
from interlock.domain.policy.directives import NOTHING, Policy, Repetition, Tier
from interlock.domain.policy.enforcement import Action
from interlock.domain.policy.findings import ClaimBasis, Findings
from interlock.domain.policy.improvement import Axis
from interlock.domain.policy.policy_text import parse
from interlock.domain.policy.remedies import SPENT, Progress, Remedy, RemedyKind, upgrades_from
from interlock.domain.risk.risk import RiskLevel

UPGRADE, CORRECTION, REPETITION, FLOW = Remedy
DELIVER, AGAIN, CONTINUE, STITCH = Action.DELIVER, Action.REDISPATCH, Action.CONTINUE, Action.STITCH
HALT, HOLD, REJECT = Action.HALT, Action.HOLD, Action.REJECT_QUALITY

FRESH = Progress(
    remediable=True, redispatches=0, continuations=0, stitched=False, windows_left=4, no_cache=False, continues=True,
    enabled=frozenset(RemedyKind),
)  # fmt: skip
OFF = replace(FRESH, enabled=frozenset())
GOOD = Findings(
    risk=RiskLevel.LOW, attributions=frozenset({ClaimBasis.CONTEXT_GROUNDED}), grounding=1.0, entailment=1.0, flow=1.0,
    completeness=1.0, undefined=frozenset(), fabrications=0, repetition=Repetition.NONE, pii=False, tier=Tier.A,
    prohibited=False, envelope_tier=Tier.A,
)  # fmt: skip


def verdict(
    policy: str = "", progress: Progress = FRESH, *, budget: int = 1_000_000, charge: int = 0, **found
) -> Verdict:
    given: Policy = parse(policy) if policy else NOTHING
    situation = Situation(
        policy=given, report_only=NOTHING, breaker=BreakerState.CLOSED, budget=Micros(budget), charge=Micros(charge),
        accept_risk=None, accept_quality=frozenset(), no_store=True, progress=progress,
    )  # fmt: skip
    return decide(situation, replace(GOOD, **found))


def told(answer: Verdict) -> tuple[Action, tuple[Remedy, ...]]:
    return answer.outcome.action, answer.outcome.remedies


def test_a_good_answer_needs_no_remedy():
    """Nothing is asked for again without a cause."""
    assert told(verdict("upgrade-on-risk reflexive")) == (DELIVER, ())


@pytest.mark.req("DPE-16", "POL-3")
@pytest.mark.parametrize(
    ("policy", "risk", "again"),
    [
        ("", "CRITICAL", False),
        ("upgrade-on-risk reflexive", "MEDIUM", False),
        ("upgrade-on-risk reflexive", "HIGH", True),
        ("upgrade-on-risk batch", "CRITICAL", True),
        ("upgrade-on-risk reflexive; warn-on MEDIUM", "MEDIUM", True),
        ("upgrade-on-risk reflexive; warn-on CRITICAL", "HIGH", True),
        ("upgrade-on-risk reflexive; halt-on CRITICAL", "CRITICAL", True),
    ],
)
def test_upgrade_on_risk_acts_from_high_or_an_earlier_warning(policy, risk, again):
    """SPEC-006 §3.14: at HIGH, at warn-on where that is stricter; halt-on has its say after the upgrade."""
    answer = verdict(policy, risk=RiskLevel[risk])

    assert (told(answer) == (AGAIN, (UPGRADE,))) is again
    assert answer.outcome.strategy == ("reflexive" if again else "")


def test_the_threshold_of_the_upgrade_is_never_above_high():
    """No warn-on loosens it."""
    assert upgrades_from(NOTHING) is RiskLevel.HIGH
    assert upgrades_from(parse("warn-on CRITICAL")) is RiskLevel.HIGH


@pytest.mark.req("DPE-16", "POL-3")
@pytest.mark.parametrize("name", ["grounding", "entailment"])
def test_a_demand_that_is_missed_is_tried_again_under_upgrade_on_risk(name):
    """SPEC-006 §3.4, §3.5: asked again only where the directive says so, else halted."""
    assert told(verdict(f"require-{name} 0.80; upgrade-on-risk reflexive", **{name: 0.5})) == (AGAIN, (UPGRADE,))
    assert told(verdict(f"require-{name} 0.80", **{name: 0.5})) == (HALT, ())


@pytest.mark.req("DPE-16", "DPE-6")
def test_a_critical_contradiction_is_corrected_whatever_the_risk():
    """SPEC-005 §8.3: regardless of the composite."""
    assert told(verdict(contradicted=True)) == (AGAIN, (CORRECTION,))


@pytest.mark.req("DPE-16", "DPE-7")
@pytest.mark.parametrize(
    ("policy", "level", "again"),
    [
        ("", Repetition.SIGNIFICANT, False), ("", Repetition.SEVERE, True),
        ("max-repetition MINOR", Repetition.SIGNIFICANT, True), ("max-repetition MINOR", Repetition.MINOR, False),
        ("block-repetition", Repetition.SEVERE, True),
    ],
)  # fmt: skip
def test_repetition_is_told_not_to(policy, level, again):
    """SEVERE always, and what the policy does not tolerate (SPEC-006 §3.12, §3.13)."""
    assert (told(verdict(policy, repetition=level)) == (AGAIN, (REPETITION,))) is again


@pytest.mark.req("DPE-16", "DPE-9")
@pytest.mark.parametrize(
    ("policy", "flow", "again"),
    [("", 0.5, False), ("", 0.4999, True), ("", 0.3, True), ("require-flow 0.80", 0.79, True), ("", None, False)],
)
def test_flow_is_augmented_below_its_bound(policy, flow, again):
    """Below 0.50, and below what the policy requires; a first window has none."""
    undefined = frozenset({"flow"}) if flow is None else frozenset()

    assert (told(verdict(policy, flow=flow, undefined=undefined)) == (AGAIN, (FLOW,))) is again


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize(
    "found",
    [
        {"contradicted": True}, {"repetition": Repetition.SEVERE}, {"flow": 0.1}, {"completeness": 0.1},
        {"risk": RiskLevel.CRITICAL}, {"contradicted": True, "repetition": Repetition.SEVERE, "flow": 0.1, "completeness": 0.1},
    ],
)  # fmt: skip
def test_every_remedy_is_off_until_somebody_asks_for_it(found):
    """Without a setting and without a directive each answer is decided as it came."""
    assert told(verdict(progress=OFF, **found)) == (DELIVER, ())


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize(
    ("enabled", "found", "action"),
    [
        ("redispatch", {"contradicted": True}, AGAIN), ("redispatch", {"completeness": 0.1}, DELIVER),
        ("redispatch", {"flow": 0.1}, AGAIN), ("continue", {"contradicted": True}, DELIVER),
        ("continue", {"completeness": 0.1}, CONTINUE), ("continue", {"flow": 0.1}, DELIVER),
        ("stitch", {"flow": 0.1}, STITCH), ("stitch", {"repetition": Repetition.SEVERE}, DELIVER),
    ],
)  # fmt: skip
def test_a_remedy_is_switched_on_by_itself(enabled, found, action):
    """Each name switches its own remedy on and no other."""
    answer = verdict(progress=replace(OFF, enabled=frozenset({RemedyKind(enabled)})), **found)

    assert answer.outcome.action is action


@pytest.mark.req("ATT-10", "POL-3")
@pytest.mark.parametrize(
    ("policy", "found", "action", "remedies"),
    [
        ("upgrade-on-risk reflexive", {"risk": RiskLevel.HIGH}, AGAIN, (UPGRADE,)),
        ("upgrade-on-risk reflexive", {"repetition": Repetition.SEVERE}, AGAIN, (REPETITION,)),
        ("require-flow 0.80", {"flow": 0.6}, AGAIN, (FLOW,)),
        ("require-flow 0.80", {"flow": 0.6, "contradicted": True}, AGAIN, (FLOW,)),
        ("require-completeness 0.80", {"completeness": 0.5}, CONTINUE, ()),
        ("block-repetition", {"repetition": Repetition.SEVERE}, AGAIN, (REPETITION,)),
        ("max-repetition MINOR", {"repetition": Repetition.SIGNIFICANT}, HALT, ()),
        ("require-grounding 0.80", {"grounding": 0.5}, HALT, ()),
    ],
)
def test_a_directive_that_names_a_remedy_switches_it_on(policy, found, action, remedies):
    """SPEC-006 §3.7, §3.8, §3.12, §3.14: who asks for a remedy by name gets it, and nothing else."""
    assert told(verdict(policy, OFF, **found)) == (action, remedies)


@pytest.mark.req("ATT-10")
def test_what_called_for_a_remedy_is_told():
    """The answer of the remedy must be better on one of these axes."""
    both = verdict("upgrade-on-risk reflexive; require-grounding 0.80", grounding=0.5, contradicted=True)

    assert both.outcome.axes == {Axis.GROUNDING, Axis.CONTRADICTIONS, Axis.GRAVEST_CONTRADICTION}
    assert verdict("upgrade-on-risk reflexive", risk=RiskLevel.HIGH).outcome.axes == {Axis.RISK, Axis.COMPOSITE}
    assert verdict(completeness=0.1).outcome.axes == {Axis.COMPLETENESS}
    assert verdict(progress=replace(FRESH, redispatches=2), flow=0.1).outcome.axes == {Axis.FLOW}
    assert verdict().outcome.axes == frozenset()


@pytest.mark.req("ATT-10", "DPE-7")
def test_the_same_question_asked_again_is_no_fault():
    """A repetition is mended where the caller continues an answer; in a conversation it may be the right answer."""
    answer = verdict(progress=replace(FRESH, continues=False), repetition=Repetition.SEVERE)

    assert told(answer) == (DELIVER, ())


@pytest.mark.req("DPE-16")
def test_all_remedies_of_a_round_go_together():
    """One dispatch for everything that is wrong."""
    answer = verdict(
        "upgrade-on-risk reflexive", risk=RiskLevel.HIGH, contradicted=True, repetition=Repetition.SEVERE, flow=0.1,
        completeness=0.1,
    )  # fmt: skip

    assert told(answer) == (AGAIN, (UPGRADE, CORRECTION, REPETITION, FLOW))


@pytest.mark.req("DPE-16")
@pytest.mark.parametrize("done", [2, 3])
def test_two_re_dispatches_are_the_most(done):
    """After two the decision stands as it is without remedies."""
    answer = verdict("halt-on HIGH; upgrade-on-risk reflexive", replace(FRESH, redispatches=done), risk=RiskLevel.HIGH)

    assert told(answer) == (HALT, ())
    assert answer.outcome.halt_reason == "HIGH_HALLUCINATION_RISK"


@pytest.mark.req("DPE-16", "DPE-9")
def test_a_flow_is_stitched_when_no_re_dispatch_is_left_and_once():
    """Option B of §11.5 is for when option A cannot be afforded."""
    spent = replace(FRESH, redispatches=2)

    assert told(verdict(progress=spent, flow=0.2)) == (STITCH, ())
    assert told(verdict("require-flow 0.60", spent, flow=0.2)) == (STITCH, ())
    assert told(verdict(progress=replace(spent, stitched=True), flow=0.2)) == (DELIVER, ())
    assert told(verdict("require-flow 0.60", replace(spent, stitched=True), flow=0.2)) == (HALT, ())


@pytest.mark.req("DPE-16", "DPE-8")
@pytest.mark.parametrize(
    ("policy", "score", "change", "continues"),
    [
        ("", 0.70, {}, False), ("", 0.69, {}, True), ("", 0.0, {}, True), ("require-completeness 0.90", 0.80, {}, True),
        ("", 0.5, {"windows_left": 0}, False), ("", 0.5, {"no_cache": True}, False), ("", 0.5, {"continuations": 1}, False),
        ("", 0.5, {"remediable": False}, False), ("", None, {}, False),
    ],
)  # fmt: skip
def test_what_is_left_open_is_continued_once(policy, score, change, continues):
    """PARTIAL and INCOMPLETE, with windows left, without no-cache, once (§10.3)."""
    answer = verdict(policy, replace(FRESH, **change), completeness=score)

    assert (answer.outcome.action is CONTINUE) is continues


@pytest.mark.req("DPE-16")
@pytest.mark.parametrize(
    ("policy", "found", "action"),
    [
        ("block-pii; upgrade-on-risk reflexive", {"pii": True, "risk": RiskLevel.HIGH}, HALT),
        ("default-src 'none'", {"repetition": Repetition.SEVERE}, HALT),
        ("", {"prohibited": True, "repetition": Repetition.SEVERE}, HALT),
        ("require-grounding 0.50", {"grounding": None, "repetition": Repetition.SEVERE}, HALT),
        ("require-quality S", {"repetition": Repetition.SEVERE}, REJECT),
        ("halt-on HIGH", {"risk": RiskLevel.HIGH, "completeness": 0.1}, HALT),
        ("oversight human-review", {"risk": RiskLevel.HIGH, "completeness": 0.1}, HOLD),
        ("halt-on MEDIUM", {"risk": RiskLevel.MEDIUM, "completeness": 0.1}, HALT),
    ],
)
def test_what_no_remedy_could_cure_is_decided_at_once(policy, found, action):
    """Personal data, a prohibited use, a stage that did not run, a tier that is not there, a risk that more text keeps."""
    assert told(verdict(policy, **found)) == (action, ())


@pytest.mark.req("DPE-15", "DPE-16")
def test_a_tier_that_only_the_quality_score_capped_is_worth_another_try():
    """The envelope is good enough, so a better answer is too."""
    found = {"tier": Tier.C, "envelope_tier": Tier.S, "repetition": Repetition.SEVERE}

    assert told(verdict("require-quality S A", **found)) == (AGAIN, (REPETITION,))
    assert told(verdict("require-quality S A", **{**found, "envelope_tier": Tier.B})) == (REJECT, ())


@pytest.mark.req("DPE-16", "BUD-2")
def test_a_spent_budget_asks_for_nothing_but_its_own_charge_does():
    """At 0.10 nothing is released; a charge that would take it there is not made when a better answer comes."""
    found = {"risk": RiskLevel.CRITICAL}

    assert told(verdict("upgrade-on-risk reflexive", budget=100_000, **found)) == (HALT, ())
    assert told(verdict("upgrade-on-risk reflexive", budget=400_000, charge=350_000, **found)) == (AGAIN, (UPGRADE,))
    assert told(verdict(budget=400_000, charge=350_000, completeness=0.1, **found)) == (HALT, ())


def test_nothing_is_tried_where_nothing_can_be():
    """An answer that came with the call is decided about as it is."""
    assert told(verdict("upgrade-on-risk reflexive", SPENT, risk=RiskLevel.HIGH, flow=0.1, completeness=0.1)) == (
        DELIVER,
        (),
    )
