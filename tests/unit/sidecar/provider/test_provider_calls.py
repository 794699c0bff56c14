"""The bound on provider calls, and how bad an answer is by its report."""

from __future__ import annotations

import math

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.errors import Refused
from interlock.domain.policy.improvement import Axis
from interlock.sidecar.provider.calls import ProviderCalls
from interlock.sidecar.provider.judged import judged
from tests.support.sidecar.remedies import full_report


@pytest.mark.req("ATT-10")
def test_no_call_is_made_beyond_the_bound():
    """What is kept for the answer is not taken by anything else."""
    calls = ProviderCalls(2)
    calls.take(keeping=1)
    with pytest.raises(Refused, match="PROVIDER_CALLS_SPENT"):
        calls.take(keeping=1)
    calls.take()

    assert (calls.made, calls.left) == (2, 0)
    with pytest.raises(Refused, match="PROVIDER_CALLS_SPENT"):
        calls.take()


@pytest.mark.req("ATT-10")
def test_an_answer_that_needs_more_than_the_bound_is_refused_before_the_first_call():
    """It says what it needs and what the setting allows."""
    with pytest.raises(Refused, match="PROVIDER_CALLS_EXCEEDED") as raised:
        ProviderCalls(2).require(3, "a reflexive answer")

    assert raised.value.metadata == {"limit": "2", "attempted": "3"}
    assert "max_provider_calls" in str(raised.value.message)


@pytest.mark.req("ATT-10")
def test_a_clean_report_is_bad_on_no_axis_but_its_own_scores():
    """Every axis is judged when every stage ran."""
    found = judged(full_report(entailment_score=1.0, composite_score=0.0))

    assert found.keys() == set(Axis)
    assert {axis for axis, bad in found.items() if bad} == {Axis.RISK, Axis.QUALITY_TIER}


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize(
    ("axis", "stage", "found"),
    [
        (Axis.GROUNDING, "2", {"grounding_pct": 0.5}),
        (Axis.ENTAILMENT, "4", {"entailment_score": 0.1}),
        (Axis.FIDELITY, "4", {"fidelity_score": 0.5}),
        (Axis.FABRICATIONS, "3a", {"fabrication_count": 2}),
        (Axis.FABRICATIONS, "3a", {"fabricated_entities": ["Krause"]}),
        (Axis.DISTORTIONS, "3b", {"distortion_count": 1}),
        (Axis.CONTRADICTIONS, "3c", {"contradiction_count": 1}),
        (Axis.GRAVEST_CONTRADICTION, "3c", {"contradictions": [dpe_pb2.Contradiction(severity="HIGH")]}),
        (Axis.OMISSIONS, "10", {"omissions": [dpe_pb2.Omission(fact_id="f")]}),
        (Axis.REPETITION, "7", {"repetition_level": "MINOR"}),
        (Axis.COMPLETENESS, "8", {"completeness_score": 0.5}),
        (Axis.FLOW, "9", {"flow_score": 0.4}),
        (Axis.PERSONAL_DATA, "11", {"pii": [dpe_pb2.PiiFinding(where="response")]}),
    ],
)
def test_what_a_stage_finds_is_worse_and_what_did_not_run_is_absent(axis, stage, found):
    """A stage that did not run says nothing good."""
    clean, bad = full_report(entailment_score=1.0), full_report(**{"entailment_score": 1.0, **found})
    skipped = full_report(**found)
    for one in skipped.stages:
        if one.number == stage:
            one.status = dpe_pb2.STAGE_STATUS_NOT_RUN

    assert judged(bad)[axis] > judged(clean)[axis]
    assert axis not in judged(skipped)


@pytest.mark.req("ATT-10")
def test_an_answer_that_claims_nothing_has_nothing_to_fault():
    """No grounding where no claim was checked: a refusal is better grounded than an invention."""
    report = full_report()
    report.ClearField("grounding_pct")

    assert judged(report)[Axis.GROUNDING] == 0.0


@pytest.mark.req("ATT-10")
def test_the_worst_choice_is_what_counts():
    """And personal data of the prompt is no fault of the answer; an unknown level of anything is not good."""
    report = full_report(pii=[dpe_pb2.PiiFinding(where="prompt")], repetition_level="LOTS")
    report.choices.add(choice_index=1, composite_score=0.8, risk_level=common_pb2.RISK_LEVEL_CRITICAL)
    found = judged(report)

    assert (found[Axis.RISK], found[Axis.COMPOSITE], found[Axis.PERSONAL_DATA]) == (4, 0.8, 0)
    assert math.isnan(found[Axis.REPETITION])
