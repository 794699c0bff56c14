"""The answer of a provider that streams, while it comes in: server-sent events of any API (SVC-2; A-26; ecosystem.md 3.3).

Events are read strictly, and put together by the reader of their API. At the end the whole goes through the same reader as an
answer that came at once, so that both pass the same allow-list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from interlock.domain.errors import Kind, Refused
from interlock.sidecar.call.live import AnswerPart
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.openai.faults import malformed

_DONE = b"[DONE]"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some servers write it in front of what they send. It says nothing, and readers of JSON and of events leave it out."""


class AnswerEvents(Protocol):
    """Puts the events of one API together."""

    @property
    def ended(self) -> bool:
        """Whether the answer has its end: what comes no more is not missed."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the provider said that nothing more comes."""
        ...

    @property
    def said(self) -> AnswerPart | None:
        """What there is so far where the answer is text, with reasoning before it or without; ``None`` where it is not."""
        ...

    def marked(self) -> None:
        """Note that the provider sent [DONE], which is the last word of one API and no word of the others."""
        ...

    def take(self, event: dict[str, Any]) -> int:
        """Take one event and return about how many bytes of it are kept. Refused as malformed, or with UPSTREAM_ERROR."""
        ...

    def whole(self, *, broken_off: bool) -> bytes:
        """Return the answer as its API gives one that is not streamed; of one that is *broken_off* what there is."""
        ...


class ProviderStream:
    """One answer while it comes in. It keeps at most *limit* bytes. *read* reads an answer that came at once."""

    def __init__(
        self, events: AnswerEvents, read: Callable[[bytes], Completion], *, limit: int, max_depth: int
    ) -> None:
        self.changed = asyncio.Event()
        self.done = False
        self._events, self._read, self._limit, self._max_depth = events, read, limit, max_depth
        self._buffer, self._data, self._size = bytearray(), bytearray(), 0
        self._whole: bytes | None = None
        self._begun = False

    def feed(self, data: bytes) -> None:
        """Take bytes as they came. Refused with UPSTREAM_INVALID_RESPONSE, or UPSTREAM_ERROR where the provider says so."""
        self._buffer += data
        while not self.done and (at := self._buffer.find(b"\n")) >= 0:
            line = bytes(self._buffer[:at]).removesuffix(b"\r")
            del self._buffer[: at + 1]
            self._line(line if self._begun else line.removeprefix(BYTE_ORDER_MARK))
            self._begun = True
        if len(self._buffer) + len(self._data) > self._limit:
            raise malformed("TOO_LARGE")

    def answered(self, data: bytes) -> None:
        """Take the answer of a provider that does not stream."""
        self._whole, self.done = data, True

    def finished(self) -> None:
        """Note that nothing more comes. Refused with UPSTREAM_DISCONNECTED where the answer has no end."""
        if not self.done and not self._events.ended:
            message = "the model provider closed the connection mid-answer"
            raise Refused(Kind.BAD_GATEWAY, "UPSTREAM_DISCONNECTED", message, retry_after_ms=1000)
        self.done = True

    @property
    def said(self) -> AnswerPart | None:
        """What there is so far where the answer is text, with reasoning before it or without; ``None`` where it is not."""
        return None if self._whole is not None else self._events.said

    def completion(self, *, broken_off: bool = False) -> Completion:
        """Return the whole answer, or what there is of one that was *broken_off*."""
        return self._read(self._events.whole(broken_off=broken_off) if self._whole is None else self._whole)

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data += line[5:].removeprefix(b" ") + b"\n"
        elif not line and self._data:
            data, self._data = bytes(self._data).strip(), bytearray()
            self._event(data)

    def _event(self, data: bytes) -> None:
        if data == _DONE:
            self._events.marked()
            self.finished()
            return
        try:
            event = strictjson.loads(data, max_depth=self._max_depth)
        except Refused as refused:
            raise malformed(refused.reason) from None
        if not isinstance(event, dict):
            raise malformed("CHUNK")
        self._size += self._events.take(event)
        if self._size > self._limit:
            raise malformed("TOO_LARGE")
        if self._events.closed:
            self.finished()
        self.changed.set()


def failed() -> Refused:
    """Return the refusal of a stream in which the provider says that it failed."""
    return Refused(Kind.BAD_GATEWAY, "UPSTREAM_ERROR", "the model provider failed", retry_after_ms=1000)


def weight(value: Any) -> int:
    """Return about what a value adds to what is kept, bytes: an endless answer ends at the limit, its frames do not count."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(weight, inside)) + (8 * len(value) if isinstance(value, list) else 0)


def place(value: Any, most: int, fault: str) -> int:
    """Return an index that a provider gives, below *most*. Refused as malformed with *fault*."""
    if type(value) is not int or not 0 <= value < most:
        raise malformed(fault)
    return value
