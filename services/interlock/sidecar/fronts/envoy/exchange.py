"""One HTTP request that Envoy holds, between Envoy, the application that answers it and the provider that is asked through Envoy.

Envoy waits for its head, and so sends nothing on, until the provider is asked; and for the head of the provider's answer, and so
releases nothing, until the application answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

import structlog

from interlock.api.envoy import ext_proc_pb2 as pb
from interlock.domain.errors import Refused, unavailable
from interlock.sidecar.fronts.envoy import messages
from interlock.sidecar.fronts.envoy.messages import Lines

log = structlog.get_logger()

T = TypeVar("T")

WAITING = 32
"""Pieces of a provider's answer that may wait for the judge, and of ours for Envoy; whoever sends more waits with them."""
FILTER = "envoy.filters.http.ext_proc"
DETAILS = "response.code_details"
"""The attribute that tells an answer of the provider from one that Envoy made."""


def unsafe(message: str) -> Refused:
    """Return the refusal of an Envoy whose filter could let something pass that was not judged."""
    log.error("envoy.unsafe", hint=message)
    return unavailable(
        "ENVOY_FILTER_UNSAFE", message, retry_after_ms=0, hint="see docs/envoy.md for the filter's settings"
    )


class Exchange:
    """The state of one request."""

    def __init__(self, head: pb.HttpHeaders, *, limit: int) -> None:
        """Take the head of a request; more than *limit* bytes of its body are not kept, as its reader refuses it by then."""
        self._came = messages.lines_of(head.headers)
        self._limit, self._taken = limit, 0
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._has_body = not head.end_of_stream
        if head.end_of_stream:
            self._incoming.put_nowait(_request_part(b"", more=False))
        self._trailers: Lines | None = None
        self._asked = self._begun = False
        self._answer: asyncio.Future[tuple[pb.HttpHeaders, str]] = asyncio.get_running_loop().create_future()
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(WAITING)
        self._out: asyncio.Queue[pb.ProcessingResponse | Refused | None] = asyncio.Queue(WAITING)
        self._status, self._headers, self._body = 0, dict[str, str](), bytearray()
        self.over = asyncio.Event()
        """Set when nothing more will be said to Envoy."""
        self.complete = False
        """Whether the client's answer was said in full."""
        self.scope = messages.scope_of(self._came)

    # == from Envoy

    async def take(self, message: pb.ProcessingRequest) -> None:
        """Take the next message. Refused with ENVOY_FILTER_UNSAFE where it cannot come now."""
        kind = message.WhichOneof("request")
        if kind == "request_body":
            self._take_body(message.request_body.body, ends=message.request_body.end_of_stream)
        elif kind == "request_trailers":
            self._trailers = messages.lines_of(message.request_trailers.trailers)
            self._take_body(b"", ends=True)
        elif kind == "response_headers" and self._asked and not self._answer.done():
            self._answer.set_result((message.response_headers, _details(message)))
            if message.response_headers.end_of_stream:
                await self._pieces.put(None)
        elif kind == "response_body" and self._answer.done():
            await self._take_piece(message.response_body.body, ends=message.response_body.end_of_stream)
        elif kind == "response_trailers" and self._answer.done():
            await self._take_piece(b"", ends=True)
        else:
            raise unsafe(f"{kind} cannot come now: every head, body and trailer must be sent")

    def gone(self) -> None:
        """Note that Envoy has given the request up: its client hung up, or its time is over. Whoever answers waits for nothing more."""
        self.over.set()
        self._incoming.put_nowait({"type": "http.disconnect"})

    def _take_body(self, data: bytes, *, ends: bool) -> None:
        if self._taken <= self._limit or ends:
            self._incoming.put_nowait(_request_part(data if self._taken <= self._limit else b"", more=not ends))
        self._taken += len(data)

    async def _take_piece(self, data: bytes, *, ends: bool) -> None:
        """Hand a piece of the provider's answer over; nobody reads it once the client's answer is complete."""
        for piece in ([data] if data else []) + ([None] if ends else []):
            await self._put(self._pieces, piece)

    async def _put(self, queue: asyncio.Queue[T], one: T) -> None:
        """Wait for a place in a queue, and no longer than somebody may read it."""
        if self.over.is_set():
            return
        if not queue.full():
            queue.put_nowait(one)
            return
        putting, over = asyncio.ensure_future(queue.put(one)), asyncio.ensure_future(self.over.wait())
        try:
            await asyncio.wait({putting, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            putting.cancel()
            over.cancel()

    # == to Envoy

    async def responses(self) -> AsyncIterator[pb.ProcessingResponse]:
        """Yield what Envoy is to be told, up to the end of the client's answer. Refused where it broke off before."""
        while not isinstance(said := await self._out.get(), Refused):
            if said is None:
                return
            yield said
        raise said

    def break_off(self, refused: Refused) -> None:
        """End the exchange with an error, unless the client's answer is complete: Envoy lets nothing more pass."""
        if self.over.is_set() or self.complete:
            return
        self.over.set()
        while not self._out.empty():
            self._out.get_nowait()
        self._out.put_nowait(refused)

    # == the application

    async def receive(self) -> dict[str, Any]:
        """Return the next piece of the request, as ASGI has it."""
        return await self._incoming.get()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Take the next piece of the client's answer, as ASGI has it."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]}
            return
        data, ends = message.get("body", b""), not message.get("more_body", False)
        if self._begun:
            await self._tell(messages.response_body(data, ends=ends), ends=ends)
        elif self._as_an_answer():
            self._begun = True
            came = messages.lines_of(self._answer.result()[0].headers)
            head = messages.answered(came, self._status, self._headers)
            await self._tell([head, *messages.response_body(data, ends=ends)], ends=ends)
        else:
            self._body += data
            if ends:
                await self._tell([messages.immediate(self._status, self._headers, bytes(self._body))], ends=True)

    def _as_an_answer(self) -> bool:
        """Tell whether the client's answer takes the place of the provider's: it is there with a body, and ours is no refusal."""
        return self._answer.done() and not self._answer.result()[0].end_of_stream and self._status < 300

    async def _tell(self, said: list[pb.ProcessingResponse], *, ends: bool) -> None:
        for one in said:
            await self._put(self._out, one)
        if ends and not self.over.is_set():
            self.complete = True
            await self._put(self._out, None)
            self.over.set()

    # == the provider

    def carries(self, method: str, *, content: bool) -> bool:
        """Tell whether a call of the provider can go through Envoy: the first one, by the method that the client used."""
        return not self._asked and method == self.scope["method"] and content == self._has_body

    async def ask(self, path: str, headers: Mapping[str, str], content: bytes) -> tuple[int, Lines, str]:
        """Send the request on. Return status, headers and details of the answer, once its head is there."""
        self._asked = True
        await self._put(self._out, messages.sent_on(self._came, path, headers))
        if self._has_body:
            for one in messages.request_body(content, ends=self._trailers is None):
                await self._put(self._out, one)
        if self._trailers is not None:
            await self._put(self._out, messages.without_trailers(self._trailers, of_request=True))
        head, details = await asyncio.shield(self._answer)
        lines = messages.lines_of(head.headers)
        return int(dict(lines).get(b":status", b"0")), [one for one in lines if not one[0].startswith(b":")], details

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body of the provider's answer as it comes."""
        while (piece := await self._pieces.get()) is not None:
            yield piece


CURRENT: ContextVar[Exchange | None] = ContextVar("interlock_envoy_exchange", default=None)
"""The exchange that the running call came with; the tasks of the call inherit it."""


def _request_part(data: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": more}


def _details(message: pb.ProcessingRequest) -> str:
    fields = message.attributes[FILTER].fields if FILTER in message.attributes else {}
    return str(fields[DETAILS].string_value) if DETAILS in fields else ""
