"""The record of every call, local or remote: a span, two metrics and one log line (SVC-5)."""

from __future__ import annotations

import asyncio
import time
from functools import cached_property, lru_cache
from types import TracebackType
from typing import Any, Self

import grpc
import structlog
from opentelemetry.context import Context
from prometheus_client import Counter, Histogram

from interlock.domain.errors import Kind, Refused
from interlock.runtime import telemetry
from interlock.runtime.rpc.errors import grpc_code, internal

log = structlog.get_logger()

REQUESTS = Counter("interlock_requests", "Calls by service, method and gRPC code.", ["service", "method", "code"])
DURATION = Histogram(
    "interlock_request_duration_seconds",
    "Duration of a call, seconds.",
    ["service", "method"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
REFUSALS = Counter(
    "interlock_refusals", "Refusals by service, method and reason, values and statuses alike.",
    ["service", "method", "reason"],
)  # fmt: skip

DEADLINE = "DEADLINE_EXCEEDED"
_OK = grpc.StatusCode.OK


class Method:
    """One method of one service, with the metric children for its calls."""

    def __init__(self, path: str) -> None:
        self.full_service, self.name = path.strip("/").rsplit("/", 1)
        # interlock.api.session.v1.SessionService → session, the name in logs and settings
        self.service = self.full_service.rsplit(".", 1)[-1].removesuffix("Service").lower()
        self.span_name = f"{self.full_service}/{self.name}"
        self.count = lru_cache(maxsize=32)(lambda code: REQUESTS.labels(self.service, self.name, code))

    @cached_property
    def succeeded(self) -> Counter:
        """The child of ``REQUESTS`` for calls that are answered."""
        return self.count(_OK.name)

    @cached_property
    def duration(self) -> Histogram:
        """The child of ``DURATION``. The first call makes it, so that only the methods served here are shown."""
        return DURATION.labels(self.service, self.name)

    def call(self, parent: Context) -> RpcCall:
        """Return the record of one call from another process: a context manager around it."""
        return RpcCall(self, parent, local=False)


class RpcCall:
    """The record of one call while it runs."""

    def __init__(self, method: Method, parent: Context | None, *, local: bool) -> None:
        self.method, self.local, self.code, self.reason = method, local, _OK, ""
        self._span = telemetry.span(
            method.span_name,
            kind=telemetry.INTERNAL if local else telemetry.SERVER,
            parent=parent,
            rpc_service=method.full_service,
            rpc_method=method.name,
        )

    def __enter__(self) -> Self:
        self._started = time.perf_counter()
        self._current = None if self._span is telemetry.NOTHING else self._span.__enter__()
        return self

    def answered(self, response: Any) -> Any:
        """Record the refusal that *response* may carry as a value, and return *response*."""
        if _may_refuse(response.DESCRIPTOR) and response.HasField("refusal"):
            self.reason = response.refusal.reason
        return response

    def failed(self, error: BaseException, *, out_of_time: bool) -> Refused | None:
        """Return the refusal for the caller; ``None`` when the call was cancelled."""
        if isinstance(error, TimeoutError) and out_of_time:
            refused = Refused(Kind.TIMEOUT, DEADLINE, f"the {self.method.service} service ran out of time")
        elif isinstance(error, Refused):
            refused = error
        elif isinstance(error, asyncio.CancelledError):
            self.code, self.reason = grpc.StatusCode.CANCELLED, "CANCELLED"
            return None
        else:
            refused = internal()
            log.error("rpc.defect", service=self.method.service, method=self.method.name, exc_info=error)
        self.code, self.reason = grpc_code(refused), refused.reason
        return refused

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        took = time.perf_counter() - self._started
        method = self.method
        method.duration.observe(took)
        (method.succeeded if self.code is _OK else method.count(self.code.name)).inc()
        if self.reason:
            REFUSALS.labels(method.service, method.name, self.reason).inc()
        if self._current is not None and self._current.is_recording():
            telemetry.annotate(self._current, rpc_code=self.code, reason=self.reason)
        if not self.local:  # still inside the span, so that the line has the trace id
            log.info(
                "rpc", service=method.service, method=method.name, code=self.code.name,
                duration_ms=round(took * 1000, 3), reason=self.reason or None,
            )  # fmt: skip
        if self._current is not None:
            self._span.__exit__(kind, error, traceback)


@lru_cache(maxsize=256)
def _may_refuse(descriptor: Any) -> bool:
    return "refusal" in descriptor.fields_by_name


@lru_cache(maxsize=256)
def method_at(path: str) -> Method:
    """Return the only ``Method`` of a gRPC path such as /interlock.api.session.v1.SessionService/OpenWindow."""
    return Method(path)
