"""The policy service over real gRPC: every call, and refusals that come back as values."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager

import grpc
import pytest
from prometheus_client import REGISTRY

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from interlock.domain.errors import Kind, Refused
from interlock.policy.wiring import open_service
from interlock.runtime.rpc.client import call_service
from interlock.runtime.settings.model import Settings
from tests.support.policy import agents

TV_020 = (
    "default-src context; halt-on CRITICAL; warn-on HIGH; require-grounding 0.75; block-ungrounded; "
    "upgrade-on-risk reflexive; report-uri https://comply.crprotocol.io/reports"
)


@pytest.fixture
async def policy(tmp_path):
    """A stub to a served policy service whose deployment demands grounding and has a reviewer."""
    async with served(tmp_path, default_policy="require-grounding 0.75") as stub:
        yield stub


@asynccontextmanager
async def served(folder, **settings):
    """A stub to a served policy service with a reviewer, unless the settings say otherwise."""
    reviewers = agents.write(folder / "reviewers.yaml", agents.reviewers())
    service = await open_service(Settings(**{"reviewers_file": reviewers, **settings}))
    server = grpc.aio.server()
    service.register(service.servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield PolicyServiceStub(channel)
    await server.stop(None)
    await service.close()


def decide(**fields) -> policy_pb2.DecideRequest:
    asked = {
        "report": dpe_pb2.Report(
            risk_level=common_pb2.RISK_LEVEL_LOW,
            grounding_pct=0.61,
            claims=[dpe_pb2.Claim(attribution=dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED)],
            gdpr_pii_detected=True,
            stages=[dpe_pb2.Stage(number=n, status=dpe_pb2.STAGE_STATUS_RAN) for n in ("2", "11")],
            quality_tier="B",
        ),
        "breaker": common_pb2.BREAKER_STATE_CLOSED,
        "session_budget_micros": 1_000_000,
    }
    return policy_pb2.DecideRequest(**asked | fields)


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.mark.req("POL-1")
async def test_tv_020_over_the_wire(policy):
    """TV-020: the directives of the vector, in canonical order, and the canonical text with its hash."""
    answer = await policy.Parse(policy_pb2.ParseRequest(text=TV_020))

    assert [(d.name, list(d.values)) for d in answer.directives] == [
        ("default-src", ["context"]),
        ("halt-on", ["CRITICAL"]),
        ("warn-on", ["HIGH"]),
        ("require-grounding", ["0.75"]),
        ("block-ungrounded", []),
        ("upgrade-on-risk", ["reflexive"]),
        ("report-uri", ["https://comply.crprotocol.io/reports"]),
    ]
    assert answer.canonical_text == TV_020
    assert answer.policy_hash.startswith("sha256:")
    assert not answer.HasField("refusal")


@pytest.mark.req("POL-1", "SVC-3")
async def test_tv_021_is_a_refusal_in_the_answer(policy):
    """TV-021: the call succeeds, and its answer says INVALID with the place."""
    answer = await policy.Parse(policy_pb2.ParseRequest(text="halt-on CRITICAL; allow-hallucination"))

    assert answer.refusal.kind == common_pb2.REFUSAL_KIND_INVALID
    assert answer.refusal.reason == "POLICY_UNKNOWN_DIRECTIVE"
    assert "unknown directive" in answer.refusal.message
    assert answer.refusal.metadata["position"] == "18"


async def test_a_refusal_is_raised_to_a_caller_that_asks(policy):
    """``call_service`` turns the value back into the refusal that it was."""
    with pytest.raises(Refused) as caught:
        await call_service("policy", policy.Parse(policy_pb2.ParseRequest(text="halt-on LOW"), timeout=5))

    assert (caught.value.kind, caught.value.reason) == (Kind.INVALID, "POLICY_BAD_VALUE")


@pytest.mark.req("POL-4")
async def test_compare_answers_a_relaxation(policy):
    """A relaxation is an answer with both values, not a refusal; a malformed text is refused."""
    answer = await policy.Compare(policy_pb2.CompareRequest(parent_text="halt-on HIGH", child_text="halt-on CRITICAL"))
    refusal = await policy.Compare(policy_pb2.CompareRequest(parent_text="halt-on HIGH", child_text=""))

    assert [(r.directive, r.parent_value, r.child_value) for r in answer.relaxations] == [
        ("halt-on", "HIGH", "CRITICAL")
    ]
    assert refusal.refusal.reason == "POLICY_EMPTY"


async def test_resolve_joins_the_default_the_lines_and_the_mode(policy):
    """A root is held to all of them; the report-only policy is apart."""
    answer = await policy.Resolve(
        policy_pb2.ResolveRequest(
            policy_texts=["require-grounding 0.50; block-pii", "halt-on HIGH"],
            safety_mode="warn",
            oversight_mode="human-review",
            report_only_texts=["halt-on MEDIUM"],
            accept_risk="MEDIUM",
            accept_quality=["S", "A"],
        )
    )

    assert answer.policy_text == "halt-on HIGH; warn-on HIGH; require-grounding 0.75; block-pii; oversight human-review"
    assert answer.report_only_text == "halt-on MEDIUM"
    parsed = await policy.Parse(policy_pb2.ParseRequest(text=answer.policy_text))
    assert parsed.policy_hash == answer.policy_hash


@pytest.mark.req("POL-5")
async def test_resolve_tells_an_empty_base_from_none(policy):
    """An empty base is a policy that demands nothing and is inherited; no base is a new root under the default."""
    inherited = await policy.Resolve(policy_pb2.ResolveRequest(base_text=""))
    root = await policy.Resolve(policy_pb2.ResolveRequest())

    assert (inherited.policy_text, root.policy_text) == ("", "require-grounding 0.75")


@pytest.mark.req("POL-6")
async def test_tv_023_is_forbidden(policy):
    """TV-023: FORBIDDEN with the reason of the vector and both values."""
    answer = await policy.Resolve(
        policy_pb2.ResolveRequest(
            base_text="halt-on CRITICAL; require-grounding 0.75",
            policy_texts=["warn-on CRITICAL; require-grounding 0.50"],
        )
    )

    assert answer.refusal.kind == common_pb2.REFUSAL_KIND_FORBIDDEN
    assert answer.refusal.reason == "SAFETY_POLICY_INHERITANCE_VIOLATION"
    assert answer.refusal.metadata["relaxations"] == (
        '[{"directive":"halt-on","parent":"CRITICAL","child":""},'
        '{"directive":"require-grounding","parent":"0.75","child":"0.50"}]'
    )
    assert answer.policy_text == ""


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("safety_mode", "off", "SAFETY_MODE_UNKNOWN"),
        ("oversight_mode", "none", "OVERSIGHT_MODE_UNKNOWN"),
        ("accept_risk", "ANY", "ACCEPT_RISK_UNKNOWN"),
        ("accept_quality", ["Z"], "ACCEPT_QUALITY_UNKNOWN"),
        ("report_only_texts", ["halt-on"], "POLICY_BAD_VALUE"),
        ("base_text", "halt-on", "POLICY_BAD_VALUE"),
    ],
)
async def test_resolve_refuses_what_it_cannot_read(policy, field, value, reason):
    """No layer is ignored because it is malformed."""
    answer = await policy.Resolve(policy_pb2.ResolveRequest(**{field: value}))

    assert (answer.refusal.kind, answer.refusal.reason) == (common_pb2.REFUSAL_KIND_INVALID, reason)


@pytest.mark.req("POL-3")
async def test_decide_tells_action_reason_and_every_violation(policy):
    """The decision of a response that breaks an enforced and a reported directive, in the proto's words."""
    before = sample("interlock_policy_decisions_total", directive="require-grounding", action="HALT")
    answer = await policy.Decide(
        decide(policy_text="require-grounding 0.80; require-flow 0.50", report_only_text="block-pii", no_store=True)
    )
    decision = answer.decision

    assert decision.action == policy_pb2.ACTION_HALT
    assert (decision.reason, decision.halt_reason) == ("SAFETY_HALT", "GROUNDING_BELOW_THRESHOLD")
    assert (decision.oversight_mode, decision.redispatch_strategy) == ("auto", "")
    assert list(decision.violations) == [
        policy_pb2.Violation(directive="require-grounding 0.80", type="GROUNDING_BELOW_THRESHOLD", found="0.61"),
        policy_pb2.Violation(directive="require-flow 0.50", type="FLOW_BELOW_THRESHOLD", signal_missing=True),
        policy_pb2.Violation(directive="block-pii", type="PII_DETECTED", found="true", report_only=True),
    ]
    assert sample("interlock_policy_decisions_total", directive="require-grounding", action="HALT") == before + 1


