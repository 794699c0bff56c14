"""Spans: what they hold, and how a trace travels."""

from __future__ import annotations

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
