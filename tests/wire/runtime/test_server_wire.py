"""The server that every service runs in, over real gRPC."""

from __future__ import annotations

import asyncio
import gc
import json

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_requests import AsyncClient
from grpc_status import rpc_status
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY

from interlock.api.audit.v1 import audit_pb2
from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceStub
from interlock.api.policy.v1 import policy_pb2
from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from interlock.domain.errors import Kind, Refused
from interlock.runtime import telemetry
from interlock.runtime.rpc.channel import LocalChannel, TracedChannel
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.health import MISSING_KEY
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.servers.probe import AuditProbe, Dependency, PolicyProbe, audit_service, policy_service
from tests.support.streams import ask_each
from tests.support.texts.canary import PROMPT, found_in

pytest_plugins = ("tests.support.logs",)

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
POLICY, AUDIT = "interlock.api.policy.v1.PolicyService", "interlock.api.audit.v1.AuditService"


class Running:
    """A server with two probes, and a channel to it."""

    def __init__(self, **settings) -> None:
        self.policy_probe, self.audit_probe = PolicyProbe(), AuditProbe()
        self.redis, self.disk = Dependency(), Dependency()
        self.services = [
            policy_service(self.policy_probe, self.redis),
            audit_service(self.audit_probe, self.disk),
        ]
        self.server = RpcServer(self.services, Settings(**{"allow_plaintext": True, **settings}), port=0)

    async def __aenter__(self):
        self.port = await self.server.start()
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{self.port}", [("grpc.use_local_subchannel_pool", 1)])
        self.policy, self.audit = PolicyServiceStub(self.channel), AuditServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)
        return self

    async def __aexit__(self, *_):
        await self.channel.close()
        await self.server.drain()

    async def status_of(self, service: str) -> int:
        return (await self.health.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)).status


@pytest.fixture
async def running():
    async with Running(drain_s=5) as one:
        yield one


def parse(text: str) -> policy_pb2.ParseRequest:
    return policy_pb2.ParseRequest(text=text)


async def failure(call) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value


def error_info(error: grpc.aio.AioRpcError) -> error_details_pb2.ErrorInfo:
    info = error_details_pb2.ErrorInfo()
    assert any(detail.Unpack(info) for detail in rpc_status.from_call(error).details)
    return info


@pytest.mark.req("SVC-3")
async def test_raised_refusal_is_a_status_with_error_info(running):
    """A refusal that a handler raises reaches the client with its code and constant reason."""
    error = await failure(running.policy.Parse(parse("refuse"), timeout=5))

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (error_info(error).reason, error_info(error).domain) == ("PROBE_FULL", "interlock")


@pytest.mark.req("SVC-3")
async def test_decorated_refusal_is_a_value(running):
    """A refusal of a decorated handler is an answer: the status is OK and the response carries it."""
    answer = await running.policy.Compare(policy_pb2.CompareRequest(), timeout=5)

    assert (answer.refusal.reason, dict(answer.refusal.metadata)) == ("PROBE_INVALID", {"position": "7"})


@pytest.mark.req("SVC-3")
async def test_refusal_inside_a_stream_is_a_status(running):
    """A refusal after the first messages of a stream ends it with its reason."""
    messages = []
    with pytest.raises(Refused, match="PROBE_BROKEN") as raised:
        async for message in ask_each("audit", running.audit.Export(audit_pb2.ExportRequest(session_id="refuse"))):
            messages.append(message)

    assert len(messages) == 2
    assert raised.value.kind is Kind.CONFLICT


@pytest.mark.req("SVC-3", "SVC-5")
@pytest.mark.parametrize("method", ["unary", "stream"])
async def test_defect_never_shows_its_text(running, log_lines, method):
    """An unexpected exception is INTERNAL with constant text; its own text is in no answer and in no log."""
    if method == "unary":
        error = await failure(running.policy.Parse(parse("crash"), timeout=5))
    else:
        stream = running.audit.Export(audit_pb2.ExportRequest(session_id="crash"), timeout=5)
        error = await failure(_last(stream))

    assert error.code() is grpc.StatusCode.INTERNAL
    assert error_info(error).reason == "INTERNAL"
    assert not found_in(str(error) + repr(error.trailing_metadata()))
    defect = next(line for line in log_lines() if line["event"] == "rpc.defect")
    assert defect["exception"]["type"] == "ValueError"
    assert any("probe.py" in frame for frame in defect["exception"]["frames"])
    assert not found_in(json.dumps(log_lines()))


