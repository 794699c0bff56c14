"""The gRPC front over real gRPC: the same governed calls, refusals as statuses, headers as trailing metadata."""

from __future__ import annotations

import asyncio
import hashlib
import json

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_requests.aio import AsyncClient
from grpc_status import rpc_status

from interlock.api.common.v1 import common_pb2
from interlock.api.decision.v1 import decision_pb2
from interlock.api.kernel.v1 import kernel_pb2, kernel_pb2_grpc
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.runtime.rpc.health import FRESH_S, MISSING_KEY
from tests.support.sidecar.sidecar import DpeDouble, running_sidecar

SERVICES = [
    module.DESCRIPTOR.services_by_name[name]
    for module, name in (
        (sidecar_pb2, "SidecarService"),
        (kernel_pb2, "KernelService"),
        (decision_pb2, "DecisionService"),
    )
]
"""What an agent can call at the sidecar's gRPC port."""
CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}).encode()


pytest_plugins = ("tests.support.sidecar.fronts",)


def dispatch(chat: bytes = CHAT, **context) -> sidecar_pb2.DispatchRequest:
    return sidecar_pb2.DispatchRequest(chat_request=chat, context=sidecar_pb2.CallContext(**context))


def check(text: str, **context) -> sidecar_pb2.CheckRequest:
    return sidecar_pb2.CheckRequest(text=text, context=sidecar_pb2.CallContext(**context))


