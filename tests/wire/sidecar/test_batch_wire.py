"""The batch strategy through the served sidecar: windows side by side, their charges added up (SPEC-008 §8)."""

from __future__ import annotations

import json

import pytest

from interlock.api.sidecar.v1 import sidecar_pb2
from tests.support.sidecar import answering
from tests.support.sidecar.remedies import told
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import Merger, budget, dag, onward

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.sidecar


def body(question: str) -> dict:
    return {"model": "test-model", "messages": [{"role": "user", "content": question}]}


async def batch(sidecar, *questions, **headers):
    items = [{"id": f"i{n}", "body": body(q) if isinstance(q, str) else q} for n, q in enumerate(questions)]
    sent = {f"crp-{name.replace('_', '-')}": value for name, value in headers.items()}
    return await sidecar.client.post("/crp/v3/batch", json={"items": items}, headers=sent)


def results(response) -> list[dict]:
    return response.json()["results"]


def statuses(response) -> list[int]:
    return [one["status"] for one in results(response)]


def said(result: dict) -> str:
    return result["body"]["choices"][0]["message"]["content"]


@pytest.mark.req("SVC-2", "BUD-5")
async def test_every_item_has_a_window_and_headers_of_its_own(sidecar, provider):
    """In a new session the first item is the root and the others its children; all are answered in order."""
    provider.by_question = {"B?": "It is HIGH.", "C?": "It is MEDIUM."}
    answered = await batch(sidecar, "A?", "B?", "C?")
    ends = results(answered)
    windows = await dag(sidecar, answered)

    assert (answered.status_code, statuses(answered)) == (200, [200, 200, 200])
    assert [said(one) for one in ends] == ["This answers it. A?", "It is HIGH.", "It is MEDIUM."]
    assert [one["id"] for one in ends] == ["i0", "i1", "i2"]
    assert [one["headers"]["CRP-Safety-Hallucination-Risk"] for one in ends] == ["LOW", "HIGH", "MEDIUM"]
    assert {one["headers"]["CRP-Context-Strategy"] for one in ends} == {"batch"}
    assert sorted((n.window_number, n.pattern, n.strategy) for n in windows.values()) == [
        (1, "LINEAR", "batch"), (2, "FAN_OUT", "batch"), (2, "FAN_OUT", "batch"),
    ]  # fmt: skip


@pytest.mark.req("BUD-10")
async def test_the_charges_of_a_batch_add_up_and_the_worst_is_on_top(sidecar, provider):
    """SPEC-008 §8.3, §8.4: every item off the session's budget; the worst risk and the budget after all of them."""
    provider.by_question = {"A?": "It is MEDIUM.", "B?": "It is HIGH.", "C?": "It is HIGH."}
    root = await sidecar.chat("All?")
    answered = await batch(sidecar, "A?", "B?", "C?", session_token=token_of(root))

    assert statuses(answered) == [200, 200, 200]
    assert await budget(sidecar, root) == 1_000_000 - 50_000 - 150_000 - 150_000
    assert answered.headers["crp-agent-safety-budget"] == "0.65"
    assert answered.headers["crp-safety-hallucination-risk"] == "HIGH"
    assert answered.headers["crp-context-strategy"] == "batch"
    after = await sidecar.chat("And then?", token=token_of(answered))
    assert (after.status_code, after.headers["crp-agent-safety-budget"]) == (200, "0.65")
    assert {n.status for n in (await dag(sidecar, root)).values()} == {"COMPLETED"}
    assert after.headers["crp-provenance-chain-integrity"] == "VALID"


@pytest.mark.req("BUD-3", "BRK-3")
async def test_when_the_budget_is_spent_what_is_left_is_refused_by_name(tmp_path, running, provider):
    """One after another: the third CRITICAL opens the breaker, and nothing more is asked of the provider."""
    provider.by_question = {f"{n}?": "It is CRITICAL." for n in range(5)}
    async with running_sidecar(
        tmp_path, upstream=running.base_url, dpe=Merger(), batch_parallel=1, remediation="none"
    ) as one:
        answered = await batch(one, *(f"{n}?" for n in range(5)), accept_risk="CRITICAL")

    ends = results(answered)
    assert statuses(answered)[0] == 200
    assert statuses(answered)[2:] == [451, 451, 451]
    assert {end["body"]["reason"] for end in ends[3:]} == {"BUDGET_DEPLETED"}
    assert len(provider.bodies("generate")) == 3
    assert answered.headers["crp-agent-safety-budget"] == "0.00"


