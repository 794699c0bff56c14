"""A response is held, decided about and released through the served sidecar (SPEC-012 §6.2; OVR-2, OVR-4, I12)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.oversight.v1 import oversight_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.client import AsyncSession, Forbidden, SafetyHalt, Session
from interlock.domain import approval
from interlock.domain.session.token import claimed, mint
from interlock.runtime.keys.derivation import SIGN, load_keyring
from tests.support.policy import agents
from tests.support.sidecar.oversight import (
    HOLDS,
    decided,
    decision,
    retried,
    reviewed_world,
    status_of,
    token_for,
    window_of,
)
from tests.support.sidecar.sidecar import reason_of, token_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAID = "HIGH risk, and wanted all the same."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """A sidecar with a registered reviewer."""
    async with reviewed_world(tmp_path_factory.mktemp("release")) as running:
        yield running


@pytest.fixture
def provider(world):
    world.provider.reset()
    world.provider.answers(SAID)
    return world.provider


@pytest.fixture
def reviewed(world, provider):
    """The sidecar, whose provider says something of HIGH risk."""
    return world.sidecar


async def types_of(sidecar, held) -> list[str]:
    return [event.event_type for event in await sidecar.events(held.headers["crp-context-session-id"])]


@pytest.mark.req("OVR-2", "OVR-4")
async def test_an_approved_response_is_released_once_as_it_would_have_been(reviewed, provider):
    """Its bytes and headers are those of the held one, the budget stays, nothing is dispatched, and the chain says so."""
    held = await reviewed.chat(headers=HOLDS)
    asked = len(provider.received)
    waiting = await status_of(reviewed, held)
    token = await decided(reviewed, held)
    approved = await status_of(reviewed, held)
    released = await retried(reviewed, held, token)
    kinds = await types_of(reviewed, held)

    assert (held.status_code, reason_of(held), waiting["status"]) == (451, "HELD_FOR_REVIEW", "PENDING")
    assert (approved["status"], approved["oversight_token"]) == ("APPROVED", token)
    assert released.status_code == 200, released.text
    assert released.json()["choices"][0]["message"]["content"] == SAID
    assert "sha256:" + hashlib.sha256(released.content).hexdigest() == waiting["response_hash"]
    assert len(provider.received) == asked
    ours = {name: value for name, value in held.headers.items() if name.startswith("crp-")}
    fresh = {"crp-set-session", "crp-safety-retry-after"}
    assert {n: v for n, v in ours.items() if n not in fresh} == {
        n: v for n, v in released.headers.items() if n.startswith("crp-") and n not in fresh
    }
    assert kinds[-2:] == ["OVERSIGHT_APPROVED", "RESPONSE_RELEASED"]
    verified = await reviewed.mesh.audit.Verify(
        audit_pb2.VerifyRequest(session_id=held.headers["crp-context-session-id"])
    )
    assert not verified.faults
    assert verified.integrity == common_pb2.CHAIN_INTEGRITY_UNVERIFIED  # a first window has nothing to chain from


def held_by(session: Session | AsyncSession) -> str:
    """Path at which the session's held window is asked for."""
    return f"/crp/v3/session/{session.session_id}/held/"


async def approve(sidecar, session, halt: SafetyHalt, *, action: str = approval.RELEASE) -> None:
    """Decide about what a client's call was told is held."""
    headers = {"crp-session-token": session.state.token}
    item = (await sidecar.client.get(held_by(session) + halt.metadata["window_id"], headers=headers)).json()
    answer = await sidecar.mesh.audit.DecideHeld(decision(token_for(item, action=action)))
    assert not answer.HasField("refusal"), answer.refusal


@pytest.mark.req("OVR-4")
async def test_a_client_waits_for_the_decision_and_gets_its_answer(reviewed):
    """It goes on meanwhile, and what was held takes nothing from it."""
    async with AsyncSession(f"{reviewed.http}/v1", model="test-model") as session:
        with pytest.raises(SafetyHalt, match="HELD_FOR_REVIEW") as halt:
            await session.chat("What is it?", headers=HOLDS)
        with pytest.raises(SafetyHalt, match="HELD_FOR_REVIEW"):
            await session.reviewed(halt.value)
        waiting = asyncio.create_task(session.reviewed(halt.value, wait_s=30))
        await approve(reviewed, session, halt.value)
        token = session.state.token
        answer = await waiting

        assert answer.text == SAID
        assert session.state.token == token


