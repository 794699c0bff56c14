"""What happens to an analysed response: every directive at its boundary, the breaker, the budget, the precedence."""

from __future__ import annotations

import math

import pytest

from interlock.domain.breaker import BreakerState
from interlock.domain.budget import Micros
from interlock.domain.errors import Kind, Refused
from interlock.domain.policy.decision import Situation, Verdict, decide
from interlock.domain.policy.directives import NOTHING, Oversight, Repetition, Tier
from interlock.domain.policy.enforcement import Action
from interlock.domain.policy.findings import ClaimBasis, Findings
from interlock.domain.policy.policy_text import parse
from interlock.domain.risk.risk import RiskLevel

LOW, MEDIUM, HIGH, CRITICAL = RiskLevel
DELIVER, HOLD, HALT, REJECT = Action.DELIVER, Action.HOLD, Action.HALT, Action.REJECT_QUALITY
GROUNDED, PARAMETRIC, MIXED, UNVERIFIABLE = ClaimBasis

GOOD = {
    "risk": LOW, "attributions": frozenset({GROUNDED}), "grounding": 1.0, "entailment": 1.0, "flow": 1.0,
    "completeness": 1.0, "undefined": frozenset(), "fabrications": 0, "repetition": Repetition.NONE, "pii": False,
    "tier": Tier.S, "prohibited": False, "cannot_tell": 0.0, "refused_actions": 0,
}  # fmt: skip
ABSENT = {
    "attributions": None, "grounding": None, "entailment": None, "flow": None, "completeness": None,
    "fabrications": None, "repetition": None, "pii": None, "tier": None, "cannot_tell": None, "refused_actions": None,
}  # fmt: skip


def verdict(
    policy: str = "",
    *,
    report_only: str = "",
    breaker: BreakerState = BreakerState.CLOSED,
    budget: int = 1_000_000,
    charge: int = 0,
    accept_risk: RiskLevel | None = None,
    accept_quality: frozenset[Tier] = frozenset(),
    no_store: bool = False,
    reviewed: bool = True,
    **found,
) -> Verdict:
    situation = Situation(
        policy=parse(policy) if policy else NOTHING,
        report_only=parse(report_only) if report_only else NOTHING,
        breaker=breaker,
        budget=Micros(budget),
        charge=Micros(charge),
        accept_risk=accept_risk,
        accept_quality=accept_quality,
        no_store=no_store,
        reviewed=reviewed,
    )
    return decide(situation, Findings(**GOOD | found))


def told(answer: Verdict) -> tuple[Action, str, str]:
    return answer.outcome.action, answer.outcome.reason, answer.outcome.halt_reason


def broken(answer: Verdict) -> list[tuple[str, str, str, bool]]:
    return [(breach.directive, breach.type, breach.found, breach.missing) for breach in answer.broken]


@pytest.mark.parametrize("risk", RiskLevel)
def test_without_a_demand_every_response_is_delivered(risk):
    """Nothing asked, nothing gated: the risk is charged and told, and that is all."""
    answer = verdict(risk=risk)

    assert told(answer) == (DELIVER, "", "")
    assert (answer.broken, answer.warned, answer.oversight) == ((), False, Oversight.AUTO)


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(
    ("level", "risk", "halted"),
    [
        ("CRITICAL", HIGH, False), ("CRITICAL", CRITICAL, True),
        ("HIGH", MEDIUM, False), ("HIGH", HIGH, True), ("HIGH", CRITICAL, True),
        ("MEDIUM", LOW, False), ("MEDIUM", MEDIUM, True), ("MEDIUM", CRITICAL, True),
    ],
)  # fmt: skip
def test_halt_on_halts_at_its_level_and_above(level, risk, halted):
    """halt-on stops from its level up, names the risk, and asks for a person (SPEC-006 §3.2)."""
    answer = verdict(f"halt-on {level}", risk=risk)

    assert told(answer) == ((HALT, "SAFETY_HALT", f"{risk.name}_HALLUCINATION_RISK") if halted else (DELIVER, "", ""))
    assert answer.outcome.oversight_required is halted
    assert broken(answer) == ([(f"halt-on {level}", f"HALT_ON_{level}", risk.name, False)] if halted else [])


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(("risk", "warned"), [(MEDIUM, False), (HIGH, True), (CRITICAL, True)])
def test_warn_on_delivers_and_reports(risk, warned):
    """warn-on changes no action; it flags, and its report goes out (SPEC-006 §3.3)."""
    answer = verdict("warn-on HIGH", risk=risk)

    assert (answer.outcome.action, answer.warned) == (DELIVER, warned)
    assert broken(answer) == ([("warn-on HIGH", "WARN_ON_HIGH", risk.name, False)] if warned else [])


