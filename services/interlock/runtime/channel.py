"""A channel that calls a servicer as a function, so that one process needs no sockets (design.md, The picture).

Generated stubs take a ``LocalChannel`` where they take a ``grpc.aio.Channel``; what a service answers is a protobuf
message either way. Messages are handed over, not copied: neither side changes one that it did not make.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from interlock.domain.errors import Kind, Refused


class LocalContext:
    """The part of ``grpc.aio.ServicerContext`` that our servicers use."""

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s

    def time_remaining(self) -> float | None:
        """Seconds left to the caller's deadline; ``None`` without one."""
        return self._timeout_s

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """No metadata crosses a local call."""
        return ()

    def set_trailing_metadata(self, metadata: Any) -> None:
        """Take no metadata: nobody reads it."""


class LocalChannel:
    """Calls servicers by method name. Give it every servicer of the process, then make stubs over it."""

    def __init__(self, **servicers: object) -> None:
        self._servicers = servicers

    def unary_unary(self, method: str, *_args: Any, **_kwargs: Any) -> Callable[..., Awaitable[Any]]:
        """Return a callable like ``grpc.aio.UnaryUnaryMultiCallable``; *method* is ``/package.Service/Name``."""
        service, name = method.strip("/").split("/")
        handler = self._handler(service, name)

        async def call(request: Any, *, timeout: float | None = None, **_ignored: Any) -> Any:  # noqa: ASYNC109 - gRPC's
            try:
                async with asyncio.timeout(timeout):
                    return await handler(request, LocalContext(timeout))
            except TimeoutError:
                raise Refused(Kind.TIMEOUT, "DEADLINE_EXCEEDED", f"{service} ran out of time") from None

        return call

    def unary_stream(self, method: str, *_args: Any, **_kwargs: Any) -> Callable[..., AsyncIterator[Any]]:
        """Return a callable like ``grpc.aio.UnaryStreamMultiCallable``."""
        handler = self._handler(*method.strip("/").split("/"))

        def call(request: Any, **_ignored: Any) -> AsyncIterator[Any]:
            stream: AsyncIterator[Any] = handler(request, LocalContext(None))
            return stream

        return call

    def _handler(self, service: str, name: str) -> Callable[..., Any]:
        short = service.rsplit(".", 1)[-1]
        servicer = self._servicers.get(short)
        if servicer is None:

            async def missing(*_args: Any) -> Any:
                raise grpc.aio.UsageError(f"no servicer {short} in this process")

            return missing
        handler: Callable[..., Any] = getattr(servicer, name)
        return handler
