"""An answer that leaves in parts, over HTTP: the parts as they come, then the rest or the error that ends it (API-4).

Before the first part nothing was sent: an answer that ends before is answered like any other, with its status and all headers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog
from starlette.responses import Response, StreamingResponse

from interlock.domain.errors import Refused
from interlock.runtime.rpc.errors import internal
from interlock.sidecar.call.live import Live
from interlock.sidecar.closing import Governed
from interlock.sidecar.fronts.responses import HALTED, SAFE, refused_body, status_of
from interlock.sidecar.openai import sse
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

KEEP_ALIVE_S = 10.0
"""How long a stream is silent before a comment tells the client that it lives."""


@dataclass(frozen=True)
class StreamedAnswer:
    """A call of which the first part may leave, while it goes on."""

    work: asyncio.Task[Governed]
    live: Live

    def response(self, reply: ResponseHeaders, *, include_usage: bool) -> Response:
        """Return the stream. The call goes on without a client that hangs up: what was generated is settled."""
        body = _body(self, reply, include_usage=include_usage)
        return StreamingResponse(body, headers={**self.live.headers, **SAFE}, media_type="text/event-stream")


async def begun(work: Coroutine[Any, Any, Governed], live: Live) -> StreamedAnswer | Governed:
    """Return the call once its first part may leave, or how it ended before."""
    task = asyncio.ensure_future(work)
    first = asyncio.ensure_future(live.outlet.begun.wait())
    try:
        await asyncio.wait({task, first}, return_when=asyncio.FIRST_COMPLETED)
        return StreamedAnswer(task, live) if live.outlet.begun.is_set() else _whole(await task, live)
    except asyncio.CancelledError:
        await _left(task, live)
        raise
    finally:
        first.cancel()


def _whole(governed: Governed, live: Live) -> Governed:
    """Return how a call ended of which no part left; what broke off is no answer."""
    if governed.refusal is None and (live.stopped or live.cut):
        raise live.stopped or internal()
    return governed


async def _left(task: asyncio.Task[Governed], live: Live) -> None:
    """Tell the call that its client has gone."""
    live.outlet.close()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Refused):
        await task


async def _body(begun: StreamedAnswer, reply: ResponseHeaders, *, include_usage: bool) -> AsyncIterator[bytes]:
    live, work = begun.live, begun.work
    frame = {**live.frame, **({"usage": None} if include_usage else {})}
    first = True
    try:
        async for text in _parts(work, live):
            yield sse.part(frame, text, first=first) if text else sse.KEEP_ALIVE
            first = first and not text
        async for piece in _end(begun, reply, include_usage=include_usage):
            yield piece
    finally:
        if not work.done():
            await _left(work, live)


async def _parts(work: asyncio.Task[Governed], live: Live) -> AsyncIterator[str]:
    """Yield the parts until the call has ended; an empty one where there was none for a while."""
    taking = asyncio.ensure_future(live.outlet.take())
    try:
        while True:
            done, _ = await asyncio.wait({taking, work}, timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
            if taking in done:
                yield taking.result()
                taking = asyncio.ensure_future(live.outlet.take())
            elif not done:
                yield ""
            else:
                break
    finally:
        taking.cancel()
    for text in live.outlet.left():
        yield text


async def _end(begun: StreamedAnswer, reply: ResponseHeaders, *, include_usage: bool) -> AsyncIterator[bytes]:
    """Yield the rest and the end of an answer that may leave, or the error that ends it: without [DONE], so that no client takes
    it for whole.
    """
    live, refused = begun.live, begun.live.stopped
    try:
        governed = await begun.work
        refused = governed.refusal or refused
        if refused is None and not live.cut:
            completion = governed.released().completion
            for piece in sse.rest(live.frame, completion, live.released, include_usage=include_usage):
                yield piece
            if live.final:
                yield sse.final(live.frame, reply.headers)
            yield sse.DONE
            return
    except Refused as failed:
        refused = failed
    except asyncio.CancelledError:
        raise
    except Exception:
        log.exception("http.defect", route="stream")
    refused = refused or internal()
    if status_of(refused) == HALTED:
        yield sse.cut(live.frame)
    if live.final:
        yield sse.final(live.frame, reply.headers)
    yield sse.event(refused_body(refused, reply))