@pytest.mark.req("BRK-2", "OVR-1")
async def test_decide_holds_high_risk_in_a_half_open_session(policy):
    """The breaker of the request forces review, and a person must decide."""
    asked = decide(breaker=common_pb2.BREAKER_STATE_HALF_OPEN, session_budget_micros=400_000)
    asked.report.risk_level = common_pb2.RISK_LEVEL_HIGH
    decision = (await policy.Decide(asked)).decision

    assert (decision.action, decision.reason) == (policy_pb2.ACTION_HOLD, "HELD_FOR_REVIEW")
    assert (decision.oversight_mode, decision.oversight_required) == ("human-review", True)


@pytest.mark.req("ATT-9", "OVR-1")
@pytest.mark.parametrize("actions", [None, ["erase"]])
async def test_nothing_is_held_for_nobody(tmp_path, actions):
    """Without a reviewer who may release, what would be held is halted, and the reason says so."""
    listed = agents.reviewers()
    for fields in listed["reviewers"].values():
        fields["actions"] = actions
    asked = decide(breaker=common_pb2.BREAKER_STATE_HALF_OPEN, session_budget_micros=400_000)
    asked.report.risk_level = common_pb2.RISK_LEVEL_HIGH
    file = agents.write(tmp_path / "erasers.yaml", listed) if actions else None
    async with served(tmp_path, reviewers_file=file) as stub:
        decision = (await stub.Decide(asked)).decision

    assert (decision.action, decision.reason) == (policy_pb2.ACTION_HALT, "HUMAN_REVIEW_UNAVAILABLE")
    assert (decision.halt_reason, decision.oversight_required) == ("HUMAN_REVIEW_UNAVAILABLE", False)


