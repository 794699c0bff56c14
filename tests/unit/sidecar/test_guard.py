"""What the guard's parts say, without services: verdicts, events, headers, waiting."""

from __future__ import annotations

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.breaker import BreakerState
from interlock.domain.budget import Micros
from interlock.domain.errors import Kind, Refused, conflict, unavailable
from interlock.runtime.rpc.deadline import DELAYS_S, Deadline, retry_idempotent
from interlock.sidecar import requests
from interlock.sidecar.admission.admission import Admitted
from interlock.sidecar.call.verdict import SettledHalt, as_halt, checked_report, halted_by, refusal_of
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.trail import response_headers
from interlock.sidecar.trail.response_headers import ResponseHeaders
from tests.support.sidecar.sidecar import a_report

ANSWER = Completion(b"x", {}, (dpe_pb2.Output(choice_index=0, text="x", kind="content"),), None)
DECREMENTS = session_pb2.Decrements(low_micros=0, medium_micros=50_000, high_micros=150_000, critical_micros=350_000)
VALID = common_pb2.CHAIN_INTEGRITY_VALID


def opened(**more) -> session_pb2.OpenedWindow:
    values = {"window_number": 1, "breaker": common_pb2.BREAKER_STATE_CLOSED, "decrements": DECREMENTS, **more}
    return session_pb2.OpenedWindow(**values)


def admitted(budget: int = 1_000_000, **more) -> Admitted:
    return Admitted(opened(**more), policy_pb2.ResolveResponse(), Micros(budget))


@pytest.mark.req("BUD-2")
@pytest.mark.parametrize(("risk", "cost"), [("LOW", 0), ("MEDIUM", 50_000), ("HIGH", 150_000), ("CRITICAL", 350_000)])
def test_a_response_costs_what_its_risk_costs(risk, cost):
    """The decrements of the session's own rules, by the report's class."""
    assert requests.charge(admitted(), a_report(risk)) == cost


def test_an_unknown_risk_costs_the_most():
    """A class that this version does not know is not a cheap one."""
    report = a_report()
    report.risk_level = 7  # type: ignore[assignment]

    assert requests.charge(admitted(), report) == 350_000


@pytest.mark.req("BUD-4")
@pytest.mark.parametrize(
    ("budget", "ledger", "state"),
    [
        (1_000_000, common_pb2.BREAKER_STATE_CLOSED, BreakerState.CLOSED),
        (400_000, common_pb2.BREAKER_STATE_CLOSED, BreakerState.HALF_OPEN),
        (1_000_000, common_pb2.BREAKER_STATE_HALF_OPEN, BreakerState.HALF_OPEN),
        (1_000_000, common_pb2.BREAKER_STATE_UNSPECIFIED, BreakerState.OPEN),
    ],
)
def test_the_breaker_is_never_milder_than_the_ledgers(budget, ledger, state):
    """A caller's ceiling can only make it stricter, and a breaker that nobody named is open."""
    assert admitted(budget, breaker=ledger).breaker is state


NOT_RUN = dpe_pb2.STAGE_STATUS_NOT_RUN


@pytest.mark.finding("F-29")
@pytest.mark.parametrize(
    "report",
    [
        a_report(risk_level=common_pb2.RISK_LEVEL_UNSPECIFIED),
        a_report(composite_score=float("nan")),
        a_report(composite_score=1.5),
        a_report(grounding_pct=float("inf")),
        a_report(signals=dpe_pb2.Signals(fidelity=float("nan"))),
        a_report(choice_index=3),
        a_report(composite_score=0.99),  # F-29: CRITICAL by its score, LOW by its word
        a_report("CRITICAL", composite_score=0.01),
        a_report(stages=[]),
        a_report(stages=[dpe_pb2.Stage(number=each.number, status=NOT_RUN) for each in a_report().stages]),
        a_report(stages=[*a_report().stages, dpe_pb2.Stage(number="2", status=NOT_RUN)]),
        a_report(repetition_level="NONE"),  # of a stage that it says did not run
        a_report(claims_total=2),
        a_report(fabrication_count=1),
        a_report(contradiction_count=1),
        a_report(cannot_tell_count=1),
        a_report(attribution_breakdown={"CONTEXT_GROUNDED": 2}),
        a_report(choices=[dpe_pb2.ChoiceRisk(composite_score=0.9, risk_level=common_pb2.RISK_LEVEL_CRITICAL)]),
        a_report(choices=[dpe_pb2.ChoiceRisk(composite_score=0.05, risk_level=common_pb2.RISK_LEVEL_CRITICAL)]),
    ],
)
def test_a_report_that_cannot_be_read_is_no_report(report):
    """NaN, a missing class or a choice left out end the call; nothing is guessed (A-40)."""
    with pytest.raises(Refused) as caught:
        checked_report(report, ANSWER)

    assert (caught.value.kind, caught.value.reason) == (Kind.UNAVAILABLE, "DPE_REPORT_INVALID")


