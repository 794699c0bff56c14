"""Results of sub-agents through the served sidecar: verified, read from the sealed content, linked (SPEC-012 §8; AGT-4)."""

from __future__ import annotations

import json

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from tests.support.sidecar import answering
from tests.support.sidecar.remedies import fields_of, told
from tests.support.sidecar.sidecar import reason_of, token_of
from tests.support.sidecar.windows import dag, delegated, onward, report, result_of, window_of

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar


async def made_from(sidecar, parent, *results, **more):
    named = {"sub_agent_results": list(results), **more}
    return await sidecar.chat("All in all?", token=token_of(parent), headers=onward(parent), interlock=named)


@pytest.mark.req("PRV-3", "DPE-19")
async def test_an_answer_is_made_from_what_sub_agents_said(sidecar, provider):
    """Their sealed texts are facts, stand in the prompt and are analysed as merged, with the sub-query of each."""
    root = await sidecar.chat("All?")
    law, money = await delegated(sidecar, root, "Law?"), await delegated(sidecar, root, "Money?")
    made = await made_from(sidecar, root, result_of(law, sub_query="What of law?"), result_of(money))
    asked, context = sidecar.dpe.of(made), provider.context("All in all?")

    assert made.status_code == 200, made.text
    assert {one.source_id: (one.text, one.sub_query) for one in asked.merged} == {
        law.headers["crp-context-session-id"]: ("This answers it. Law?", "What of law?"),
        money.headers["crp-context-session-id"]: ("This answers it. Money?", ""),
    }
    assert {fact.content for fact in asked.facts} == {"This answers it. Law?", "This answers it. Money?"}
    assert "This answers it. Law?" in context
    assert "What of law?" in context


@pytest.mark.req("PRV-3")
async def test_a_consumed_result_is_linked_in_the_trail_and_in_the_sealed_report(sidecar):
    """SUB_AGENT_RESULT with the child's tip, and linked_results, which the window's HMAC covers; the tree verifies."""
    root = await sidecar.chat("All?")
    law = await delegated(sidecar, root, "Law?")
    made = await made_from(sidecar, root, result_of(law))
    session_id = root.headers["crp-context-session-id"]
    (event,) = fields_of(await told(sidecar, session_id), "SUB_AGENT_RESULT")
    (linked,) = (await report(sidecar, made))["linked_results"]

    hmac, child = law.headers["crp-provenance-hmac"], law.headers["crp-context-session-id"]
    assert event == {
        "sub_agent_session_id": child, "sub_agent_window_id": window_of(law), "sub_agent_hmac": hmac,
        "sub_agent_chain_tip": hmac, "agent_type": "",
    }  # fmt: skip
    assert {f"sub_agent_{name}": value for name, value in linked.items() if value} == {
        name: value for name, value in event.items() if name != "agent_type"
    }
    tree = await sidecar.mesh.audit.VerifyTree(audit_pb2.VerifyTreeRequest(session_id=session_id))
    assert (tree.integrity, tree.broken) == (common_pb2.CHAIN_INTEGRITY_VALID, "")
    assert ("SUB_AGENT_RESULT", child) in {(one.kind, one.child_session_id) for one in tree.links}


@pytest.mark.req("AGT-4")
async def test_a_result_without_linkage_is_refused(sidecar, provider):
    """Of an independent session, a forged HMAC, another's child, the session itself: 403, and nothing is dispatched."""
    root, other = await sidecar.chat("All?"), await sidecar.chat("Other?")
    law, foreign = await delegated(sidecar, root, "Law?"), await delegated(sidecar, other, "X?")
    forged = {**result_of(law), "hmac": "sha256:" + "0" * 64}
    unknown = {"session_id": "crp_sess_" + "0" * 32, "hmac": result_of(law)["hmac"]}
    provider.received.clear()
    ends = [
        await made_from(sidecar, root, one)
        for one in (result_of(other), result_of(foreign), forged, unknown, result_of(root))
    ]

    assert {(one.status_code, reason_of(one)) for one in ends} == {(403, "RESULT_NOT_LINKED")}
    assert provider.received == []
    assert (await made_from(sidecar, root, result_of(law))).status_code == 200
    assert len(await dag(sidecar, root)) == 2