@pytest.mark.req("OVR-4")
async def test_a_client_in_a_thread_is_told_of_a_rejection(reviewed):
    """There is no answer then, and the reason says why."""

    def ask() -> tuple[Session, SafetyHalt]:
        session = Session(f"{reviewed.http}/v1", model="test-model")
        with pytest.raises(SafetyHalt, match="HELD_FOR_REVIEW") as halt:
            session.chat("What is it?", headers=HOLDS)
        return session, halt.value

    session, halt = await asyncio.to_thread(ask)
    with session:
        await approve(reviewed, session, halt, action=approval.REJECT)
        with pytest.raises(Forbidden, match="HELD_REJECTED"):
            await asyncio.to_thread(session.reviewed, halt)
        with pytest.raises(ValueError, match="nothing is kept"):
            session.reviewed(SafetyHalt(451, {}, {"reason": "SAFETY_HALT"}))


@pytest.mark.req("OVR-4")
async def test_a_stream_that_was_held_is_released_as_a_stream(reviewed):
    """Asked for otherwise it is refused by name, and stays held."""
    held = await reviewed.chat(headers=HOLDS, stream=True, stream_options={"include_usage": True})
    token = await decided(reviewed, held)
    other = await retried(reviewed, held, token)
    released = await retried(reviewed, held, token, stream=True)
    lines = [line for line in released.text.splitlines() if line.startswith("data: {")]

    assert (other.status_code, reason_of(other)) == (409, "HELD_FORM_DIFFERS")
    assert released.headers["content-type"].startswith("text/event-stream")
    assert SAID in "".join(
        choice["delta"].get("content") or "" for line in lines for choice in json.loads(line[6:])["choices"]
    )
    assert released.text.endswith("data: [DONE]\n\n")


@pytest.mark.req("OVR-4", "SVC-2")
async def test_over_grpc_it_is_the_same(reviewed):
    """GetHeld tells the token, Dispatch hands the answer out with the decision as it stands now."""
    held = await reviewed.chat(headers=HOLDS)
    token = await decided(reviewed, held)
    session_token, window_id = token_of(held), window_of(held)
    told = await reviewed.stub.GetHeld(sidecar_pb2.GetHeldRequest(session_token=session_token, window_id=window_id))
    chat = json.dumps({"model": "m", "messages": [{"role": "user", "content": "again"}]}).encode()
    context = sidecar_pb2.CallContext(session_token=session_token, oversight_token=token)
    answer = await reviewed.stub.Dispatch(sidecar_pb2.DispatchRequest(context=context, chat_request=chat))

    assert (told.item.status, told.item.token) == (audit_pb2.HELD_STATUS_APPROVED, token)
    assert json.loads(answer.chat_response)["choices"][0]["message"]["content"] == SAID
    assert answer.outcome.window_id == window_id
    assert answer.outcome.report.risk_level == common_pb2.RISK_LEVEL_HIGH


@pytest.mark.req("OVR-4")
async def test_a_checked_text_is_released_by_check(reviewed):
    """Its caller has the text; what it waits for is the decision."""
    context = sidecar_pb2.CallContext(oversight_mode="human-review")
    first = (await reviewed.stub.Check(sidecar_pb2.CheckRequest(context=context, text="CRITICAL indeed"))).outcome
    found = await reviewed.mesh.audit.GetHeld(audit_pb2.GetHeldRequest(window_id=first.window_id))
    token = token_for(found.item)
    await reviewed.mesh.audit.DecideHeld(decision(token))
    context = sidecar_pb2.CallContext(session_token=first.session_token, oversight_token=token)
    again = (await reviewed.stub.Check(sidecar_pb2.CheckRequest(context=context, text="CRITICAL indeed"))).outcome

    assert again.window_id == first.window_id
    assert again.safety_budget_micros == first.safety_budget_micros
    assert again.decision.action == 1


@pytest.mark.req("OVR-5")
async def test_a_rejected_response_is_gone(reviewed):
    """Its client is told who rejected it, its bytes and its text are deleted, and the chain still verifies."""
    held = await reviewed.chat(headers=HOLDS)
    await decided(reviewed, held, action="reject")
    shown = await status_of(reviewed, held)
    released = await retried(reviewed, held, token_for(shown))
    found = await reviewed.mesh.audit.GetHeld(audit_pb2.GetHeldRequest(window_id=window_of(held)))

    assert shown["status"] == "REJECTED"
    assert (released.status_code, reason_of(released)) == (403, "HELD_REJECTED")
    assert found.held == b""
    assert (await types_of(reviewed, held))[-2:] == ["OVERSIGHT_REJECTED", "CONTENT_DROPPED"]


@pytest.mark.req("OVR-4")
async def test_later_windows_are_compared_with_what_was_released(reviewed, provider):
    """An answer that is held was not said; once it is released, it was."""
    held = await reviewed.chat(headers=HOLDS)
    provider.answers("Something LOW.")
    before = await reviewed.chat(token=token_of(held))
    compared_before = [one.text for one in reviewed.dpe.asked[-1].prior]
    token = await decided(reviewed, held)
    released = await retried(reviewed, held, token)
    await reviewed.chat(token=token_of(before))
    compared_after = [one.text for one in reviewed.dpe.asked[-1].prior]

    assert released.status_code == 200
    assert compared_before == []
    assert compared_after == [SAID, "Something LOW."]