@pytest.mark.req("ATT-9", "OVR-3")
async def test_it_is_held_once_a_reviewer_has_registered(tmp_path):
    """A reviewer who registers by RPC changes the next decision, and one who is removed the one after it."""
    asked = decide(breaker=common_pb2.BREAKER_STATE_HALF_OPEN, session_budget_micros=400_000)
    asked.report.risk_level = common_pb2.RISK_LEVEL_HIGH
    key = next(iter(agents.reviewers()["reviewers"].values()))["public_key"]
    reviewer = policy_pb2.Reviewer(reviewer_id=agents.REVIEWER, public_key=key)
    seen = []
    async with served(tmp_path, reviewers_file=None, reviewers_by_rpc=True) as stub:
        seen.append((await stub.Decide(asked)).decision.action)
        await stub.RegisterReviewer(policy_pb2.RegisterReviewerRequest(reviewer=reviewer))
        seen.append((await stub.Decide(asked)).decision.action)
        await stub.RemoveReviewer(policy_pb2.RemoveReviewerRequest(reviewer_id=agents.REVIEWER))
        seen.append((await stub.Decide(asked)).decision.action)

    assert seen == [policy_pb2.ACTION_HALT, policy_pb2.ACTION_HOLD, policy_pb2.ACTION_HALT]


@pytest.mark.req("ATT-9")
async def test_an_observed_response_is_delivered_and_told_of(policy):
    """The decision delivers, its policy only reports, and what would have been done stands beside it."""
    asked = decide(observed=True, policy_text="require-grounding 0.75", redispatches=2)
    decision = (await policy.Decide(asked)).decision

    assert (decision.action, decision.reason, decision.halt_reason) == (policy_pb2.ACTION_DELIVER, "", "")
    assert (decision.oversight_mode, decision.oversight_required) == ("log-only", False)
    assert [(one.directive, one.report_only) for one in decision.violations] == [("require-grounding 0.75", True)]
    assert (decision.would.action, decision.would.reason) == (policy_pb2.ACTION_HALT, "GROUNDING_BELOW_THRESHOLD")
    assert decision.would.directive == "require-grounding 0.75"


@pytest.mark.req("ATT-9")
async def test_an_observed_response_counts_as_delivered(policy):
    """The figures of decisions say what was done; a would-have is not among the halts."""
    halts = sample("interlock_policy_decisions_total", directive="require-grounding", action="HALT")
    delivered = sample("interlock_policy_decisions_total", directive="none", action="DELIVER")
    await policy.Decide(decide(observed=True, policy_text="require-grounding 0.75"))

    assert sample("interlock_policy_decisions_total", directive="require-grounding", action="HALT") == halts
    assert sample("interlock_policy_decisions_total", directive="none", action="DELIVER") == delivered + 1


