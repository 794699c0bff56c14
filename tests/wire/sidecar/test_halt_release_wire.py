"""What ``halt-on`` halted is kept like a held answer, and a reviewer's approval releases it once (SPEC-012 §6.2; reading 15)."""

from __future__ import annotations

import asyncio
import json

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.oversight.v1 import oversight_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.client import AsyncSession, SafetyHalt
from interlock.domain import approval
from tests.support.policy import agents
from tests.support.sidecar.oversight import (
    decided,
    decision,
    retried,
    reviewed_world,
    status_of,
    token_for,
    window_of,
)
from tests.support.sidecar.sidecar import a_report, reason_of, running_sidecar, token_of
from tests.wire.sidecar.test_sidecar_wire import dispatch, refused

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"), pytest.mark.finding("F-13"), pytest.mark.req("OVR-2", "OVR-4", "SVC-3"),
]  # fmt: skip

SAID = "HIGH risk, and wanted all the same."
HALTS = {"crp-safety-policy": "halt-on HIGH"}
SHUT = {"crp-safety-policy": "halt-on HIGH; oversight halt"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """A sidecar with a registered reviewer."""
    async with reviewed_world(tmp_path_factory.mktemp("halted")) as running:
        yield running


@pytest.fixture
def provider(world):
    world.provider.reset()
    world.provider.answers(SAID)
    return world.provider


@pytest.fixture
def sidecar(world, provider):
    """The sidecar, whose provider says something of HIGH risk."""
    return world.sidecar


async def events_of(sidecar, halted):
    return await sidecar.events(halted.headers["crp-context-session-id"])


async def test_a_halt_has_its_way_out_once(sidecar, provider):
    """451, a held URL that exists, an approval, the answer; nothing is dispatched or charged again, and no second time."""
    halted = await sidecar.chat(headers=HALTS)
    asked, waiting = len(provider.received), await status_of(sidecar, halted)
    token = await decided(sidecar, halted)
    released = await retried(sidecar, halted, token)
    provider.answers("It is fine.")
    onward = await sidecar.chat(token=token_of(halted))
    other = await sidecar.chat(token=token_of(onward), headers={"crp-oversight-token": token})
    kinds = [event.event_type for event in await events_of(sidecar, halted)]
    body = halted.json()

    assert (halted.status_code, reason_of(halted), body["crp_halt_reason"]) == (
        451, "SAFETY_HALT", "HIGH_HALLUCINATION_RISK",
    )  # fmt: skip
    assert (body["oversight_required"], body["retry_condition"]) == (True, "oversight-required")
    assert body["metadata"]["directive"] == "halt-on HIGH"
    assert halted.headers["crp-safety-retry-after"] == "oversight-required"
    assert SAID not in halted.text
    assert waiting["status"] == "PENDING"
    assert (released.status_code, released.json()["choices"][0]["message"]["content"]) == (200, SAID)
    assert released.headers["crp-agent-safety-budget"] == halted.headers["crp-agent-safety-budget"] == "0.85"
    assert len(provider.received) == asked + 1  # the onward call alone
    assert (other.status_code, reason_of(other)) == (409, "HELD_ALREADY_RELEASED")
    assert {"SAFETY_HALT", "OVERSIGHT_TRIGGERED"} <= set(kinds)
    assert [kind for kind in kinds if kind.startswith(("OVERSIGHT_A", "RESPONSE_R"))] == [
        "OVERSIGHT_APPROVED", "RESPONSE_RELEASED",
    ]  # fmt: skip
    session_id = halted.headers["crp-context-session-id"]
    assert not (await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=session_id))).faults


async def test_the_window_stays_halted_and_unknown_to_later_ones_until_its_release(sidecar, provider):
    """The graph shows the first decision; a later answer is compared with the text from its release on."""
    halted = await sidecar.chat(headers=HALTS)
    provider.answers("It is fine.")
    before = await sidecar.chat(token=token_of(halted), headers=HALTS)
    prior = [len(request.prior) for request in sidecar.dpe.asked][-1]
    await retried(sidecar, halted, await decided(sidecar, halted))
    await sidecar.chat(token=token_of(before), headers=HALTS)
    since = [[one.window_id for one in request.prior] for request in sidecar.dpe.asked][-1]
    uri = f"/crp/v3/session/{halted.headers['crp-context-session-id']}"
    shown = (await sidecar.client.get(uri, headers={"crp-session-token": token_of(halted)})).json()

    assert [window["status"] for window in shown["windows"]] == ["HALTED", "COMPLETED", "COMPLETED"]
    assert prior == 0
    assert window_of(halted) in since


