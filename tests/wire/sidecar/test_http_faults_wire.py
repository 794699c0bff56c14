"""The HTTP front when something goes wrong: clients that leave, services that fail, too much at once."""

from __future__ import annotations

import asyncio
import json
import threading

import grpc
import httpx
import pytest

from interlock.api.session.v1 import session_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.errors import exhausted, unavailable
from interlock.runtime.rpc.errors import from_rpc_error
from tests.support.sidecar.sidecar import DpeDouble, Hooked, a_report, reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)


@pytest.mark.req("SVC-3")
async def test_a_full_sidecar_sheds_before_the_model_is_called(tmp_path, upstream, provider):
    """Above the bound: 429 with Retry-After, no session, no model call; a body is not even read. Afterwards all is well."""
    go = threading.Event()
    provider.waits_for(go)
    async with running_sidecar(tmp_path, upstream=upstream, max_in_flight=1) as sidecar:
        first = asyncio.create_task(sidecar.chat())
        await asyncio.to_thread(provider.asked.wait, 10)
        second = await sidecar.chat()
        unread = await sidecar.client.post("/v1/chat/completions", content=b"no JSON")
        with pytest.raises(grpc.aio.AioRpcError) as over_grpc:
            await sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=b"no JSON"))
        go.set()
        third = (await first, await sidecar.chat())

    assert (second.status_code, reason_of(second)) == (429, "OVERLOADED")
    assert (unread.status_code, reason_of(unread)) == (429, "OVERLOADED")
    assert from_rpc_error(over_grpc.value, "sidecar").reason == "OVERLOADED"
    assert second.headers["retry-after"] == "1"
    assert [r.status_code for r in third] == [200, 200]
    assert len(provider.received) == 2


@pytest.mark.req("TOK-5")
async def test_two_calls_with_one_token_do_not_both_run(sidecar, provider):
    """The second is 409 while the first is in flight, and only one reaches the model."""
    first = await sidecar.chat()
    go = threading.Event()
    provider.asked.clear()
    provider.waits_for(go)
    running = asyncio.create_task(sidecar.chat(token=token_of(first)))
    await asyncio.to_thread(provider.asked.wait, 10)
    second = await sidecar.chat(token=token_of(first))
    go.set()

    assert (second.status_code, reason_of(second)) == (409, "WINDOW_IN_FLIGHT")
    assert int(second.headers["retry-after"]) > 0
    assert (await running).status_code == 200
    assert len(provider.received) == 2


@pytest.mark.req("BUD-5", "BUD-11")
async def test_hanging_up_after_the_answer_does_not_save_the_charge(tmp_path, upstream, provider):
    """Whoever leaves while the answer is analysed is charged all the same."""
    entered, go = asyncio.Event(), asyncio.Event()

    async def gate() -> None:
        entered.set()
        await go.wait()

    dpe = DpeDouble()
    provider.answers("CRITICAL")
    async with running_sidecar(tmp_path, upstream=upstream, dpe=dpe) as sidecar:
        first = await sidecar.chat()
        dpe.gate = gate
        leaving = asyncio.create_task(sidecar.chat(token=token_of(first)))
        await asyncio.wait_for(entered.wait(), 10)
        leaving.cancel()
        await asyncio.wait([leaving])
        await asyncio.sleep(0.1)  # the hang-up travels
        go.set()
        shown = await sidecar.settled(first, windows=2)

    assert shown["safety_budget_micros"] == 300_000


async def test_hanging_up_before_the_answer_frees_the_session(sidecar, provider):
    """The provider's call ends, nothing is charged, and the same token works at once."""
    first = await sidecar.chat()
    provider.asked.clear()
    provider.hangs()
    leaving = asyncio.create_task(sidecar.chat(token=token_of(first)))
    await asyncio.to_thread(provider.asked.wait, 10)
    leaving.cancel()
    await asyncio.wait([leaving])
    provider.answers("fine")
    for _ in range(100):
        again = await sidecar.chat(token=token_of(first))
        if again.status_code == 200:
            break
        await asyncio.sleep(0.02)
    events = await sidecar.events(first.headers["crp-context-session-id"])

    assert (again.status_code, again.headers["crp-agent-safety-budget"]) == (200, "1.00")
    assert [json.loads(e.data_json)["error_code"] for e in events if e.event_type == "DISPATCH_FAILED"] == [
        "CALLER_LEFT"
    ]


