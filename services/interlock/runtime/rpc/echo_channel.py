"""The channel that every call between services goes through: it asks for an echo and refuses an answer without it (I10, A-52)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.domain.errors import Refused, unavailable
from interlock.runtime.rpc.calls import Method, method_at
from interlock.runtime.rpc.echo import EchoedCall

log = structlog.get_logger()

REFUSED_ANSWERS = Counter(
    "interlock_answers_refused",
    "Answers inside the mesh that were refused, by reason.",
    ["service", "method", "reason"],
)
UNPROVEN_ANSWERS = Counter(
    "interlock_answers_without_echo",
    "Answers without an echo that answers_without_echo let pass.",
    ["service", "method"],
)

CUT = "ANSWER_CUT"


class EchoChannel:
    """Adds the echo to the calls over a ``grpc.aio.Channel``, or what is called like one."""

    def __init__(self, channel: Any, *, accept_without: bool = False) -> None:
        self._channel, self._accept_without = channel, accept_without

    def unary_unary(self, method: str, *, response_deserializer: Any, **more: Any) -> Callable[..., Awaitable[Any]]:
        """Return a callable like ``grpc.aio.UnaryUnaryMultiCallable``."""
        remote, observed = self._channel.unary_unary(method, **_raw(more)), method_at(method)

        async def call(request: Any, **options: Any) -> Any:
            ask = EchoedCall(method, request)
            return self._opened(ask, observed, await remote(ask.sent, **options), response_deserializer)[0]

        return call

    def unary_stream(
        self, method: str, *, response_deserializer: Any, **more: Any
    ) -> Callable[..., AsyncIterator[Any]]:
        """Return a callable like ``grpc.aio.UnaryStreamMultiCallable``. Refused with ANSWER_CUT where the end is missing."""
        remote, observed = self._channel.unary_stream(method, **_raw(more)), method_at(method)

        async def call(request: Any, **options: Any) -> AsyncIterator[Any]:
            ask = EchoedCall(method, request)
            async for raw in remote(ask.sent, **options):
                answer, last = self._opened(ask, observed, raw, response_deserializer)
                if last:
                    return
                yield answer
            if ask.echoed or not self._accept_without:
                raise _cut(observed)

        return call

    def _opened(self, ask: EchoedCall, method: Method, raw: bytes, decode: Any) -> tuple[Any, bool]:
        try:
            answer, last = ask.answer(raw, decode, accept_without=self._accept_without)
        except Refused as refused:
            raise noted(refused, method) from None
        if not ask.echoed:
            UNPROVEN_ANSWERS.labels(method.service, method.name).inc()
        return answer, last


def _raw(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a stub's method for one that takes and gives bytes."""
    return {**options, "request_serializer": None, "response_deserializer": None}


def noted(refused: Refused, method: Method) -> Refused:
    """Count and log an answer that is refused, and return the refusal."""
    REFUSED_ANSWERS.labels(method.service, method.name, refused.reason).inc()
    log.error("answer.refused", service=method.service, method=method.name, reason=refused.reason)
    return refused


def _cut(method: Method) -> Refused:
    return noted(unavailable(CUT, "an answer inside the mesh ended before its end", rpc=method.name), method)