async def refused(call) -> tuple[grpc.StatusCode, str, dict[str, str], dict[str, str]]:
    """Code, reason, ErrorInfo metadata and trailing metadata of a call that must fail."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    error, info = caught.value, error_details_pb2.ErrorInfo()
    for detail in rpc_status.from_call(error).details:
        detail.Unpack(info)
    trailing = {name: value for name, value in error.trailing_metadata() if isinstance(value, str)}
    return error.code(), info.reason, dict(info.metadata), trailing


@pytest.mark.req("SVC-2", "HDR-4")
async def test_a_dispatch_is_governed_as_over_http(sidecar, provider):
    """The same answer, decision, budget and headers, in the message and as metadata in lower case (I14)."""
    over_http = await sidecar.chat()
    call = sidecar.stub.Dispatch(dispatch())
    answer = await call
    trailing = dict(await call.trailing_metadata())
    ours = {name for name in over_http.headers if name.startswith("crp-")}

    own = {"id": "", "created": 0, "model": ""}
    assert {**json.loads(answer.chat_response), **own} == {**over_http.json(), **own}
    assert json.loads(answer.chat_response)["id"] == "chatcmpl-" + answer.outcome.window_id.removeprefix("crp_win_")
    assert answer.outcome.decision.action == policy_pb2.ACTION_DELIVER
    assert {name.lower() for name in answer.outcome.headers} == ours == {n for n in trailing if n.startswith("crp-")}
    assert trailing["crp-agent-safety-budget"] == over_http.headers["crp-agent-safety-budget"]
    assert answer.outcome.headers["CRP-Context-Session-Id"] == answer.outcome.session_id


@pytest.mark.req("SVC-3", "HDR-4", "BUD-5")
async def test_a_halt_is_a_status_with_its_reason_and_headers(sidecar, provider):
    """FAILED_PRECONDITION, SAFETY_HALT, the fields of the 451 body, and every header that is known."""
    provider.answers("CRITICAL")
    code, reason, info, trailing = await refused(sidecar.stub.Dispatch(dispatch(safety_policy=["halt-on CRITICAL"])))

    assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "SAFETY_HALT")
    assert info["halt_reason"] == "CRITICAL_HALLUCINATION_RISK"
    assert info["session_id"] == trailing["crp-context-session-id"]
    assert trailing["crp-safety-retry-after"] == "oversight-required"
    assert trailing["crp-agent-safety-budget"] == "0.65"


@pytest.mark.req("SVC-2", "BUD-5", "PRV-2")
async def test_a_brought_completion_is_charged_and_sealed(sidecar, provider):
    """Check answers a halt as an answer, because the caller holds the text; nothing is dispatched (NeMo#2014)."""
    fact = common_pb2.Fact(id="f", content="It is blue.", importance=0.9)
    request = check("It is CRITICAL.", safety_policy=["halt-on CRITICAL"])
    request.facts.append(fact)
    request.query = "Colour?"
    first = (await sidecar.stub.Check(request)).outcome
    second = (await sidecar.stub.Check(check("fine", session_token=first.session_token))).outcome
    asked = sidecar.dpe.asked[0]

    assert first.decision.action == policy_pb2.ACTION_HALT
    assert (first.safety_budget_micros, second.safety_budget_micros) == (650_000, 650_000)
    assert second.integrity == common_pb2.CHAIN_INTEGRITY_VALID
    assert ([f.id for f in asked.facts], asked.query, asked.outputs[0].text) == (["f"], "Colour?", "It is CRITICAL.")
    assert provider.received == []
    sealed = [e.event_type for e in await sidecar.events(first.session_id)]
    assert sealed.count("WINDOW_SEALED") == 2


@pytest.mark.req("BUD-1", "TOK-3")
async def test_a_session_is_started_read_and_ended(sidecar):
    """A session without a call: full budget, its policy, and an end that is final and on record."""
    started = await sidecar.stub.StartSession(
        sidecar_pb2.StartSessionRequest(context=sidecar_pb2.CallContext(safety_policy=["halt-on HIGH"]))
    )
    token = started.session_token
    read = await sidecar.stub.GetSession(sidecar_pb2.GetSessionRequest(session_token=token))
    ended = await sidecar.stub.Terminate(sidecar_pb2.TerminateRequest(session_token=token))
    again = await sidecar.stub.Terminate(sidecar_pb2.TerminateRequest(session_token=token))
    after = await refused(sidecar.stub.Check(check("x", session_token=token)))
    events = [e.event_type for e in await sidecar.events(started.session.session_id)]

    assert (started.session.safety_budget_micros, started.session.policy_text) == (1_000_000, "halt-on HIGH")
    assert read.session.session_id == started.session.session_id
    assert ended.session.status == again.session.status == session_pb2.SESSION_STATUS_TERMINATED
    assert after[:2] == (grpc.StatusCode.ABORTED, "SESSION_TERMINATED")
    assert events == ["SESSION_CREATED", "SESSION_TERMINATED"]


@pytest.mark.req("POL-6")
async def test_a_started_session_holds_its_policy(sidecar, provider):
    """What was demanded at the start cannot be relaxed later; the refusal names the directive."""
    started = await sidecar.stub.StartSession(
        sidecar_pb2.StartSessionRequest(context=sidecar_pb2.CallContext(safety_policy=["halt-on HIGH"]))
    )
    code, reason, info, _ = await refused(
        sidecar.stub.Dispatch(dispatch(session_token=started.session_token, safety_policy=["halt-on CRITICAL"]))
    )
    provider.answers("HIGH")
    halted = await refused(sidecar.stub.Dispatch(dispatch(session_token=started.session_token)))

    assert (code, reason) == (grpc.StatusCode.PERMISSION_DENIED, "SAFETY_POLICY_INHERITANCE_VIOLATION")
    assert json.loads(info["relaxations"]) == [{"directive": "halt-on", "parent": "HIGH", "child": "CRITICAL"}]
    assert halted[1] == "SAFETY_HALT"


@pytest.mark.req("HDR-6")
async def test_headers_may_come_as_metadata(sidecar, provider):
    """CRP metadata counts as headers do; the same value in both places is fine."""
    provider.answers("CRITICAL")
    halted = await refused(sidecar.stub.Dispatch(dispatch(), metadata=(("crp-safety-policy", "halt-on CRITICAL"),)))
    twice = await refused(
        sidecar.stub.Dispatch(
            dispatch(safety_policy=["halt-on CRITICAL"]), metadata=(("crp-safety-policy", "halt-on CRITICAL"),)
        )
    )

    assert halted[1] == twice[1] == "SAFETY_HALT"


@pytest.mark.req("HDR-6", "SVC-3")
@pytest.mark.parametrize(
    ("context", "metadata", "reason"),
    [
        ({"safety_mode": "strict"}, (("crp-safety-mode", "warn"),), "CONFLICTING_CONTEXT"),
        ({"safety_policy": ["halt-on HIGH"]}, (("crp-safety-policy", "block-pii"),), "CONFLICTING_CONTEXT"),
        ({}, (("crp-safety-hallucination-risk", "LOW"),), "RESPONSE_HEADER_IN_REQUEST"),
        ({}, (("crp-made-up", "1"),), "UNKNOWN_CRP_HEADER"),
        ({}, (("crp-safety-mode-bin", b"strict"),), "INVALID_HEADER"),
        ({}, (("crp-safety-mode", "strict"), ("crp-safety-mode", "strict")), "DUPLICATE_HEADER"),
        ({}, (("crp-agent-safety-budget", "NaN"),), "INVALID_HEADER"),
        ({}, (("crp-session-action", "terminate"),), "HEADER_NOT_SUPPORTED"),
        ({"safety_mode": "lenient"}, (), "INVALID_HEADER"),
        ({"safety_policy": ["halt-on\u241fHIGH"]}, (), "INVALID_HEADER"),
        ({"continuation_id": "crp_cont_\n"}, (), "INVALID_HEADER"),
        ({"session_token": "\x00"}, (), "INVALID_HEADER"),
    ],
)
async def test_bad_headers_are_invalid_arguments(sidecar, provider, context, metadata, reason):
    """Each has its reason and changes nothing: the next call works."""
    code, found, _, _ = await refused(sidecar.stub.Dispatch(dispatch(**context), metadata=metadata))

    assert (code, found) == (grpc.StatusCode.INVALID_ARGUMENT, reason)
    assert provider.received == []
    assert (await sidecar.stub.Dispatch(dispatch())).chat_response


@pytest.mark.req("SVC-3")
@pytest.mark.parametrize(
    ("request_", "code", "reason"),
    [
        (dispatch(b""), grpc.StatusCode.INVALID_ARGUMENT, "INVALID_JSON"),
        (dispatch(b"\xff"), grpc.StatusCode.INVALID_ARGUMENT, "INVALID_UTF8"),
        (dispatch(b'{"model": "m", "model": "n"}'), grpc.StatusCode.INVALID_ARGUMENT, "DUPLICATE_KEY"),
        (dispatch(b"[" * 100), grpc.StatusCode.INVALID_ARGUMENT, "JSON_TOO_DEEP"),
        (dispatch(b"{}"), grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMETER"),
        (dispatch(b'"' + b"x" * 20_000 + b'"'), grpc.StatusCode.RESOURCE_EXHAUSTED, "REQUEST_TOO_LARGE"),
        (check(""), grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"),
        (check("x" * 9_000), grpc.StatusCode.RESOURCE_EXHAUSTED, "TEXT_TOO_LARGE"),
        (
            sidecar_pb2.CheckRequest(text="x", facts=[common_pb2.Fact(id="a", content="b", importance=float("nan"))]),
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_FACT",
        ),
        (check("x", session_token="a.b"), grpc.StatusCode.UNAUTHENTICATED, "TOKEN_MALFORMED"),
        (check("x", continuation_id="crp_cont_" + "0" * 32), grpc.StatusCode.UNAUTHENTICATED, "SESSION_TOKEN_REQUIRED"),
    ],
)
async def test_bad_requests_are_refused_by_name(tmp_path, upstream, provider, request_, code, reason):
    """Bodies, texts, facts and tokens that do not hold: a code, a reason, no model call, and the next call works."""
    limits = {"max_body_bytes": 16_384, "max_text_bytes": 8_192}
    async with running_sidecar(tmp_path, upstream=upstream, **limits) as sidecar:
        method = sidecar.stub.Check if isinstance(request_, sidecar_pb2.CheckRequest) else sidecar.stub.Dispatch
        found = await refused(method(request_))
        asked = len(provider.received)
        good = await sidecar.stub.Dispatch(dispatch())

    assert found[:2] == (code, reason)
    assert asked == 0
    assert good.outcome.safety_budget_micros == 1_000_000


@pytest.mark.req("TOK-3")
async def test_a_token_is_of_its_caller(sidecar):
    """A session of one key is nothing to another: read, ended or continued (A-37)."""
    mine, other = (("authorization", "Bearer one"),), (("authorization", "Bearer two"),)
    token = (await sidecar.stub.StartSession(sidecar_pb2.StartSessionRequest(), metadata=mine)).session_token
    calls = [
        sidecar.stub.GetSession(sidecar_pb2.GetSessionRequest(session_token=token), metadata=other),
        sidecar.stub.Terminate(sidecar_pb2.TerminateRequest(session_token=token), metadata=other),
        sidecar.stub.Check(check("x", session_token=token), metadata=other),
    ]

    assert {(await refused(call))[0] for call in calls} == {grpc.StatusCode.UNAUTHENTICATED}
    assert (await sidecar.stub.Check(check("x", session_token=token), metadata=mine)).outcome.session_token


async def test_tokens_are_needed_where_they_are_needed(sidecar):
    """GetSession and Terminate need one; StartSession must have none."""
    token = (await sidecar.stub.StartSession(sidecar_pb2.StartSessionRequest())).session_token
    none = sidecar_pb2.StartSessionRequest(context=sidecar_pb2.CallContext(session_token=token))

    assert (await refused(sidecar.stub.GetSession(sidecar_pb2.GetSessionRequest())))[1] == "SESSION_TOKEN_REQUIRED"
    assert (await refused(sidecar.stub.Terminate(sidecar_pb2.TerminateRequest())))[1] == "SESSION_TOKEN_REQUIRED"
    assert (await refused(sidecar.stub.StartSession(none)))[1] == "SESSION_TOKEN_UNEXPECTED"


@pytest.mark.req("BUD-5", "BUD-11")
async def test_cancelling_after_the_answer_does_not_save_the_charge(tmp_path, upstream, provider):
    """A cancelled RPC is charged for an answer that was already there."""
    entered, go = asyncio.Event(), asyncio.Event()

    async def gate() -> None:
        entered.set()
        await go.wait()

    dpe = DpeDouble(gate=gate)
    async with running_sidecar(tmp_path, upstream=upstream, dpe=dpe) as sidecar:
        started = await sidecar.stub.StartSession(sidecar_pb2.StartSessionRequest())
        call = sidecar.stub.Check(check("CRITICAL", session_token=started.session_token))
        await asyncio.wait_for(entered.wait(), 10)
        call.cancel()
        await asyncio.sleep(0.05)
        go.set()
        for _ in range(100):
            read = await sidecar.stub.GetSession(sidecar_pb2.GetSessionRequest(session_token=started.session_token))
            if read.session.windows:
                break
            await asyncio.sleep(0.02)

    assert read.session.safety_budget_micros == 650_000


@pytest.mark.req("SVC-4")
async def test_a_callers_deadline_ends_the_wait_for_the_model(sidecar, provider):
    """DEADLINE_EXCEEDED in time, the lease given back: the same token works again."""
    started = await sidecar.stub.StartSession(sidecar_pb2.StartSessionRequest())
    provider.hangs()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await sidecar.stub.Dispatch(dispatch(session_token=started.session_token), timeout=0.5)
    provider.answers("fine")
    for _ in range(100):
        try:
            answer = await sidecar.stub.Dispatch(dispatch(session_token=started.session_token))
            break
        except grpc.aio.AioRpcError:
            await asyncio.sleep(0.02)

    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert answer.outcome.safety_budget_micros == 1_000_000


@pytest.mark.req("SVC-4")
async def test_reflection_lists_and_describes_all_that_the_port_serves(sidecar):
    """A client without our protos finds both services with every method, and calls one of each."""
    outside = AsyncClient(sidecar.grpc)
    described = {one.full_name: await outside.service(one.full_name) for one in SERVICES}
    opened = await described[SERVICES[1].full_name].Open(
        {"kernel": "mine", "definition": {"resources": [{"name": "usd", "limit_micros": 5}]}},
        metadata=[("authorization", "Bearer alice")],
    )

    assert set(described) == {name for name in await outside.service_names() if name.startswith("interlock.")}
    for one in SERVICES:
        assert set(described[one.full_name].method_names) == {method.name for method in one.methods}
    assert opened["created"]


@pytest.mark.req("SVC-4", "SVC-9")
async def test_health_answers_for_every_service_of_the_port(sidecar):
    """All are ready together: what the process misses stops its calls, its kernels and its decisions alike."""
    async with grpc.aio.insecure_channel(sidecar.grpc) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        asked = [health_pb2.HealthCheckRequest(service=one.full_name) for one in SERVICES]
        ready = [(await health.Check(one)).status for one in asked]
        sidecar.missing["session store"] = "start it"
        await asyncio.sleep(FRESH_S)
        calls = [health.Check(one) for one in asked]
        unready = [(await call).status for call in calls]
        named = [json.loads(dict(await call.trailing_metadata())[MISSING_KEY]) for call in calls]

    status = health_pb2.HealthCheckResponse
    assert (ready, unready) == ([status.SERVING] * 3, [status.NOT_SERVING] * 3)
    assert named == [{"session store": "start it"}] * 3


@pytest.mark.req("SVC-6")
async def test_who_has_no_key_learns_what_there_is_and_may_call_none_of_it(tmp_path):
    """Reflection shows the methods to the machine's own callers; a call without a listed key is refused by either service."""
    keys = tmp_path / "keys.yaml"
    keys.write_text(f"agent: {hashlib.sha256(b'sk').hexdigest()}\n")
    keys.chmod(0o600)
    async with running_sidecar(tmp_path, api_keys_file=keys) as sidecar:
        outside = AsyncClient(sidecar.grpc)
        assert {one.full_name for one in SERVICES} <= set(await outside.service_names())
        async with grpc.aio.insecure_channel(sidecar.grpc) as channel:
            kernels = kernel_pb2_grpc.KernelServiceStub(channel)
            for metadata in ((), (("authorization", "Bearer other"),)):
                for call in (
                    sidecar.stub.Check(check("It is."), metadata=metadata),
                    kernels.Describe(kernel_pb2.DescribeRequest(kernel="mine"), metadata=metadata),
                ):
                    assert (await refused(call))[0] is grpc.StatusCode.UNAUTHENTICATED
