"""How a DPE report is read: what is absent, contradictory or out of range is the worst (reliability.md A-40)."""

from __future__ import annotations

import math

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.policy.directives import Repetition, Tier
from interlock.domain.policy.findings import ClaimBasis
from interlock.domain.risk.risk import RiskLevel
from interlock.policy.report import read_findings

RAN, NOT_RUN = dpe_pb2.STAGE_STATUS_RAN, dpe_pb2.STAGE_STATUS_NOT_RUN
STAGES = ["1", "2", "3a", "3b", "3c", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13"]


def stages(*not_run: str) -> list[dpe_pb2.Stage]:
    return [dpe_pb2.Stage(number=number, status=NOT_RUN if number in not_run else RAN) for number in STAGES]


def claim(attribution: int, claim_type: int = dpe_pb2.CLAIM_TYPE_FACTUAL) -> dpe_pb2.Claim:
    return dpe_pb2.Claim(attribution=attribution, claim_type=claim_type)


def report(**fields) -> dpe_pb2.Report:
    good = {
        "risk_level": common_pb2.RISK_LEVEL_LOW, "composite_score": 0.1, "claims": [claim(1)], "grounding_pct": 1.0,
        "entailment_score": 0.9, "flow_score": 0.8, "completeness_score": 0.7, "repetition_level": "MINOR",
        "gdpr_pii_detected": False, "quality_tier": "A", "stages": stages(),
    }  # fmt: skip
    return dpe_pb2.Report(**good | fields)


def without(field: str, **fields) -> dpe_pb2.Report:
    found = report(**fields)
    found.ClearField(field)
    return found


def test_reads_every_signal():
    """A whole report gives its values as they are."""
    found = read_findings(report(fabrication_count=2))

    assert (found.risk, found.attributions) == (RiskLevel.LOW, {ClaimBasis.CONTEXT_GROUNDED})
    assert (found.grounding, found.entailment, found.flow, found.completeness) == (1.0, 0.9, 0.8, 0.7)
    assert (found.fabrications, found.repetition, found.pii) == (2, Repetition.MINOR, False)
    assert (found.tier, found.prohibited, found.undefined) == (Tier.A, False, frozenset())


def test_an_empty_report_shows_nothing_good():
    """A report without a field has the highest risk, and every signal is absent."""
    found = read_findings(dpe_pb2.Report())

    assert found.risk is RiskLevel.CRITICAL
    assert {found.attributions, found.grounding, found.entailment, found.flow, found.completeness} == {None}
    assert {found.fabrications, found.repetition, found.pii, found.tier} == {None}
    assert found.undefined == frozenset()


@pytest.mark.parametrize(
    ("stage", "signal"),
    [
        ("2", "attributions"), ("2", "grounding"), ("3a", "fabrications"), ("4", "entailment"), ("7", "repetition"),
        ("8", "completeness"), ("9", "flow"), ("11", "pii"),
    ],
)  # fmt: skip
def test_a_value_of_a_stage_that_did_not_run_is_absent(stage, signal):
    """A stage that is not run, not listed, or listed twice with a NOT_RUN gives no value, whatever stands there."""
    assert getattr(read_findings(report(stages=stages(stage))), signal) is None
    assert getattr(read_findings(report(stages=[s for s in stages() if s.number != stage])), signal) is None
    twice = [*stages(), dpe_pb2.Stage(number=stage, status=NOT_RUN)]
    assert getattr(read_findings(report(stages=twice)), signal) is None
    assert getattr(read_findings(report()), signal) is not None


@pytest.mark.parametrize(
    ("field", "signal"),
    [("entailment_score", "entailment"), ("completeness_score", "completeness"), ("repetition_level", "repetition"),
     ("gdpr_pii_detected", "pii")],
)  # fmt: skip
def test_a_value_that_a_stage_did_not_give_is_absent(field, signal):
    """A stage that ran and gave no value shows nothing, and is no excuse."""
    found = read_findings(without(field))

    assert getattr(found, signal) is None
    assert signal not in found.undefined


@pytest.mark.parametrize(
    ("level", "score", "expected"),
    [
        (1, 0.19, RiskLevel.LOW), (1, 0.2, RiskLevel.MEDIUM), (1, 0.7, RiskLevel.CRITICAL), (3, 0.1, RiskLevel.HIGH),
        (1, math.nan, RiskLevel.CRITICAL), (1, math.inf, RiskLevel.CRITICAL), (1, -math.inf, RiskLevel.CRITICAL),
        (1, -0.01, RiskLevel.CRITICAL), (1, 1.01, RiskLevel.CRITICAL), (1, -0.0, RiskLevel.LOW),
        (0, 0.0, RiskLevel.CRITICAL), (7, 0.0, RiskLevel.CRITICAL), (-1, 0.0, RiskLevel.CRITICAL),
    ],
)  # fmt: skip
def test_risk_is_the_worse_of_level_and_score(level, score, expected):
    """A level may have a floor above its score; a score that is higher than its level, or none, is not believed."""
    assert read_findings(report(risk_level=level, composite_score=score)).risk is expected


def test_risk_is_that_of_the_worst_choice():
    """Every choice is released with the others, so the worst one counts."""
    worse = dpe_pb2.ChoiceRisk(choice_index=1, composite_score=0.5, risk_level=3)
    unknown = dpe_pb2.ChoiceRisk(choice_index=1)

    assert read_findings(report(choices=[worse])).risk is RiskLevel.HIGH
    assert read_findings(report(choices=[unknown])).risk is RiskLevel.CRITICAL


@pytest.mark.parametrize("field", ["grounding_pct", "entailment_score", "flow_score", "completeness_score"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.001, 1.001])
def test_a_score_out_of_range_reaches_no_threshold(field, value):
    """What cannot be a score is no number."""
    found = read_findings(report(**{field: value}))

    assert math.isnan(getattr(found, field.removesuffix("_score").removesuffix("_pct")))


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(
    ("claims", "count", "share"),
    [
        ([claim(1), claim(2), claim(2), claim(0)], 1, 1 / 3), ([], 0, 0.0), ([claim(1)], 0, 0.0), ([claim(2)], 1, 1.0),
        ([dpe_pb2.Claim(attribution=2, cannot_tell=True), claim(1)], 0, 0.5),
        ([claim(1)], 2, None), ([claim(1)], -1, None), ([], 1, None),
    ],
)  # fmt: skip
def test_the_share_of_what_one_cannot_tell_is_of_the_checked_claims(claims, count, share):
    """A count that cannot be one meets no maximum; where nothing was attributed there is no share."""
    found = read_findings(report(claims=claims, cannot_tell_count=count)).cannot_tell

    assert found is not None
    assert math.isnan(found) if share is None else found == share
    assert read_findings(report(claims=claims, cannot_tell_count=count, stages=stages("2"))).cannot_tell is None


def test_grounding_is_undefined_only_without_a_checked_claim():
    """No claim to check leaves grounding undefined; a checked claim without it does not."""
    assert read_findings(without("grounding_pct", claims=[])).undefined == {"grounding"}
    assert read_findings(without("grounding_pct", claims=[claim(0, dpe_pb2.CLAIM_TYPE_META)])).undefined == {
        "grounding"
    }
    assert read_findings(without("grounding_pct")).undefined == frozenset()
    assert read_findings(without("grounding_pct", claims=[], stages=stages("2"))).undefined == frozenset()


def test_flow_is_undefined_only_when_its_stage_ran():
    """Stage 9 that ran without a score is the first window; one that did not run is a missing signal."""
    assert read_findings(without("flow_score")).undefined == {"flow"}
    assert read_findings(without("flow_score", stages=stages("9"))).undefined == frozenset()


@pytest.mark.parametrize(
    ("attribution", "claim_type", "expected"),
    [
        (1, dpe_pb2.CLAIM_TYPE_FACTUAL, {ClaimBasis.CONTEXT_GROUNDED}),
        (2, dpe_pb2.CLAIM_TYPE_OPINION, {ClaimBasis.PARAMETRIC}),
        (0, dpe_pb2.CLAIM_TYPE_OPINION, set()),
        (0, dpe_pb2.CLAIM_TYPE_PROCEDURAL, set()),
        (0, dpe_pb2.CLAIM_TYPE_META, set()),
        (0, dpe_pb2.CLAIM_TYPE_FACTUAL, {ClaimBasis.UNVERIFIABLE}),
        (0, dpe_pb2.CLAIM_TYPE_UNSPECIFIED, {ClaimBasis.UNVERIFIABLE}),
        (99, dpe_pb2.CLAIM_TYPE_META, {ClaimBasis.UNVERIFIABLE}),
    ],
)
def test_a_claim_without_a_known_attribution_is_unverifiable(attribution, claim_type, expected):
    """Only a claim that is not to be checked may have no attribution."""
    assert read_findings(report(claims=[claim(attribution, claim_type)])).attributions == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"fabrication_count": 0}, 0),
        ({"fabrication_count": 3}, 3),
        ({"fabrication_count": -5}, 1),
        ({"fabrication_count": 0, "fabricated_entities": ["a", "b"]}, 2),
    ],
)
def test_fabrications_are_the_larger_of_count_and_list(fields, expected):
    """A count below its list, or below zero, is not believed."""
    assert read_findings(report(**fields)).fabrications == expected