def test_every_choice_must_have_been_judged():
    """A report about one of two choices does not release the other (A-26)."""
    two = Completion(b"", {}, tuple(dpe_pb2.Output(choice_index=i, text="x") for i in (0, 1)), None)
    low = {"composite_score": 0.05, "risk_level": common_pb2.RISK_LEVEL_LOW}
    report = a_report(choices=[dpe_pb2.ChoiceRisk(choice_index=0, **low)])

    with pytest.raises(Refused, match="DPE_REPORT_INVALID"):
        checked_report(report, two)
    report.choices.add(choice_index=1, **low)
    assert checked_report(report, two) is report


def verdict(action, **more) -> tuple[Refused | None, ResponseHeaders]:
    known = ResponseHeaders(session_id="s", window_id="w")
    left = {"breaker": common_pb2.BREAKER_STATE_CLOSED, "session_budget_micros": 1_000_000}
    settled = session_pb2.CommitWindowResponse(**more.pop("settled", left))
    decision = policy_pb2.Decision(action=action, **more)
    return refusal_of(decision, settled, VALID, known), known


def test_only_deliver_releases():
    """Every other action is a refusal, one that is not set or not known too."""
    assert verdict(policy_pb2.ACTION_DELIVER)[0] is None
    for action in set(policy_pb2.Action.values()) - {policy_pb2.ACTION_DELIVER} | {99}:
        assert verdict(action)[0] is not None


@pytest.mark.req("BRK-3")
@pytest.mark.parametrize(
    ("action", "more", "reason", "retry"),
    [
        (policy_pb2.ACTION_HOLD, {"oversight_required": True}, "HELD_FOR_REVIEW", "oversight-required"),
        (policy_pb2.ACTION_HALT, {"reason": "SAFETY_HALT", "oversight_required": True, "releasable": True}, "SAFETY_HALT",
         "oversight-required"),
        # An older policy service says that a person is needed where none can help.
        (policy_pb2.ACTION_HALT, {"reason": "SAFETY_HALT", "oversight_required": True}, "SAFETY_HALT", "0"),
        (policy_pb2.ACTION_HOLD, {"settled": {"breaker": common_pb2.BREAKER_STATE_OPEN}}, "HELD_FOR_REVIEW",
         "new-session-required"),
        (policy_pb2.ACTION_HALT, {"reason": "RISK_NOT_ACCEPTED"}, "RISK_NOT_ACCEPTED", "0"),
        (policy_pb2.ACTION_HALT, {"settled": {"breaker": common_pb2.BREAKER_STATE_OPEN}, "oversight_required": True},
         "SAFETY_HALT", "new-session-required"),
        (policy_pb2.ACTION_HALT, {"settled": {"terminated": True}}, "SAFETY_HALT", "new-session-required"),
        (policy_pb2.ACTION_UNSPECIFIED, {}, "SAFETY_HALT", "0"),
    ],
)  # fmt: skip
def test_a_halt_says_what_helps(action, more, reason, retry):
    """A review, a new session, or simply another try (SPEC-002 §5.15)."""
    refused, known = verdict(action, **more)

    assert refused is not None
    assert (refused.kind, refused.reason) == (Kind.HALTED, reason)
    assert known.headers["CRP-Safety-Retry-After"] == retry
    assert (
        ("held_uri" in refused.metadata)
        == (refused.metadata["oversight_required"] == "true")
        == (retry == "oversight-required")
    )