async def test_an_item_that_fails_or_is_malformed_ends_itself_alone(sidecar, provider):
    """Its own status and reason; the others are answered, and the first that is settled is the root."""
    provider.by_question = {"A?": 500, "D?": 429}
    answered = await batch(sidecar, "A?", {"model": "m", "messages": []}, "B?", "C?", "D?")
    ends = results(answered)
    windows = await dag(sidecar, answered)

    assert statuses(answered) == [502, 400, 200, 200, 429]
    assert [end["body"].get("reason") for end in ends] == [
        "UPSTREAM_ERROR",
        "INVALID_PARAMETER",
        None,
        None,
        "UPSTREAM_RATE_LIMITED",
    ]
    assert sorted((n.window_number, n.status) for n in windows.values()) == [
        (1, "COMPLETED"),
        (2, "COMPLETED"),
        (2, "FAILED"),
    ]
    assert len({end["headers"].get("CRP-Context-Session-Id") for end in ends if end["headers"]}) == 1


async def test_items_share_no_context(sidecar):
    """The first item's answer is not compared with the others', though they are its children; the windows before are."""
    root = await sidecar.chat("All?")
    answered = await batch(sidecar, "A?", "B?", session_token=token_of(root))
    first = await batch(sidecar, "X?", "Y?")

    assert statuses(answered) == statuses(first) == [200, 200]
    assert [len(one.prior) for one in sidecar.dpe.asked if one.query in {"A?", "B?"}] == [1, 1]
    assert [len(one.prior) for one in sidecar.dpe.asked if one.query in {"X?", "Y?"}] == [0, 0]


@pytest.mark.req("AGT-3")
@pytest.mark.parametrize(
    ("sent", "status", "reason"),
    [
        ({"items": []}, 400, "INVALID_BATCH"),
        ({"items": [{"id": "a", "body": {}}, {"id": "a", "body": {}}]}, 400, "INVALID_BATCH"),
        ({"items": [{"id": "a b", "body": {}}]}, 400, "INVALID_BATCH"),
        ({"items": [{"id": str(n), "body": {}} for n in range(11)]}, 403, "MAX_FAN_OUT_EXCEEDED"),
    ],
)
async def test_a_malformed_batch_begins_nothing(sidecar, provider, sent, status, reason):
    """Refused by name as a whole: no session, no window, no call."""
    refused = await sidecar.client.post("/crp/v3/batch", json=sent)

    assert (refused.status_code, reason_of(refused)) == (status, reason)
    assert (provider.received, "crp-set-session" in refused.headers) == ([], False)


async def test_a_batch_by_grpc_is_the_same(sidecar, provider):
    """Results in the order of the items, with outcomes and refusals; trailing headers tell the worst."""
    provider.by_question = {"A?": "It is MEDIUM.", "B?": 500}
    items = [
        sidecar_pb2.BatchItem(id=name, chat_request=json.dumps(body(f"{name}?")).encode()) for name in ("A", "B", "C")
    ]
    answered = await sidecar.stub.Batch(sidecar_pb2.BatchRequest(items=items))

    assert [(one.id, one.refusal.reason, bool(one.chat_response)) for one in answered.results] == [
        ("A", "", True), ("B", "UPSTREAM_ERROR", False), ("C", "", True),
    ]  # fmt: skip
    assert answered.results[0].outcome.safety_budget_micros == 950_000
    assert answered.headers["CRP-Safety-Hallucination-Risk"] == "MEDIUM"
    after = await sidecar.chat("And then?", token=answered.session_token)
    assert after.status_code == 200


@pytest.mark.req("BRK-2")
async def test_a_half_open_breaker_verifies_every_item(sidecar, provider):
    """HALF_OPEN forces reflexive in a batch too."""
    provider.by_question = {"All?": "It is CRITICAL.", "More?": "It is HIGH."}
    root = await sidecar.chat("All?")
    after = await sidecar.chat("More?", token=token_of(root), headers=onward(root))
    provider.received.clear()
    answered = await batch(sidecar, "A?", "B?", session_token=token_of(after))

    assert statuses(answered) == [200, 200]
    assert len(provider.bodies("verify")) == 2
    assert answered.headers["crp-safety-budget-warning"] == "caution"


@pytest.mark.req("AUD-1")
async def test_the_trail_of_a_batch_verifies(sidecar):
    """Every item is sealed as any other window."""
    answered = await batch(sidecar, "A?", "B?", "C?")
    events = await told(sidecar, answered.headers["crp-context-session-id"])

    assert sum(kind == "WINDOW_SEALED" for kind, _ in events) == 3
    assert sum(kind == "FAN_OUT_CREATED" for kind, _ in events) == 2
