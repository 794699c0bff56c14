"""Halts and ends go down a tree as well as up, through the served sidecar on a real Valkey (SPEC-012 §5.3; F-11, I20)."""

from __future__ import annotations

import asyncio
import json

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.session.store.redis import key_of
from tests.support.sidecar import answering
from tests.support.sidecar.oversight import HOLDS, decision, held_path, token_for
from tests.support.sidecar.sidecar import reason_of, token_of
from tests.support.sidecar.windows import delegated, fan_out, onward

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.stored_sidecar

pytestmark = pytest.mark.finding("F-11")

CHAT = b'{"model": "m", "messages": [{"role": "user", "content": "A?"}]}'


def session_of(response) -> str:
    return response.headers["crp-context-session-id"]


async def on(sidecar, response, question="And?", **more):
    return await sidecar.chat(question, token=token_of(response), headers=onward(response), **more)


async def end(sidecar, root):
    ended = await sidecar.client.delete(
        f"/crp/v3/session/{session_of(root)}", headers={"crp-session-token": token_of(root)}
    )
    assert ended.status_code == 200, ended.text


async def halt(sidecar, root):
    """Have the root itself spend its budget down to where its breaker is open."""
    last = root
    for _ in range(3):
        last = await on(sidecar, last, "It is CRITICAL.")
        if last.headers["crp-agent-safety-budget"] <= "0.10":
            break
    assert last.headers["crp-agent-safety-budget"] <= "0.10", last.headers


ENDINGS = [(end, "ANCESTOR_ENDED"), (halt, "ANCESTOR_EXHAUSTED")]


@pytest.fixture(autouse=True)
def says(provider):
    provider.by_question = {"It is CRITICAL.": "It is CRITICAL."}


@pytest.mark.parametrize(("ending", "reason"), ENDINGS)
async def test_a_running_child_is_refused_once_its_orchestrator_is_over(sidecar, provider, ending, reason):
    """At its next call, by HTTP, gRPC, batch, branch and fan-out alike: 451 before the provider is asked; grandchildren too."""
    root = await sidecar.chat("All?")
    child = await delegated(sidecar, root, "One?")
    grandchild = await delegated(sidecar, child, "Two?")
    await ending(sidecar, root)
    provider.received.clear()
    token = token_of(child)
    ends = [
        await on(sidecar, child),
        await on(sidecar, grandchild),
        await on(sidecar, child, stream=True),
        *await fan_out(sidecar, child, "A?", "B?"),
    ]
    items = [{"id": name, "body": json.loads(CHAT)} for name in "ab"]
    batch = await sidecar.client.post("/crp/v3/batch", json={"items": items}, headers={"crp-session-token": token})
    with pytest.raises(grpc.aio.AioRpcError) as by_grpc:
        context = sidecar_pb2.CallContext(session_token=token)
        await sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=CHAT, context=context), timeout=10)
    info = error_details_pb2.ErrorInfo()
    next(d for d in rpc_status.from_call(by_grpc.value).details if d.Is(info.DESCRIPTOR)).Unpack(info)

    assert {one.status_code for one in ends} == {451}, [one.text for one in ends]
    assert {reason_of(one) for one in ends} == {info.reason} == {reason}
    assert {one["status"] for one in batch.json()["results"]} == {451}
    assert {one["body"]["reason"] for one in batch.json()["results"]} == {reason}
    assert {one.json()["metadata"]["ancestor_session_id"] for one in ends} == {session_of(root)}
    assert ends[0].json()["crp_halt_reason"] == reason
    assert ends[0].headers["crp-safety-retry-after"] == "new-session-required"
    assert provider.received == []


@pytest.mark.parametrize(("ending", "reason"), ENDINGS)
async def test_what_is_in_flight_below_a_session_that_ends_is_not_released(sidecar, provider, ending, reason):
    """Its settlement itself sees the end: charged, sealed, told as a halt, and the text stays inside."""
    provider.by_question["Slow?"] = "A secret answer."
    root = await sidecar.chat("All?")
    child = await delegated(sidecar, root, "One?")
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def gate():
        if not arrived.is_set():
            arrived.set()
            await gone.wait()

    sidecar.dpe.gate = gate
    flying = asyncio.create_task(on(sidecar, child, "Slow?"))
    await arrived.wait()
    await ending(sidecar, root)
    gone.set()
    ended = await flying
    kinds = [event.event_type for event in await sidecar.events(session_of(child))]

    assert (ended.status_code, reason_of(ended)) == (451, reason), ended.text
    assert ended.json()["crp_halt_reason"] == reason
    assert ended.json()["metadata"]["ancestor_session_id"] == session_of(root)
    assert "secret" not in ended.text
    assert kinds.count("WINDOW_SEALED") == 2
    assert "SAFETY_HALT" in kinds