def test_rejected_quality_is_no_safety_verdict():
    """A quality that cannot be had is 503, not 451 (SPEC-002 §13.1)."""
    refused, _ = verdict(policy_pb2.ACTION_REJECT_QUALITY)

    assert refused is not None
    assert refused.kind is Kind.UNAVAILABLE


def test_a_broken_chain_releases_nothing():
    """An answer whose record does not verify is not released (SPEC-004 §16.4)."""
    decision = policy_pb2.Decision(action=policy_pb2.ACTION_DELIVER)
    refused = refusal_of(
        decision, session_pb2.CommitWindowResponse(), common_pb2.CHAIN_INTEGRITY_BROKEN, ResponseHeaders()
    )

    assert refused is not None
    assert (refused.kind, refused.reason) == (Kind.CONFLICT, "CHAIN_BROKEN")


def test_the_body_of_a_halt_has_every_field():
    """SPEC-002 §13.2, with a time where a retry may come at once."""
    refused, known = verdict(policy_pb2.ACTION_HALT, halt_reason="CRITICAL_HALLUCINATION_RISK")
    known.trail_uri = "http://x/t"

    assert refused is not None
    assert as_halt(refused, known, now="2026-05-25T10:00:00Z") == {
        "crp_halt_reason": "CRITICAL_HALLUCINATION_RISK",
        "session_id": "s",
        "audit_trail_uri": "http://x/t",
        "oversight_required": False,
        "retry_condition": "2026-05-25T10:00:00Z",
    }


def test_depletion_overrules_a_delivery_and_keeps_what_was_found():
    """The decision that stands is a halt; the violations stay on record (I2)."""
    before = policy_pb2.Decision(
        action=policy_pb2.ACTION_DELIVER, warned=True, violations=[policy_pb2.Violation(directive="warn-on HIGH")]
    )
    after = halted_by(SettledHalt("BUDGET_DEPLETED", "SAFETY_BUDGET_DEPLETED"), before)

    assert (after.action, after.reason, after.warned) == (policy_pb2.ACTION_HALT, "BUDGET_DEPLETED", True)
    assert after.violations == before.violations


@pytest.mark.req("HDR-4")
def test_a_stage_that_did_not_run_has_no_header():
    """A count of zero from a stage that never looked is not sent (SPEC-005 §20)."""
    report = a_report(stages=[dpe_pb2.Stage(number="5", status=dpe_pb2.STAGE_STATUS_RAN)])
    for name in ("grounding_pct", "fidelity_score", "entailment_score", "gdpr_pii_detected"):
        report.ClearField(name)
    known = ResponseHeaders()
    known.set(response_headers.of_report(report))

    assert {name for name in known.headers if name.startswith(("CRP-Safety", "CRP-Provenance"))} == {
        "CRP-Safety-Hallucination-Risk", "CRP-Safety-Hallucination-Score",
    }  # fmt: skip
    assert "CRP-Compliance-GDPR-PII" not in known.headers


@pytest.mark.req("HDR-4")
def test_a_full_report_fills_the_headers_of_the_specification():
    """Stage by stage the table of SPEC-005 §20, as far as the stages exist."""
    known = ResponseHeaders()
    known.set(
        response_headers.of_report(
            a_report(
                "HIGH",
                fabrication_count=2,
                distortion_count=1,
                distortion_types=["NUMBER_CHANGED"],
                contradiction_count=2,
                contradiction_scope="intra",
                omission_summary={"HIGH": 1},
                gdpr_pii_detected=True,
            )
        )
    )

    assert {name: known.headers[name] for name in known.headers if not name.startswith("CRP-Context")} == {
        "CRP-Safety-Hallucination-Risk": "HIGH",
        "CRP-Safety-Hallucination-Score": "0.500",
        "CRP-Provenance-Claim-Count": "1",
        "CRP-Safety-Attribution": "CONTEXT_GROUNDED",
        "CRP-Safety-Grounding-Pct": "1.000",
        "CRP-Safety-Cannot-Tell": "0",
        "CRP-Provenance-Attribution-Score": "1.000",
        "CRP-Provenance-Fidelity-Score": "1.000",
        "CRP-Safety-Entailment-Score": "0.900",
        "CRP-Safety-Fabrications": "2",
        "CRP-Safety-Distortions": "1; types=NUMBER_CHANGED",
        "CRP-Safety-Contradictions": "2; scope=intra",
        "CRP-Safety-Omissions": "CRITICAL:0, HIGH:1, MEDIUM:0",
        "CRP-Compliance-GDPR-PII": "true",
        "CRP-Compliance-EU-AI-Act": "UNKNOWN",
    }


