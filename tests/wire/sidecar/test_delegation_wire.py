"""Delegation through the served sidecar: approvals, grants over gRPC, late settles, quality, and the answers of SPEC-004 §16."""

from __future__ import annotations

import asyncio
import json
import time

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.errors import unavailable
from tests.support.policy import agents
from tests.support.sidecar.sidecar import Hooked, a_report, reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)

HALTS = {"crp-safety-policy": "halt-on CRITICAL"}


async def delegate(sidecar, token: str, *, body: dict | None = None, **headers: str):
    sent = {"crp-session-token": token, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return await sidecar.client.post("/crp/v3/delegations", json=body or {}, headers=sent)


async def told(sidecar, session_id: str) -> list[tuple[str, dict]]:
    return [(event.event_type, json.loads(event.data_json)) for event in await sidecar.events(session_id)]


async def refused(call) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    info = error_details_pb2.ErrorInfo()
    for detail in rpc_status.from_call(caught.value).details:
        detail.Unpack(info)
    return caught.value.code(), info.reason


def approval(session_id: str, *, number: int = 1, agent: str = "", **changes) -> str:
    now = int(time.time())
    values = {"issued_at": now - 5, "expires_at": now + 600, **changes}
    return agents.approved(
        approval_id=f"crp_appr_{number:032x}", scope={"session": session_id, "agent": agent}, **values
    )


@pytest.fixture
async def reviewed(tmp_path, upstream, provider):
    """A sidecar with a registered reviewer."""
    path = agents.write(tmp_path / "reviewers.yaml", agents.reviewers())
    async with running_sidecar(tmp_path, upstream=upstream, reviewers_file=path, remediation="none") as running:
        yield running


async def half_open(sidecar, provider):
    """A session at 0.30: its second CRITICAL is held, and its breaker half open."""
    provider.answers("CRITICAL")
    first = await sidecar.chat()
    held = await sidecar.chat(token=token_of(first))
    provider.answers('{"issues": []}')
    assert (held.status_code, held.headers["crp-agent-safety-budget"]) == (451, "0.30")
    return held


@pytest.mark.req("BRK-2", "OVR-3", "OVR-4")
async def test_a_half_open_session_delegates_with_an_approval_alone(reviewed, provider):
    """403 without one; a reviewer's token opens this delegation, is on record, and brings no budget back."""
    held = await half_open(reviewed, provider)
    token, session_id = token_of(held), held.headers["crp-context-session-id"]
    without = await delegate(reviewed, token)
    opened = await delegate(reviewed, token, crp_oversight_token=approval(session_id))
    child = await reviewed.chat(headers=opened.json()["headers"])
    again = await delegate(reviewed, token, crp_oversight_token=approval(session_id))
    another = await delegate(reviewed, token, crp_oversight_token=approval(session_id, number=2))
    granted = [data for kind, data in await told(reviewed, session_id) if kind == "DELEGATION_GRANTED"]

    assert (without.status_code, reason_of(without)) == (403, "DELEGATION_NEEDS_APPROVAL")
    assert (opened.status_code, opened.json()["headers"]["CRP-Agent-Safety-Budget"]) == (200, "0.30")
    assert (child.status_code, child.headers["crp-agent-safety-budget"]) == (200, "0.30")
    assert child.headers["crp-context-strategy"] == "reflexive"
    assert (again.status_code, reason_of(again)) == (409, "APPROVAL_ALREADY_USED")
    assert another.status_code == 200
    assert granted[0]["approval_id"] == f"crp_appr_{1:032x}"
    assert granted[0]["reviewer_id"] == agents.REVIEWER


@pytest.mark.req("OVR-3")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"session_id": "crp_sess_" + "0" * 32}, "APPROVAL_MISMATCH"),
        ({"agent": "specialist_legal"}, "APPROVAL_MISMATCH"),
        ({"key": agents.private_key(2)}, "APPROVAL_INVALID"),
        ({"reviewer": "somebody@company.com"}, "APPROVAL_INVALID"),
        ({"issued_at": 1_700_000_000, "expires_at": 1_700_000_900}, "APPROVAL_EXPIRED"),
    ],
)
async def test_an_approval_of_something_else_opens_nothing(reviewed, provider, changes, reason):
    """Another session, another agent type, a forged signature, an unknown reviewer, one that expired: 401."""
    held = await half_open(reviewed, provider)
    session_id = changes.pop("session_id", held.headers["crp-context-session-id"])
    response = await delegate(reviewed, token_of(held), crp_oversight_token=approval(session_id, **changes))

    assert (response.status_code, reason_of(response)) == (401, reason)