@pytest.mark.parametrize("how", ["all", "root", "epoch"])
@pytest.mark.parametrize(("ending", "reason"), ENDINGS)
async def test_an_end_is_remembered_by_a_store_that_lost_it(sidecar, valkey, ending, reason, how):
    """The tree is rebuilt from the chain, with what ended it: everything gone, the root alone gone, or another server."""
    root = await sidecar.chat("All?")
    child = await delegated(sidecar, root, "One?")
    await ending(sidecar, root)
    with valkey.client() as client:
        if how == "all":
            client.flushall()
        elif how == "root":
            client.delete(key_of(session_of(root), session_of(root)))
        else:
            client.hset(key_of(session_of(root), session_of(root)), "epoch", "another")
    after = await on(sidecar, child)

    assert (after.status_code, reason_of(after)) == (451, reason), after.text


@pytest.mark.parametrize(("ending", "reason"), ENDINGS)
async def test_an_end_is_not_forgotten_by_a_store_that_was_set_back_in_place(sidecar, valkey, ending, reason):
    """The root's key alone is put back as it was before the end: the audit chain of the root tells the child's settlement."""
    root = await sidecar.chat("All?")
    child = await delegated(sidecar, root, "One?")
    key = key_of(session_of(root), session_of(root))
    with valkey.client() as client:
        before = client.dump(key)
        await ending(sidecar, root)
        client.restore(key, 0, before, replace=True)
    after = await on(sidecar, child)

    assert (after.status_code, reason_of(after)) == (451, reason), after.text


async def test_a_sibling_that_opens_the_breaker_above_ends_the_other_one(sidecar, provider):
    """The halt goes up to the root and down again; the child's own budget has nothing to do with it."""
    root = await sidecar.chat("All?")
    bad, good = await delegated(sidecar, root, "One?"), await delegated(sidecar, root, "Two?")
    for _ in range(3):
        bad = await on(sidecar, bad, "It is CRITICAL.")
    provider.received.clear()
    after = await on(sidecar, good)

    assert good.headers["crp-agent-safety-budget"] == "1.00"
    assert (after.status_code, reason_of(after)) == (451, "ANCESTOR_EXHAUSTED"), after.text
    assert provider.received == []


async def test_the_end_of_a_session_in_the_middle_leaves_what_is_above_it_alone(sidecar):
    """It goes down from where it happened: the root goes on, the grandchild does not."""
    root = await sidecar.chat("All?")
    middle = await delegated(sidecar, root, "One?")
    leaf = await delegated(sidecar, middle, "Two?")
    await end(sidecar, middle)

    assert (await on(sidecar, root)).status_code == 200
    assert reason_of(await on(sidecar, leaf)) == "ANCESTOR_ENDED"


async def test_what_a_child_holds_is_not_handed_out_once_its_orchestrator_ended(sidecar, provider):
    """An approval releases what its session may release: below a session that was ended that is nothing."""
    provider.by_question["Risky?"] = "It is HIGH."
    root = await sidecar.chat("All?", headers=HOLDS)
    child = await delegated(sidecar, root, "One?")
    held = await on(sidecar, child, "Risky?")
    assert reason_of(held) == "HELD_FOR_REVIEW", held.text
    state = (await sidecar.client.get(held_path(held), headers={"crp-session-token": token_of(held)})).json()
    approval = token_for(state)
    assert not (await sidecar.mesh.audit.DecideHeld(decision(approval))).HasField("refusal")
    await end(sidecar, root)
    retried = await sidecar.chat(token=token_of(held), headers={"crp-oversight-token": approval})

    assert (retried.status_code, reason_of(retried)) == (451, "ANCESTOR_ENDED"), retried.text