@pytest.mark.parametrize(("level", "expected"), [("NONE", 0), ("SEVERE", 3), ("none", 3), ("", 3), ("LITTLE", 3)])
def test_an_unknown_repetition_level_is_severe(level, expected):
    """Only the four levels are known."""
    assert read_findings(report(repetition_level=level)).repetition == expected


def test_found_personal_data_counts_however_it_is_told():
    """A finding outweighs a flag that denies it, and a stage that says it did not run."""
    listed = dpe_pb2.PiiFinding(type="EMAIL_ADDRESS")

    assert read_findings(report(pii=[listed])).pii is True
    assert read_findings(report(gdpr_pii_detected=True, stages=stages("11"))).pii is True


@pytest.mark.parametrize(("tier", "expected"), [("S", Tier.S), ("D", Tier.D), ("", None), ("s", None), ("E", None)])
def test_an_unknown_tier_is_absent(tier, expected):
    """A tier that is none is not known."""
    assert read_findings(report(quality_tier=tier)).tier == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({}, False), ({"eu_ai_act_class": "LIMITED"}, False), ({"eu_ai_act_class": "UNACCEPTABLE"}, True)],
)
def test_the_prohibited_class_is_read(fields, expected):
    """Only UNACCEPTABLE prohibits."""
    assert read_findings(report(**fields)).prohibited is expected


