"""A provider that closes connections which it has answered on: the next call goes through, and none is asked for twice."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from functools import partial
from ipaddress import ip_address

import certifi
import httpx
import pytest
from cryptography import x509

from interlock.runtime.egress.connections import ReusingTransport
from tests.support.servers.provider import completion, message
from tests.support.servers.tcp import listening
from tests.support.servers.tls import a_mesh_of_certificates, issue
from tests.support.sidecar.sidecar import reason_of, running_sidecar

pytestmark = pytest.mark.req("SVC-3", "SVC-9")

BODY = json.dumps(completion(message("It is fine."))).encode()
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)


def reset(writer: asyncio.StreamWriter) -> None:
    """Have the end of this connection be a reset."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class ClosingProvider:
    """Answers the first request of a connection, then ends it in the way that a test has told it."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self.connections = 0
        self.after_s: float | None = None
        """How long after an answer it closes; ``None``: it does not."""
        self.second: Callable[[asyncio.StreamWriter], object] | None = None
        """What it does to a connection on its second request, before it closes without a word."""
        self.beyond = b""
        """What it sends beyond each answer."""
        self.has_head = asyncio.Event()
        """Set while a request has begun that is not whole."""
        self.writer: asyncio.StreamWriter

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writer = writer
        for served in itertools.count():
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            self.has_head.set()
            await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r")[0] or 0))
            self.has_head.clear()
            self.received.append(head.split()[0])
            if served and self.second:
                self.second(writer)
                return
            writer.write(ANSWER + self.beyond)
            await writer.drain()
            if self.after_s is not None:
                await asyncio.sleep(self.after_s)
                return

    async def close_idle(self) -> None:
        """Close the last connection as servers do, with a goodbye under TLS, and return when that is on its way."""
        self.writer.close()
        await asyncio.sleep(0.02)

    async def close_midway(self) -> None:
        """End the last connection when it has the head of a request, and not its body."""
        await self.has_head.wait()
        self.writer.transport.abort()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


@pytest.fixture
def provider():
    """A provider that closes nothing yet."""
    return ClosingProvider()


@pytest.mark.parametrize("after_s", [0.0, 0.05])
async def test_a_provider_that_closes_after_each_answer_is_called_as_often_as_asked(tmp_path, provider, after_s):
    """It does not say that it will close; every call is answered, and each was asked once."""
    provider.after_s = after_s
    async with (
        listening(provider.handle) as port,
        running_sidecar(tmp_path, upstream=f"http://127.0.0.1:{port}/v1") as sidecar,
    ):
        found = []
        for _ in range(6):
            found.append((await sidecar.chat()).status_code)
            await asyncio.sleep(after_s * 1.2)

    assert found == [200] * 6
    assert provider.received == ["post"] * 6


@pytest.mark.parametrize("how", [lambda _writer: None, reset], ids=["closed", "reset"])
async def test_a_provider_that_closes_on_a_request_fails_one_call_and_not_every_second(tmp_path, provider, how):
    """The request had arrived, so it is refused and never asked twice; from then on no connection is used again."""
    provider.second = how
    async with (
        listening(provider.handle) as port,
        running_sidecar(tmp_path, upstream=f"http://127.0.0.1:{port}/v1") as sidecar,
    ):
        answers = [await sidecar.chat() for _ in range(7)]

    assert [one.status_code for one in answers] == [200, 502] + [200] * 5
    assert reason_of(answers[1]) == "UPSTREAM_DISCONNECTED"
    assert len(provider.received) == len(answers)
    assert provider.connections == 6


async def asked(client: httpx.AsyncClient, url: str, at: str, act: Callable[[], Awaitable[None]]) -> httpx.Response:
    """Post, with something done once, at a step of httpcore's."""
    left = [act]

    async def trace(event: str, _info: object) -> None:
        if event == at and left:
            await left.pop()()

    return await client.post(url, content=b"{}" * 40_000, extensions={"trace": trace})


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(
    ("at", "act"), [("headers", ClosingProvider.close_idle), ("body", ClosingProvider.close_midway)]
)
async def test_a_request_that_meets_the_close_on_its_way_is_sent_again(provider, at, act, tls, monkeypatch, tmp_path):
    """Ended after the pool looked at the connection, or in the middle of the request: the provider gets it whole once."""
    context = _trusted(monkeypatch, tmp_path) if tls else None
    async with (
        listening(provider.handle, context) as port,
        httpx.AsyncClient(transport=ReusingTransport(4)) as client,
    ):
        url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1"
        await client.post(url, content=b"{}")
        again = await asked(client, url, f"http11.send_request_{at}.started", partial(act, provider))

    assert again.content == BODY
    assert (provider.received, provider.connections) == (["post", "post"], 2)


async def test_what_may_be_asked_twice_is_asked_again(provider):
    """A list of models, received and not answered: it costs nothing."""
    provider.second = lambda _writer: None
    async with (
        listening(provider.handle) as port,
        httpx.AsyncClient(transport=ReusingTransport(4)) as client,
    ):
        found = [await client.get(f"http://127.0.0.1:{port}/v1") for _ in range(2)]

    assert [one.status_code for one in found] == [200, 200]
    assert provider.received == ["get"] * 3


ANOTHERS = ANSWER.replace(b"It is fine.", b"Not for you")


@pytest.mark.parametrize("more", [ANOTHERS, b"HTTP/1.1 200 OK\r\nx-begun: "], ids=["an-answer", "half-a-head"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_what_comes_beyond_an_answer_is_no_answer_to_the_next_call(provider, tls, more, monkeypatch, tmp_path):
    """A provider that is out of step, or a proxy before it, would give one caller's answer to another."""
    provider.beyond = more
    context = _trusted(monkeypatch, tmp_path) if tls else None
    async with (
        listening(provider.handle, context) as port,
        httpx.AsyncClient(transport=ReusingTransport(4)) as client,
    ):
        url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1"
        found = [(await client.post(url, content=b"{}")).content for _ in range(3)]

    assert (found, provider.connections) == ([BODY] * 3, 3)


def _trusted(monkeypatch, folder):
    """Return the context of a server for this address, whose authority every client here trusts."""
    held = issue(a_mesh_of_certificates(folder), "provider", [x509.IPAddress(ip_address("127.0.0.1"))])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(held["tls_cert_file"], held["tls_key_file"])
    monkeypatch.setattr(certifi, "where", lambda: str(held["tls_ca_file"]))
    return context