@pytest.mark.req("AGT-4")
async def test_one_bad_result_refuses_the_call_however_many_good_ones_stand_beside_it(sidecar):
    """The good ones are not used without it: what was named is what the answer is made from."""
    root = await sidecar.chat("All?")
    law = await delegated(sidecar, root, "Law?")
    bad = {**result_of(law), "hmac": "sha256:" + "0" * 64}
    refused = await made_from(sidecar, root, result_of(law), bad)

    assert (refused.status_code, reason_of(refused)) == (403, "RESULT_NOT_LINKED")


@pytest.mark.req("AGT-4")
async def test_a_result_whose_text_is_gone_is_refused_by_name(sidecar):
    """Its content was dropped: nothing is made from the caller's memory of it."""
    root = await sidecar.chat("All?")
    law = await delegated(sidecar, root, "Law?")
    child = law.headers["crp-context-session-id"]
    await sidecar.mesh.audit.DropContent(audit_pb2.DropContentRequest(session_id=child, window_id=window_of(law)))
    refused = await made_from(sidecar, root, result_of(law))

    assert (refused.status_code, reason_of(refused)) == (409, "RESULT_NOT_AVAILABLE")


@pytest.mark.req("AGT-4", "BRK-4")
async def test_a_halted_result_cannot_be_consumed(sidecar, provider):
    """It was never released; the parent's budget has felt it all the same."""
    provider.by_question = {"Law?": "It is CRITICAL."}
    root = await sidecar.chat("All?", headers={"crp-safety-policy": "halt-on CRITICAL"})
    halted = await delegated(sidecar, root, "Law?")
    refused = await made_from(sidecar, root, result_of(halted))

    assert halted.status_code == 451
    assert reason_of(refused) in {"RESULT_NOT_LINKED", "RESULT_NOT_AVAILABLE"}
    assert refused.headers["crp-agent-safety-budget"] == "0.65"


@pytest.mark.req("PRV-3")
async def test_a_text_that_the_caller_brings_is_held_against_the_results_it_was_made_from(sidecar):
    """Check over gRPC: whole results as evidence, linked as if the mesh had dispatched it."""
    root = await sidecar.chat("All?")
    law = await delegated(sidecar, root, "Law?")
    named = sidecar_pb2.SubAgentResult(**result_of(law))
    checked = await sidecar.stub.Check(
        sidecar_pb2.CheckRequest(
            context=sidecar_pb2.CallContext(session_token=token_of(root)), text="In all, this answers it.", query="All?",
            sub_agent_results=[named], sub_queries=["Law?"],
        )
    )  # fmt: skip

    assert [one.session_id for one in checked.outcome.report.linked_results] == [named.session_id]
    assert [fact.content for fact in sidecar.dpe.asked[-1].facts] == ["This answers it. Law?"]
    assert list(sidecar.dpe.asked[-1].sub_queries) == ["Law?"]


@pytest.mark.req("PRV-3")
async def test_the_grpc_front_consumes_results_too(sidecar):
    """The same rule behind the same guard (I14)."""
    root = await sidecar.chat("All?")
    law = await delegated(sidecar, root, "Law?")
    body = {"model": "test-model", "messages": [{"role": "user", "content": "All in all?"}]}
    answered = await sidecar.stub.Dispatch(
        sidecar_pb2.DispatchRequest(
            context=sidecar_pb2.CallContext(session_token=token_of(root)), chat_request=json.dumps(body).encode(),
            sub_agent_results=[sidecar_pb2.SubAgentResult(**result_of(law))],
        )
    )  # fmt: skip

    assert [one.hmac for one in answered.outcome.report.linked_results] == [result_of(law)["hmac"]]