@pytest.mark.req("ATT-9")
@pytest.mark.parametrize(
    ("fields", "asked_for"),
    [
        ({}, False),
        ({"base_text": "require-grounding 0.75"}, False),
        ({"agent_text": "halt-on HIGH"}, False),
        ({"safety_mode": "permissive"}, False),
        ({"policy_texts": ["halt-on CRITICAL"]}, True),
        ({"safety_mode": "strict"}, True),
        ({"base_text": "halt-on CRITICAL; require-grounding 0.75"}, True),
    ],
)
async def test_resolve_tells_what_a_caller_asked_for(policy, fields, asked_for):
    """A policy that says more than the deployment and the agent type was asked for, now or when the session began."""
    resolved = await policy.Resolve(policy_pb2.ResolveRequest(**fields))

    assert resolved.asked_for is asked_for


@pytest.mark.req("ATT-9", "OVR-1")
async def test_review_may_be_required_of_every_policy(tmp_path):
    """With review_required each policy has at least human review; a stricter mode stays."""
    async with served(tmp_path, review_required=True, default_policy="halt-on CRITICAL") as stub:
        looser = await stub.Resolve(policy_pb2.ResolveRequest(policy_texts=["oversight log-only"]))
        stricter = await stub.Resolve(policy_pb2.ResolveRequest(policy_texts=["oversight halt"]))

    assert looser.policy_text == "halt-on CRITICAL; oversight human-review"
    assert stricter.policy_text == "halt-on CRITICAL; oversight halt"


async def test_decide_takes_what_the_caller_accepts(policy):
    """CRP-Accept-Risk and CRP-Accept-Quality bind this one call."""
    asked = decide(accept_risk=common_pb2.RISK_LEVEL_LOW)
    asked.report.composite_score = 0.3
    risky = (await policy.Decide(asked)).decision
    poor = (await policy.Decide(decide(accept_quality=["s", "A"]))).decision

    assert (risky.action, risky.reason) == (policy_pb2.ACTION_HALT, "RISK_NOT_ACCEPTED")
    assert (poor.action, poor.reason) == (policy_pb2.ACTION_REJECT_QUALITY, "QUALITY_NOT_AVAILABLE")


async def test_decide_treats_a_score_that_is_no_number_as_the_worst(policy):
    """NaN crosses the wire and reaches no threshold (A-40)."""
    asked = decide(policy_text="require-grounding 0.00")
    asked.report.grounding_pct = math.nan
    decision = (await policy.Decide(asked)).decision

    assert (decision.action, decision.violations[0].found) == (policy_pb2.ACTION_HALT, "nan")


async def test_personal_data_without_no_store_is_counted(policy):
    """SPEC-002 §7.3: a compliance warning is logged, and counted."""
    before = sample("interlock_policy_compliance_warnings_total")
    await policy.Decide(decide(no_store=True))
    await policy.Decide(decide())

    assert sample("interlock_policy_compliance_warnings_total") == before + 1


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"report": None}, "REPORT_MISSING"),
        ({"policy_text": "nonsense"}, "POLICY_UNKNOWN_DIRECTIVE"),
        ({"report_only_text": "halt-on"}, "POLICY_BAD_VALUE"),
        ({"breaker": common_pb2.BREAKER_STATE_UNSPECIFIED}, "BREAKER_UNKNOWN"),
        ({"breaker": 9}, "BREAKER_UNKNOWN"),
        ({"session_budget_micros": -1}, "BUDGET_OUT_OF_RANGE"),
        ({"charge_micros": -1}, "BUDGET_OUT_OF_RANGE"),
        ({"accept_risk": 9}, "ACCEPT_RISK_UNKNOWN"),
        ({"accept_quality": ["S", "?"]}, "ACCEPT_QUALITY_UNKNOWN"),
    ],
)
async def test_decide_refuses_what_it_cannot_decide_upon(policy, fields, reason):
    """Without all that it rests on there is no decision, and so no release."""
    answer = await policy.Decide(decide(**fields))

    assert (answer.refusal.kind, answer.refusal.reason) == (common_pb2.REFUSAL_KIND_INVALID, reason)
    assert not answer.HasField("decision")