async def test_the_policy_says_that_a_halt_is_final(sidecar):
    """``oversight halt`` keeps it shut: the 451 promises nothing, there is no held URL, and an approval finds nothing."""
    halted = await sidecar.chat(headers=SHUT)
    body, window = halted.json(), window_of(halted)
    path = f"/crp/v3/session/{body['session_id']}/held/{window}"
    missing = await sidecar.client.get(path, headers={"crp-session-token": token_of(halted)})
    item = {"session_id": body["session_id"], "window_id": window, "response_hash": "sha256:" + "0" * 64}
    token = token_for({**item, "policy_hash": "sha256:" + "0" * 64})
    refused = await retried(sidecar, halted, token)
    kinds = [event.event_type for event in await events_of(sidecar, halted)]

    assert (halted.status_code, reason_of(halted), body["oversight_required"]) == (451, "SAFETY_HALT", False)
    assert "held_uri" not in body["metadata"]
    assert body["metadata"]["oversight_required"] == "false"
    assert halted.headers["crp-safety-retry-after"] == "0"
    assert (missing.status_code, reason_of(missing)) == (404, "HELD_NOT_FOUND")
    assert (refused.status_code, reason_of(refused)) == (404, "HELD_NOT_FOUND")
    assert "OVERSIGHT_TRIGGERED" not in kinds


@pytest.mark.parametrize(
    ("policy", "reported"),
    [
        ("halt-on HIGH; block-pii", {"gdpr_pii_detected": True}),
        ("halt-on HIGH; require-grounding 0.80", {"grounding_pct": 0.1}),
        ("block-fabrication", {"fabrication_count": 1, "fabricated_entities": ["Ada"]}),
    ],
)
async def test_what_another_directive_forbids_stays_shut(tmp_path, upstream, policy, reported):
    """An approval accepts the risk that halt-on names, not what the policy forbids whatever the risk."""
    async with running_sidecar(tmp_path, upstream=upstream) as running:
        running.dpe.report = a_report("HIGH", **reported)
        halted = await running.chat(headers={"crp-safety-policy": policy})

    assert (halted.status_code, halted.json()["oversight_required"]) == (451, False)
    assert "held_uri" not in halted.json()["metadata"]


async def test_a_spent_budget_promises_no_review(sidecar, provider):
    """What its own charge takes to 0.10 or below is halted by the breaker, and stays shut (reading 4)."""
    provider.answers("It is CRITICAL.")
    first = await sidecar.chat(headers=HALTS)
    second = await sidecar.chat(token=token_of(first), headers=HALTS)
    third = await sidecar.chat(token=token_of(second), headers=HALTS)
    refused = await sidecar.chat(token=token_of(third), headers=HALTS)
    still = await retried(sidecar, second, await decided(sidecar, second))

    assert [one.json()["oversight_required"] for one in (first, second, third)] == [True, True, False]
    assert (reason_of(third), "held_uri" in third.json()["metadata"]) == ("BUDGET_DEPLETED", False)
    assert (reason_of(refused), refused.json()["oversight_required"]) == ("BUDGET_DEPLETED", False)
    assert (still.status_code, reason_of(still)) == (451, "BUDGET_DEPLETED")  # at 0.00 nothing is released


async def test_without_a_reviewer_nothing_is_promised(tmp_path, upstream):
    """There is nobody who could: the 451 says false, over HTTP, in a stream and over gRPC, and nothing is kept."""
    nobody = {"reviewers_file": None, "reviewers_by_rpc": False}
    async with running_sidecar(tmp_path, upstream=upstream, **nobody) as running:
        running.dpe.report = a_report("HIGH")
        halted = await running.chat(headers=HALTS)
        stream = await running.chat(headers=HALTS, stream=True)
        body = halted.json()
        path = f"/crp/v3/session/{body['session_id']}/held/{window_of(halted)}"
        missing = await running.client.get(path, headers={"crp-session-token": token_of(halted)})

    assert [(one.status_code, one.json()["oversight_required"]) for one in (halted, stream)] == [(451, False)] * 2
    assert (halted.headers["crp-safety-retry-after"], missing.status_code) == ("0", 404)


