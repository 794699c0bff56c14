"""What the sidecar says of a tree of agents: events, inherited modes, and the headers of a delegation."""

from __future__ import annotations

import json

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused
from interlock.domain.headers import headers
from interlock.domain.headers.headers import RequestHeaders
from interlock.sidecar.admission.delegation import headers_of, may_begin_below
from interlock.sidecar.admission.policies import check_layers, stricter
from interlock.sidecar.admission.start_session import check_depth, check_residency
from interlock.sidecar.trail import response_headers, tree_events

PARENT, CHILD = "crp_sess_" + "0a" * 16, "crp_sess_" + "0b" * 16
CONTINUATION = "crp_cont_" + "0c" * 16
HALF_OPEN, OPEN = common_pb2.BREAKER_STATE_HALF_OPEN, common_pb2.BREAKER_STATE_OPEN


def asked(*fields: tuple[str, str]) -> RequestHeaders:
    return headers.read(fields, delegating=True)


def told(event: audit_pb2.NewEvent) -> dict:
    return {"type": event.event_type, "severity": event.severity, **json.loads(event.data_json)}


@pytest.mark.req("PRV-4", "AUD-1")
def test_the_way_up_and_the_way_down_are_on_record():
    """A child's first event names its parent, and the parent's trail names the child and the grant."""
    session = session_pb2.Session(
        session_id=CHILD, root_session_id=PARENT, parent_session_id=PARENT, loop_depth=1, policy_hash="sha256:x",
        agent=session_pb2.AgentTerms(agent_type="legal"),
    )  # fmt: skip

    assert told(tree_events.created(session, "key_1", "g1")) == {
        "type": "SESSION_CREATED", "severity": audit_pb2.SEVERITY_INFO, "session_id": CHILD, "scope": "key_1",
        "safety_policy_hash": "sha256:x", "parent_session_id": PARENT, "root_session_id": PARENT, "loop_depth": 1,
        "agent_type": "legal", "grant_id": "g1",
    }  # fmt: skip
    assert told(tree_events.started(session, "g1")) == {
        "type": "SUB_AGENT_STARTED", "severity": audit_pb2.SEVERITY_INFO, "session_id": CHILD, "agent_type": "legal",
        "grant_id": "g1",
    }  # fmt: skip


@pytest.mark.req("AUD-1")
def test_a_root_says_nothing_of_a_parent():
    """A root is told by what is absent."""
    root = tree_events.created(session_pb2.Session(session_id=PARENT, root_session_id=PARENT), "key_1", "")

    assert set(json.loads(root.data_json)) == {"session_id", "scope", "safety_policy_hash"}


@pytest.mark.req("BRK-2", "AUD-1")
def test_a_grant_is_on_record_with_who_approved_it():
    """Under a half-open breaker a person approves, and the trail says who."""
    given = session_pb2.Delegation(grant_id="g1", loop_depth=2, expires_at="2026-01-01T00:00:00Z")
    approval = policy_pb2.VerifyApprovalResponse(approval_id="a1", reviewer_id="reviewer@company.com")

    plain = told(tree_events.granted(given, policy_pb2.VerifyApprovalResponse()))
    approved = told(tree_events.granted(given, approval))
    assert (approved["approval_id"], approved["reviewer_id"], approved["loop_depth"]) == (
        "a1", "reviewer@company.com", 2,
    )  # fmt: skip
    assert "approval_id" not in plain


@pytest.mark.req("BRK-4", "BRK-5", "OVR-1")
def test_a_childs_critical_halt_is_a_critical_event_above():
    """0.63 falls to 0.28: the cascade, the transition it causes, and CRITICAL as severity (SPEC-012 §6.1)."""
    ancestor = session_pb2.Ancestor(
        session_id=PARENT, before_micros=630_000, safety_budget_micros=280_000,
        transitions=[session_pb2.BreakerTransition(session_id=PARENT, from_state=1, to_state=HALF_OPEN,
                                                   safety_budget_micros=280_000)],
    )  # fmt: skip
    commit = session_pb2.CommitWindowRequest(
        session_id=CHILD, window_id="crp_win_1", risk_level=common_pb2.RISK_LEVEL_CRITICAL, status="HALTED"
    )
    cascade, moved = (told(event) for event in tree_events.cascaded(ancestor, commit))

    assert cascade == {
        "type": "SAFETY_BUDGET_CASCADED", "severity": audit_pb2.SEVERITY_CRITICAL, "child_session_id": CHILD,
        "window_id": "crp_win_1", "risk_level": "CRITICAL", "before": "0.63", "after": "0.28",
    }  # fmt: skip
    assert (moved["type"], moved["to_state"], moved["safety_budget"]) == ("BREAKER_TRANSITION", "HALF_OPEN", "0.28")


