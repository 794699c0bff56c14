"""The two kinds of channel behind the stubs: one calls a function, the other crosses the network.

Generated stubs accept a ``LocalChannel`` in place of a ``grpc.aio.Channel``. A service answers with a protobuf message in
both cases. Messages are passed by reference, not copied: neither side changes a message of the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from interlock.runtime import telemetry
from interlock.runtime.rpc.calls import RpcCall, method_at
from interlock.runtime.rpc.deadline import TimeLimit
from interlock.runtime.rpc.echo_channel import EchoChannel


class LocalContext:
    """The part of ``grpc.aio.ServicerContext`` that our servicers use."""

    def __init__(self, timeout_s: float | None) -> None:
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s

    def time_remaining(self) -> float | None:
        """Seconds until the caller's deadline; ``None`` without one."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """No metadata crosses a local call."""
        return ()

    def set_trailing_metadata(self, metadata: Any) -> None:
        """Ignore the metadata: a local caller does not read them."""


class LocalChannel:
    """Calls servicers by method name. It takes every servicer of the process, and stubs are made over it.

    A refusal is raised as itself, and a defect as INTERNAL with constant text, as a remote service would answer it.
    """

    def __init__(self, **servicers: object) -> None:
        self._servicers = servicers

    def unary_unary(self, method: str, *_args: Any, **_kwargs: Any) -> Callable[..., Awaitable[Any]]:
        """Return a callable like ``grpc.aio.UnaryUnaryMultiCallable``; *method* is ``/package.Service/Name``."""
        handler, observed = self._handler(method), method_at(method)

        async def call(request: Any, *, timeout: float | None = None, **_ignored: Any) -> Any:  # noqa: ASYNC109 - gRPC's
            with RpcCall(observed, None, local=True) as current:
                try:
                    with TimeLimit(timeout) as limit:
                        return current.answered(await handler(request, LocalContext(timeout)))
                except (Exception, asyncio.CancelledError) as error:
                    _raise(current, error, out_of_time=limit.expired)
                    raise

        return call

    def unary_stream(self, method: str, *_args: Any, **_kwargs: Any) -> Callable[..., AsyncIterator[Any]]:
        """Return a callable like ``grpc.aio.UnaryStreamMultiCallable``."""
        handler, observed = self._handler(method), method_at(method)

        async def call(
            request: Any,
            *,
            timeout: float | None = None,  # noqa: ASYNC109 - gRPC's
            **_ignored: Any,
        ) -> AsyncIterator[Any]:
            with RpcCall(observed, None, local=True) as current:
                try:
                    with TimeLimit(timeout) as limit:
                        async with contextlib.aclosing(handler(request, LocalContext(timeout))) as messages:
                            async for message in messages:
                                yield message
                except (Exception, asyncio.CancelledError) as error:
                    _raise(current, error, out_of_time=limit.expired)
                    raise

        return call

    def _handler(self, method: str) -> Callable[..., Any]:
        service, name = method.strip("/").split("/")
        short = service.rsplit(".", 1)[-1]
        servicer = self._servicers.get(short)
        if servicer is None:

            def missing(*_args: Any) -> Any:
                raise grpc.aio.UsageError(f"no servicer {short} in this process")

            return missing
        handler: Callable[..., Any] = getattr(servicer, name)
        return handler


def _raise(call: RpcCall, error: BaseException, *, out_of_time: bool) -> None:
    """Raise what a remote caller would receive for *error*. Return when that is the error itself."""
    if isinstance(error, grpc.aio.UsageError):
        return
    refused = call.failed(error, out_of_time=out_of_time)
    if refused is not None and refused is not error:
        raise refused from error


class TracedChannel:
    """Adds a client span and the W3C trace context to the calls over a ``grpc.aio.Channel``.

    It is not an interceptor: grpc.aio runs each intercepted call in an additional task, which costs more than the span.
    """

    def __init__(self, channel: grpc.aio.Channel | EchoChannel) -> None:
        self._channel: Any = channel

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Callable[..., Awaitable[Any]]:
        """Return a callable like ``grpc.aio.UnaryUnaryMultiCallable``."""
        remote, observed = self._channel.unary_unary(method, *args, **kwargs), method_at(method)

        async def call(request: Any, **options: Any) -> Any:
            with _client_span(observed.span_name):
                return await remote(request, **_with_trace(options))

        return call

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Callable[..., AsyncIterator[Any]]:
        """Return a callable like ``grpc.aio.UnaryStreamMultiCallable``."""
        remote, observed = self._channel.unary_stream(method, *args, **kwargs), method_at(method)

        async def call(request: Any, **options: Any) -> AsyncIterator[Any]:
            with _client_span(observed.span_name):
                async for message in remote(request, **_with_trace(options)):
                    yield message

        return call


def _client_span(name: str) -> contextlib.AbstractContextManager[Any]:
    service, method = name.split("/")
    return telemetry.span(name, kind=telemetry.CLIENT, rpc_service=service, rpc_method=method)


def _with_trace(options: dict[str, Any]) -> dict[str, Any]:
    return {**options, "metadata": (*(options.get("metadata") or ()), *telemetry.inject())}