@pytest.mark.req("POL-3")
@pytest.mark.parametrize("name", ["grounding", "entailment", "flow", "completeness"])
@pytest.mark.parametrize(
    ("threshold", "score", "action"),
    [
        ("0.80", 0.80, DELIVER), ("0.80", math.nextafter(0.80, 0), HALT), ("0.80", 1.0, DELIVER),
        ("0.80", 4 / 5, DELIVER), ("0.07", 7 / 100, DELIVER), ("0.00", 0.0, DELIVER), ("1.00", 0.999, HALT),
        ("0.00", math.nan, HALT),
    ],
)  # fmt: skip
def test_a_threshold_is_met_exactly_at_its_value(name, threshold, score, action):
    """A score at the threshold passes, the next number below it does not, and what is no number never does (A-40)."""
    answer = verdict(f"require-{name} {threshold}", **{name: score})

    assert answer.outcome.action is action
    if action is HALT:
        kind = f"{name.upper()}_BELOW_THRESHOLD"
        assert told(answer) == (HALT, "SAFETY_HALT", kind)
        assert broken(answer) == [(f"require-{name} {threshold}", kind, repr(score), False)]


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(
    ("directive", "kind"),
    [
        ("require-grounding 0.00", "GROUNDING_BELOW_THRESHOLD"),
        ("require-entailment 0.00", "ENTAILMENT_BELOW_THRESHOLD"),
        ("require-flow 0.00", "FLOW_BELOW_THRESHOLD"),
        ("require-completeness 0.00", "COMPLETENESS_BELOW_THRESHOLD"),
        ("default-src context parametric", "SOURCE_NOT_TRUSTED"),
        ("block-ungrounded", "UNGROUNDED_CLAIM"),
        ("block-parametric", "PARAMETRIC_CONTENT"),
        ("block-pii", "PII_DETECTED"),
        ("block-fabrication", "FABRICATION_DETECTED"),
        ("block-repetition", "REPETITION_SEVERE"),
        ("max-repetition SIGNIFICANT", "REPETITION_ABOVE_MAXIMUM"),
        ("max-cannot-tell 1.00", "CANNOT_TELL_ABOVE_MAXIMUM"),
        ("halt-on-action", "ACTION_REFUSED"),
    ],
)
def test_an_absent_signal_halts(directive, kind):
    """A stage that did not run makes no response good: the directive is broken by the absence (I10)."""
    answer = verdict(directive, **ABSENT)

    assert told(answer) == (HALT, "SIGNAL_NOT_AVAILABLE", "SIGNAL_NOT_AVAILABLE")
    assert broken(answer) == [(directive, kind, "", True)]
    assert answer.outcome.oversight_required is False


def test_absent_signals_that_nobody_asks_for_harm_nothing():
    """Without a directive there is nothing that an absent signal could break."""
    assert told(verdict("halt-on CRITICAL; warn-on HIGH", **ABSENT)) == (DELIVER, "", "")


@pytest.mark.req("POL-3")
@pytest.mark.parametrize("name", ["grounding", "flow"])
def test_a_score_that_is_not_defined_breaks_no_threshold(name):
    """No checked claim, no grounding; first window, no flow: neither is a signal that failed."""
    demand = f"require-{name} 1.00"

    assert told(verdict(demand, **{name: None}, undefined=frozenset({name}))) == (DELIVER, "", "")
    assert told(verdict(demand, **{name: None}, undefined=frozenset({"other"})))[0] is HALT


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(
    ("sources", "passing"),
    [
        ("context", {GROUNDED}),
        ("parametric", {PARAMETRIC, UNVERIFIABLE}),
        ("context parametric", {GROUNDED, PARAMETRIC, MIXED, UNVERIFIABLE}),
        ("context ckf cross-session", {GROUNDED}),
        ("ckf", set()),
        ("'none'", set()),
    ],
)
def test_default_src_passes_only_what_it_lists(sources, passing):
    """A claim needs each source that its attribution draws on; ckf alone cannot be shown, so it admits nothing."""
    for attribution in ClaimBasis:
        answer = verdict(f"default-src {sources}", attributions=frozenset({attribution}))
        expected = (DELIVER, "", "") if attribution in passing else (HALT, "SAFETY_HALT", "SOURCE_NOT_TRUSTED")

        assert told(answer) == expected, attribution


