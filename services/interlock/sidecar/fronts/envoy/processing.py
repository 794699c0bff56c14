"""``ext_proc``: an HTTP request in front of a provider, answered by the application of the HTTP front (MSH-1).

A stream that ends well before the answer is complete would let Envoy go on without us, so every such end is an error.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import structlog
from starlette.types import ASGIApp

from interlock.api.envoy import ext_proc_pb2 as pb
from interlock.api.envoy import ext_proc_pb2_grpc
from interlock.domain.errors import Refused, unavailable
from interlock.runtime.rpc.errors import internal
from interlock.sidecar.fronts.envoy.exchange import CURRENT, Exchange, unsafe

log = structlog.get_logger()

_DUPLEX = pb.ProcessingMode.FULL_DUPLEX_STREAMED
CLOSING_S = 5.0
"""How long Envoy may take to end the stream of an answer that is complete."""


class Processor(ext_proc_pb2_grpc.ExternalProcessorServicer):
    """Answers for ``envoy.service.ext_proc.v3.ExternalProcessor``."""

    def __init__(self, app: ASGIApp, *, limit: int) -> None:
        """*app* answers the requests; *limit*: bytes of a body above which it refuses one."""
        self._app, self._limit = app, limit
        self._running: set[asyncio.Task[None]] = set()

    # It writes its answers, which grpc.aio takes as well; the generated type knows generators alone.
    async def Process(  # type: ignore[override]  # noqa: N802 - gRPC's name
        self, requests: AsyncIterator[pb.ProcessingRequest], context: Any
    ) -> None:
        """Take one HTTP request and its answer through the application."""
        first = await anext(aiter(requests), None)
        if first is None:
            return
        _check(first)
        exchange = Exchange(first.request_headers, limit=self._limit)
        taking = asyncio.create_task(_take(exchange, requests))
        self._begin(exchange)
        try:
            async for response in exchange.responses():
                await context.write(response)
            # Envoy ends the stream; what is left of the provider's answer is read and dropped until then. Only from here on
            # may it end without an error: Envoy lets pass whatever was left to say.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({taking}, timeout=CLOSING_S)
        except asyncio.CancelledError:
            if not (exchange.complete and taking.done()):  # an Envoy that has all of the answer resets the stream
                raise
        finally:
            exchange.gone()
            taking.cancel()

    def _begin(self, exchange: Exchange) -> None:
        """Have the application answer. It goes on without a client that has gone: what was generated is settled."""
        token = CURRENT.set(exchange)
        task = asyncio.create_task(self._answer(exchange))
        CURRENT.reset(token)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _answer(self, exchange: Exchange) -> None:
        try:
            await self._app(exchange.scope, exchange.receive, exchange.send)
        except Exception:
            log.exception("envoy.defect")
        exchange.break_off(internal())


async def _take(exchange: Exchange, requests: AsyncIterator[pb.ProcessingRequest]) -> None:
    """Take everything that Envoy sends, to the end of the stream."""
    try:
        async for message in requests:
            await exchange.take(message)
    except Refused as refused:
        exchange.break_off(refused)
    else:
        exchange.break_off(unavailable("ENVOY_STREAM_ENDED", "Envoy ended the stream before its answer was complete"))


def _check(first: pb.ProcessingRequest) -> None:
    """Refuse an Envoy whose filter would let something pass that was not judged: better no answer than such a one."""
    modes = first.protocol_config
    if first.WhichOneof("request") != "request_headers":
        raise unsafe("the first message must have the request's headers: request_header_mode must be SEND")
    if first.observability_mode:
        raise unsafe("observability_mode must be off")
    if (modes.request_body_mode, modes.response_body_mode) != (_DUPLEX, _DUPLEX):
        raise unsafe("request_body_mode and response_body_mode must be FULL_DUPLEX_STREAMED")