@pytest.mark.req("BRK-3", "BRK-4")
def test_an_ancestor_that_is_spent_has_its_end_on_record():
    """Depletion below ends everyone above, and each trail says so."""
    ancestor = session_pb2.Ancestor(
        session_id=PARENT, before_micros=200_000, safety_budget_micros=50_000, terminated=True,
        transitions=[session_pb2.BreakerTransition(session_id=PARENT, from_state=HALF_OPEN, to_state=OPEN)],
    )  # fmt: skip
    commit = session_pb2.CommitWindowRequest(
        session_id=CHILD, risk_level=common_pb2.RISK_LEVEL_HIGH, status="COMPLETED"
    )
    found = [told(event) for event in tree_events.cascaded(ancestor, commit)]

    assert [event["type"] for event in found] == [
        "SAFETY_BUDGET_CASCADED", "BREAKER_TRANSITION", "SAFETY_BUDGET_DEPLETED", "SESSION_TERMINATED",
    ]  # fmt: skip
    assert found[0]["severity"] == audit_pb2.SEVERITY_WARN
    assert found[-1]["final_safety_budget"] == "0.05"


@pytest.mark.req("HDR-1")
def test_a_delegation_names_all_that_the_sub_agent_must_send():
    """The set of SPEC-012 §3.1 with the grant, ready to be sent on."""
    granted = session_pb2.DelegateResponse(
        grant="g.m",
        delegation=session_pb2.Delegation(
            parent_session_id=PARENT, loop_depth=1, safety_budget_micros=850_000, policy_text="halt-on HIGH",
            safety_mode="strict", data_residency="EU",
        ),
    )  # fmt: skip

    assert headers_of(granted) == {
        "CRP-Agent-Session-Parent": PARENT, "CRP-Agent-Delegation-Grant": "g.m", "CRP-Agent-Loop-Depth": "1",
        "CRP-Agent-Safety-Budget": "0.85", "CRP-Safety-Policy": "halt-on HIGH", "CRP-Safety-Mode": "strict",
        "CRP-Compliance-Data-Residency": "EU",
    }  # fmt: skip


@pytest.mark.req("POL-6")
@pytest.mark.parametrize(
    ("fields", "mode", "policy", "told"),
    [
        ([("crp-safety-mode", "warn")], "strict", "", [("safety-mode", "strict", "warn")]),
        ([("crp-safety-mode", "permissive")], "warn", "", [("safety-mode", "warn", "permissive")]),
        ([("crp-safety-oversight-mode", "auto")], "", "oversight human-review", [("oversight", "human-review", "auto")]),
        ([("crp-safety-oversight-mode", "log-only")], "", "", [("oversight", "auto", "log-only")]),
        ([("crp-safety-mode", "warn"), ("crp-safety-oversight-mode", "log-only")], "strict", "oversight halt",
         [("safety-mode", "strict", "warn"), ("oversight", "halt", "log-only")]),
        ([("crp-safety-mode", "strict")], "strict", "", []),
        ([("crp-safety-mode", "strict")], "", "", []),
        ([], "strict", "oversight halt", []),
        ([("crp-safety-oversight-mode", "halt")], "", "oversight human-review", []),
    ],
)  # fmt: skip
def test_a_looser_layer_of_a_sub_agent_is_refused_with_both_values(fields, mode, policy, told):
    """Mode and oversight header are layers of the policy as well; every one that is looser is named."""
    if not told:
        check_layers(asked(*fields), mode=mode, policy_text=policy)
        return
    with pytest.raises(Refused) as caught:
        check_layers(asked(*fields), mode=mode, policy_text=policy)
    found = [
        (one["directive"], one["parent"], one["child"]) for one in json.loads(caught.value.metadata["relaxations"])
    ]

    assert (caught.value.kind, caught.value.reason) == (Kind.FORBIDDEN, "SAFETY_POLICY_INHERITANCE_VIOLATION")
    assert found == told


