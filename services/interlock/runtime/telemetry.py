"""Traces across all hops, within a process and over gRPC (SVC-5; ecosystem.md 3.9).

Without an exporter nothing is recorded, but the context is passed on, so that a caller's trace is not interrupted. Attributes
are ids, numbers and enums only. Other texts are not recorded, and neither are the messages of exceptions.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterable, Mapping
from contextvars import Token
from dataclasses import dataclass, field
from enum import Enum
from random import getrandbits
from types import TracebackType
from typing import TYPE_CHECKING, Any

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from interlock.domain.errors import Refused, unavailable
from interlock.runtime.logging import TRACE_ID, scrub
from interlock.runtime.settings.model import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

CLIENT, INTERNAL, SERVER = SpanKind.CLIENT, SpanKind.INTERNAL, SpanKind.SERVER

NAMES: Mapping[str, str] = {
    "session_id": "gen_ai.conversation.id",
    "operation": "gen_ai.operation.name",
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "agent_type": "gen_ai.agent.name",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "response_model": "gen_ai.response.model",
    "server_address": "server.address",
    "error_type": "error.type",
    "rpc_service": "rpc.service",
    "rpc_method": "rpc.method",
    "rpc_code": "rpc.response.status_code",
}
"""Keyword → attribute name. Every other keyword ``a_b`` becomes ``crp.a.b``. gen_ai.* is still in development."""

_ENUM_OR_ID = re.compile(r"[A-Za-z0-9_.:/@-]{0,128}", re.ASCII)
_PROPAGATOR = TraceContextTextMapPropagator()
_TRACED = frozenset({"traceparent", "tracestate"})


class _Tracing:
    """The tracer of this process. There is none without an exporter, because nothing would read its records."""

    provider: TracerProvider | None = None
    tracer: trace.Tracer | None = None


def configure(settings: Settings, *, service: str, exporter: SpanExporter | None = None) -> None:
    """Export this process's spans to the settings' OTLP endpoint, or to *exporter*.

    Refused with OTLP_EXPORTER_MISSING when an endpoint is set and the exporter's package is not installed, and with
    OTLP_PROTOCOL_UNSUPPORTED when OpenTelemetry's variables ask for another exporter.
    """
    if exporter is None:
        exporter = _exporter_of(settings)
    if exporter is None:
        return
    # The SDK is imported here to keep an idle sidecar without an exporter small.
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # The SDK reads OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER (a caller's decision, else all) and OTEL_BSP_* itself.
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or f"interlock-{service}"})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _Tracing.provider, _Tracing.tracer = provider, provider.get_tracer("interlock")


def shutdown() -> None:
    """Export the pending spans and stop. Blocks for at most the exporter's time limit."""
    provider, _Tracing.provider, _Tracing.tracer = _Tracing.provider, None, None
    if provider:
        provider.shutdown()


def flush() -> None:
    """Export the pending spans now."""
    if _Tracing.provider:
        _Tracing.provider.force_flush()


def _exporter_of(settings: Settings) -> SpanExporter | None:
    """Return the exporter that the settings, or else OpenTelemetry's own variables, ask for; ``None`` where none is wanted."""
    told = {name: os.environ.get(f"OTEL_{name}", "").strip() for name in _OTEL}
    endpoint = settings.otlp_endpoint or told["EXPORTER_OTLP_TRACES_ENDPOINT"] or told["EXPORTER_OTLP_ENDPOINT"]
    if not endpoint or told["SDK_DISABLED"].lower() == "true" or told["TRACES_EXPORTER"] == "none":
        return None
    protocol = told["EXPORTER_OTLP_TRACES_PROTOCOL"] or told["EXPORTER_OTLP_PROTOCOL"] or "grpc"
    exported = told["TRACES_EXPORTER"] or "otlp"
    if protocol != "grpc" or exported != "otlp":
        message = "traces are exported by OTLP over gRPC, and OpenTelemetry's variables ask for something else"
        hint = "set OTEL_EXPORTER_OTLP_PROTOCOL=grpc and OTEL_TRACES_EXPORTER=otlp, or unset the endpoint"
        raise unavailable("OTLP_PROTOCOL_UNSUPPORTED", message, retry_after_ms=0, hint=hint)
    return _otlp(endpoint)


_OTEL = (
    "SDK_DISABLED", "TRACES_EXPORTER", "EXPORTER_OTLP_ENDPOINT", "EXPORTER_OTLP_TRACES_ENDPOINT", "EXPORTER_OTLP_PROTOCOL",
    "EXPORTER_OTLP_TRACES_PROTOCOL",
)  # fmt: skip


def _otlp(endpoint: str) -> SpanExporter:
    try:
        module = importlib.import_module("opentelemetry.exporter.otlp.proto.grpc.trace_exporter")
    except ImportError:
        raise unavailable(
            "OTLP_EXPORTER_MISSING",
            "otlp_endpoint is set, but the exporter is not installed",
            retry_after_ms=0,
            hint="pip install 'interlock[otlp]', or unset INTERLOCK_OTLP_ENDPOINT",
        ) from None
    exporter: SpanExporter = module.OTLPSpanExporter(endpoint=endpoint, insecure=not endpoint.startswith("https://"))
    return exporter


