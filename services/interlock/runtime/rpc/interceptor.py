"""The server's side of every gRPC call: refusals become statuses, defects stay inside, deadlines hold (SVC-3, SVC-4)."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import grpc

from interlock.domain.errors import Refused
from interlock.runtime import telemetry
from interlock.runtime.rpc.callers import Gate
from interlock.runtime.rpc.calls import DEADLINE, Method, RpcCall, method_at
from interlock.runtime.rpc.deadline import TimeLimit
from interlock.runtime.rpc.echo import EchoedRequest
from interlock.runtime.rpc.errors import to_status

_INFRASTRUCTURE = ("/grpc.health.", "/grpc.reflection.")
"""Services that are polled constantly, or streamed for as long as a client likes: neither logged nor limited in time."""


Read = Callable[[bytes], EchoedRequest]
"""Reads the bytes of a request, or refuses them."""


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Wraps every method once and caches it. It is a single interceptor, because each one costs every call.

    *gate* decides who may call which method. Without a gate, as on plain text, anyone who reaches the port may. *longer* has the methods
    that may take more than the default, as service/method.
    """

    def __init__(
        self, default_timeout_s: float, gate: Gate | None = None, longer: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        self._default_timeout_s, self._longer = default_timeout_s, longer
        self._gate = gate
        self._wrapped: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Return the handler to run; ``None`` for an unknown method."""
        path = handler_call_details.method
        if path in self._wrapped:
            return self._wrapped[path]
        handler = await continuation(handler_call_details)
        # Unknown methods are not cached: a caller could fill the memory with names.
        if handler is not None:
            self._wrapped[path] = handler = self._wrap(handler, path)
        return handler

    def _wrap(self, handler: Any, path: str) -> grpc.RpcMethodHandler[Any, Any]:
        if path.startswith(_INFRASTRUCTURE):
            wrapped: grpc.RpcMethodHandler[Any, Any] = handler if self._gate is None else self._gated(handler, path)
            return wrapped
        if handler.request_streaming:
            conversing = self._conversing(handler.stream_stream, method_at(path))
            return grpc.stream_stream_rpc_method_handler(
                conversing, handler.request_deserializer, handler.response_serializer
            )
        read = partial(EchoedRequest, path, decode=handler.request_deserializer)
        # Bytes in, bytes out: what was asked is read, and its answer written, where a fault of either can be refused.
        if handler.response_streaming:
            streaming = self._streaming(handler.unary_stream, method_at(path), read)
            return grpc.unary_stream_rpc_method_handler(streaming, None, None)
        return grpc.unary_unary_rpc_method_handler(self._unary(handler.unary_unary, method_at(path), read), None, None)

    def _admit(self, method: Method, context: Any) -> None:
        if self._gate is not None:
            self._gate.admit(method.service, method.name, context.auth_context())

    def _gated(self, handler: Any, path: str) -> grpc.RpcMethodHandler[Any, Any]:
        """Return *handler* of health or reflection for allowed callers, with the same streaming kind."""
        method = method_at(path)
        kind = f"{'stream' if handler.request_streaming else 'unary'}_{'stream' if handler.response_streaming else 'unary'}"
        behaviour = getattr(handler, kind)

        async def admitted(context: Any) -> None:
            try:
                self._admit(method, context)
            except Refused as refused:
                await context.abort_with_status(to_status(refused))

        async def answer(request: Any, context: Any) -> Any:
            await admitted(context)
            return await behaviour(request, context)

        async def stream(request: Any, context: Any) -> AsyncIterator[Any]:
            await admitted(context)
            async for message in behaviour(request, context):
                yield message

        make = getattr(grpc, f"{kind}_rpc_method_handler")
        made: grpc.RpcMethodHandler[Any, Any] = make(
            stream if inspect.isasyncgenfunction(behaviour) else answer,
            handler.request_deserializer,
            handler.response_serializer,
        )
        return made

    def _unary(self, behaviour: Callable[[Any, Any], Awaitable[Any]], method: Method, read: Read) -> Callable[..., Any]:
        async def answer(raw: bytes, context: Any) -> Any:
            with method.call(telemetry.extract(context.invocation_metadata())) as call:
                try:
                    with TimeLimit(self._limit(method, context)) as limit:
                        self._admit(method, context)
                        asked = read(raw)
                        return asked.answer(call.answered(await behaviour(asked.request, context)))
                except (Exception, asyncio.CancelledError) as error:
                    await _report(call, context, error, out_of_time=limit.expired)
                    raise

        return answer

    def _streaming(
        self, behaviour: Callable[[Any, Any], AsyncGenerator[Any, None]], method: Method, read: Read
    ) -> Callable[..., Any]:
        """Return *behaviour* of a method that gives a stream. It writes instead of yielding, as ``_conversing`` does."""

        async def answer(raw: bytes, context: Any) -> None:
            with method.call(telemetry.extract(context.invocation_metadata())) as call:
                try:
                    with TimeLimit(self._limit(method, context)) as limit:
                        self._admit(method, context)
                        asked = read(raw)
                        async with contextlib.aclosing(behaviour(asked.request, context)) as messages:
                            async for message in messages:
                                await _written(context, asked.answer(message, last=False))
                        if asked.echoes:
                            await _written(context, asked.end())
                except (Exception, asyncio.CancelledError) as error:
                    await _report(call, context, error, out_of_time=limit.expired)
                    raise

        return answer

    def _conversing(self, behaviour: Callable[[Any, Any], Awaitable[None]], method: Method) -> Callable[..., Any]:
        """Return *behaviour* of a method that takes and gives streams. It lasts as long as what it is about; its deadlines are its own.

        It writes instead of yielding: a peer that leaves cancels it where it stands, and no generator is left to be collected.
        """

        async def answer(requests: AsyncIterator[Any], context: Any) -> None:
            with method.call(telemetry.extract(context.invocation_metadata())) as call:
                try:
                    self._admit(method, context)
                    with _leaving():
                        await behaviour(requests, context)
                except (Exception, asyncio.CancelledError) as error:
                    await _report(call, context, error, out_of_time=False)
                    raise

        return answer

    def _limit(self, method: Method, context: Any) -> float | None:
        """Return the time limit of a call without a deadline, seconds. gRPC enforces a caller's own deadline."""
        if context.time_remaining() is not None:
            return None
        return self._longer.get(method.span_name, self._default_timeout_s)


async def _written(context: Any, message: bytes) -> None:
    with _leaving():
        await context.write(message)


@contextlib.contextmanager
def _leaving() -> Iterator[None]:
    """Take what gRPC raises where the peer is gone, or its time is over, for what it is: the call was cancelled."""
    try:
        yield
    except grpc.aio.InternalError:
        raise asyncio.CancelledError from None


async def _report(call: RpcCall, context: Any, error: BaseException, *, out_of_time: bool) -> None:
    """End the call with the status of *error*. Returns if gRPC already has a status."""
    if isinstance(error, grpc.aio.AbortError):
        call.code = context.code()
        call.reason = call.code.name
        return
    refused = call.failed(error, out_of_time=out_of_time)
    if refused is not None:
        status = to_status(refused)
        # Not abort_with_status, which would replace the trailing metadata that the handler set.
        await context.abort(
            status.code, status.details, (*(context.trailing_metadata() or ()), *status.trailing_metadata)
        )
    elif context.time_remaining() == 0:  # None without a deadline, and never below 0
        call.code, call.reason = grpc.StatusCode.DEADLINE_EXCEEDED, DEADLINE
