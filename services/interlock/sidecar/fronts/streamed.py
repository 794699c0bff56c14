"""An answer that leaves in parts, over HTTP: the parts as they come, then the rest or the error that ends it (API-4).

Before the first part nothing was sent: an answer that ends before is answered like any other, with its status and all headers. What
the events look like is the API's own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from starlette.responses import Response, StreamingResponse

from interlock.domain.errors import Refused
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.errors import internal
from interlock.sidecar.apis.api import Api, ApiRequest, StreamWriter
from interlock.sidecar.call.live import AnswerPart, Live
from interlock.sidecar.closing import Governed
from interlock.sidecar.fronts.responses import SAFE, refused_body, status_of
from interlock.sidecar.openai.completion import Completion, identified
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

KEEP_ALIVE_S = 10.0
"""How long a stream is silent before its client is told that it lives."""


@dataclass(frozen=True)
class StreamedAnswer:
    """A call of which the first part may leave, while it goes on."""

    work: asyncio.Task[Governed]
    live: Live

    def response(self, api: Api, caller: Caller, request: ApiRequest, reply: ResponseHeaders) -> Response:
        """Return the stream. The call goes on without a client that hangs up: what was generated is settled."""
        writer = api.writer(request, self.head)
        body = _body(self, writer, lambda answer: api.released(caller, request, answer), reply)
        return StreamingResponse(body, headers={**self.live.headers, **SAFE}, media_type="text/event-stream")

    @property
    def head(self) -> Completion:
        """The answer before anything is said in it."""
        assert self.live.head is not None, "no part has left"
        return self.live.head

    async def parts(self) -> AsyncGenerator[AnswerPart | None, None]:
        """Yield the parts until the call has ended; ``None`` where there was none for a while. The client's leaving ends the call."""
        try:
            async for part in _parts(self.work, self.live):
                yield part
        finally:
            if not self.work.done():
                await _left(self.work, self.live)

    async def ended(self) -> Governed:
        """Return how the call ended, whose answer may leave. Refused where it may not, or breaks off."""
        governed = await self.work
        if refused := governed.refusal or self.live.stopped:
            raise refused
        if self.live.cut:
            raise internal()
        return governed

    def released(self, governed: Governed) -> Completion:
        """Return the whole answer under the id and the time that its first part had."""
        head = self.head.completion
        return identified(governed.released(), head["id"], head["created"])

    def rest(self, answer: Completion) -> AnswerPart:
        """Return what of the text of the whole *answer* has not left."""
        return AnswerPart(text=(answer.choices[0]["message"]["content"] or "")[len(self.live.left.text) :])


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


async def _body(
    begun: StreamedAnswer, writer: StreamWriter, keep: Callable[[Completion], Awaitable[None]], reply: ResponseHeaders
) -> AsyncIterator[bytes]:
    async with contextlib.aclosing(begun.parts()) as parts:
        async for part in parts:
            yield writer.part(part) if part else writer.keep_alive
    yield await _end(begun, writer, keep, reply)


async def _parts(work: asyncio.Task[Governed], live: Live) -> AsyncIterator[AnswerPart | None]:
    taking = asyncio.ensure_future(live.outlet.take())
    try:
        while True:
            done, _ = await asyncio.wait({taking, work}, timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
            if taking in done:
                yield taking.result()
                taking = asyncio.ensure_future(live.outlet.take())
            elif not done:
                yield None
            else:
                break
    finally:
        taking.cancel()
    for part in live.outlet.left():
        yield part


async def _end(
    begun: StreamedAnswer, writer: StreamWriter, keep: Callable[[Completion], Awaitable[None]], reply: ResponseHeaders
) -> bytes:
    """Return the rest and the end of an answer that may leave, or the error that ends it."""
    refused = internal()
    try:
        answer = begun.released(await begun.ended())
        await keep(answer)
        return writer.end(answer, _final(begun.live, reply))
    except Refused as failed:
        refused = failed
    except Exception:
        log.exception("http.defect", route="stream")
    return writer.stop(refused_body(refused, reply), status_of(refused), _final(begun.live, reply))


def _final(live: Live, reply: ResponseHeaders) -> Mapping[str, str] | None:
    """Return the final CRP values, where the client wishes them in the stream."""
    return reply.headers if live.final else None