@pytest.mark.req("POL-3")
def test_none_blocks_output_without_a_claim():
    """default-src 'none' blocks all output (SPEC-006 §3.1), also one in which there is nothing to check."""
    answer = verdict("default-src 'none'", attributions=frozenset())

    assert told(answer) == (HALT, "SAFETY_HALT", "SOURCE_NOT_TRUSTED")
    assert told(verdict("default-src context", attributions=frozenset())) == (DELIVER, "", "")


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(
    ("directive", "blocked"),
    [("block-ungrounded", {PARAMETRIC, UNVERIFIABLE}), ("block-parametric", {PARAMETRIC, MIXED, UNVERIFIABLE})],
)
def test_a_single_claim_blocks(directive, blocked):
    """One claim of the wrong kind among grounded ones is enough, even where default-src admits it (SPEC-006 §3.9)."""
    for attribution in ClaimBasis:
        answer = verdict(
            f"default-src context parametric; {directive}", attributions=frozenset({GROUNDED, attribution})
        )
        assert (answer.outcome.action is HALT) == (attribution in blocked), attribution
        if attribution in blocked:
            assert [breach[2] for breach in broken(answer)] == [attribution.name]


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(
    ("directive", "found", "kind", "value"),
    [
        ("block-pii", {"pii": True}, "PII_DETECTED", "true"),
        ("block-fabrication", {"fabrications": 2}, "FABRICATION_DETECTED", "2"),
        ("block-repetition", {"repetition": Repetition.SEVERE}, "REPETITION_SEVERE", "SEVERE"),
        ("max-repetition NONE", {"repetition": Repetition.MINOR}, "REPETITION_ABOVE_MAXIMUM", "MINOR"),
        ("max-repetition MINOR", {"repetition": Repetition.SIGNIFICANT}, "REPETITION_ABOVE_MAXIMUM", "SIGNIFICANT"),
        ("max-repetition SIGNIFICANT", {"repetition": Repetition.SEVERE}, "REPETITION_ABOVE_MAXIMUM", "SEVERE"),
        ("max-cannot-tell 0.00", {"cannot_tell": 0.1}, "CANNOT_TELL_ABOVE_MAXIMUM", "0.1"),
        (
            "max-cannot-tell 0.20",
            {"cannot_tell": math.nextafter(0.2, 1)},
            "CANNOT_TELL_ABOVE_MAXIMUM",
            repr(math.nextafter(0.2, 1)),
        ),
        ("halt-on-action", {"refused_actions": 1}, "ACTION_REFUSED", "1"),
        ("max-cannot-tell 1.00", {"cannot_tell": math.nan}, "CANNOT_TELL_ABOVE_MAXIMUM", "nan"),
    ],
)
def test_a_content_directive_halts_on_what_it_blocks(directive, found, kind, value):
    """Each content directive names its type and what was found, and passes the good response."""
    answer = verdict(directive, **found)

    assert told(answer) == (HALT, "SAFETY_HALT", kind)
    assert broken(answer) == [(directive, kind, value, False)]
    assert told(verdict(directive)) == (DELIVER, "", "")


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(
    ("directive", "level"),
    [
        ("block-repetition", Repetition.SIGNIFICANT), ("max-repetition NONE", Repetition.NONE),
        ("max-repetition MINOR", Repetition.MINOR), ("max-repetition SIGNIFICANT", Repetition.SIGNIFICANT),
    ],
)  # fmt: skip
def test_repetition_up_to_the_bound_passes(directive, level):
    """The level that a directive names is still allowed."""
    assert told(verdict(directive, repetition=level)) == (DELIVER, "", "")


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(
    ("tier", "action"), [(Tier.S, DELIVER), (Tier.B, DELIVER), (Tier.A, REJECT), (Tier.D, REJECT), (None, REJECT)]
)
def test_require_quality_takes_the_tiers_of_its_list(tier, action):
    """A tier that is not listed is answered as quality that cannot be had: 503 (SPEC-006 §3.6)."""
    answer = verdict("require-quality S B", tier=tier)

    assert answer.outcome.action is action
    if action is REJECT:
        assert told(answer)[1:] == ("QUALITY_NOT_AVAILABLE", "QUALITY_BELOW_TIER")
        assert broken(answer) == [("require-quality S B", "QUALITY_BELOW_TIER", tier or "", tier is None)]