async def _last(stream):
    async for _message in stream:
        pass


@pytest.mark.req("SVC-4")
async def test_call_without_deadline_gets_the_servers(log_lines):
    """A call without a deadline ends with DEADLINE_EXCEEDED after the server's own limit."""
    async with Running(request_timeout_s=0.05) as running:
        error = await failure(running.policy.Parse(parse("wait")))

    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert error_info(error).reason == "DEADLINE_EXCEEDED"


@pytest.mark.req("SVC-4")
async def test_stream_without_deadline_gets_the_servers():
    """A stream without a deadline is limited as a call is."""
    async with Running(request_timeout_s=0.05) as running:
        error = await failure(_last(running.audit.Export(audit_pb2.ExportRequest(session_id="wait"))))

    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.req("SVC-4")
async def test_callers_deadline_reaches_the_handler(running):
    """A handler sees the time that its caller has left."""
    answer = await running.policy.Parse(parse("remaining"), timeout=29)  # gRPC rounds it up on the wire

    assert 0 < float(answer.canonical_text) <= 30


@pytest.mark.req("SVC-4", "SVC-9")
async def test_health_follows_a_dependency(running):
    """Health of the service and overall go NOT_SERVING with a dependency and come back with it; others stay."""
    before = [await running.status_of(name) for name in (POLICY, AUDIT, "")]
    running.redis.gone = {"redis": "start it"}
    await asyncio.sleep(0.25)  # older answers are reused for 0.2 s
    during = [await running.status_of(name) for name in (POLICY, AUDIT, "")]
    running.redis.gone = {}
    await asyncio.sleep(0.25)
    after = [await running.status_of(name) for name in (POLICY, AUDIT, "")]

    assert before == after == [SERVING, SERVING, SERVING]
    assert during == [NOT_SERVING, SERVING, NOT_SERVING]


@pytest.mark.req("SVC-4", "SVC-9")
async def test_health_names_the_missing_dependency(running):
    """The trailing metadata of a health check names what is missing, with its hint."""
    running.disk.gone = {"audit store": "make room on /var"}
    await asyncio.sleep(0.25)
    call = running.health.Check(health_pb2.HealthCheckRequest(service=AUDIT), timeout=5)
    await call

    named = dict(await call.trailing_metadata())[MISSING_KEY]
    assert json.loads(named) == {"audit store": "make room on /var"}


@pytest.mark.req("SVC-4")
async def test_health_watch_tells_of_a_change(running):
    """A watcher learns by itself that a service is no longer ready."""
    watch = running.health.Watch(health_pb2.HealthCheckRequest(service=POLICY), timeout=10)
    first = await watch.read()
    running.redis.gone = {"redis": "start it"}
    second = await watch.read()
    watch.cancel()

    assert (first.status, second.status) == (SERVING, NOT_SERVING)


@pytest.mark.req("SVC-4")
async def test_reflection_serves_an_outside_client(running):
    """grpc-requests, which knows no stub of ours, lists the services and calls one."""
    outside = AsyncClient(f"127.0.0.1:{running.port}")
    service = await outside.service(POLICY)
    answer = await service.Parse({"text": "hello"})

    assert {POLICY, AUDIT, "grpc.health.v1.Health"} <= set(await outside.service_names())
    assert answer["canonical_text"] == "hello"


@pytest.mark.req("SVC-4")
async def test_reflection_v1_answers(running):
    """Reflection answers under its final name too, which newer clients ask first."""
    from grpc_reflection.v1alpha import reflection_pb2 as pb

    ask_v1 = running.channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=pb.ServerReflectionRequest.SerializeToString,
        response_deserializer=pb.ServerReflectionResponse.FromString,
    )

    async def question():
        yield pb.ServerReflectionRequest(list_services="")

    answers = [answer async for answer in ask_v1(question(), timeout=5)]

    assert POLICY in {service.name for service in answers[0].list_services_response.service}


