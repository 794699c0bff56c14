"""TCP peers that misbehave on purpose: a server with a script of its own, and a proxy that loses what it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve *handler* on a free port; connections that are still open at the end are cut."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class Proxy:
    """Passes bytes on to a real server; told to, it swallows the next answer and cuts the line instead."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.swallow_answer = False
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers |= {writer, upstream}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, upstream, answers=False))
                group.create_task(self._pass(upstream_reader, writer, answers=True))
        except* OSError:
            pass
        finally:
            upstream.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        while data := await reader.read(65536):
            if answers and self.swallow_answer:
                self.swallow_answer = False
                self.cut()
                return
            writer.write(data)
            await writer.drain()
        writer.transport.abort()

    def cut(self) -> None:
        """Break every connection."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