async def test_a_halted_stream_is_released_as_a_stream(sidecar):
    """Its form is that of the call; another form leaves it kept."""
    halted = await sidecar.chat(headers=HALTS, stream=True)
    token = await decided(sidecar, halted)
    other = await retried(sidecar, halted, token)
    released = await retried(sidecar, halted, token, stream=True)

    assert (halted.status_code, halted.json()["oversight_required"]) == (451, True)
    assert (other.status_code, reason_of(other)) == (409, "HELD_FORM_DIFFERS")
    assert released.headers["content-type"].startswith("text/event-stream")
    said = [json.loads(line[6:]) for line in released.text.splitlines() if line.startswith("data: {")]
    assert "".join(one["choices"][0]["delta"].get("content") or "" for one in said if one["choices"]) == SAID


async def test_a_halted_item_of_a_batch_is_released_by_itself(sidecar):
    """Each item's result names its own held URL; its window id releases its answer and no other."""
    body = {"model": "test-model", "messages": [{"role": "user", "content": "What is it?"}]}
    items = [{"id": name, "body": body} for name in ("a", "b")]
    answer = await sidecar.client.post("/crp/v3/batch", json={"items": items}, headers=HALTS)
    told = [one["body"] for one in answer.json()["results"]]
    token = {"crp-session-token": token_of(answer)}
    waiting = [(await sidecar.client.get(one["metadata"]["held_uri"], headers=token)).json() for one in told]
    approved = token_for(waiting[1])
    await sidecar.mesh.audit.DecideHeld(decision(approved))
    released = await sidecar.chat(token=token_of(answer), headers={"crp-oversight-token": approved})
    after = [(await sidecar.client.get(one["metadata"]["held_uri"], headers=token)).json() for one in told]

    assert [(one["reason"], one["oversight_required"]) for one in told] == [("SAFETY_HALT", True)] * 2
    assert (released.status_code, released.json()["choices"][0]["message"]["content"]) == (200, SAID)
    assert [one["status"] for one in after] == ["PENDING", "RELEASED"]


async def test_over_grpc_it_is_the_same(sidecar):
    """Dispatch names the held URL in its ErrorInfo; GetHeld tells the token; Dispatch hands the answer out."""
    chat = json.dumps({"model": "m", "messages": [{"role": "user", "content": "What is it?"}]}).encode()
    _, reason, info, trailing = await refused(
        sidecar.stub.Dispatch(dispatch(safety_policy=[HALTS["crp-safety-policy"]]))
    )
    session_token = trailing["crp-set-session"].split(";")[0].removeprefix("token=")
    named = {"session_token": session_token, "window_id": info["window_id"]}
    waiting = (await sidecar.stub.GetHeld(sidecar_pb2.GetHeldRequest(**named))).item
    token = token_for(waiting)
    await sidecar.mesh.audit.DecideHeld(decision(token))
    told = (await sidecar.stub.GetHeld(sidecar_pb2.GetHeldRequest(**named))).item
    context = sidecar_pb2.CallContext(session_token=session_token, oversight_token=told.token)
    answer = await sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(context=context, chat_request=chat))

    assert (reason, info["oversight_required"]) == ("SAFETY_HALT", "true")
    assert info["held_uri"].endswith(info["window_id"])
    assert json.loads(answer.chat_response)["choices"][0]["message"]["content"] == SAID
    assert (answer.outcome.decision.action, answer.outcome.decision.releasable) == (policy_pb2.ACTION_DELIVER, False)


async def test_a_checked_text_that_is_halted_is_released_by_check(sidecar):
    """Its caller has the text; what it waits for is the decision."""
    context = sidecar_pb2.CallContext(safety_policy=["halt-on CRITICAL"])
    first = (await sidecar.stub.Check(sidecar_pb2.CheckRequest(context=context, text="CRITICAL indeed"))).outcome
    named = {"session_token": first.session_token, "window_id": first.window_id}
    token = token_for((await sidecar.stub.GetHeld(sidecar_pb2.GetHeldRequest(**named))).item)
    await sidecar.mesh.audit.DecideHeld(decision(token))
    context = sidecar_pb2.CallContext(session_token=first.session_token, oversight_token=token)
    again = (await sidecar.stub.Check(sidecar_pb2.CheckRequest(context=context, text="CRITICAL indeed"))).outcome

    assert (first.decision.action, first.decision.oversight_required) == (policy_pb2.ACTION_HALT, True)
    assert (again.window_id, again.decision.action) == (first.window_id, policy_pb2.ACTION_DELIVER)


