"""What the audit trail says about a call: types, severities, fields, and no text of anyone's."""

from __future__ import annotations

import json

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.sidecar.trail import events
from tests.support.sidecar.sidecar import a_report


def data_of(noted: list[audit_pb2.NewEvent], kind: str) -> dict:
    return next(json.loads(event.data_json) for event in noted if event.event_type == kind)


def window_events(
    report: dpe_pb2.Report, decision: policy_pb2.Decision, *, number: int = 1
) -> list[audit_pb2.NewEvent]:
    dispatch = events.Dispatch("host", "m", "push", 0.2, 100, 7, 1)
    noted = [
        events.started(dispatch, "generate"),
        events.completed("sha256:x", 3, 9),
        *events.of_report(report, no_store=False),
    ]
    return events.of_window(
        opened=session_pb2.OpenedWindow(window_number=number), continuation_id=None, noted=noted, report=report,
        decision=decision, report_uri="http://x/r",
    )  # fmt: skip


@pytest.mark.req("AUD-1")
def test_a_window_is_told_in_events_with_the_fields_of_the_specification():
    """SPEC-011 §1: types, severities and key fields, in the order of what happened."""
    report = a_report(
        "CRITICAL", fabrication_count=1, distortion_count=1, distortion_types=["DATE_SHIFTED"], contradiction_count=1,
        contradiction_scope="intra", gdpr_pii_detected=True,
        contradictions=[dpe_pb2.Contradiction(claim_id="c1", other_claim_id="c2", severity="HIGH")],
        pii=[dpe_pb2.PiiFinding(type="EMAIL_ADDRESS", category="direct")],
    )  # fmt: skip
    report.claims[0].fabrications.append("Atlantis")
    decision = policy_pb2.Decision(
        action=policy_pb2.ACTION_HALT, halt_reason="CRITICAL_HALLUCINATION_RISK", reason="SAFETY_HALT",
        oversight_required=True, oversight_mode="auto",
        violations=[policy_pb2.Violation(directive="halt-on CRITICAL", type="HALT_ON_CRITICAL", found="CRITICAL")],
    )  # fmt: skip
    noted = window_events(report, decision, number=2)

    assert [(e.event_type, audit_pb2.Severity.Name(e.severity)) for e in noted] == [
        ("SESSION_CONTINUED", "SEVERITY_INFO"), ("DISPATCH_STARTED", "SEVERITY_INFO"),
        ("DISPATCH_COMPLETED", "SEVERITY_INFO"), ("DPE_COMPLETED", "SEVERITY_INFO"),
        ("FABRICATION_DETECTED", "SEVERITY_WARN"), ("DISTORTION_DETECTED", "SEVERITY_WARN"),
        ("CONTRADICTION_DETECTED", "SEVERITY_WARN"), ("PII_DETECTED", "SEVERITY_WARN"),
        ("POLICY_VIOLATION", "SEVERITY_WARN"), ("OVERSIGHT_TRIGGERED", "SEVERITY_WARN"),
        ("SAFETY_HALT", "SEVERITY_CRITICAL"),
    ]  # fmt: skip
    assert data_of(noted, "DISPATCH_STARTED") == {
        "strategy": "push", "provider": "host", "model": "m", "temperature": 0.2, "token_budget": 100, "seed": 7,
        "choices": 1,
    }  # fmt: skip
    assert data_of(noted, "FABRICATION_DETECTED") == {"fabrication_count": 1, "claim_ids": ["c1"]}
    assert data_of(noted, "CONTRADICTION_DETECTED")["claim_pairs"] == [["c1", "c2"]]
    assert data_of(noted, "CONTRADICTION_DETECTED")["severity"] == "HIGH"
    assert data_of(noted, "PII_DETECTED") == {
        "pii_categories": ["direct"], "pii_types": ["EMAIL_ADDRESS"], "no_store_set": False,
    }  # fmt: skip
    assert data_of(noted, "SAFETY_HALT")["policy_directive_violated"] == "halt-on CRITICAL"


@pytest.mark.req("SVC-5")
def test_events_hold_no_text_of_the_model():
    """Claims, entities and facts are in the report; an event has ids and counts."""
    report = a_report(fabrication_count=1, fabricated_entities=["Atlantis"], contradiction_count=1,
                      contradictions=[dpe_pb2.Contradiction(claim_id="c1", other_text="Atlantis")])  # fmt: skip
    report.claims[0].text = "Atlantis sank."
    report.claims[0].fabrications.append("Atlantis")
    noted = window_events(report, policy_pb2.Decision(action=policy_pb2.ACTION_DELIVER))

    assert "Atlantis" not in "".join(event.data_json for event in noted)


@pytest.mark.req("BRK-5")
def test_every_step_of_the_breaker_is_an_event():
    """Both steps of a fall, the depletion and the end, with the budget that is left."""
    steps = [
        session_pb2.BreakerTransition(session_id="s", from_state=a, to_state=a + 1, safety_budget_micros=50_000)
        for a in (1, 2)
    ]
    settled = session_pb2.CommitWindowResponse(
        transitions=steps, terminated=True, breaker=common_pb2.BREAKER_STATE_OPEN, session_budget_micros=50_000
    )
    noted = events.of_transitions(settled, window_number=3)

    assert [event.event_type for event in noted] == [
        "BREAKER_TRANSITION", "BREAKER_TRANSITION", "SAFETY_BUDGET_DEPLETED", "SESSION_TERMINATED",
    ]  # fmt: skip
    assert data_of(noted, "SAFETY_BUDGET_DEPLETED") == {"remaining_budget": "0.05", "windows_processed": 3}
    assert data_of(noted, "SESSION_TERMINATED")["reason"] == "SAFETY_BUDGET_DEPLETED"
    assert json.loads(noted[0].data_json)["to_state"] == "HALF_OPEN"