@pytest.mark.req("POL-3", "OVR-1")
@pytest.mark.parametrize(
    ("mode", "risk", "expected"),
    [
        ("auto", CRITICAL, (DELIVER, "", "")),
        ("log-only", CRITICAL, (DELIVER, "", "")),
        ("human-review", MEDIUM, (DELIVER, "", "")),
        ("human-review", HIGH, (HOLD, "HELD_FOR_REVIEW", "HELD_FOR_REVIEW")),
        ("human-review", CRITICAL, (HOLD, "HELD_FOR_REVIEW", "HELD_FOR_REVIEW")),
        ("halt", MEDIUM, (DELIVER, "", "")),
        ("halt", HIGH, (HOLD, "HELD_FOR_REVIEW", "HELD_FOR_REVIEW")),
        ("halt", CRITICAL, (HALT, "SAFETY_HALT", "CRITICAL_HALLUCINATION_RISK")),
    ],
)
def test_oversight_modes(mode, risk, expected):
    """SPEC-002 §5.10 and reading 2; halt holds what human-review holds, since it is the stricter of the two."""
    answer = verdict(f"oversight {mode}", risk=risk)

    assert told(answer) == expected
    assert answer.outcome.oversight_required == (answer.outcome.action is HOLD)


@pytest.mark.finding("F-13")
@pytest.mark.req("OVR-4", "POL-3")
@pytest.mark.parametrize(
    ("policy", "given", "releasable"),
    [
        ("halt-on HIGH", {"risk": HIGH}, True),
        ("halt-on HIGH; oversight human-review", {"risk": CRITICAL}, True),
        ("halt-on HIGH; oversight log-only", {"risk": HIGH}, True),
        ("halt-on HIGH", {"risk": HIGH, "breaker": BreakerState.HALF_OPEN, "budget": 500_000}, True),
        ("halt-on HIGH; warn-on MEDIUM; require-quality S", {"risk": HIGH, "tier": Tier.D}, True),
        ("halt-on HIGH; oversight halt", {"risk": HIGH}, False),
        ("halt-on HIGH; oversight halt", {"risk": CRITICAL}, False),
        ("oversight halt", {"risk": CRITICAL}, False),
        ("halt-on HIGH", {"risk": HIGH, "reviewed": False}, False),
        ("halt-on HIGH; block-pii", {"risk": HIGH, "pii": True}, False),
        ("halt-on HIGH; require-grounding 0.9", {"risk": HIGH, "grounding": 0.1}, False),
        ("halt-on HIGH; require-grounding 0.9", {"risk": HIGH, "grounding": None}, False),
        ("halt-on HIGH", {"risk": HIGH, "accept_risk": LOW}, False),
        ("halt-on HIGH", {"risk": CRITICAL, "budget": 200_000, "charge": 350_000}, False),
        ("halt-on HIGH", {"risk": HIGH, "breaker": BreakerState.OPEN}, False),
        ("halt-on HIGH", {"risk": HIGH, "prohibited": True}, False),
    ],
)
def test_a_halt_by_halt_on_alone_has_a_way_out(policy, given, releasable):
    """A reviewer may accept the risk that halt-on names (reading 15), and nothing that is forbidden whatever the risk."""
    answer = verdict(policy, **given)

    assert answer.outcome.action is HALT
    assert answer.outcome.oversight_required is releasable


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(
    ("directive", "found"),
    [("halt-on HIGH", {"risk": HIGH}), ("block-pii", {"pii": True}), ("require-grounding 0.9", {"grounding": 0.1})],
)
def test_log_only_overrides_no_directive(directive, found):
    """The most restrictive directive wins (SPEC-006 §4.1)."""
    assert verdict(f"{directive}; oversight log-only", **found).outcome.action is HALT


@pytest.mark.req("BRK-2", "POL-3")
@pytest.mark.parametrize("mode", ["log-only", "auto", "human-review", ""])
def test_half_open_forces_human_review(mode):
    """Whatever the policy, a half-open session holds HIGH risk, over its whole range (reading 1)."""
    policy = f"oversight {mode}" if mode else ""
    for budget in (500_000, 100_001):
        answer = verdict(policy, risk=HIGH, breaker=BreakerState.HALF_OPEN, budget=budget)

        assert told(answer) == (HOLD, "HELD_FOR_REVIEW", "HELD_FOR_REVIEW")
        assert answer.oversight is Oversight.HUMAN_REVIEW


