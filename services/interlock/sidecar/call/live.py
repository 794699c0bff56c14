"""The way out of an answer that is released in parts, between the guard and the front that writes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from interlock.domain.errors import Refused

WAITING = 4
"""Parts that may wait for a slow client; the judge waits with them."""


class Reader(Protocol):
    """Takes a provider's answer while it comes in."""

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


Ask = Callable[[Mapping[str, Any], float, Reader], Awaitable[None]]
"""Asks the provider to stream the answer to a body into a reader, within the seconds given."""


class Outlet:
    """Released parts on their way to one client. It keeps a few at most: a slow client holds what comes after them back."""

    def __init__(self) -> None:
        self.begun, self._closed = asyncio.Event(), asyncio.Event()
        self._parts: asyncio.Queue[str] = asyncio.Queue(WAITING)

    async def put(self, text: str, *, timeout_s: float) -> bool:
        """Hand a part over; no, when there is no one to take it any more, or not within the time."""
        self.begun.set()
        putting, closed = asyncio.ensure_future(self._parts.put(text)), asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait({putting, closed}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return putting.done() and not self._closed.is_set()
        finally:
            putting.cancel()
            closed.cancel()

    async def take(self) -> str:
        """Return the next part."""
        return await self._parts.get()

    def left(self) -> list[str]:
        """Return the parts that wait."""
        return [self._parts.get_nowait() for _ in range(self._parts.qsize())]

    def close(self) -> None:
        """Take nothing more: the client has gone."""
        self._closed.set()


@dataclass
class Live:
    """How one answer leaves in parts. The guard fills it, the front reads it once the first part is there."""

    ask: Ask
    outlet: Outlet = field(default_factory=Outlet)
    final: bool = False
    """Whether the stream ends with an event of its final CRP values, at the client's wish."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """What is known when the first part leaves."""
    frame: Mapping[str, Any] = field(default_factory=dict)
    """What stands around the choices of every chunk."""
    released: int = 0
    """Characters of the content that have left."""
    stopped: Refused | None = None
    """Why the stream ends before its answer does: the provider broke off, or the client did not take its parts."""
    cut: bool = False
    """Whether a part may not pass, whatever follows it."""