async def test_a_reviewer_sees_what_kept_it_back(world, sidecar):
    """The page and gRPC say that halt-on halted it, and the reviewer's approval there releases it."""
    halted = await sidecar.chat(headers=HALTS)
    window = window_of(halted)
    found = await world.oversight.stub.GetHeld(
        oversight_pb2.GetHeldRequest(window_id=window), metadata=await world.oversight.metadata()
    )
    csrf = await world.oversight.browse()
    page = await world.oversight.client.get(f"/held/{window}")
    token = token_for(found.item)
    done = await world.oversight.post(f"/api/held/{window}/decision", {"token": token, "reason": "RISK_ACCEPTED"}, csrf)
    released = await retried(sidecar, halted, token)

    assert (found.kept_reason, found.kept_directive) == ("SAFETY_HALT", "halt-on HIGH")
    assert "halt-on HIGH" in page.text
    assert (done.status_code, done.json()["status"]) == (200, "APPROVED")
    assert released.status_code == 200


async def test_a_halt_too_large_to_be_kept_is_charged_and_stays_shut(sidecar, provider):
    """Its size must not let an answer go uncharged."""
    provider.answers(SAID + " A" * 1_100_000)
    halted = await sidecar.chat(headers=HALTS)

    assert (halted.status_code, reason_of(halted), halted.json()["oversight_required"]) == (451, "SAFETY_HALT", False)
    assert halted.headers["crp-agent-safety-budget"] == "0.85"


async def test_a_rejection_and_the_end_of_a_hold_keep_it_shut(sidecar, tmp_path, upstream):
    """A rejected answer is deleted; so is one whose time is over, even with an approval that came in time."""
    halted = await sidecar.chat(headers=HALTS)
    token = token_for(await status_of(sidecar, halted))
    await decided(sidecar, halted, action=approval.REJECT)
    rejected, refused = await status_of(sidecar, halted), await retried(sidecar, halted, token)
    async with reviewed_world(tmp_path, hold_expires_s=1) as short:
        short.provider.answers(SAID)
        late = await short.sidecar.chat(headers=HALTS)
        approved = await decided(short.sidecar, late, life_s=600)
        await asyncio.sleep(1.1)
        over, expired = await retried(short.sidecar, late, approved), await status_of(short.sidecar, late)

    assert (rejected["status"], refused.status_code, reason_of(refused)) == ("REJECTED", 403, "HELD_REJECTED")
    assert (expired["status"], over.status_code, reason_of(over)) == ("EXPIRED", 403, "HOLD_EXPIRED")


async def test_an_approval_is_for_what_the_reviewer_saw(sidecar):
    """Another response, another window, a stranger's key, the caller itself: the answer stays kept."""
    halted = await sidecar.chat(headers=HALTS)
    item = await status_of(sidecar, halted)
    no_decision = await retried(sidecar, halted, token_for(item))
    other = await sidecar.mesh.audit.DecideHeld(decision(token_for(item, response="sha256:" + "0" * 64)))
    forged = await retried(sidecar, halted, token_for(item, key=agents.private_key(9)))
    released = await retried(sidecar, halted, await decided(sidecar, halted))

    assert (no_decision.status_code, reason_of(no_decision)) == (403, "HELD_NOT_APPROVED")
    assert other.refusal.reason == "RESPONSE_HASH_MISMATCH"
    assert (forged.status_code, reason_of(forged)) == (401, "APPROVAL_INVALID")
    assert released.status_code == 200


async def test_the_python_client_waits_for_it(sidecar):
    """``reviewable`` says whether waiting can help."""
    async with AsyncSession(f"{sidecar.http}/v1", model="test-model") as session:
        with pytest.raises(SafetyHalt, match="SAFETY_HALT") as halt:
            await session.chat("What is it?", headers=HALTS)
        path = f"/crp/v3/session/{session.session_id}/held/{halt.value.metadata['window_id']}"
        item = (await sidecar.client.get(path, headers={"crp-session-token": session.state.token})).json()
        await sidecar.mesh.audit.DecideHeld(decision(token_for(item)))
        answer = await session.reviewed(halt.value, wait_s=5)
        with pytest.raises(SafetyHalt) as final:
            await session.chat("What is it?", headers=SHUT)
        with pytest.raises(ValueError, match="nothing is kept for review"):
            await session.reviewed(final.value)

    assert (answer.text, halt.value.reviewable, final.value.reviewable) == (SAID, True, False)