@pytest.mark.req("BRK-2")
def test_half_open_leaves_halt_in_place_and_delivers_low_risk():
    """The stricter mode stays, and review holds nothing below HIGH."""
    halting = verdict("oversight halt", risk=CRITICAL, breaker=BreakerState.HALF_OPEN, budget=500_000)
    passing = verdict(risk=MEDIUM, breaker=BreakerState.HALF_OPEN, budget=500_000)

    assert (halting.outcome.action, halting.oversight) == (HALT, Oversight.HALT)
    assert (passing.outcome.action, passing.oversight) == (DELIVER, Oversight.HUMAN_REVIEW)


@pytest.mark.req("BRK-2", "BUD-3")
@pytest.mark.parametrize(
    ("budget", "charge", "action"),
    [(650_001, 150_000, DELIVER), (650_000, 150_000, HOLD), (500_001, 0, DELIVER), (500_000, 0, HOLD)],
)
def test_the_budget_after_the_charge_forces_review(budget, charge, action):
    """A response that itself takes the session to 0.50 is released under the breaker that it causes."""
    assert verdict(risk=HIGH, budget=budget, charge=charge).outcome.action is action


@pytest.mark.req("BRK-3", "BUD-3")
@pytest.mark.parametrize(
    ("budget", "charge", "expected"),
    [
        (150_001, 50_000, (DELIVER, "", "")),
        (150_000, 50_000, (HALT, "BUDGET_DEPLETED", "SAFETY_BUDGET_DEPLETED")),
        (100_001, 0, (DELIVER, "", "")),
        (100_000, 0, (HALT, "BUDGET_DEPLETED", "SAFETY_BUDGET_DEPLETED")),
        (300_000, 350_000, (HALT, "BUDGET_DEPLETED", "SAFETY_BUDGET_DEPLETED")),
        (0, 0, (HALT, "BUDGET_DEPLETED", "SAFETY_BUDGET_DEPLETED")),
    ],
)
def test_a_response_that_spends_the_budget_is_not_released(budget, charge, expected):
    """Nothing is released once the committed budget is 0.10 or less (I2), and no person can change that here."""
    answer = verdict(risk=MEDIUM, budget=budget, charge=charge, breaker=BreakerState.CLOSED)

    assert told(answer) == expected
    assert answer.outcome.oversight_required is False


@pytest.mark.req("BRK-3")
def test_an_open_breaker_halts_whatever_the_budget_says():
    """Of breaker and budget the stricter one counts."""
    answer = verdict(breaker=BreakerState.OPEN)

    assert told(answer) == (HALT, "BUDGET_DEPLETED", "SAFETY_BUDGET_DEPLETED")


@pytest.mark.parametrize(
    ("accepted", "risk", "action"),
    [(LOW, LOW, DELIVER), (LOW, MEDIUM, HALT), (MEDIUM, MEDIUM, DELIVER), (MEDIUM, HIGH, HALT),
     (CRITICAL, CRITICAL, DELIVER)],
)  # fmt: skip
def test_accept_risk_is_the_most_that_a_caller_takes(accepted, risk, action):
    """Risk above CRP-Accept-Risk is halted (SPEC-002 §5.14)."""
    answer = verdict(accept_risk=accepted, risk=risk)

    assert answer.outcome.action is action
    if action is HALT:
        assert told(answer)[1:] == ("RISK_NOT_ACCEPTED", "RISK_NOT_ACCEPTED")
        assert broken(answer) == [(f"CRP-Accept-Risk {accepted.name}", "RISK_NOT_ACCEPTED", risk.name, False)]


@pytest.mark.parametrize(
    ("accepted", "tier", "action"),
    [("S", Tier.A, REJECT), ("SA", Tier.A, DELIVER), ("A", Tier.S, DELIVER), ("SB", Tier.A, DELIVER),
     ("B", Tier.C, REJECT), ("D", None, REJECT), ("", None, DELIVER)],
)  # fmt: skip
def test_accept_quality_is_the_least_that_a_caller_takes(accepted, tier, action):
    """A tier below the lowest one named is rejected, a better one never (SPEC-002 §4.13)."""
    answer = verdict(accept_quality=frozenset(Tier(name) for name in accepted), tier=tier)

    assert answer.outcome.action is action
    if action is REJECT:
        assert broken(answer)[0][0] == f"CRP-Accept-Quality {' '.join(accepted)}"


