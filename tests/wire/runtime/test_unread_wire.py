"""Clients that do not read their answer, over real sockets: the server's tasks and buffers are not theirs for ever (reliability.md A-22)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from interlock.runtime.http.server import WebServer, listen
from interlock.runtime.settings.model import Settings

PIECE, PIECES = b"x" * 65_536, 512
pytestmark = pytest.mark.req("API-4")


class Served:
    """A server whose one answer is larger than any buffer between it and its client."""

    def __init__(self, unread_s: float) -> None:
        settings = Settings(request_timeout_s=unread_s)
        self.ended, self.sent = asyncio.Event(), 0
        self._listener = listen(settings, 0, "test")
        self._server = WebServer(Starlette(routes=[Route("/", self._answer)]), settings, self._listener)

    async def _answer(self, _request: Request) -> StreamingResponse:
        return StreamingResponse(self._pieces())

    async def _pieces(self) -> AsyncIterator[bytes]:
        try:
            for _ in range(PIECES):
                yield PIECE
                self.sent += 1
        finally:
            self.ended.set()

    async def asked(self) -> socket.socket:
        """Return a client that has asked and read nothing."""
        port = await self._server.start()
        client, loop = socket.socket(), asyncio.get_running_loop()
        client.setblocking(False)
        await loop.sock_connect(client, ("127.0.0.1", port))
        await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        return client

    async def close(self) -> None:
        await self._server.drain()
        self._listener.close()


async def test_a_client_that_reads_nothing_is_cut_off():
    """Its connection stays open, and the task of its answer ends all the same."""
    served = Served(unread_s=0.3)
    with await served.asked():
        await asyncio.sleep(0.05)
        waits = not served.ended.is_set()
        async with asyncio.timeout(10):
            await served.ended.wait()
    await served.close()

    assert waits


async def test_a_client_that_reads_slowly_is_not():
    """It takes longer than the limit in all, and reads within it each time: every byte arrives."""
    served, loop = Served(unread_s=0.3), asyncio.get_running_loop()
    read, begun = 0, loop.time()
    with await served.asked() as client:
        async with asyncio.timeout(20):
            while read < PIECES * len(PIECE) and (piece := await loop.sock_recv(client, 1 << 20)):
                read += len(piece)
                await asyncio.sleep(0.05 if loop.time() - begun < 1.0 else 0.0)
    await served.close()

    assert read >= PIECES * len(PIECE)