@pytest.mark.req("OVR-3")
@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"response": "sha256:" + "0" * 64}, 401, "APPROVAL_MISMATCH"),
        ({"policy": "sha256:" + "0" * 64}, 401, "APPROVAL_MISMATCH"),
        ({"window": "crp_win_" + "0" * 32}, 404, "HELD_NOT_FOUND"),
        ({"session": "crp_sess_" + "0" * 32}, 401, "APPROVAL_MISMATCH"),
        ({"key": agents.private_key(2)}, 401, "APPROVAL_INVALID"),
        ({"reviewer": "somebody@company.com"}, 401, "APPROVAL_INVALID"),
        ({"issued_at": 1_700_000_000}, 401, "APPROVAL_EXPIRED"),
        ({"action": "reject"}, 401, "APPROVAL_MISMATCH"),
        ({"number": 7}, 401, "APPROVAL_MISMATCH"),
    ],
)
async def test_an_approval_of_something_else_releases_nothing(reviewed, changes, status, reason):
    """Whatever is refused stays held: the approval that was given releases it afterwards."""
    held = await reviewed.chat(headers=HOLDS)
    good = await decided(reviewed, held)
    refused = await retried(reviewed, held, token_for(await status_of(reviewed, held), **changes))

    assert (refused.status_code, reason_of(refused)) == (status, reason)
    assert (await retried(reviewed, held, good)).status_code == 200


@pytest.mark.req("OVR-3")
async def test_without_a_decision_on_record_a_signature_alone_releases_nothing(reviewed):
    """A reviewer's token that was never handed in approves nothing: the decision is single, in the log."""
    held = await reviewed.chat(headers=HOLDS)
    refused = await retried(reviewed, held, token_for(await status_of(reviewed, held)))

    assert (refused.status_code, reason_of(refused)) == (403, "HELD_NOT_APPROVED")


@pytest.mark.req("OVR-4")
async def test_the_same_request_again_gets_the_same_bytes_and_nobody_else(reviewed, provider):
    """A connection that broke loses no answer; a request with another session token is a second release, and refused."""
    held = await reviewed.chat(headers=HOLDS)
    token = await decided(reviewed, held)
    provider.answers("Something LOW.")
    onward = await reviewed.chat(token=token_of(held))
    first = await retried(reviewed, held, token)
    again = await retried(reviewed, held, token)
    other = await reviewed.chat(token=token_of(onward), headers={"crp-oversight-token": token})

    assert (again.status_code, again.content) == (200, first.content)
    assert (other.status_code, reason_of(other)) == (409, "HELD_ALREADY_RELEASED")
    assert (await types_of(reviewed, held))[-2:] == ["RESPONSE_RELEASED", "RESPONSE_REPEATED"]


async def spent(reviewed, provider, *risks: str):
    """A session whose first answer is held and whose later ones are of those risks; the held and the last response."""
    provider.answers("CRITICAL")
    held = last = await reviewed.chat(headers=HOLDS)
    for risk in risks:
        provider.answers(risk)
        last = await reviewed.chat(token=token_of(last))
    return held, last


@pytest.mark.req("OVR-4", "BRK-3")
async def test_a_depleted_session_releases_what_it_holds_and_opens_nothing(reviewed, provider):
    """Between 0.00 and 0.10 (reading 4); the budget stays where it is."""
    held, last = await spent(reviewed, provider, "CRITICAL", "HIGH", "MEDIUM")
    token = await decided(reviewed, held)
    released = await retried(reviewed, held, token)
    onward = await reviewed.chat(token=token_of(last))
    uri = f"/crp/v3/session/{held.headers['crp-context-session-id']}"
    shown = (await reviewed.client.get(uri, headers={"crp-session-token": token_of(last)})).json()

    assert last.headers["crp-agent-safety-budget"] == "0.10"
    assert (released.status_code, shown["safety_budget_micros"]) == (200, 100_000)
    assert (onward.status_code, reason_of(onward)) == (451, "BUDGET_DEPLETED")


@pytest.mark.req("OVR-4", "BRK-3")
async def test_an_exhausted_session_releases_nothing(reviewed, provider):
    """At 0.00 not even a reviewer helps (reading 4)."""
    held, last = await spent(reviewed, provider, "CRITICAL", "HIGH", "HIGH")
    token = await decided(reviewed, held)
    refused = await retried(reviewed, held, token)

    assert last.headers["crp-agent-safety-budget"] == "0.00"
    assert (refused.status_code, reason_of(refused)) == (451, "BUDGET_DEPLETED")