@pytest.mark.req("BRK-2", "OVR-4")
async def test_an_approval_starts_a_child_by_its_parents_token(reviewed, provider):
    """A call that starts a child may carry it; one that goes on is refused by name, for it approves no call."""
    held = await half_open(reviewed, provider)
    token, session_id = token_of(held), held.headers["crp-context-session-id"]
    below = {"crp-agent-session-parent": session_id}
    without = await reviewed.chat(token=token, headers=below)
    child = await reviewed.chat(token=token, headers={**below, "crp-oversight-token": approval(session_id)})
    onward = await reviewed.chat(
        token=token_of(child), headers={**below, "crp-oversight-token": approval(session_id, number=2)}
    )
    plain = await reviewed.chat(token=token, headers={"crp-oversight-token": approval(session_id, number=3)})

    assert (without.status_code, reason_of(without)) == (403, "DELEGATION_NEEDS_APPROVAL")
    assert (child.status_code, child.headers["crp-agent-loop-depth"]) == (200, "1")
    assert (onward.status_code, reason_of(onward)) == (400, "HEADER_NOT_SUPPORTED")
    assert (plain.status_code, reason_of(plain)) == (400, "HEADER_NOT_SUPPORTED")


@pytest.mark.req("SVC-2", "HDR-1", "AGT-2")
async def test_a_grant_over_grpc_is_the_same(sidecar, provider):
    """Delegate returns the grant with the headers to send on; StartSession and Dispatch take them as they are."""
    started = await sidecar.stub.StartSession(
        sidecar_pb2.StartSessionRequest(context=sidecar_pb2.CallContext(safety_policy=["halt-on HIGH"]))
    )
    context = sidecar_pb2.CallContext(session_token=started.session_token)
    granted = await sidecar.stub.Delegate(sidecar_pb2.DelegateRequest(context=context, lifetime_s=60))
    child = await sidecar.stub.StartSession(
        sidecar_pb2.StartSessionRequest(parent=sidecar_pb2.Parent(grant=granted.grant))
    )
    chat = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}).encode()
    second = await sidecar.stub.Delegate(sidecar_pb2.DelegateRequest(context=context))
    metadata = tuple((name.lower(), value) for name, value in second.headers.items())
    answer = await sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=chat), metadata=metadata)
    conflicting = sidecar.stub.StartSession(
        sidecar_pb2.StartSessionRequest(
            context=sidecar_pb2.CallContext(delegation_grant="a.b"), parent=sidecar_pb2.Parent(grant="c.d")
        )
    )

    assert granted.loop_depth == 1
    assert granted.expires_at > "2026"
    assert granted.headers["CRP-Agent-Delegation-Grant"] == granted.grant
    assert (child.session.loop_depth, child.session.policy_text) == (1, "halt-on HIGH")
    assert child.session.parent_session_id == started.session.session_id
    assert answer.outcome.headers["CRP-Agent-Session-Parent"] == started.session.session_id
    assert await refused(conflicting) == (grpc.StatusCode.INVALID_ARGUMENT, "DUPLICATE_HEADER")
    nobody = sidecar.stub.Delegate(sidecar_pb2.DelegateRequest())
    assert await refused(nobody) == (grpc.StatusCode.UNAUTHENTICATED, "SESSION_TOKEN_REQUIRED")


