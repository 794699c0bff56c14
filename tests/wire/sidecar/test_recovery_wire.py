"""Calls that died half-way, and sessions that were lost meanwhile: brought to their end by whoever comes next."""

from __future__ import annotations

import asyncio
import json

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.runtime import failpoints
from interlock.session.store.redis import key_of
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import Hooked, reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import Merger, budget, dag, delegated, fan_in, fan_out, onward

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.stored_sidecar

HIGH, MEDIUM = "It is HIGH.", "It is MEDIUM."


@pytest.fixture
def fail():
    yield failpoints.configure
    failpoints.configure("")


async def trail(sidecar, response) -> list[str]:
    return [event.event_type for event in await sidecar.events(response.headers["crp-context-session-id"])]


@pytest.mark.req("BUD-4", "BUD-8")
@pytest.mark.parametrize("lost", [True, False])
async def test_a_window_that_was_sealed_and_not_settled_is_settled_by_the_rebuild(
    sidecar, provider, valkey, fail, lost
):
    """A crash after the seal, and the store is gone with it, or came up anew: charged once, and the caller gets a fresh token."""
    provider.by_question = {"B?": HIGH}
    first = await sidecar.chat("A?")
    fail("sidecar.after_seal:error@1")
    died = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
    fail("")
    with valkey.client() as client:
        key = key_of(*[first.headers["crp-context-session-id"]] * 2)
        if lost:
            client.delete(key)
        else:
            client.hset(key, "epoch", "another")
    retried = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
    onwards = await sidecar.chat("C?", token=token_of(retried))

    assert (died.status_code, retried.status_code) == (503, 409), retried.text
    assert reason_of(retried) == "WINDOW_ALREADY_SETTLED"
    assert (onwards.status_code, onwards.headers["crp-context-window"]) == (200, "3/200"), onwards.text
    assert await budget(sidecar, onwards) == 850_000


@pytest.mark.req("BRK-5", "AUD-1")
async def test_what_a_settlement_moved_is_put_on_record_by_the_next_call(sidecar, provider, fail):
    """A crash after the settlement loses the events of its moves; the next opening of the session writes each of them, once."""
    provider.by_question = dict.fromkeys(["A?", "B?"], "It is CRITICAL.")
    root = await sidecar.chat("A?")
    fail("sidecar.after_settle:error@1")
    (died,) = await fan_out(sidecar, root, "B?")
    fail("")
    lost = (await trail(sidecar, root)).count("BREAKER_TRANSITION")
    await fan_out(sidecar, root, "C?")
    await fan_out(sidecar, root, "D?")

    assert (died.status_code, lost) == (503, 0)
    assert (await trail(sidecar, root)).count("BREAKER_TRANSITION") == 1


@pytest.mark.req("BRK-4", "BRK-5")
async def test_a_cascade_that_nobody_wrote_down_is_written_by_the_next_call_of_the_child(sidecar, provider, fail):
    """The parent's trail gets SAFETY_BUDGET_CASCADED late rather than never, and never twice."""
    provider.by_question = {"Two?": HIGH}
    root = await sidecar.chat("All?")
    child = await delegated(sidecar, root, "One?")
    fail("sidecar.after_settle:error@1")
    died = await sidecar.chat("Two?", token=token_of(child), headers=onward(child, "fan-out"))
    fail("")
    lost = (await trail(sidecar, root)).count("SAFETY_BUDGET_CASCADED")
    for question in ("Three?", "Four?"):
        one = await sidecar.chat(question, token=token_of(child), headers=onward(child, "fan-out"))
        assert one.status_code == 200, one.text
    events = await sidecar.events(root.headers["crp-context-session-id"])
    cascaded = [json.loads(event.data_json) for event in events if event.event_type == "SAFETY_BUDGET_CASCADED"]

    assert (died.status_code, lost) == (503, 0)
    assert [(one["before"], one["after"]) for one in cascaded] == [("1.00", "0.85")]


@pytest.mark.req("BRK-4", "BRK-5")
async def test_moves_are_acknowledged_beside_the_call_and_named_until_then(sidecar, provider):
    """After a call that moved something no window is left untold; no later call writes it again."""
    provider.by_question = {"One?": HIGH}
    root = await sidecar.chat("All?")
    child = await delegated(sidecar, root, "One?")
    request = session_pb2.GetSessionRequest(
        session_id=child.headers["crp-context-session-id"], root_session_id=root.headers["crp-context-session-id"]
    )
    async with asyncio.timeout(5):
        while (await sidecar.mesh.session.GetSession(request)).session.untold_window_ids:
            await asyncio.sleep(0.01)
    await sidecar.chat("Two?", token=token_of(child), headers=onward(child))

    assert (await trail(sidecar, root)).count("SAFETY_BUDGET_CASCADED") == 1


