"""Connections that a server may close while they are idle: a request that cannot have arrived is sent once more (RFC 9110, 9.2.2).

What a server sends beyond an answer is never the answer to a later request (RFC 9112, 6.3): that one may be another caller's.

A model provider closes an idle connection without a word, sometimes while the next request is on its way. A request to it costs money, so
one is only sent again where the connection itself shows that the server has never had it whole.
"""

from __future__ import annotations

import asyncio
import fcntl
import ssl
import struct
import sys
import termios
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any

import anyio
import httpcore
import httpx
import structlog

log = structlog.get_logger()

KEEP_S = 4.0
"""How long an idle connection is kept: less than the five seconds after which common servers close theirs (uvicorn, Node)."""
PAUSE_S = 600.0
"""How long no connection is used twice, after one was closed on a request that the provider may have had."""


class Unanswered(httpcore.RemoteProtocolError):
    """A connection that had answered before ended without a byte of this answer."""

    def __init__(self, *, arrived: bool) -> None:
        super().__init__("the connection ended without an answer")
        self.arrived = arrived
        """Whether the request may have arrived whole."""


class Reuse:
    """What the connections of one pool know together: which of the idle ones may still be used."""

    def __init__(self) -> None:
        self._distrusted_until = self._since = float("-inf")

    def allows(self, idle_since: float) -> bool:
        """Tell whether a connection may be used again that is idle since a time of the monotonic clock."""
        return idle_since > self._since and time.monotonic() >= self._distrusted_until

    def drop_idle(self) -> None:
        """Use no connection again that is idle now."""
        self._since = time.monotonic()

    def pause(self) -> None:
        """Use no connection twice for a while."""
        self._distrusted_until = time.monotonic() + PAUSE_S


class ReusingTransport(httpx.AsyncHTTPTransport):
    """The straight way to a server, without proxies of the environment."""

    def __init__(self, max_connections: int) -> None:
        """Prepare a pool: not the inherited one, which makes a TLS context of its own."""
        self._pool = ReusingPool(max_connections)


class ReusingPool(httpcore.AsyncConnectionPool):
    """Sends a request again, on another connection, that a dying one has not delivered."""

    def __init__(self, max_connections: int) -> None:
        self._reuse = Reuse()
        super().__init__(
            max_connections=max_connections,
            keepalive_expiry=KEEP_S,
            network_backend=_Backend(self._reuse),
        )

    def create_connection(self, origin: httpcore.Origin) -> httpcore.AsyncConnectionInterface:
        """Prepare a connection. Certificate authorities are read for the first one under TLS: they take memory and time."""
        if origin.scheme == b"https" and self._ssl_context is None:
            self._ssl_context = httpx.create_ssl_context(trust_env=False)
        return super().create_connection(origin)

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        """Return the answer to a request whose body can be read twice."""
        response = await self._answered(request)
        response.stream = _Answer(response.stream, response.extensions["network_stream"])
        return response

    async def _answered(self, request: httpcore.Request) -> httpcore.Response:
        try:
            return await super().handle_async_request(request)
        except Unanswered as error:
            if error.arrived and request.method != b"GET":
                # Nobody knows whether it was acted upon. It is not asked twice, and this does not happen with every second call.
                log.warning("egress.connection_lost", pause_s=PAUSE_S)
                self._reuse.pause()
                raise
            log.info("egress.request_resent", method=request.method.decode("ascii"))
        self._reuse.drop_idle()
        return await super().handle_async_request(request)


