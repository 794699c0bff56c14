"""What refusals and releases say of chain, policy and budget, over HTTP and gRPC (SPEC-004 §16.4, SPEC-006 §5.2, reading 12)."""

from __future__ import annotations

import json

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.session.store.redis import key_of
from tests.support.audit.audit import Attacker
from tests.support.sidecar.oversight import HOLDS, decision, held_path, reviewed_world, token_for
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of
from tests.wire.sidecar.test_sidecar_wire import CHAT, dispatch, refused

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.finding("F-17")

EDIT = "UPDATE windows SET charge_micros = 1 WHERE window_number = 1"
POLICY = {"crp-safety-policy": "halt-on HIGH; require-grounding 0.50"}
LOOSER = "warn-on CRITICAL"


async def broken(sidecar):
    """A session of two windows whose first record is edited in the file."""
    first = await sidecar.chat()
    second = await sidecar.chat(token=token_of(first))
    with Attacker(sidecar.settings.state_dir / "audit.db") as attack:
        attack(EDIT)
    return second


@pytest.mark.req("AUD-2", "HDR-4")
async def test_a_broken_chain_is_told_before_the_provider_is_asked(sidecar, provider):
    """409, CHAIN_BROKEN, the header BROKEN, and nothing was dispatched; the same for a stream and for every later call."""
    second = await broken(sidecar)
    asked = len(provider.received)
    answers = [await sidecar.chat(token=token_of(second), stream=stream) for stream in (False, True)]

    assert [(one.status_code, reason_of(one)) for one in answers] == [(409, "CHAIN_BROKEN")] * 2
    assert [one.headers["crp-provenance-chain-integrity"] for one in answers] == ["BROKEN"] * 2
    assert len(provider.received) == asked
    assert "CHAIN_BROKEN" in [e.event_type for e in await sidecar.events(second.headers["crp-context-session-id"])]


@pytest.mark.req("AUD-2", "HDR-4", "SVC-3")
async def test_a_broken_chain_over_grpc_and_in_a_batch(sidecar, provider):
    """The same header as trailing metadata and in each item's result."""
    second = await broken(sidecar)
    asked, token = len(provider.received), token_of(second)
    _, reason, _, trailing = await refused(sidecar.stub.Dispatch(dispatch(session_token=token)))
    items = [{"id": "a", "body": json.loads(CHAT)}]
    batch = await sidecar.client.post("/crp/v3/batch", json={"items": items}, headers={"crp-session-token": token})
    item = batch.json()["results"][0]

    assert (reason, trailing["crp-provenance-chain-integrity"]) == ("CHAIN_BROKEN", "BROKEN")
    assert (item["status"], item["headers"]["CRP-Provenance-Chain-Integrity"]) == (409, "BROKEN")
    assert len(provider.received) == asked


@pytest.mark.req("POL-5", "HDR-4")
async def test_a_relaxed_policy_of_a_sub_agent_says_inheritance(sidecar, provider):
    """403 with the header, when a child begins, when it continues, over gRPC and in a batch; a tighter one has none."""
    root = await sidecar.chat(headers=POLICY)
    sent = {"crp-session-token": token_of(root)}
    delegations = [await sidecar.client.post("/crp/v3/delegations", json={}, headers=sent) for _ in range(2)]
    one, other = [{name.lower(): value for name, value in each.json()["headers"].items()} for each in delegations]
    began = await sidecar.chat(headers={**one, "crp-safety-policy": LOOSER})
    child = await sidecar.chat(headers={**other, "crp-safety-policy": "halt-on MEDIUM; require-grounding 0.80"})
    assert child.status_code == 200, child.text
    continued = await sidecar.chat(token=token_of(child), headers={"crp-safety-policy": LOOSER})
    _, reason, _, trailing = await refused(
        sidecar.stub.Dispatch(dispatch(session_token=token_of(child), safety_policy=[LOOSER]))
    )
    batch = await sidecar.client.post(
        "/crp/v3/batch", json={"items": [{"id": "a", "body": json.loads(CHAT)}]},
        headers={"crp-session-token": token_of(child), "crp-safety-policy": LOOSER},
    )  # fmt: skip
    item = batch.json()["results"][0]

    for one in (began, continued):
        assert (one.status_code, reason_of(one)) == (403, "SAFETY_POLICY_INHERITANCE_VIOLATION")
        assert one.headers["crp-safety-policy-violation"] == "inheritance"
    assert (reason, trailing["crp-safety-policy-violation"]) == ("SAFETY_POLICY_INHERITANCE_VIOLATION", "inheritance")
    assert (item["status"], item["headers"]["CRP-Safety-Policy-Violation"]) == (403, "inheritance")
    assert "crp-safety-policy-violation" not in child.headers


