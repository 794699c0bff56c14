"""What a report says of itself, and what a node of the DAG carries, over HTTP and gRPC (SPEC-005 §15.2; SPEC-004 §3.1)."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import content_hash
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import token_of
from tests.support.sidecar.windows import dag, fan_out, onward, window_of

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar

AFTER_SEAL = {"hmac", "chain_integrity", "report_hash"}
FACTS = [{"id": "f1", "content": "The tower was finished in 1889.", "importance": 0.9}]


async def reported(sidecar, response, form: str = ""):
    """The report of a call as its URI gives it."""
    uri = response.headers["crp-provenance-report-uri"] + (f"?form={form}" if form else "")
    found = await sidecar.client.get(uri)
    assert found.status_code == 200, found.text
    return found


@pytest.mark.finding("F-19")
@pytest.mark.req("DPE-20", "PRV-2")
async def test_a_report_names_its_window_its_answer_and_its_seal(sidecar):
    """Ids, time and hashes of §15.2; the hashes are those of the bytes that the client has, the HMAC is the header's."""
    first = await sidecar.chat("First?", interlock={"facts": FACTS})
    then = await sidecar.chat("And then?", token=token_of(first), headers=onward(first))
    root, report = [(await reported(sidecar, one, "full")).json() for one in (first, then)]

    assert report["session_id"] == then.headers["crp-context-session-id"]
    assert report["window_id"] == window_of(then)
    assert report["report_id"] == window_of(then).replace("crp_win_", "crp_report_") != root["report_id"]
    assert (root["window_number"], report["window_number"]) == (1, 2)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", report["timestamp"])
    assert report["response_content_hash"] == "sha256:" + hashlib.sha256(then.content).hexdigest()
    assert (
        re.fullmatch(r"sha256:[0-9a-f]{64}", report["context_hash"]) and report["context_hash"] != root["context_hash"]
    )
    assert report["hmac"] == then.headers["crp-provenance-hmac"]
    assert (root["chain_integrity"], report["chain_integrity"]) == ("UNVERIFIED", "VALID")


@pytest.mark.finding("F-19")
@pytest.mark.req("DPE-20")
async def test_a_full_report_without_its_seal_is_the_sealed_bytes(sidecar):
    """The URI gives the bytes that the chain covers, with the seal as headers; who removes the seal of form=full has them too."""
    response = await sidecar.chat("First?")
    sealed, full = await reported(sidecar, response), await reported(sidecar, response, "full")
    left = {name: value for name, value in full.json().items() if name not in AFTER_SEAL}

    assert full.json().keys() - left.keys() == AFTER_SEAL
    assert canonical_json(left) == sealed.text
    assert full.json()["report_hash"] == content_hash(sealed.content) == sealed.headers["etag"].strip('"')
    assert sealed.headers["crp-provenance-hmac"] == response.headers["crp-provenance-hmac"]
    assert sealed.headers["crp-provenance-chain-integrity"] == "UNVERIFIED"
    trail = await sidecar.client.get(response.headers["crp-compliance-audit-trail-uri"])
    assert trail.json()["report"] == full.json()


@pytest.mark.finding("F-19")
async def test_a_form_of_a_report_that_is_not_there_is_refused(sidecar):
    """A misspelt form must not be answered with another one."""
    response = await sidecar.chat("First?")
    refused = await sidecar.client.get(response.headers["crp-provenance-report-uri"] + "?form=signed")

    assert (refused.status_code, refused.json()["reason"]) == (400, "INVALID_PARAMETER")


@pytest.mark.finding("F-19")
@pytest.mark.req("DPE-20")
async def test_a_grpc_outcome_has_the_same_report(sidecar):
    """What gRPC returns at once equals what the URI returns later."""
    body = {"model": "test-model", "messages": [{"role": "user", "content": "First?"}]}
    answer = await sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=json.dumps(body).encode()))
    report = answer.outcome.report
    served = (await sidecar.client.get(answer.outcome.headers["CRP-Provenance-Report-URI"] + "?form=full")).json()
    names = ("report_id", "session_id", "window_id", "timestamp", "response_content_hash", "context_hash", *AFTER_SEAL)

    assert {name: getattr(report, name) for name in names} == {name: served[name] for name in names}
    assert report.hmac == answer.outcome.headers["CRP-Provenance-HMAC"]
    assert report.response_content_hash == "sha256:" + hashlib.sha256(answer.chat_response).hexdigest()


@pytest.mark.finding("F-19")
async def test_the_context_hash_is_of_the_evidence_and_the_question(sidecar):
    """The same call in two sessions has one hash; another fact or another question has another."""
    same = [await sidecar.chat("How old?", interlock={"facts": FACTS}) for _ in range(2)]
    other = await sidecar.chat("How old?", interlock={"facts": [{**FACTS[0], "content": "It was finished in 1887."}]})
    asked = await sidecar.chat("How tall?", interlock={"facts": FACTS})
    one, two, fact, question = [
        (await reported(sidecar, response)).json()["context_hash"] for response in (*same, other, asked)
    ]

    assert one == two
    assert len({one, fact, question}) == 3


@pytest.mark.finding("F-19")
@pytest.mark.req("DAG-1", "PRV-1")
async def test_a_node_carries_the_chain_tip_after_it(sidecar):
    """Over gRPC and in the JSON picture: each window of a fan-out has its own tip, which is what its response said."""
    first = await sidecar.chat("First?")
    children = await fan_out(sidecar, first, "A?", "B?")
    windows = await dag(sidecar, children[-1])
    uri = f"/crp/v3/session/{first.headers['crp-context-session-id']}/dag"
    drawn = (await sidecar.client.get(uri, headers={"crp-session-token": token_of(children[-1])})).json()
    told = {window_of(one): one.headers["crp-provenance-hmac"] for one in (first, *children)}

    assert {window_id: node.hmac_chain_tip for window_id, node in windows.items()} == told
    assert {node["window_id"]: node["hmac_chain_tip"] for node in drawn["sessions"][0]["windows"]} == told