@pytest.mark.req("DPE-16")
async def test_decide_tells_the_remedies_and_the_strategy(policy):
    """What is left to try is asked for in the request, and the answer names every remedy and the strategy at once."""
    report = dpe_pb2.Report(
        risk_level=common_pb2.RISK_LEVEL_HIGH,
        composite_score=0.5,
        repetition_level="SEVERE",
        flow_score=0.2,
        completeness_score=0.3,
        gdpr_pii_detected=False,
        contradictions=[dpe_pb2.Contradiction(scope="cross-window", severity="CRITICAL")],
        stages=[dpe_pb2.Stage(number=n, status=dpe_pb2.STAGE_STATUS_RAN) for n in ("2", "6", "7", "8", "9", "11")],
        quality_tier="B",
    )
    asked = {
        "report": report,
        "policy_text": "upgrade-on-risk reflexive",
        "window_number": 2,
        "windows_left": 3,
        "continues": True,
        "remedies": ["redispatch", "continue", "stitch"],
    }
    again = (await policy.Decide(decide(**asked, remediable=True))).decision
    onward = (await policy.Decide(decide(**asked, remediable=True, redispatches=2))).decision
    bridge = (await policy.Decide(decide(**asked, remediable=True, redispatches=2, continuations=1))).decision
    spent = (await policy.Decide(decide(**asked, redispatches=0))).decision

    assert (again.action, again.redispatch_strategy, list(again.remedies)) == (
        policy_pb2.ACTION_REDISPATCH, "reflexive",
        [policy_pb2.REMEDY_UPGRADE, policy_pb2.REMEDY_CONTEXT_CORRECTION, policy_pb2.REMEDY_ANTI_REPETITION,
         policy_pb2.REMEDY_FLOW_AUGMENTATION],
    )  # fmt: skip
    unasked = (await policy.Decide(decide(**{**asked, "policy_text": "", "remedies": []}, remediable=True))).decision

    assert (unasked.action, list(unasked.called_for)) == (policy_pb2.ACTION_DELIVER, [])
    assert list(onward.called_for) == [policy_pb2.AXIS_COMPLETENESS]
    assert set(again.called_for) == {
        policy_pb2.AXIS_RISK, policy_pb2.AXIS_COMPOSITE, policy_pb2.AXIS_CONTRADICTIONS,
        policy_pb2.AXIS_GRAVEST_CONTRADICTION, policy_pb2.AXIS_REPETITION, policy_pb2.AXIS_FLOW,
    }  # fmt: skip
    assert (onward.action, bridge.action, spent.action) == (
        policy_pb2.ACTION_CONTINUE, policy_pb2.ACTION_STITCH, policy_pb2.ACTION_DELIVER,
    )  # fmt: skip
    assert not onward.remedies
    assert not onward.redispatch_strategy


@pytest.mark.parametrize("name", ["redispatches", "continuations", "windows_left"])
async def test_decide_refuses_counts_below_zero(policy, name):
    """A count that cannot be is no licence for another round."""
    answer = await policy.Decide(decide(**{name: -1}))

    assert (answer.refusal.reason, answer.refusal.kind) == ("COUNT_OUT_OF_RANGE", common_pb2.REFUSAL_KIND_INVALID)


async def test_the_service_is_ready_by_itself():
    """It depends on nothing, so nothing can be missing."""
    service = await open_service(Settings())

    assert (service.name, service.full_names) == ("policy", ("interlock.api.policy.v1.PolicyService",))
    assert await service.unready_dependencies() == {}


async def test_a_malformed_default_policy_fails_at_the_start():
    """A deployment whose policy cannot be read does not start without it."""
    with pytest.raises(Refused) as caught:
        await open_service(Settings(default_policy="halt-on CRITCAL"))

    assert (caught.value.reason, caught.value.metadata["setting"]) == ("POLICY_BAD_VALUE", "default_policy")
    assert "INTERLOCK_DEFAULT_POLICY" in caught.value.message


@pytest.mark.req("ATT-5", "POL-5")
@pytest.mark.parametrize(("counts", "action"), [(True, policy_pb2.ACTION_DELIVER), (False, policy_pb2.ACTION_HALT)])
async def test_a_deployment_says_whether_the_users_words_ground(counts, action):
    """Half of the claims rest on sources, the rest on what the user said."""
    service = await open_service(Settings(user_words_ground=counts))
    request = decide(policy_text="require-grounding 0.75")
    request.report.grounding_pct, request.report.user_grounding_pct = 1.0, 0.5
    answer = await service.servicer.Decide(request, None)
    await service.close()

    assert answer.decision.action == action
