"""Every outcome of the HTTP front counted and told once, and provider calls as OpenTelemetry names them."""

from __future__ import annotations

import asyncio
import hashlib
import threading

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from interlock.runtime import telemetry
from interlock.runtime.settings.model import Settings
from interlock.session import metrics as session_metrics
from tests.support.sidecar.sidecar import reason_of, running_sidecar
from tests.support.texts.canary import PROMPT, found_in

pytest_plugins = ("tests.support.logs", "tests.support.sidecar.fronts")

CHAT = "/v1/chat/completions"


def counted(name: str, **labels: str) -> float:
    """How often that was counted by now."""
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.fixture
def finished():
    """Spans that ended in this test."""
    exporter = InMemorySpanExporter()
    telemetry.configure(Settings(), service="test", exporter=exporter)

    def spans():
        telemetry.flush()
        return exporter.get_finished_spans()

    yield spans
    telemetry.shutdown()


OUTCOMES = {
    "delivered": ("POST", CHAT, {"json": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}}, 200, "DELIVERED"),
    "no json": ("POST", CHAT, {"content": b"{", "headers": {"content-type": "application/json"}}, 400, "INVALID_JSON"),
    "a header": ("POST", CHAT, {"headers": {"crp-safety-mode": "none"}, "json": {}}, 400, "INVALID_HEADER"),
    "a token": ("DELETE", "/crp/v3/session/crp_sess_" + "0" * 32, {}, 401, "SESSION_TOKEN_REQUIRED"),
    "nowhere": ("GET", "/nothing/here", {}, 404, "PATH_NOT_FOUND"),
    "a method": ("GET", CHAT, {}, 405, "METHOD_NOT_ALLOWED"),
    "an endpoint": ("POST", "/v1/audio/speech", {}, 501, "ENDPOINT_NOT_SUPPORTED"),
}  # fmt: skip
ROUTES = {
    "a token": "/crp/v3/session/{session_id}",
    "nowhere": "none",
    "an endpoint": "/v1/{rest:path}",
    "a method": "/v1/{rest:path}",
}


@pytest.mark.req("OBS-1")
@pytest.mark.parametrize("name", OUTCOMES)
async def test_each_outcome_is_counted_and_told_once(sidecar, name, log_lines):
    """One count with fixed labels, one line with the reason, whoever refused."""
    method, path, sent, status, reason = OUTCOMES[name]
    labels = {"route": ROUTES.get(name, CHAT), "method": method, "status": str(status)}
    before = counted("interlock_http_requests_total", **labels)
    answered = await sidecar.client.request(method, path, **sent)
    told = [line for line in log_lines() if line["event"] in {"http", "call.governed"}]

    assert answered.status_code == status
    assert counted("interlock_http_requests_total", **labels) == before + 1
    assert [line.get("reason") or line.get("outcome") for line in told] == [reason]
    assert all(line.get("trace_id") for line in told) or name in {"nowhere", "an endpoint", "a method"}


@pytest.mark.req("OBS-1", "OBS-2")
async def test_a_halt_is_counted_with_its_risk_and_agent(tmp_path, upstream, provider, log_lines):
    """The governed call has a counter of its own: way in, outcome, risk and type of agent."""
    agents, key = tmp_path / "agents.yaml", hashlib.sha256(b"writer").hexdigest()
    agents.write_text(f"agents:\n  writer:\n    api_key: sha256:{key}\n")
    provider.answers("CRITICAL")
    labels = {"entry": "http", "outcome": "SAFETY_HALT", "risk": "CRITICAL", "agent_type": "writer"}
    before = counted("interlock_governed_calls_total", **labels)
    async with running_sidecar(tmp_path, upstream=upstream, agents_file=agents) as sidecar:
        halted = await sidecar.chat(
            "Say it.", headers={"authorization": "Bearer writer", "crp-safety-policy": "halt-on CRITICAL"}
        )

    assert halted.status_code == 451
    assert counted("interlock_governed_calls_total", **labels) == before + 1
    assert [line["event"] for line in log_lines() if line["event"] in {"http", "call.governed"}] == ["call.governed"]


@pytest.mark.req("OBS-1", "OBS-2")
async def test_a_client_that_leaves_is_counted_and_calls_in_flight_are_shown(sidecar, provider):
    """499 once it is gone; the gauge goes up with the call and down with it."""
    gone = {"route": CHAT, "method": "POST", "status": "499"}
    before, go = counted("interlock_http_requests_total", **gone), threading.Event()
    provider.waits_for(go)
    leaving = asyncio.create_task(sidecar.chat("Hi"))
    await asyncio.to_thread(provider.asked.wait, 10)
    during = counted("interlock_calls_in_flight")
    leaving.cancel()
    async with asyncio.timeout(10):
        while (
            counted("interlock_http_requests_total", **gone) == before or counted("interlock_calls_in_flight") == during
        ):
            await asyncio.sleep(0.01)
    go.set()

    assert counted("interlock_http_requests_total", **gone) == before + 1
    assert counted("interlock_calls_in_flight") == during - 1