def span(
    name: str, *, kind: SpanKind = INTERNAL, parent: Context | None = None, **attributes: Any
) -> SpanBlock | _Nothing:
    """Return a context manager that runs its block inside a span.

    An exception marks the span as failed by type or reason, never by its text.
    """
    if parent is None and _Tracing.tracer is None and TRACE_ID.get():
        return NOTHING
    return SpanBlock(name, kind, parent, attributes)


class _Nothing:
    """Stands for an inner span that nobody records: without an exporter the outer block alone carries the trace."""

    def __enter__(self) -> Span:
        return trace.INVALID_SPAN

    def __exit__(self, *_error: object) -> None:
        """Do nothing."""


NOTHING = _Nothing()


class SpanBlock:
    """A block of code inside a span. A class instead of a generator for speed: every call of the mesh enters several."""

    __slots__ = ("_attributes", "_carrying", "_kind", "_name", "_parent", "_span", "_token")

    def __init__(self, name: str, kind: SpanKind, parent: Context | None, attributes: Mapping[str, Any]) -> None:
        self._name, self._kind, self._parent, self._attributes = name, kind, parent, attributes
        self._token: Token[Context] | None = None
        self._carrying: Token[str] | None = None

    def __enter__(self) -> Span:
        current = trace.get_current_span()
        if _Tracing.tracer is None:
            self._span = self._carrier(current)
        else:
            self._span = _Tracing.tracer.start_span(self._name, context=self._parent, kind=self._kind)
            annotate(self._span, **self._attributes)
        if self._span is not current:
            self._token = context.attach(trace.set_span_in_context(self._span))
            self._carrying = TRACE_ID.set(f"{self._span.get_span_context().trace_id:032x}")
        return self._span

    def _carrier(self, current: Span) -> Span:
        """Return a span that carries the trace without recording: a new id for an entry span, the current one inside."""
        caller = (current if self._parent is None else trace.get_current_span(self._parent)).get_span_context()
        if caller.is_valid and self._parent is None:
            return current
        trace_id = caller.trace_id if caller.is_valid else getrandbits(128) or 1
        flags, state = caller.trace_flags, caller.trace_state
        own = trace.SpanContext(trace_id, getrandbits(64) or 1, is_remote=False, trace_flags=flags, trace_state=state)
        return trace.NonRecordingSpan(own)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None and self._carrying is not None:
            try:
                TRACE_ID.reset(self._carrying)
            except (
                ValueError
            ):  # a stream that nobody closed is collected in another context, where nothing is to be put back
                pass
            else:
                context.detach(self._token)
        if _Tracing.tracer is not None and self._token is not None:
            if isinstance(error, Exception):
                told = error.reason if isinstance(error, Refused) else type(error).__name__
                self._span.set_status(Status(StatusCode.ERROR, told))
            self._span.end()


def annotate(target: Span, **attributes: Any) -> None:
    """Set attributes by keyword (see ``NAMES``). A value that is not an id, number or enum is left out."""
    if not target.is_recording():
        return
    for key, value in attributes.items():
        if isinstance(value, Enum):
            value = value.name  # noqa: PLW2901 - the name is the value from here on
        if isinstance(value, bool | int | float) or (isinstance(value, str) and _is_harmless(value)):
            target.set_attribute(NAMES.get(key) or "crp." + key.replace("_", "."), value)


def _is_harmless(text: str) -> bool:
    return bool(_ENUM_OR_ID.fullmatch(text)) and scrub(text) == text


def current_span() -> Span:
    """Return the span that this runs in."""
    return trace.get_current_span()


def trace_id() -> str:
    """Return the id of the trace that this runs in, 32 hex digits; empty where there is none."""
    return TRACE_ID.get()


def exemplar() -> dict[str, str] | None:
    """Return the exemplar of a measurement: the trace that it was made in, where that is recorded."""
    recorded = _Tracing.tracer is not None and trace.get_current_span().is_recording()
    return {"trace_id": trace_id()} if recorded else None


def inject() -> tuple[tuple[str, str], ...]:
    """Return the metadata that carries the current trace to a peer. Baggage is never sent: it could hold a policy."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return tuple(carrier.items())


def extract(metadata: Iterable[tuple[str, str | bytes]] | None) -> Context:
    """Return the caller's trace context from metadata or headers with lower-case names."""
    carrier = {key: value for key, value in metadata or () if key in _TRACED and isinstance(value, str)}
    return _PROPAGATOR.extract(carrier, context=Context()) if carrier else Context()


OTHER = "other"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,63}", re.ASCII)


@dataclass
class BoundedWords:
    """A label of metrics that somebody else chooses: the first *most* words, each itself; all others, and what is no word, ``other``."""

    most: int
    _known: set[str] = field(default_factory=set)

    def label(self, given: str) -> str:
        """Return the label for *given*. An empty one stays empty: nothing was named."""
        if given in self._known or not given:
            return given
        if len(self._known) >= self.most or not _WORD.fullmatch(given):
            return OTHER
        self._known.add(given)
        return given
