"""A real receiver of webhooks: an HTTP or HTTPS server that keeps what is posted and answers as a test says."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Posted:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Receiver:
    """Listens on loopback, each connection for one request, as the sender closes them.

    ``answer`` says the status, further header lines and how long to wait before answering.
    """

    tls: ssl.SSLContext | None = None
    received: list[Posted] = field(default_factory=list)
    answer: Callable[[Posted], tuple[int, str, float]] = lambda _posted: (204, "", 0.0)
    trickle: bytes = b""
    """Sent again and again as a body that never ends; empty: there is no body."""
    connections: int = 0
    open_now: int = 0
    most_open: int = 0

    async def __aenter__(self) -> Receiver:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls, limit=16_777_216)
        self.port = self._server.sockets[0].getsockname()[1]
        self._tasks: set[asyncio.Task] = set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def origin(self) -> str:
        """HOST:PORT for ``egress_allow``."""
        return f"127.0.0.1:{self.port}"

    async def until(self, true: Callable[[], bool], seconds: float = 20) -> None:
        """Wait until *true* returns true."""
        async with asyncio.timeout(seconds):
            while not true():
                await asyncio.sleep(0.02)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        self.connections += 1
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
            pass
        finally:
            self.open_now -= 1
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        posted = Posted(head[0].split(" ")[1], headers, body)
        self.received.append(posted)
        status, more, delay_s = self.answer(posted)
        await asyncio.sleep(delay_s)
        length = "content-length: 1000000000000" if self.trickle else "content-length: 0"
        writer.write(f"HTTP/1.1 {status} X\r\n{length}\r\nconnection: close\r\n{more}\r\n".encode())
        while self.trickle:
            writer.write(self.trickle)
            await writer.drain()
        await writer.drain()


def certificate(folder: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """Return the file of an authority and a server's TLS context with a certificate of it for *name*."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    crt, pem = folder / f"{name}.crt", folder / f"{name}.key"
    crt.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(crt, pem)
    return crt, context