@pytest.mark.req("POL-3")
@pytest.mark.parametrize(("window_number", "broken"), [(1, False), (2, True), (0, True)])
def test_flow_is_not_demanded_of_the_first_window_only(window_number, broken):
    """Stage 9 not having run is a missing signal everywhere but in window 1, where flow is not defined."""
    report = dpe_pb2.Report(
        stages=[dpe_pb2.Stage(number="9", name="flow", status=dpe_pb2.STAGE_STATUS_NOT_RUN)],
        risk_level=common_pb2.RISK_LEVEL_LOW,
    )

    findings = read_findings(report, window_number=window_number)

    assert ("flow" not in findings.undefined) is broken


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("share", "left"), [(0.0, 0.6), (0.2, 0.4), (0.6, 0.0), (0.9, 0.0), (-1.0, 0.0), (math.nan, 0.0)]
)
def test_what_rests_on_the_users_words_may_not_count(share, left):
    """A share that cannot be one leaves nothing grounded."""
    found = report(grounding_pct=0.6, user_grounding_pct=share)

    assert read_findings(found).grounding == 0.6
    assert read_findings(found, user_words_ground=False).grounding == pytest.approx(left)


@pytest.mark.req("ATT-5")
def test_a_call_is_not_incomplete():
    """The model called a tool and said nothing yet: the answer to the query is still to come."""
    call = [dpe_pb2.ToolCall(name="get_weather")]

    assert read_findings(without("completeness_score", tool_calls=call)).undefined == {"completeness"}
    assert read_findings(without("completeness_score")).undefined == frozenset()
    assert read_findings(report(tool_calls=call)).completeness == 0.7