def test_the_stricter_mode_holds():
    """A child without a mode has its parent's; with one, the stricter of both."""
    assert stricter("", "strict") == stricter("strict", "warn") == "strict"
    assert (stricter("", ""), stricter("permissive", "")) == ("", "permissive")


@pytest.mark.req("AGT-2")
@pytest.mark.parametrize("depth", ["0", "2", "999999999"])
def test_a_depth_that_is_not_the_sessions_own_is_refused(depth):
    """The depth is counted by the mesh; inflated or deflated, it is 409 with both numbers."""
    with pytest.raises(Refused) as caught:
        check_depth(asked(("crp-agent-loop-depth", depth)), 1)

    assert (caught.value.kind, caught.value.reason) == (Kind.CONFLICT, "LOOP_DEPTH_MISMATCH")
    assert (caught.value.metadata["attempted"], caught.value.metadata["value"]) == (depth, "1")
    check_depth(asked(), 1)
    check_depth(asked(("crp-agent-loop-depth", "1")), 1)


@pytest.mark.req("HDR-1")
@pytest.mark.parametrize(("demanded", "region", "kept"), [
    ("EU", "EU", True), (None, "EU", True), (None, "", True), ("", "EU", True), ("EU", "US", False), ("EU", "", False),
])  # fmt: skip
def test_a_residency_is_this_deployments_or_refused(demanded, region, kept):
    """What must be processed elsewhere is not processed here (SPEC-002 §7.7)."""
    if kept:
        check_residency(demanded, region)
        return
    with pytest.raises(Refused) as caught:
        check_residency(demanded, region)
    assert (caught.value.kind, caught.value.reason) == (Kind.FORBIDDEN, "DATA_RESIDENCY_VIOLATION")
    assert caught.value.metadata == {"demanded": "EU", "region": region}


@pytest.mark.parametrize(
    ("fields", "below"),
    [
        ([("crp-session-token", "a.b"), ("crp-agent-session-parent", PARENT)], True),
        ([("crp-session-token", "a.b"), ("crp-agent-session-parent", PARENT), ("crp-accept-strategy", "push")], True),
        ([("crp-agent-session-parent", PARENT)], False),
        ([("crp-session-token", "a.b")], False),
        ([("crp-session-token", "a.b"), ("crp-agent-session-parent", PARENT), ("crp-context-strategy", "fan-out")], False),
        ([("crp-session-token", "a.b"), ("crp-agent-session-parent", PARENT), ("crp-session-action", "branch")], False),
        ([("crp-session-token", "a.b"), ("crp-agent-session-parent", PARENT),
          ("crp-context-continuation-id", CONTINUATION)], False),
    ],
)  # fmt: skip
def test_only_a_call_that_goes_on_from_no_window_may_start_a_child(fields, below):
    """The parent's token starts a child when the call names the parent and nothing to continue."""
    assert may_begin_below(asked(*fields)) is below


@pytest.mark.req("DAG-8")
@pytest.mark.parametrize(
    ("pattern", "header"),
    [("FIRST_DROP", "first-drop"), ("SUSTAINED", "sustained; recommend=strategy-upgrade"),
     ("CRITICAL", "critical; recommend=new-session"), ("PERSISTENT", "persistent; recommend=new-session"),
     ("UNSPECIFIED", None)],
)  # fmt: skip
def test_a_falling_quality_is_told_with_what_helps(pattern, header):
    """The four patterns of SPEC-004 §13.2; a quality that does not fall has no header."""
    number = session_pb2.Degradation.Value(f"DEGRADATION_{pattern}")
    known = response_headers.ResponseHeaders()
    known.set(response_headers.of_opened(session_pb2.OpenedWindow(degradation=number)))

    assert known.headers.get("CRP-Quality-Degradation") == header
