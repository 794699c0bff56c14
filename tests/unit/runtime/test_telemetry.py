"""Spans: what they hold, and how a trace travels."""

from __future__ import annotations

import contextvars
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from interlock.domain.errors import Refused, halted
from interlock.domain.risk.risk import RiskLevel
from interlock.runtime import telemetry
from interlock.runtime.settings.model import Settings
from tests.support.texts.canary import API_KEY, PROMPT, found_in

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


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


@pytest.mark.req("SVC-5")
def test_attributes_have_their_names(finished):
    """Session, operation and our own ids are found under the names that dashboards use."""
    with telemetry.span("guard.dispatch", session_id="crp_sess_1", window_id="crp_win_1", operation="chat", windows=3):
        pass

    [span] = finished()
    assert dict(span.attributes) == {
        "gen_ai.conversation.id": "crp_sess_1",
        "crp.window.id": "crp_win_1",
        "gen_ai.operation.name": "chat",
        "crp.windows": 3,
    }


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize("value", [PROMPT, API_KEY, "two words", "x" * 129, ["list"], {"a": 1}, "é"])
def test_free_text_is_no_attribute(finished, value):
    """A value that is no id, number or enum is left out."""
    with telemetry.span("guard.analyse", answer=value):
        pass

    assert not finished()[0].attributes


def test_enum_is_its_name(finished):
    """An enum is recorded by name."""
    with telemetry.span("guard.analyse", risk=RiskLevel.HIGH):
        pass

    assert finished()[0].attributes["crp.risk"] == "HIGH"


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize(
    ("error", "told"), [(ValueError(PROMPT), "ValueError"), (halted("SAFETY_HALT", PROMPT), "SAFETY_HALT")]
)
def test_failure_is_told_without_its_text(finished, error, told):
    """A failed span names type or reason; no event holds the exception's message."""
    with pytest.raises((ValueError, Refused)), telemetry.span("guard.seal"):
        raise error

    [span] = finished()
    assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, told)
    assert not span.events
    assert not found_in(span.to_json())


@pytest.mark.req("SVC-5")
def test_context_travels_without_an_exporter():
    """A caller's trace goes on through a process that exports nothing, its sampling decision too."""
    parent = telemetry.extract([("traceparent", TRACEPARENT)])
    with telemetry.span("hop", parent=parent):
        onward = dict(telemetry.inject())["traceparent"]

    assert onward.split("-")[1] == TRACEPARENT.split("-")[1]
    assert onward.split("-")[2] != TRACEPARENT.split("-")[2]
    assert onward.endswith("-01")


def test_without_caller_nothing_is_sampled():
    """Without an exporter and without a sampled caller a span costs no recording, and still has a trace id."""
    with telemetry.span("hop", parent=telemetry.extract([])) as span:
        assert not span.is_recording()
        assert span.get_span_context().is_valid


@pytest.mark.parametrize("value", ["", "00-xyz", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "x" * 10_000, b"\x00"])
def test_malformed_traceparent_starts_a_new_trace(value):
    """What a caller sends as traceparent cannot break the call."""
    with telemetry.span("hop", parent=telemetry.extract([("traceparent", value)])) as span:
        assert span.get_span_context().is_valid


@pytest.mark.req("SVC-5")
def test_baggage_does_not_travel():
    """Only the trace context goes on: baggage could hold a budget or a policy."""
    from opentelemetry import baggage, context

    token = context.attach(baggage.set_baggage("policy", "halt-on"))
    try:
        with telemetry.span("hop"):
            carried = dict(telemetry.inject())
    finally:
        context.detach(token)

    assert set(carried) <= {"traceparent", "tracestate"}


def test_missing_exporter_is_refused(monkeypatch):
    """An endpoint without the exporter's package refuses to start, with the command that installs it."""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.grpc.trace_exporter", None)

    with pytest.raises(Refused) as raised:
        telemetry.configure(Settings(otlp_endpoint="http://127.0.0.1:4317"), service="test")
    assert raised.value.reason == "OTLP_EXPORTER_MISSING"
    assert "interlock[otlp]" in raised.value.metadata["hint"]


@pytest.mark.req("OBS-3")
@pytest.mark.parametrize(
    ("variables", "exported"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_opentelemetrys_own_variables_are_honoured(monkeypatch, variables, exported):
    """An endpoint that every other part of a deployment has need not be said twice; what switches off does."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")  # no one listens, and the end waits for the last attempt
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    telemetry.configure(Settings(), service="test")
    try:
        with telemetry.span("probe", kind=telemetry.SERVER) as span:
            assert span.is_recording() is exported
    finally:
        telemetry.shutdown()


@pytest.mark.req("OBS-3")
def test_the_services_name_and_attributes_come_from_the_variables(monkeypatch):
    """OTEL_SERVICE_NAME goes before ours; resource attributes are added; the sampler is the one that is asked for."""
    monkeypatch.setenv("OTEL_SERVICE_NAME", "payments-agent")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    exporter = InMemorySpanExporter()
    telemetry.configure(Settings(), service="test", exporter=exporter)
    with telemetry.span("probe"):
        pass
    telemetry.flush()
    [kept] = exporter.get_finished_spans()
    telemetry.shutdown()
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    telemetry.configure(Settings(), service="test", exporter=exporter)
    with telemetry.span("dropped"):
        pass
    telemetry.shutdown()

    assert kept.resource.attributes["service.name"] == "payments-agent"
    assert kept.resource.attributes["deployment.environment"] == "test"
    assert [span.name for span in exporter.get_finished_spans()] == ["probe"]


@pytest.mark.req("OBS-3")
def test_an_exporter_that_is_not_there_is_refused_by_name(monkeypatch):
    """OTLP over HTTP is not spoken: to export nothing in silence would be worse."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    with pytest.raises(Refused, match="OTLP_PROTOCOL_UNSUPPORTED"):
        telemetry.configure(Settings(), service="test")


@pytest.mark.req("OBS-2")
def test_a_label_that_others_choose_has_few_values():
    """The first so many words stay themselves; further ones, texts and over-long ones are one value."""
    words = telemetry.BoundedWords(2)

    assert [words.label(one) for one in ("a", "b/c-1", "d", "a", "", "two words", "x" * 65, PROMPT)] == [
        "a", "b/c-1", "other", "a", "", "other", "other", "other",
    ]  # fmt: skip


@pytest.mark.req("SVC-5")
@pytest.mark.parametrize("exporting", [False, True])
def test_a_block_may_end_in_another_context(request, caplog, exporting):
    """A stream that nobody closed is collected elsewhere: its span ends, quietly, and nothing there is changed."""
    spans = request.getfixturevalue("finished") if exporting else None
    begun = contextvars.copy_context()
    block = telemetry.span("stream", parent=telemetry.extract([("traceparent", TRACEPARENT)]))
    begun.run(block.__enter__)
    with telemetry.span("elsewhere"):
        own = telemetry.trace_id()
        block.__exit__(GeneratorExit, GeneratorExit(), None)
        after = telemetry.trace_id()

    assert own == after != TRACEPARENT.split("-")[1]
    assert caplog.records == []
    assert spans is None or {one.name for one in spans()} == {"stream", "elsewhere"}