@pytest.mark.req("SVC-4")
async def test_a_call_that_outlasts_the_drain_is_told_why(tmp_path, upstream, provider):
    """What is still waiting when the time to drain is over gets 503 with a reason, not a bare 500."""
    provider.hangs()
    async with httpx.AsyncClient(trust_env=False, timeout=30) as outside:
        async with running_sidecar(tmp_path, upstream=upstream, drain_s=1) as sidecar:
            body = {"model": "test-model", "messages": [{"role": "user", "content": "What is it?"}]}
            call = asyncio.create_task(outside.post(f"{sidecar.http}/v1/chat/completions", json=body))
            await asyncio.to_thread(provider.asked.wait, 10)
        answered = await call

    assert (answered.status_code, reason_of(answered)) == (503, "SHUTTING_DOWN")
    assert answered.headers["retry-after"] == "1"


@pytest.mark.req("SVC-9", "SVC-3")
@pytest.mark.parametrize(
    ("failure", "status", "reason"),
    [
        (unavailable("DETECTOR_UNAVAILABLE", "no model"), 503, "DETECTOR_UNAVAILABLE"),
        (exhausted("CLAIM_LIMIT_EXCEEDED", "too many claims"), 413, "CLAIM_LIMIT_EXCEEDED"),
        (RuntimeError("secret text of a defect"), 500, "INTERNAL"),
    ],
)
async def test_an_answer_that_cannot_be_analysed_is_not_released(tmp_path, upstream, provider, failure, status, reason):
    """No analysis, no release, no charge; the failure is on record and the next call works (I10)."""
    dpe = DpeDouble()
    async with running_sidecar(tmp_path, upstream=upstream, dpe=dpe) as sidecar:
        first = await sidecar.chat()
        dpe.failure = failure
        refused = await sidecar.chat(token=token_of(first))
        dpe.failure = None
        again = await sidecar.chat(token=token_of(first))
        events = [e.event_type for e in await sidecar.events(first.headers["crp-context-session-id"])]

    assert (refused.status_code, reason_of(refused)) == (status, reason)
    assert "fine" not in refused.text
    assert "secret" not in refused.text
    assert refused.json()["error"]["type"] == ("invalid_request_error" if status == 413 else "server_error")
    assert refused.headers["crp-context-session-id"] == first.headers["crp-context-session-id"]
    assert (again.status_code, again.headers["crp-agent-safety-budget"]) == (200, "1.00")
    assert "DISPATCH_FAILED" in events


@pytest.mark.req("SVC-9")
async def test_a_report_with_nan_is_no_analysis(tmp_path, upstream):
    """A detector that answers NaN is a detector that is down (A-40)."""
    dpe = DpeDouble(report=a_report(composite_score=float("nan")))
    async with running_sidecar(tmp_path, upstream=upstream, dpe=dpe) as sidecar:
        response = await sidecar.chat()

    assert (response.status_code, reason_of(response)) == (503, "DPE_REPORT_INVALID")


class Outage:
    """Fails the first *times* calls of a method, then lets them through."""

    def __init__(self, failure: Exception, times: int) -> None:
        self.failure, self.times = failure, times

    async def __call__(self, _request) -> None:
        if self.times:
            self.times -= 1
            raise self.failure


@pytest.mark.req("SVC-9", "BUD-11")
async def test_a_full_audit_log_releases_nothing(tmp_path, upstream):
    """What cannot be sealed is not released and not charged, and the next call works (I4)."""
    outage = Outage(unavailable("AUDIT_STORE_FULL", "full"), 0)
    wrap = lambda services: {**services, "audit": Hooked(services["audit"], Append=outage)}  # noqa: E731
    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap) as sidecar:
        first = await sidecar.chat()
        outage.times = 4
        refused = await sidecar.chat(token=token_of(first))
        again = await sidecar.chat(token=token_of(first))

    assert (refused.status_code, reason_of(refused)) == (503, "AUDIT_STORE_FULL")
    assert "fine" not in refused.text
    assert (again.status_code, again.headers["crp-context-window"]) == (200, "2/200")