@pytest.mark.req("OBS-2")
async def test_provider_calls_are_measured_by_the_conventions(sidecar, provider):
    """Duration and tokens under the names of the conventions; of the models that callers ask for only so many are labels."""
    of_call = {
        "gen_ai_operation_name": "chat",
        "gen_ai_provider_name": "127.0.0.1",
        "gen_ai_request_model": "measured-model",
    }
    duration, tokens = (_prometheus(name) for name in (
        gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION, gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE,
    ))  # fmt: skip
    before = counted(f"{duration}_seconds_count", **of_call, error_type="")
    await sidecar.chat(model="measured-model")
    provider.fails(500)
    await sidecar.chat(model="measured-model")

    assert counted(f"{duration}_seconds_count", **of_call, error_type="") == before + 1
    assert counted(f"{duration}_seconds_count", **of_call, error_type="UPSTREAM_ERROR") == 1
    assert counted(f"{tokens}_sum", **of_call, gen_ai_token_type="input") > 0
    assert counted(f"{tokens}_sum", **of_call, gen_ai_token_type="output") > 0


def _prometheus(name: str) -> str:
    return name.replace(".", "_")


@pytest.mark.req("OBS-3")
async def test_the_spans_of_a_call_carry_its_verdict_and_its_usage(sidecar, provider, finished):
    """The root has the verdict; the provider's call is a CLIENT span with tokens, whose id the provider was sent; no text anywhere."""
    answered = await sidecar.chat(PROMPT, headers={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})
    spans = {span.name: span for span in finished()}
    root, client = spans[f"POST {CHAT}"], spans["chat test-model"]
    sent = dict(provider.received[-1].headers)["traceparent"]

    assert root.attributes["gen_ai.conversation.id"] == answered.headers["crp-context-session-id"]
    assert (root.attributes["crp.risk"], root.attributes["crp.action"]) == ("LOW", "DELIVER")
    assert root.attributes["crp.outcome"] == "DELIVERED"
    assert client.kind is telemetry.CLIENT
    assert client.attributes[gen_ai.GEN_AI_OPERATION_NAME] == "chat"
    assert client.attributes[gen_ai.GEN_AI_USAGE_INPUT_TOKENS] > 0
    assert client.attributes[gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS] > 0
    assert client.attributes["server.address"] == "127.0.0.1"
    assert sent == f"00-{'a' * 32}-{client.context.span_id:016x}-01"
    assert not found_in(str([span.to_json() for span in spans.values()]))


@pytest.mark.req("OBS-2")
async def test_measurements_name_their_trace_where_it_is_recorded(sidecar, finished):
    """OpenMetrics shows exemplars, for a scraper that accepts it; the plain text format has none."""
    await sidecar.chat(headers={"traceparent": f"00-{'c' * 32}-{'b' * 16}-01"})
    finished()
    asked = {"accept": "application/openmetrics-text; version=1.0.0"}
    rich, plain = [await sidecar.client.get("/metrics", headers=headers) for headers in (asked, {})]
    families = {family.name: family for family in text_string_to_metric_families(rich.text)}
    exemplars = [one.exemplar.labels for one in families["interlock_overhead_seconds"].samples if one.exemplar]

    assert {"trace_id": "c" * 32} in exemplars
    assert plain.headers["content-type"].startswith("text/plain")
    assert "trace_id" not in plain.text


@pytest.mark.req("OBS-2")
async def test_the_conventions_can_be_switched_off(tmp_path, upstream, finished):
    """What is our own stays; nothing is left of names that still change."""
    async with running_sidecar(tmp_path, upstream=upstream, gen_ai_conventions=False) as sidecar:
        await sidecar.chat(model="unmeasured")

    assert "unmeasured" not in generate_latest().decode()
    assert "chat unmeasured" not in {span.name for span in finished()}
    assert "crp.dispatch" in {span.name for span in finished()}


@pytest.mark.req("OBS-2")
async def test_a_streaming_provider_is_measured_to_its_first_bytes(tmp_path, upstream, provider):
    """Time to the first chunk is counted for streams alone."""
    labels = {
        "gen_ai_operation_name": "chat",
        "gen_ai_provider_name": "127.0.0.1",
        "gen_ai_request_model": "streaming-model",
    }
    name = _prometheus(gen_ai_metrics.GEN_AI_CLIENT_OPERATION_TIME_TO_FIRST_CHUNK) + "_seconds_count"
    provider.says(
        b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"streaming-model","choices":[{"index":0,"delta":'
        b'{"role":"assistant","content":"It is fine."},"finish_reason":null}]}\n\ndata: {"id":"c","object":"chat.completion.chunk",'
        b'"created":1,"model":"streaming-model","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
        media_type="text/event-stream",
    )
    settings = {"stream_release": "sentences", "unaware_callers": "enforce", "remedies": ""}
    async with running_sidecar(tmp_path, upstream=upstream, **settings) as sidecar:
        await sidecar.chat(model="streaming-model")
        whole = counted(name, **labels)
        streamed = await sidecar.client.post(
            CHAT, json={"model": "streaming-model", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        )

    assert whole == 0
    assert streamed.status_code == 200, streamed.text
    assert counted(name, **labels) == 1


@pytest.mark.req("OBS-2")
async def test_sessions_that_settle_and_held_answers_are_gauges(tmp_path, upstream, provider, monkeypatch):
    """An answer that waits for a reviewer is shown as pending; a session that settled lately is active."""
    provider.answers("HIGH")
    monkeypatch.setattr(
        session_metrics, "ACTIVE", session_metrics.ActiveSessions()
    )  # others of this process would leave it meanwhile
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        held = await sidecar.chat(headers={"crp-safety-oversight-mode": "human-review"})
        async with asyncio.timeout(15):
            while counted("interlock_oversight_pending") != 1:
                await asyncio.sleep(0.05)
        active = counted("interlock_sessions_active")

    assert reason_of(held) == "HELD_FOR_REVIEW"
    assert active == 1