@pytest.mark.req("SVC-2", "AGT-2", "POL-6")
async def test_headers_of_the_context_count_as_headers_do(sidecar, provider):
    """Depth, ceiling, strategy, residency and parent in the message are held to the same rules."""
    chat = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}).encode()

    def asked(**context):
        context = sidecar_pb2.CallContext(**context)
        return sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=chat, context=context))

    assert (await refused(asked(agent_loop_depth="1")))[1] == "LOOP_DEPTH_MISMATCH"
    assert (await refused(asked(agent_session_parent="crp_sess_" + "0" * 32)))[1] == "DELEGATION_GRANT_REQUIRED"
    assert (await refused(asked(delegation_grant="a.b")))[1] == "GRANT_MALFORMED"
    assert (await refused(asked(data_residency="EU")))[1] == "DATA_RESIDENCY_VIOLATION"
    assert (await refused(asked(safety_budget="1.5")))[1] == "INVALID_HEADER"
    assert (await refused(asked(strategy="fan-out")))[1] == "SESSION_TOKEN_REQUIRED"
    assert (await refused(asked(strategy="batch")))[1] == "INVALID_HEADER"
    assert (await refused(asked(session_action="branch")))[1] == "SESSION_TOKEN_REQUIRED"
    low = await asked(safety_budget="0.40")
    assert low.outcome.safety_budget_micros == 400_000


@pytest.mark.req("BRK-4", "BUD-7", "BUD-8", "SVC-9")
async def test_a_late_settle_cascades_into_the_trail_above(tmp_path, upstream, provider):
    """A child's window that was sealed before the store went away is settled by its next call, for its parent too."""
    down = {"left": 0}

    async def outage(_request):
        if down["left"]:
            down["left"] -= 1
            raise unavailable("SESSION_UNAVAILABLE", "x")

    def wrap(services):
        return {**services, "session": Hooked(services["session"], CommitWindow=outage)}

    limits = {"request_timeout_s": 2.0, "rpc_timeout_s": 0.5, "upstream_timeout_s": 2.0}
    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap, **limits) as sidecar:
        root = await sidecar.chat()
        root_id = root.headers["crp-context-session-id"]
        granted = await delegate(sidecar, token_of(root))
        child = await sidecar.chat(headers=granted.json()["headers"])
        provider.answers("CRITICAL")
        down["left"] = 4
        lost = await sidecar.chat(token=token_of(child))
        before = [kind for kind, _ in await told(sidecar, root_id)]
        await asyncio.sleep(2.6)  # the lease runs out: request_timeout_s + rpc_timeout_s
        late = await sidecar.chat(token=token_of(child))
        after = dict(await told(sidecar, root_id))
        shown = await sidecar.client.get(f"/crp/v3/session/{root_id}", headers={"crp-session-token": token_of(root)})

    assert lost.status_code == 503
    assert "SAFETY_BUDGET_CASCADED" not in before
    assert (late.status_code, reason_of(late)) == (409, "WINDOW_ALREADY_SETTLED")
    assert (after["SAFETY_BUDGET_CASCADED"]["before"], after["SAFETY_BUDGET_CASCADED"]["after"]) == ("1.00", "0.65")
    assert shown.json()["safety_budget_micros"] == 650_000


@pytest.mark.req("AUD-1", "BRK-4")
async def test_without_a_record_above_nothing_of_the_child_is_released(tmp_path, upstream, provider):
    """What a child did to its parent is durable in the parent's trail before the child's answer goes out."""
    failing: set[str] = set()

    async def outage(request):
        if request.session_id in failing:
            raise unavailable("AUDIT_STORE_FULL", "full")

    def wrap(services):
        return {**services, "audit": Hooked(services["audit"], Record=outage)}

    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap) as sidecar:
        root = await sidecar.chat()
        granted = await delegate(sidecar, token_of(root))
        failing.add(root.headers["crp-context-session-id"])
        unstarted = await sidecar.chat(headers=granted.json()["headers"])
        failing.clear()
        again = await delegate(sidecar, token_of(root))
        child = await sidecar.chat(headers=again.json()["headers"])
        failing.add(root.headers["crp-context-session-id"])
        provider.answers("HIGH")
        kept = await sidecar.chat(token=token_of(child))

    assert (unstarted.status_code, reason_of(unstarted)) == (503, "AUDIT_STORE_FULL")
    assert (kept.status_code, reason_of(kept)) == (503, "AUDIT_STORE_FULL")
    assert "HIGH" not in kept.json()["error"]["message"]