@pytest.mark.req("SVC-9")
async def test_a_short_outage_of_a_writer_is_ridden_out(tmp_path, upstream):
    """Seal and settle are idempotent, so that they are tried again inside the deadline."""
    seal = Outage(unavailable("AUDIT_UNAVAILABLE", "x"), 1)
    settle = Outage(unavailable("SESSION_UNAVAILABLE", "x"), 2)

    def wrap(services):
        audit, session = Hooked(services["audit"], Append=seal), Hooked(services["session"], CommitWindow=settle)
        return {**services, "audit": audit, "session": session}

    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap) as sidecar:
        response = await sidecar.chat()

    assert response.status_code == 200


class LostAnswers(Hooked):
    """Does what Append asks, and loses the answers while *times* lasts: nobody can tell whether it is sealed."""

    times = 0

    async def Append(self, request, context):
        answer = await self._inner.Append(request, context)
        if self.times:
            self.times -= 1
            raise unavailable("AUDIT_UNAVAILABLE", "x")
        return answer


@pytest.mark.req("SVC-9", "BUD-11", "BUD-8")
@pytest.mark.parametrize("lost_at", ["seal", "settle"])
async def test_a_sealed_window_is_settled_by_the_next_call(tmp_path, upstream, provider, lost_at):
    """Cut off at or after the seal: nothing is released, and the charge comes back with the next call."""
    outage, parts = Outage(unavailable("SESSION_UNAVAILABLE", "x"), 0), {}

    def wrap(services):
        parts["audit"] = LostAnswers(services["audit"])
        return {**services, **parts, "session": Hooked(services["session"], CommitWindow=outage)}

    limits = {"request_timeout_s": 2.0, "rpc_timeout_s": 0.5, "upstream_timeout_s": 2.0}
    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap, **limits) as sidecar:
        first = await sidecar.chat()
        provider.answers("CRITICAL")
        (parts["audit"] if lost_at == "seal" else outage).times = 4
        lost = await sidecar.chat(token=token_of(first))
        early = await sidecar.chat(token=token_of(first))
        asked = len(provider.received)
        await asyncio.sleep(2.6)  # the lease runs out: request_timeout_s + rpc_timeout_s
        late = await sidecar.chat(token=token_of(first))
        after = await sidecar.chat(token=token_of(late), headers={"crp-accept-risk": "CRITICAL"})

    assert (lost.status_code, "error" in lost.json()) == (503, True)
    assert "CRITICAL" not in lost.json()["error"]["message"]
    assert (early.status_code, reason_of(early)) == (409, "WINDOW_IN_FLIGHT")
    assert asked == 2
    assert (late.status_code, reason_of(late)) == (409, "WINDOW_ALREADY_SETTLED")
    assert late.headers["crp-agent-safety-budget"] == "0.65"
    assert [one.text for one in sidecar.dpe.asked[-1].prior] == ["The answer is fine."]  # nobody was told the other
    assert (after.headers["crp-context-window"], after.headers["crp-agent-safety-budget"]) == ("3/200", "0.30")


@pytest.mark.req("BUD-11", "BRK-3")
async def test_a_budget_that_fell_meanwhile_stops_the_release(tmp_path, upstream, provider):
    """Decided on 1.00, settled at 0.05: nothing is released, whatever was decided (I2)."""

    class Falling(Hooked):
        async def CommitWindow(self, request, context):
            lowered = session_pb2.CommitWindowRequest()
            lowered.CopyFrom(request)
            lowered.ceiling_micros = 50_000
            return await self._inner.CommitWindow(lowered, context)

    wrap = lambda services: {**services, "session": Falling(services["session"])}  # noqa: E731
    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap) as sidecar:
        response = await sidecar.chat()
        events = [e.event_type for e in await sidecar.events(response.headers["crp-context-session-id"])]

    assert (response.status_code, reason_of(response)) == (451, "BUDGET_DEPLETED")
    assert "fine" not in response.text
    assert events[-2:] == ["SAFETY_HALT", "CONTENT_DROPPED"]


@pytest.mark.req("AUD-1")
async def test_without_a_record_of_its_creation_no_session_is_used(tmp_path, upstream, provider):
    """The audit log comes first: when it is down, nothing is dispatched for a new session."""
    outage = Outage(unavailable("AUDIT_STORE_FULL", "full"), 4)
    wrap = lambda services: {**services, "audit": Hooked(services["audit"], Record=outage)}  # noqa: E731
    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap) as sidecar:
        refused, good = await sidecar.chat(), await sidecar.chat()

    assert (refused.status_code, reason_of(refused)) == (503, "AUDIT_STORE_FULL")
    assert good.status_code == 200
    assert len(provider.received) == 1