@pytest.mark.req("OVR-4")
async def test_a_session_that_its_client_ended_releases_nothing(reviewed):
    """Ended for good means that nothing more comes of it."""
    held = await reviewed.chat(headers=HOLDS)
    token = await decided(reviewed, held)
    sent = {"crp-session-token": token_of(held)}
    await reviewed.client.delete(f"/crp/v3/session/{held.headers['crp-context-session-id']}", headers=sent)
    refused = await retried(reviewed, held, token)

    assert (refused.status_code, reason_of(refused)) == (409, "SESSION_TERMINATED")


@pytest.mark.req("OVR-2")
async def test_the_files_hold_no_word_of_what_is_held(reviewed):
    """Neither the answer, in whatever coding, nor the question: encrypted under the session's data key."""
    await reviewed.chat("Whose account shall I name?", headers=HOLDS)
    stored = b"".join(path.read_bytes() for path in reviewed.settings.state_dir.glob("audit.db*"))

    assert b"wanted all the same" not in stored
    assert b"Whose account" not in stored
    assert b"chatcmpl" not in stored
    assert b'"decision"' not in stored
    assert len(stored) > 4096


@pytest.mark.req("OVR-4", "TOK-3")
async def test_a_review_may_take_longer_than_a_token_lives(reviewed):
    """An expired token still names its session to its own caller; forged, or another caller's, it names nothing."""
    held = await reviewed.chat(headers=HOLDS)
    approval = await decided(reviewed, held)
    said = claimed(token_of(held))
    old = replace(said, issued_at=said.issued_at - 90_000, expires_at=said.issued_at - 86_400)
    key = load_keyring(reviewed.settings).derive(said.key_version, said.session_id, SIGN)
    forged, expired = mint(old, bytes(32)), mint(old, key)
    sent = {"crp-oversight-token": approval}
    by_forgery = await reviewed.chat(token=forged, headers=sent)
    by_another = await reviewed.chat(token=expired, headers={**sent, "authorization": "Bearer sk-other"})
    onward = await reviewed.chat(token=expired)
    released = await reviewed.chat(token=expired, headers=sent)

    assert (by_forgery.status_code, reason_of(by_forgery)) == (401, "TOKEN_SIGNATURE_INVALID")
    assert (by_another.status_code, reason_of(by_another)) == (404, "SESSION_NOT_FOUND")
    assert (onward.status_code, reason_of(onward)) == (401, "TOKEN_EXPIRED")
    assert (released.status_code, released.json()["choices"][0]["message"]["content"]) == (200, SAID)


@pytest.mark.req("OVR-4")
async def test_an_item_of_a_batch_is_held_and_released_by_itself(reviewed):
    """Its own window id names it; the other items are not touched."""
    body = {"model": "m", "messages": [{"role": "user", "content": "What?"}]}
    items = {"items": [{"id": "one", "body": body}, {"id": "two", "body": body}]}
    batch = (await reviewed.client.post("/crp/v3/batch", json=items, headers=HOLDS)).json()["results"]
    second = batch[1]["body"]["metadata"]
    token = batch[1]["headers"]["CRP-Set-Session"].split(";")[0].removeprefix("token=")
    item = (await reviewed.client.get(second["held_uri"], headers={"crp-session-token": token})).json()
    approval = token_for(item)
    await reviewed.mesh.audit.DecideHeld(decision(approval))
    released = await reviewed.chat(token=token, headers={"crp-oversight-token": approval})
    first = await reviewed.client.get(batch[0]["body"]["metadata"]["held_uri"], headers={"crp-session-token": token})

    assert [one["status"] for one in batch] == [451, 451]
    assert (released.status_code, released.headers["crp-context-session-id"]) == (200, item["session_id"])
    assert first.json()["status"] == "PENDING"


@pytest.mark.req("OVR-4", "BUD-9")
async def test_what_is_held_survives_the_loss_of_the_session_store(tmp_path, valkey):
    """The session is rebuilt from its chain: reviewed and released as if nothing had been lost."""
    valkey.flush()
    async with reviewed_world(tmp_path, redis_url=valkey.url) as world:
        world.provider.answers(SAID)
        held = await world.sidecar.chat(headers=HOLDS)
        valkey.flush()
        metadata = await world.oversight.metadata()
        wanted = oversight_pb2.GetHeldRequest(window_id=window_of(held))
        item = (await world.oversight.stub.GetHeld(wanted, metadata=metadata)).item
        token = token_for(item)
        request = oversight_pb2.DecideRequest(window_id=item.window_id, token=token)
        decided = await world.oversight.stub.Decide(request, metadata=metadata)
        released = await retried(world.sidecar, held, token)

    assert not decided.HasField("refusal"), decided.refusal
    assert released.status_code == 200, released.text
    assert released.headers["crp-agent-safety-budget"] == held.headers["crp-agent-safety-budget"]