@pytest.mark.req("DAG-4")
async def test_a_continuation_that_is_not_of_this_session_is_404_with_the_printed_body(sidecar, provider):
    """SPEC-004 §16.1: an unknown one and one of another session are the same answer."""
    mine, other = await sidecar.chat(), await sidecar.chat()
    unknown = "crp_cont_" + "0" * 32
    foreign = other.headers["crp-context-continuation-id"]
    bodies = []
    for pointer in (unknown, foreign):
        response = await sidecar.chat(token=token_of(mine), headers={"crp-context-continuation-id": pointer})
        body = response.json()
        assert (response.status_code, body["error"]) == (404, "continuation_not_found")
        assert body.pop("continuation_id") == body["metadata"].pop("continuation_id") == pointer
        bodies.append(body)

    assert bodies[0] == bodies[1]
    assert bodies[0]["reason"] == "CONTINUATION_NOT_FOUND"


@pytest.mark.req("DAG-4", "TOK-3")
async def test_a_token_that_does_not_hold_says_that_a_new_session_helps_at_once(sidecar, provider):
    """SPEC-004 §16.2: 401 with CRP-Safety-Retry-After: 0, on a delegation as well."""
    first = await sidecar.chat()
    broken = token_of(first)[:-4] + "AAAA"
    response = await sidecar.chat(token=broken)
    granted = await delegate(sidecar, broken)

    assert (response.status_code, response.headers["crp-safety-retry-after"]) == (401, "0")
    assert (granted.status_code, granted.headers["crp-safety-retry-after"]) == (401, "0")


@pytest.mark.req("DAG-8")
async def test_a_falling_quality_is_told_and_by_setting_refused(tmp_path, upstream, provider):
    """A, B, C is sustained; D, D is persistent, and then the next window is 503 where the deployment wants that."""
    for refuse in (False, True):
        async with running_sidecar(
            tmp_path / str(refuse), upstream=upstream, refuse_persistent_deficiency=refuse, max_windows=9
        ) as sidecar:
            seen, response = [], None
            for tier in ("A", "A", "B", "C", "D", "D"):
                sidecar.dpe.report = a_report(quality_tier=tier)
                response = await sidecar.chat(token=token_of(response) if response else None)
                seen.append(response.headers.get("crp-quality-degradation"))
            asked = len(provider.received)
            last = await sidecar.chat(token=token_of(response))
            answered = len(provider.received) - asked

        assert seen == [
            None, None, "first-drop", "sustained; recommend=strategy-upgrade", "critical; recommend=new-session",
            "persistent; recommend=new-session",
        ]  # fmt: skip
        assert "QualityHistory=A,A,B,C,D,D" in response.headers["crp-set-session"]
        if refuse:
            assert (last.status_code, reason_of(last), answered) == (503, "PERSISTENT_DEFICIENCY", 0)
            assert last.headers["x-should-retry"] == "false"
        else:
            assert (last.status_code, answered > 0) == (200, True)


@pytest.mark.req("HDR-2", "PRV-3")
async def test_the_record_of_a_sub_agents_answer_is_served_to_its_own_key(sidecar, provider):
    """The URIs that go upstream lead to the child's record for the key that made it; for others there is none."""
    root = await sidecar.chat()
    granted = await delegate(sidecar, token_of(root))
    key = {"authorization": "Bearer sub-agent"}
    child = await sidecar.chat(headers={**granted.json()["headers"], **key})
    report, trail = child.headers["crp-provenance-report-uri"], child.headers["crp-compliance-audit-trail-uri"]
    found = [(await sidecar.client.get(uri, headers=key)).status_code for uri in (report, trail)]
    foreign = [(await sidecar.client.get(uri)).status_code for uri in (report, trail)]

    assert found == [200, 200]
    assert foreign == [404, 404]


