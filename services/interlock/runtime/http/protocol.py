"""HTTP/1.1 with limits: a head has a maximum size and time, an answer has to be taken, trailers are not headers, and a path is routed as sent.

uvicorn's parser waits for a head for ever and buffers all of it, waits for ever for a client that does not read, decodes a path
before routing, and appends trailers to the headers of a request that may already be decided (reliability.md A-15, A-20, A-22).
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from interlock.domain.errors import invalid

HEAD_TIMEOUT_S = 20.0
UNREAD_TIMEOUT_S = 60.0
HEAD_LIMIT = 131_072
"""Maximum bytes of an incomplete head. The fronts have smaller limits for a complete one."""

_TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
_MALFORMED = invalid("HTTP_MALFORMED", "what came is not a request of this protocol, or has two meanings")
_END = b"content-length: 0\r\nconnection: close\r\n\r\n"


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with these limits. The times are class attributes, because uvicorn makes the instances."""

    head_timeout_s = HEAD_TIMEOUT_S
    unread_timeout_s = UNREAD_TIMEOUT_S

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._waiting: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for the first head."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._head_is_there()
        self._is_read()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the client to read. One that takes nothing is cut off: it would hold its buffers and a task for ever."""
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        self._is_read()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse the data, and count the bytes of an incomplete head."""
        super().data_received(data)
        if self._waiting is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT:
                self._give_up(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Start waiting for the head of the next request on this connection."""
        super().on_message_begin()
        self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header. A field after the head is a trailer, and is dropped."""
        if self._waiting is not None:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Route by the path as sent: ``%2f`` is not a slash, and no path has two spellings."""
        self._head_is_there()
        super().on_headers_complete()
        self.scope["path"] = self.scope["raw_path"].decode("ascii")

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP as JSON, in the two forms that the fronts refuse in: uvicorn's own words are plain text."""
        del msg
        told = {"reason": _MALFORMED.reason, "message": _MALFORMED.message}
        error = {"type": "invalid_request_error", "code": _MALFORMED.reason, "message": _MALFORMED.message}
        body = json.dumps({**told, "error": error}).encode()
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % len(body)
        self.transport.write(head + b"connection: close\r\n\r\n" + body)
        self.transport.close()

    def _await_head(self) -> None:
        if self._waiting is None:
            self._head_bytes = 0
            self._waiting = self.loop.call_later(self.head_timeout_s, self._give_up, _TIMED_OUT)

    def _await_reading(self) -> None:
        self._is_read()
        self._unread = self.loop.call_later(
            self.unread_timeout_s, self._look_whether_read, self.transport.get_write_buffer_size()
        )

    def _look_whether_read(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._await_reading()
        else:
            self.transport.abort()

    def _is_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _head_is_there(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self, status: bytes) -> None:
        """Close the connection, with *status* unless a response is being written."""
        self._head_is_there()
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(status + _END)
        self.transport.close()


def guarded(head_timeout_s: float, unread_timeout_s: float = UNREAD_TIMEOUT_S) -> type[GuardedProtocol]:
    """Return the protocol class with these limits, seconds: for a head, and for a client that reads nothing of its answer."""
    limits = {"head_timeout_s": head_timeout_s, "unread_timeout_s": unread_timeout_s}
    return type("GuardedProtocol", (GuardedProtocol,), limits)
