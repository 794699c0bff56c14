"""A-22: bodies that grow, requests that never end and calls that are taken back cost a bounded amount of memory and time."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import sys
import zlib

import psutil
import pytest

from tests.support.sidecar.sidecar import reason_of, running_sidecar
from tests.wire.sidecar.test_http_raw_wire import BODY, START, said, whole

pytest_plugins = ("tests.support.sidecar.fronts",)

MIB = 2**20
BOMB = {
    "gzip": gzip.compress(b" " * 50 * MIB),
    "deflate": zlib.compress(b" " * 50 * MIB),
    "br": b"\x81",
    "zstd": b"\x28\xb5\x2f\xfd",
}


def resident() -> int:
    return psutil.Process(os.getpid()).memory_info().rss


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("SVC-3")
@pytest.mark.parametrize("coding", [*BOMB, "gzip, gzip", "identity, gzip", "x-gzip"])
async def test_a22_a_compressed_body_is_refused_before_it_is_opened(shared_sidecar, provider, coding):
    """50 MiB in 50 KiB: 415, and no memory for what it would have become."""
    before = resident()
    headers = {"content-type": "application/json", "content-encoding": coding}
    answer = await shared_sidecar.client.post(
        "/v1/chat/completions", content=BOMB.get(coding, BOMB["gzip"]), headers=headers
    )

    assert (answer.status_code, reason_of(answer)) == (415, "UNSUPPORTED_ENCODING")
    assert resident() - before < 20 * MIB
    assert provider.received == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("SVC-3")
async def test_a22_a_multipart_body_is_no_way_in(shared_sidecar, provider):
    """Ten thousand parts are one content type that is not spoken here."""
    part = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n'
    headers = {"content-type": "multipart/form-data; boundary=x"}
    answer = await shared_sidecar.client.post("/v1/chat/completions", content=part * 1000, headers=headers)

    assert (answer.status_code, reason_of(answer)) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert provider.received == []


@pytest.mark.req("SVC-4")
@pytest.mark.parametrize(
    "begun", [b"", b"POST /v1/chat", START, START + b"X-A: ", whole()[: -len(BODY) - 2]], ids=["nothing", "line", "head", "value", "end"]
)  # fmt: skip
async def test_a22_a_head_that_does_not_end_is_ended(tmp_path, upstream, provider, begun):
    """Slow-loris: one byte now and then keeps no connection; it is told so and closed, and others are served meanwhile."""
    async with running_sidecar(tmp_path, upstream=upstream, head_timeout_s=0.5) as sidecar:
        port = int(sidecar.http.rsplit(":", 1)[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        reading = asyncio.create_task(_told(reader))
        writer.write(begun)
        dripping = asyncio.create_task(_drip(writer))
        good = await sidecar.chat()
        answer = await asyncio.wait_for(reading, 10)
        dripping.cancel()
        writer.close()

    assert good.status_code == 200
    assert answer.split(b" ")[1] in ({b"400", b"408"} if not begun else {b"408"})
    assert len(provider.received) == 1


async def _told(reader: asyncio.StreamReader) -> bytes:
    """What the server says before it closes: a byte that drips in afterwards resets the connection, and a late reader gets nothing."""
    said = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while chunk := await reader.read(4096):
            said += chunk
    return bytes(said)


async def _drip(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while True:
            await asyncio.sleep(0.1)
            writer.write(b"a")


async def test_a22_a_head_without_end_is_cut_off_at_its_bound(sidecar, provider):
    """A header line of megabytes is not kept until its end comes: 431, and the connection is closed."""
    before = resident()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sidecar.http.rsplit(":", 1)[1]))
    writer.write(START + b"X-Padding: ")
    with contextlib.suppress(OSError):
        for _ in range(64):
            writer.write(b"a" * 65_536)
            await writer.drain()
    answer = b""
    with contextlib.suppress(ConnectionError):  # cut off while the rest was still on its way
        answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()

    assert answer == b"" or answer.startswith(b"HTTP/1.1 431")
    assert resident() - before < 20 * MIB
    assert (await sidecar.chat()).status_code == 200
    assert len(provider.received) == 1


async def test_a22_what_follows_a_body_is_nobodys_header(sidecar, provider):
    """A trailer adds nothing to the head that was decided upon."""
    data = START.replace(b"Connection: close\r\n", b"") + b"Transfer-Encoding: chunked\r\n\r\n"
    chunks = f"{len(BODY):x}".encode() + b"\r\n" + BODY + b"\r\n0\r\n"
    answer = await said(sidecar, data + chunks + b"CRP-Safety-Mode: strict\r\nCRP-Nonsense: 1\r\n\r\n" + whole())

    assert answer.count(b"HTTP/1.1 200") == 2
    assert b"block-ungrounded" not in answer
    assert len(provider.received) == 2


KEPT = 64
"""Connections to the provider that are kept for the next call."""


async def _taken_back(sidecar, provider, count: int) -> tuple[int, int, int]:
    """Have *count* calls begun and taken back, again and again; return growth of memory, of files and of tasks.

    The client is another process: what cancelling costs it is not ours.
    """
    provider.hangs()
    process = psutil.Process(os.getpid())
    command = [sys.executable, "-m", "tests.support.taken_back", sidecar.grpc, sidecar.http, str(count)]
    for round_ in range(3):  # the first round warms up
        if round_ == 1:
            await asyncio.sleep(0.2)
            before = process.memory_info().rss, process.num_fds(), len(asyncio.all_tasks())
        client = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        )
        assert await client.wait() == 0
        assert provider.received, "they are to be taken back at every step, under way too"
        provider.received.clear()
    with contextlib.suppress(
        TimeoutError
    ):  # what is still too much then is told as growth; a socket closes a moment after its task
        async with asyncio.timeout(10):
            while len(asyncio.all_tasks()) > before[2] or process.num_fds() > before[1] + KEPT:
                await asyncio.sleep(0.05)
    after = process.memory_info().rss, process.num_fds(), len(asyncio.all_tasks())
    return after[0] - before[0], after[1] - before[1], after[2] - before[2]


@pytest.mark.req("SVC-4", "BUD-5")
async def test_a22_calls_that_are_taken_back_leave_nothing(tmp_path, upstream, provider):
    """Hundreds of cancelled gRPC calls and cut connections: no task, no file, no memory stays, and the next call is served."""
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        memory, files, tasks = await _taken_back(sidecar, provider, 256)
        provider.answers("Fine.")
        good = await sidecar.chat()

    assert good.status_code == 200
    assert tasks <= 0
    assert files <= KEPT
    assert memory < 48 * MIB


@pytest.mark.long
@pytest.mark.req("SVC-4")
async def test_a22_thousands_of_streams_that_are_taken_back_leave_nothing(tmp_path, upstream, provider, redis_url):
    """Rapid reset at length: cancelled streams leave what bounded caches hold; the sessions that they began are in the store."""
    async with running_sidecar(tmp_path, upstream=upstream, redis_url=redis_url) as sidecar:
        memory, files, tasks = await _taken_back(sidecar, provider, 2_000)

    assert tasks <= 0
    assert files <= KEPT
    assert memory < 64 * MIB