@pytest.mark.req("DAG-12")
async def test_a_tree_is_drawn_in_every_format(sidecar, provider):
    """Mermaid, DOT, JSON and text over HTTP and gRPC, with the sessions below on demand; to the token's holder alone."""
    root = await sidecar.chat()
    root_id, token = root.headers["crp-context-session-id"], token_of(root)
    granted = await delegate(sidecar, token)
    child = await sidecar.chat(headers=granted.json()["headers"])
    child_id = child.headers["crp-context-session-id"]
    types = {}
    for form in ("mermaid", "dot", "json", "text"):
        uri = f"/crp/v3/session/{root_id}/dag?format={form}&tree=true"
        drawn = await sidecar.client.get(uri, headers={"crp-session-token": token})
        types[form] = drawn.headers["content-type"].partition(";")[0]
        by_grpc = await sidecar.stub.GetDag(sidecar_pb2.GetDagRequest(session_token=token, format=form, tree=True))
        assert drawn.status_code == 200
        assert drawn.text == by_grpc.picture
        assert child_id[-8:] in drawn.text
        assert [session.session_id for session in by_grpc.sessions] == [root_id, child_id]
    alone = await sidecar.stub.GetDag(sidecar_pb2.GetDagRequest(session_token=token))

    assert types == {
        "mermaid": "text/vnd.mermaid", "dot": "text/vnd.graphviz", "json": "application/json", "text": "text/plain",
    }  # fmt: skip
    assert ([one.session_id for one in alone.sessions], alone.picture) == ([root_id], "")


@pytest.mark.req("DAG-12", "SVC-3")
async def test_a_picture_that_cannot_be_had_is_refused_by_name(sidecar, provider):
    """Another format, an unknown question, somebody else's session, no token."""
    root, other = await sidecar.chat(), await sidecar.chat()
    root_id = root.headers["crp-context-session-id"]
    key = {"crp-session-token": token_of(root)}

    async def asked(query: str, session_id: str = root_id, headers=key):
        response = await sidecar.client.get(f"/crp/v3/session/{session_id}/dag{query}", headers=headers)
        return response.status_code, reason_of(response)

    assert await asked("?format=svg") == (400, "INVALID_PARAMETER")
    assert await asked("?tree=yes") == (400, "INVALID_PARAMETER")
    assert await asked("?depth=2") == (400, "UNKNOWN_PARAMETER")
    assert await asked("?format=dot&format=json") == (400, "UNKNOWN_PARAMETER")
    assert await asked("", other.headers["crp-context-session-id"]) == (404, "SESSION_NOT_FOUND")
    assert await asked("", "crp_sess_x") == (400, "INVALID_ID")
    assert await asked("", headers={}) == (401, "SESSION_TOKEN_REQUIRED")
    code, reason = await refused(
        sidecar.stub.GetDag(sidecar_pb2.GetDagRequest(session_token=token_of(root), format="svg"))
    )
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMETER")


@pytest.mark.req("AGT-1", "AGT-2")
async def test_only_registered_agents_where_that_is_demanded(tmp_path, upstream, provider):
    """require_registered_agents: a key of no type is 403 on every way in, and nothing is begun for it."""
    path = agents.write(tmp_path / "agents.yaml", agents.SPECIFICATION)
    registered = {"authorization": "Bearer crp_gw_prod_orch_1"}
    async with running_sidecar(
        tmp_path, upstream=upstream, agents_file=path, require_registered_agents=True
    ) as sidecar:
        known = await sidecar.chat(headers=registered)
        stranger = await sidecar.chat(headers={"authorization": "Bearer somebody"})
        anonymous = await sidecar.chat()
        asked = len(provider.received)

    assert known.status_code == 200
    assert (stranger.status_code, reason_of(stranger)) == (403, "AGENT_NOT_REGISTERED")
    assert (anonymous.status_code, reason_of(anonymous)) == (403, "AGENT_NOT_REGISTERED")
    assert asked == 1
