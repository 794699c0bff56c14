"""The way out of an answer that is released in parts, between the guard and the front that writes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from interlock.domain.errors import Refused
from interlock.sidecar.openai.completion import Completion

WAITING = 4
"""Parts that may wait for a slow client; the judge waits with them."""


@dataclass(frozen=True)
class AnswerPart:
    """What of an answer leaves at once, in this order: its reasoning as a whole, and a piece of its text."""

    reasoning: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.reasoning or self.text)

    def __add__(self, more: AnswerPart) -> AnswerPart:
        return AnswerPart(self.reasoning + more.reasoning, self.text + more.text)


class ByteSink(Protocol):
    """Takes the bytes of a provider's answer while they come in."""

    done: bool

    def feed(self, data: bytes) -> None:
        """Take bytes of a stream as they came."""
        ...

    def answered(self, data: bytes) -> None:
        """Take the answer of a provider that does not stream."""
        ...

    def finished(self) -> None:
        """Note that nothing more comes."""
        ...


class Reader(ByteSink, Protocol):
    """Reads a provider's answer while it comes in, in whatever API the provider is asked by."""

    changed: asyncio.Event
    """Set when something of the answer has come."""

    @property
    def said(self) -> AnswerPart | None:
        """What there is so far where the answer is text, with reasoning before it or without; ``None`` where it is not."""
        ...

    def completion(self, *, broken_off: bool = False) -> Completion:
        """Return the whole answer, or what there is of one that was *broken_off*. Refused with UPSTREAM_INVALID_RESPONSE."""
        ...


Ask = Callable[[Mapping[str, Any], float, Reader], Awaitable[None]]
"""Asks the provider to stream the answer to a body into a reader, within the seconds given."""
MakeReader = Callable[[Mapping[str, Any]], Reader]
"""Makes what reads the answer to a body."""


class Outlet:
    """Released parts on their way to one client. It keeps a few at most: a slow client holds what comes after them back."""

    def __init__(self) -> None:
        self.begun, self._closed = asyncio.Event(), asyncio.Event()
        self._parts: asyncio.Queue[AnswerPart] = asyncio.Queue(WAITING)

    async def put(self, part: AnswerPart, *, timeout_s: float) -> bool:
        """Hand a part over; no, when there is no one to take it any more, or not within the time."""
        self.begun.set()
        putting, closed = asyncio.ensure_future(self._parts.put(part)), asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait({putting, closed}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return putting.done() and not self._closed.is_set()
        finally:
            putting.cancel()
            closed.cancel()

    async def take(self) -> AnswerPart:
        """Return the next part."""
        return await self._parts.get()

    def left(self) -> list[AnswerPart]:
        """Return the parts that wait."""
        return [self._parts.get_nowait() for _ in range(self._parts.qsize())]

    def close(self) -> None:
        """Take nothing more: the client has gone."""
        self._closed.set()


@dataclass
class Live:
    """How one answer leaves in parts. The guard fills it, the front reads it once the first part is there."""

    ask: Ask
    reader: MakeReader
    outlet: Outlet = field(default_factory=Outlet)
    final: bool = False
    """Whether the stream ends with an event of its final CRP values, at the client's wish."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """What is known when the first part leaves."""
    head: Completion | None = None
    """The answer before anything is said in it: its id and its time, once the first part leaves."""
    left: AnswerPart = field(default_factory=AnswerPart)
    """Everything that has left."""
    stopped: Refused | None = None
    """Why the stream ends before its answer does: the provider broke off, or the client did not take its parts."""
    cut: bool = False
    """Whether a part may not pass, whatever follows it."""