class _Answer:
    """The body of an answer. A connection on which more than that came is not used again."""

    def __init__(self, inner: Any, connection: WatchedStream) -> None:
        self._inner, self._connection = inner, connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield its parts."""
        parts: AsyncIterable[bytes] = self._inner
        async for part in parts:
            yield part

    async def aclose(self) -> None:
        """Give the connection back, or away."""
        # httpcore keeps what was read beyond the answer, and begins the next one with it.
        more, _ = self._inner._stream._connection._h11_state.trailing_data  # noqa: SLF001 - it has no public name
        if more:
            log.warning("egress.connection_dropped", bytes_count=len(more))
            self._connection.distrust()
        await self._inner.aclose()


class _Backend(httpcore.AsyncNetworkBackend):
    def __init__(self, reuse: Reuse) -> None:
        self._reuse, self._inner = reuse, httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Open a connection."""
        stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        return WatchedStream(stream, self._reuse)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._inner.sleep(seconds)


class WatchedStream(httpcore.AsyncNetworkStream):
    """A connection that knows how its exchange stands: whether it was used before, and whether an answer has begun."""

    def __init__(self, inner: httpcore.AsyncNetworkStream, reuse: Reuse) -> None:
        self._inner, self._reuse = inner, reuse
        self._is_reused = self._has_answered = self._is_cut = self._is_distrusted = False
        self._used_at = time.monotonic()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore's signature
        """Send a part of a request; the first one after an answer begins another exchange. Fails with ``Unanswered`` on a dead connection."""
        if self._has_answered:
            self._is_reused, self._has_answered = True, False
            if self.get_extra_info("is_readable"):  # it ended after the pool had looked
                raise Unanswered(arrived=False)
        try:
            await self._inner.write(buffer, timeout)
        except httpcore.WriteError:
            self._is_cut = True
            raise

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's signature
        """Return a part of an answer. Fails with ``Unanswered`` where a connection that was used before ends without one."""
        try:
            data = await self._received(max_bytes, timeout)
        except httpcore.ReadError as error:
            if self._is_reused and not self._has_answered:
                raise Unanswered(arrived=not (self._is_cut or _is_broken(error))) from error
            raise
        if not data and self._is_reused and not self._has_answered:
            raise Unanswered(arrived=not (self._is_cut or self._is_unread()))
        self._has_answered, self._used_at = self._has_answered or bool(data), time.monotonic()
        return data

    async def _received(self, max_bytes: int, limit_s: float | None) -> bytes:
        """Return what came. A stream is read in hundreds of small parts, and the timer of anyio costs more than all else of a read."""
        try:
            async with asyncio.timeout(limit_s):
                data: bytes = await self._inner._stream.receive(max_bytes)  # type: ignore[attr-defined]  # noqa: SLF001 - no public name
                return data
        except anyio.EndOfStream:
            return b""
        except TimeoutError as error:
            raise httpcore.ReadTimeout(error) from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise httpcore.ReadError(error) from error

    def _is_unread(self) -> bool:
        """Tell whether the server ended the connection before the request had arrived whole.

        The segment that ends a connection acknowledges all that its sender has had. So what is unacknowledged then came too late.
        A reset says no such thing: it may follow a request that was read.
        """
        raw = self._inner.get_extra_info("socket")
        if sys.platform != "linux" or raw is None:
            return False
        try:
            return bool(struct.unpack("i", fcntl.ioctl(raw.fileno(), termios.TIOCOUTQ, bytes(4)))[0])
        except (OSError, ValueError):
            return False

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
    ) -> httpcore.AsyncNetworkStream:
        """Return this connection under TLS."""
        return WatchedStream(await self._inner.start_tls(ssl_context, server_hostname, timeout), self._reuse)

    def distrust(self) -> None:
        """Do not use it again."""
        self._is_distrusted = True

    def get_extra_info(self, info: str) -> Any:
        """Return what is known of the connection. The pool uses none again that is readable while idle."""
        if info == "is_readable" and (self._is_distrusted or not self._reuse.allows(self._used_at)):
            return True
        return self._inner.get_extra_info(info)


def _is_broken(error: BaseException) -> bool:
    """Tell whether an error comes of a write that the system did not take, which anyio tells to the next reader."""
    while error.__cause__ is not None:
        error = error.__cause__
    return isinstance(error, BrokenPipeError)