@pytest.mark.req("HDR-3")
async def test_a_caller_cannot_set_the_violation(sidecar):
    """It is the gateway's word alone."""
    answer = await sidecar.chat(headers={"crp-safety-policy-violation": "inheritance"})

    assert (answer.status_code, reason_of(answer)) == (400, "RESPONSE_HEADER_IN_REQUEST")


@pytest.fixture
async def stored(tmp_path, upstream, valkey):
    async with running_sidecar(tmp_path, upstream=upstream, redis_url=valkey.url) as running:
        yield running


@pytest.mark.req("BUD-4", "HDR-4")
async def test_a_halt_does_not_show_what_a_tampered_store_says(stored, provider, valkey):
    """The signed token says 0.00; the store was set to 1.00: the 451 shows what the halt is about."""
    provider.answers("It is CRITICAL.")
    last = await stored.chat()
    for _ in range(2):
        last = await stored.chat(token=token_of(last), headers={"crp-safety-oversight-mode": "log-only"})
    session_id = last.headers["crp-context-session-id"]
    with valkey.client() as client:
        client.hset(key_of(session_id, session_id), mapping={"budget": 1_000_000, "status": 1})
    refused_one = await stored.chat(token=token_of(last))
    _, reason, _, trailing = await refused(stored.stub.Dispatch(dispatch(session_token=token_of(last))))

    assert (refused_one.status_code, reason_of(refused_one), reason) == (451, "BUDGET_DEPLETED", "BUDGET_DEPLETED")
    assert float(refused_one.headers["crp-agent-safety-budget"]) <= 0.10
    assert float(trailing["crp-agent-safety-budget"]) <= 0.10


@pytest.mark.req("OVR-4", "HDR-4")
@pytest.mark.parametrize("front", ["http", "grpc"])
async def test_a_release_carries_the_budget_of_now(tmp_path, front):
    """What was held at 0.65 and is released at 0.10, under an open breaker, says 0.10."""
    async with reviewed_world(tmp_path) as world:
        sidecar, provider = world.sidecar, world.provider
        provider.answers("CRITICAL")
        held = last = await sidecar.chat(headers=HOLDS)
        item = (await sidecar.client.get(held_path(held), headers={"crp-session-token": token_of(held)})).json()
        token = token_for(item)
        await sidecar.mesh.audit.DecideHeld(decision(token))
        for risk in ("CRITICAL", "HIGH", "MEDIUM"):
            provider.answers(risk)
            last = await sidecar.chat(token=token_of(last))
        if front == "http":
            released = await sidecar.chat(token=token_of(held), headers={"crp-oversight-token": token})
            shown, left = released.headers, 100_000
        else:
            context = sidecar_pb2.CallContext(session_token=token_of(held), oversight_token=token)
            call = sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(context=context, chat_request=CHAT))
            answer = await call
            shown, left = dict(await call.trailing_metadata()), answer.outcome.safety_budget_micros
            assert answer.outcome.breaker == common_pb2.BREAKER_STATE_OPEN

    assert (held.headers["crp-agent-safety-budget"], last.headers["crp-agent-safety-budget"]) == ("0.65", "0.10")
    assert (shown["crp-agent-safety-budget"], left) == ("0.10", 100_000)
