"""The line of the fault suite: each way of breaking it does what it says, and a mended line is a good one."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.faults.parts.proxy import BACK, TO, FaultProxy
from tests.support.servers.tcp import listening


@contextlib.asynccontextmanager
async def echoing():
    """Give a line to a server that echoes, and what the server has heard."""
    heard: list[bytes] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            heard.append(data)
            writer.write(data)
            await writer.drain()

    async with listening(echo) as port:
        line = await FaultProxy(port).start()
        try:
            yield line, heard
        finally:
            await line.stop()


async def said(reader: asyncio.StreamReader, limit_s: float = 0.3) -> bytes | None:
    """What comes within the limit; ``None`` for silence, empty for an end."""
    try:
        async with asyncio.timeout(limit_s):
            return await reader.read(100)
    except TimeoutError:
        return None
    except OSError:
        return b""


async def test_a_good_line_passes_everything():
    """Both ways, in order."""
    async with echoing() as (line, heard):
        reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
        writer.write(b"one")

        assert (await said(reader, 5), heard) == (b"one", [b"one"])
        writer.close()


async def test_a_line_cut_on_the_way_there_lets_nothing_arrive():
    """The server hears nothing, the client is told nothing, and after the mending its connection is broken."""
    async with echoing() as (line, heard):
        reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
        writer.write(b"one")
        assert await said(reader, 5) == b"one"
        line.cut(TO)
        writer.write(b"two")
        silent = await said(reader)
        line.mend()

        assert (silent, heard, await said(reader, 5)) == (None, [b"one"], b"")
        writer.close()


async def test_a_line_cut_on_the_way_back_is_heard_and_not_answered():
    """What was done and not acknowledged: the case that loses writes and doubles them."""
    async with echoing() as (line, heard):
        reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
        writer.write(b"one")
        assert await said(reader, 5) == b"one"
        line.cut(BACK)
        writer.write(b"two")
        silent = await said(reader)

        assert (silent, heard) == (None, [b"one", b"two"])
        writer.close()


async def test_a_connection_made_while_the_line_is_cut_leads_nowhere():
    """The kernel accepts it, and nothing comes of it, then or later."""
    async with echoing() as (line, heard):
        line.cut()
        reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
        writer.write(b"one")
        silent = await said(reader)
        line.mend()

        assert (silent, await said(reader, 5), heard) == (None, b"", [])
        writer.close()


async def test_a_reset_line_breaks_what_stands_and_what_comes():
    """Until it is mended."""
    async with echoing() as (line, _heard):
        old, old_writer = await asyncio.open_connection("127.0.0.1", line.port)
        old_writer.write(b"one")
        assert await said(old, 5) == b"one"
        line.reset()
        new, new_writer = await asyncio.open_connection("127.0.0.1", line.port)
        broken = (await said(old, 5), await said(new, 5))
        line.mend()
        good, good_writer = await asyncio.open_connection("127.0.0.1", line.port)
        good_writer.write(b"two")

        assert (broken, await said(good, 5)) == ((b"", b""), b"two")
        for writer in (old_writer, new_writer, good_writer):
            writer.close()


async def test_a_half_open_line_hides_that_the_server_is_gone():
    """The client's side stands and is silent."""
    async with echoing() as (line, heard):
        reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
        writer.write(b"one")
        assert await said(reader, 5) == b"one"
        line.half_open()
        writer.write(b"two")

        assert (await said(reader), heard) == (None, [b"one"])
        writer.close()


@pytest.mark.parametrize("how", ["slow", "throttle"])
async def test_a_slow_line_delivers_late(how):
    """Nothing in the first moment, everything in the end."""
    async with echoing() as (line, _heard):
        reader, writer = await asyncio.open_connection("127.0.0.1", line.port)
        writer.write(b"1")
        assert await said(reader, 5) == b"1"
        line.slow(0.4) if how == "slow" else line.throttle(25)
        writer.write(b"x" * 10)
        first = await said(reader, 0.2)

        assert (first, await said(reader, 5)) == (None, b"x" * 10)
        writer.close()


async def test_a_line_can_lose_what_a_replica_says_and_nothing_else():
    """The way to lose acknowledged writes: the primary answers its clients, and its replica hears nothing."""
    async with echoing() as (line, heard):
        client, client_writer = await asyncio.open_connection("127.0.0.1", line.port)
        replica, replica_writer = await asyncio.open_connection("127.0.0.1", line.port)
        replica_writer.write(b"REPLCONF one")
        assert await said(replica, 5) == b"REPLCONF one"
        line.cut_off("replica")
        replica_writer.write(b"two")
        client_writer.write(b"three")

        assert (await said(client, 5), await said(replica)) == (b"three", None)
        assert heard == [b"REPLCONF one", b"three"]
        for writer in (client_writer, replica_writer):
            writer.close()