@pytest.mark.req("SVC-4")
async def test_drain_finishes_the_call_in_flight(running):
    """A call that runs when the server drains gets its answer."""
    call = asyncio.ensure_future(running.policy.Parse(parse("wait"), timeout=10))
    await running.policy_probe.started.wait()
    drain = asyncio.create_task(running.server.drain())
    await asyncio.sleep(0)
    running.policy_probe.release.set()

    assert (await call).canonical_text == "wait"
    await drain


@pytest.mark.req("SVC-4")
async def test_drain_refuses_new_calls(running):
    """A call that comes while the server drains is UNAVAILABLE, so that the client may go elsewhere."""
    call = asyncio.ensure_future(running.policy.Parse(parse("wait"), timeout=10))
    await running.policy_probe.started.wait()
    drain = asyncio.create_task(running.server.drain())
    await asyncio.sleep(0.05)
    late = await failure(running.policy.Parse(parse("late"), timeout=5))
    running.policy_probe.release.set()
    await asyncio.gather(call, drain)

    assert late.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.req("SVC-4")
async def test_leaving_says_not_serving_before_it_ends(running):
    """Health says NOT_SERVING for good while calls still work."""
    await running.server.leave()

    assert await running.status_of(POLICY) == NOT_SERVING
    assert (await running.policy.Parse(parse("still here"), timeout=5)).canonical_text == "still here"


@pytest.mark.req("SVC-4")
async def test_drain_is_bounded():
    """A call that does not end is cancelled once drain_s is over."""
    running = Running(drain_s=0.05)
    async with running:
        call = asyncio.ensure_future(running.policy.Parse(parse("wait"), timeout=10))
        await running.policy_probe.started.wait()
        await running.server.drain()
        error = await failure(call)

    assert error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}


@pytest.mark.req("SVC-4")
async def test_taken_port_is_refused(running):
    """A second server on the same port is refused with a reason; the port is not shared in silence."""
    second = RpcServer(running.services, Settings(allow_plaintext=True), port=running.port)
    with pytest.raises(Refused, match="PORT_IN_USE"):
        await second.start()


@pytest.mark.req("SVC-4")
@pytest.mark.parametrize("size", [16_000, 17_500, 40_000])
async def test_metadata_is_bounded(running, size):
    """Metadata beyond 16 KiB is refused before a handler runs."""
    call = running.policy.Parse(parse("hello"), timeout=5, metadata=(("x-padding", "x" * (size - 300)),))
    if size > 16_384:
        assert (await failure(call)).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    else:
        assert (await call).canonical_text == "hello"


@pytest.mark.req("SVC-4")
async def test_message_size_is_bounded():
    """A message beyond the limit of the settings is refused before a handler runs."""
    async with Running(max_body_bytes=1024) as running:
        error = await failure(running.policy.Parse(parse("x" * 5000), timeout=5))

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.req("SVC-5")
async def test_one_line_and_one_count_per_call(running, log_lines):
    """A call leaves one access line with service, method, code, duration and reason, and is counted once."""
    labels = {"service": "policy", "method": "Compare", "code": "OK"}
    before = REGISTRY.get_sample_value("interlock_requests_total", labels) or 0
    await running.policy.Compare(policy_pb2.CompareRequest(), timeout=5)
    await asyncio.sleep(0.05)

    [line] = [line for line in log_lines() if line["event"] == "rpc"]
    assert (line["service"], line["method"], line["code"]) == ("policy", "Compare", "OK")
    assert line["reason"] == "PROBE_INVALID"
    assert line["duration_ms"] > 0
    assert REGISTRY.get_sample_value("interlock_requests_total", labels) == before + 1


@pytest.mark.req("SVC-5")
async def test_health_checks_leave_no_line(running, log_lines):
    """Probes every second do not fill the log."""
    await running.status_of("")
    await asyncio.sleep(0.05)

    assert not [line for line in log_lines() if line["event"] == "rpc"]