@pytest.mark.req("DAG-9")
async def test_a_part_of_a_fan_out_that_died_is_marked_failed_by_the_next_opening(
    tmp_path, running, provider, redis_url, fail
):
    """Its lease ran out and the log has no seal: WINDOW_FAILED is on record, the node says FAILED, a partial fan-in goes on."""
    limits = {"request_timeout_s": 0.7, "rpc_timeout_s": 0.5, "upstream_timeout_s": 0.5}
    del provider
    async with running_sidecar(
        tmp_path, upstream=running.base_url, dpe=Merger(), redis_url=redis_url, **limits
    ) as sidecar:
        root = await sidecar.chat("All?")
        fail("sidecar.before_seal:error@1")
        (died,) = await fan_out(sidecar, root, "A?")
        fail("")
        await asyncio.sleep(1.3)
        (b,) = await fan_out(sidecar, root, "B?")
        merged = await fan_in(sidecar, [b], headers={"crp-agent-fan-in-policy": "partial"})
        nodes = await dag(sidecar, root)
        flushed = await trail(sidecar, root)

    assert (died.status_code, b.status_code, merged.status_code) == (503, 200, 200), merged.text
    assert sorted(node.status for node in nodes.values()) == ["COMPLETED", "COMPLETED", "COMPLETED", "FAILED"]
    assert flushed.count("WINDOW_FAILED") == 1


@pytest.mark.req("DAG-9", "BUD-8")
async def test_a_window_on_record_as_failed_is_never_sealed_and_a_sealed_one_never_fails(sidecar):
    """Whichever comes first is what the log says; the other is refused by name."""
    root = await sidecar.chat("All?")
    (part,) = await fan_out(sidecar, root, "A?")
    session, parent = root.headers["crp-context-session-id"], (await dag(sidecar, part)).values()
    sealed = next(one for one in parent if one.parent_ids)
    failed = audit_pb2.NewEvent(
        event_type="WINDOW_FAILED", severity=audit_pb2.SEVERITY_WARN, data_json='{"reason":"X"}'
    )
    no = await sidecar.mesh.audit.Record(
        audit_pb2.RecordRequest(session_id=session, window_id=sealed.window_id, events=[failed], once=True)
    )
    other = "crp_win_" + "7" * 32
    for _ in range(2):
        await sidecar.mesh.audit.Record(
            audit_pb2.RecordRequest(session_id=session, window_id=other, events=[failed], once=True)
        )
    request = audit_pb2.AppendRequest(
        session_id=session, window_id=other, window_number=2, parent_ids=sealed.parent_ids, pattern="FAN_OUT",
        parent_hmacs=[(await dag(sidecar, root))[sealed.parent_ids[0]].hmac], response_hash="sha256:" + "1" * 64,
        report={"composite_score": 0.1}, risk_level=1, status="COMPLETED", settle_json="{}",
    )  # fmt: skip
    late = await sidecar.mesh.audit.Append(request)

    assert (no.refusal.reason, late.refusal.reason) == ("WINDOW_SEALED", "WINDOW_FAILED")
    assert (await trail(sidecar, root)).count("WINDOW_FAILED") == 1


@pytest.mark.req("BUD-4", "BUD-9")
async def test_a_session_of_older_code_is_verified_and_never_rebuilt(tmp_path, running, provider, redis_url, valkey):
    """Its terms are not on record: it goes on while the store holds all of it, and is lost for good when that is gone."""
    del provider

    async def without_record(request):
        for event in request.events:
            data = json.loads(event.data_json)
            data.pop("record", None)
            event.data_json = json.dumps(data)

    def wrap(services):
        return {**services, "audit": Hooked(services["audit"], Record=without_record)}

    async with running_sidecar(
        tmp_path, upstream=running.base_url, dpe=Merger(), wrap=wrap, redis_url=redis_url
    ) as sidecar:
        first = await sidecar.chat("A?")
        with valkey.client() as client:
            client.hdel(key_of(*[first.headers["crp-context-session-id"]] * 2), "epoch", "untold", "late")
        second = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
        valkey.flush()
        third = await sidecar.chat("C?", token=token_of(second), headers=onward(second))

    assert second.status_code == 200, second.text
    assert (third.status_code, reason_of(third)) == (503, "SESSION_STATE_LOST")


@pytest.mark.req("BUD-4", "SVC-9")
async def test_sessions_in_memory_survive_the_process_that_held_them(tmp_path, running, provider):
    """``memory://``: another process with the same audit log knows the session again, at its budget."""
    provider.by_question = {"A?": HIGH}
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger()) as sidecar:
        first = await sidecar.chat("A?")
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger()) as sidecar:
        second = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
        left = await budget(sidecar, second)

    assert (second.status_code, left) == (200, 850_000), second.text


@pytest.mark.req("BUD-9")
async def test_a_forged_record_restores_nothing(sidecar, valkey):
    """Records are signed by the session service: a higher first budget or another owner is refused."""
    first = await sidecar.chat("A?")
    session = first.headers["crp-context-session-id"]
    record = await sidecar.mesh.audit.GetTreeRecord(audit_pb2.GetTreeRecordRequest(root_session_id=session))
    made = json.loads(record.steps[0].data_json)["record"]
    valkey.flush()
    reasons = []
    for forged in (made.replace('"budget":1000000', '"budget":999999'), made.replace('"v":1', '"v":2'), "{}", ""):
        step = session_pb2.TreeStep(session_id=session, created_record_json=forged)
        answer = await sidecar.mesh.session.RestoreTree(
            session_pb2.RestoreTreeRequest(root_session_id=session, steps=[step])
        )
        reasons.append(answer.refusal.reason)

    assert reasons == ["RECORD_INVALID", "RECORD_INVALID", "RECORD_INVALID", "SESSION_STATE_LOST"]
    with valkey.client() as client:
        assert client.keys("il:*") == []