@pytest.mark.req("HDR-6")
def test_hostile_report_texts_reach_no_header():
    """A claim, an entity or a scope that the model wrote cannot become a header, nor split one (A-16)."""
    hostile = "LOW\r\nset-cookie: a=b"
    known = ResponseHeaders()
    known.set(
        response_headers.of_report(
            a_report(
                quality_tier=hostile,
                envelope_etag=hostile,
                contradiction_count=1,
                contradiction_scope=hostile,
                distortion_count=1,
                distortion_types=[hostile],
                eu_ai_act_class=hostile,
                fabricated_entities=[hostile],
                claims=[dpe_pb2.Claim(text=hostile, claim_id=hostile)],
            )
        )
    )
    known.set(response_headers.of_decision(policy_pb2.Decision(oversight_mode=hostile)))

    assert "cookie" not in str(known.headers) + str(known.metadata())


@pytest.mark.req("BUD-1", "BRK-2")
@pytest.mark.parametrize(
    ("micros", "warning"),
    [(500_001, None), (500_000, "caution"), (250_000, "caution"), (249_999, "low"), (100_001, "low"), (100_000, None)],
)
def test_a_settled_budget_is_written_with_its_warning(micros, warning):
    """At and around every boundary of SPEC-012 §2.3; a warning that no longer holds is taken back."""
    known = ResponseHeaders(headers={"CRP-Safety-Budget-Warning": "caution"})
    settled = session_pb2.CommitWindowResponse(safety_budget_micros=micros, session_budget_micros=micros, token="a.b")
    known.set(response_headers.of_settlement(settled, 1, 5))

    assert known.headers.get("CRP-Safety-Budget-Warning") == warning
    assert float(known.headers["CRP-Agent-Safety-Budget"]) * 1_000_000 == pytest.approx(micros)


def test_trailing_metadata_is_in_lower_case_and_short():
    """gRPC metadata has the same headers; what is long is in the message alone."""
    known = ResponseHeaders()
    known.set({"CRP-Safety-Policy-Applied": "x" * 2049, "CRP-Agent-Safety-Budget": "1.00"})

    assert known.metadata() == (("crp-agent-safety-budget", "1.00"),)
    assert len(known.headers["CRP-Safety-Policy-Applied"]) == 2049


async def test_a_write_is_tried_again_while_the_service_is_away():
    """An idempotent write survives a short outage, and is given up after the last pause."""
    tries: list[int] = []

    async def attempt() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise unavailable("X_UNAVAILABLE", "x")
        return 42

    assert await retry_idempotent(attempt) == 42
    assert len(tries) == 3


async def test_a_definite_no_is_not_tried_again():
    """A conflict is an answer; asking again changes nothing."""
    tries: list[int] = []

    async def attempt() -> int:
        tries.append(1)
        raise conflict("CHAIN_CONFLICT", "x")

    with pytest.raises(Refused, match="CHAIN_CONFLICT"):
        await retry_idempotent(attempt)
    assert len(tries) == 1


async def test_an_outage_that_lasts_is_told():
    """After the last pause the refusal goes to the caller."""
    tries: list[int] = []

    async def attempt() -> int:
        tries.append(1)
        raise unavailable("X_UNAVAILABLE", "x")

    with pytest.raises(Refused, match="X_UNAVAILABLE"):
        await retry_idempotent(attempt)
    assert len(tries) == len(DELAYS_S) + 1


def test_no_step_starts_after_the_deadline():
    """What is left is at most what was given, and after the end there is nothing."""
    assert Deadline(10).within(3) == 3
    assert Deadline(2).within(30) <= 2
    with pytest.raises(Refused, match="DEADLINE_EXCEEDED"):
        Deadline(-1).within(1)