@pytest.fixture
def spans():
    """Finished spans of this process."""
    exporter = InMemorySpanExporter()
    telemetry.configure(Settings(), service="test", exporter=exporter)

    def finished():
        telemetry.flush()
        return exporter.get_finished_spans()

    yield finished
    telemetry.shutdown()


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize("topology", ["local", "remote"])
async def test_trace_goes_through_the_hop(running, spans, topology):
    """The span of the service's side belongs to the caller's trace, in one process and over gRPC."""
    channel = (
        LocalChannel(PolicyService=running.policy_probe) if topology == "local" else TracedChannel(running.channel)
    )
    with telemetry.span("caller") as caller:
        await call_service("policy", PolicyServiceStub(channel).Parse(parse("hello"), timeout=5))
    await asyncio.sleep(0.05)

    hops = [span for span in spans() if span.name == f"{POLICY}/Parse"]
    assert {span.context.trace_id for span in hops} == {caller.get_span_context().trace_id}
    assert len(hops) == (1 if topology == "local" else 2)
    assert hops[-1].attributes["rpc.method"] == "Parse"


@pytest.mark.req("SVC-5")
async def test_access_line_carries_the_callers_trace(running, log_lines):
    """The line of a call has the trace id of its traceparent, also when nothing is sampled."""
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    metadata = (("traceparent", f"00-{trace_id}-00f067aa0ba902b7-01"),)
    await running.policy.Parse(parse("hello"), timeout=5, metadata=metadata)
    await asyncio.sleep(0.05)

    [line] = [line for line in log_lines() if line["event"] == "rpc"]
    assert line["trace_id"] == trace_id


@pytest.mark.req("SVC-1")
@pytest.mark.parametrize("text", ["hello", "refuse", "crash", "wait"])
async def test_local_and_remote_answer_the_same(running, text):
    """What a caller gets through ask is the same over a function call and over gRPC."""
    results = []
    for channel in (LocalChannel(PolicyService=running.policy_probe), TracedChannel(running.channel)):
        try:
            call = PolicyServiceStub(channel).Parse(parse(text), timeout=0.3 if text == "wait" else 5)
            answer = await call_service("policy", call)
            results.append(answer.canonical_text)
        except Refused as refused:
            results.append((refused.kind, refused.reason, refused.message, refused.metadata))

    assert results[0] == results[1]
    assert PROMPT not in str(results)


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize(("timeout_s", "code"), [(None, "CANCELLED"), (0.5, "DEADLINE_EXCEEDED")])
async def test_a_client_that_leaves_while_it_is_written_to_leaves_nothing_behind(running, log_lines, timeout_s, code):
    """The handler is ended where it stands, with one access line; nothing is left for the loop to collect elsewhere."""
    stray = []

    def left(_loop: asyncio.AbstractEventLoop, context: dict) -> None:
        # gRPC has one queue for all loops of a process: what comes back to a loop that an earlier test closed is none of this one's.
        closed = (
            str(context.get("exception")) == "Event loop is closed" and "PollerCompletionQueue" in context["message"]
        )
        if not closed:
            stray.append(context)

    asyncio.get_running_loop().set_exception_handler(left)
    stream = running.audit.Export(audit_pb2.ExportRequest(session_id="flood"), timeout=timeout_s)
    async for _ in stream:
        break
    await asyncio.sleep(0.2)  # until the server waits with the next message
    if timeout_s is None:
        stream.cancel()
    async with asyncio.timeout(5):
        await running.audit_probe.ended.wait()
        while not (lines := [line for line in log_lines() if line["event"] == "rpc"]):
            await asyncio.sleep(0.01)
    gc.collect()
    await asyncio.sleep(0.05)

    assert stray == []
    assert [(line["method"], line["code"]) for line in lines] == [("Export", code)]


@pytest.mark.req("SVC-1")
@pytest.mark.parametrize("session_id", ["hello", "refuse", "crash"])
async def test_local_and_remote_stream_the_same(running, session_id):
    """A stream is the same over a function call and over gRPC, its failure too."""
    results = []
    for channel in (LocalChannel(AuditService=running.audit_probe), TracedChannel(running.channel)):
        stream = AuditServiceStub(channel).Export(audit_pb2.ExportRequest(session_id=session_id), timeout=5)
        seen = []
        try:
            async for message in ask_each("audit", stream):
                seen.append(message.event.sequence)
        except Refused as refused:
            seen.append((refused.kind, refused.reason, refused.message))
        results.append(seen)

    assert results[0] == results[1]