def test_a_prohibited_use_is_halted_without_any_policy():
    """An UNACCEPTABLE class of the EU AI Act is never delivered (SPEC-002 §13.1)."""
    assert told(verdict(prohibited=True)) == (HALT, "SAFETY_HALT", "UNACCEPTABLE_EU_AI_ACT")


def test_halt_outranks_hold_outranks_reject_and_all_are_listed():
    """The gravest action is taken, and nothing that was broken is left out."""
    policy = "halt-on CRITICAL; oversight human-review; require-quality S"
    halt, hold = verdict(policy, risk=CRITICAL, tier=Tier.D), verdict(policy, risk=HIGH, tier=Tier.D)
    reject = verdict(policy, tier=Tier.D)

    assert [answer.outcome.action for answer in (halt, hold, reject)] == [HALT, HOLD, REJECT]
    assert [breach.type for breach in halt.broken] == ["HALT_ON_CRITICAL", "OVERSIGHT_REQUIRED", "QUALITY_BELOW_TIER"]
    assert [breach.type for breach in hold.broken] == ["OVERSIGHT_REQUIRED", "QUALITY_BELOW_TIER"]


def test_what_was_found_names_the_halt_before_what_is_absent():
    """A halt that has a finding is not blamed on a stage that did not run."""
    answer = verdict("require-completeness 0.80; block-pii", completeness=None, pii=True)

    assert told(answer) == (HALT, "SAFETY_HALT", "PII_DETECTED")
    assert [breach.missing for breach in answer.broken] == [True, False]


def test_upgrade_on_risk_alone_changes_nothing_yet():
    """Without remediation a response is neither dispatched again nor passed where another directive stops it."""
    assert told(verdict("upgrade-on-risk reflexive", risk=HIGH)) == (DELIVER, "", "")
    assert verdict("upgrade-on-risk reflexive; halt-on HIGH", risk=HIGH).outcome.action is HALT


@pytest.mark.req("POL-2")
def test_report_only_reports_and_changes_nothing():
    """Every breach of the report-only policy is listed, and the outcome is that without it (I13)."""
    policy = "halt-on MEDIUM; require-grounding 0.90; require-quality S; oversight halt; block-pii; warn-on MEDIUM"
    answer = verdict(report_only=policy, risk=CRITICAL, grounding=0.1, tier=Tier.D, pii=None)

    assert told(answer) == (DELIVER, "", "")
    assert (answer.broken, answer.warned, answer.outcome.oversight_required) == ((), False, False)
    assert [breach.type for breach in answer.reported] == [
        "HALT_ON_MEDIUM", "OVERSIGHT_HALT", "WARN_ON_MEDIUM", "GROUNDING_BELOW_THRESHOLD", "PII_DETECTED",
        "QUALITY_BELOW_TIER",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pii", "no_store", "warned"),
    [(True, False, True), (True, True, False), (False, False, False), (None, False, False)],
)
def test_personal_data_without_no_store_is_to_be_logged(pii, no_store, warned):
    """SPEC-002 §7.3: a compliance warning, unless the caller declared no-store."""
    assert verdict(pii=pii, no_store=no_store).unprotected_pii is warned


@pytest.mark.parametrize(
    ("budget", "charge"), [(-1, 0), (1_000_001, 0), (1_000_000, -1), (1_000_000, 1_000_001)]
)  # fmt: skip
def test_a_budget_that_cannot_be_one_is_refused(budget, charge):
    """A negative charge would raise a budget, one above 1.0 would hide a depletion: neither is decided upon."""
    with pytest.raises(Refused) as caught:
        verdict(budget=budget, charge=charge)

    assert (caught.value.kind, caught.value.reason) == (Kind.INVALID, "BUDGET_OUT_OF_RANGE")


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(
    ("policy", "found", "cause"),
    [
        ("halt-on HIGH", {"risk": HIGH}, "halt-on"),
        ("require-flow 0.5", {"flow": 0.1}, "require-flow"),
        ("oversight human-review", {"risk": HIGH}, "oversight"),
        ("require-quality S", {"tier": Tier.A}, "require-quality"),
        ("", {"budget": 100_000}, "budget"),
        ("", {"prohibited": True}, "eu-ai-act"),
        ("", {}, "none"),
    ],
)
def test_the_cause_is_a_name_of_a_fixed_set(policy, found, cause):
    """Metrics are labelled by directive, never by a value."""
    assert verdict(policy, **found).outcome.cause == cause
