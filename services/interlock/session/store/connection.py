"""One multiplexed connection to Redis or Valkey: commands of one tick go out together, replies come back in order.

A pool of connections, one per call, costs several times as much (bench/settle.py compares ours with redis-benchmark).
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

import hiredis
from redis.asyncio.connection import SSLConnection, parse_url

from interlock.domain.errors import Refused, invalid, unavailable

_OPTIONS = frozenset({
    "connection_class", "host", "port", "path", "db", "username", "password",
    "ssl_ca_certs", "ssl_certfile", "ssl_keyfile",
})  # fmt: skip


_PLACE = re.compile(r"(?P<host>[A-Za-z0-9_.-]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,5})", re.ASCII)
_MASTER = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)


def store_unavailable(error: str) -> Refused:
    """Return the one refusal for a store that cannot answer; *error* is a constant word for operators."""
    return unavailable("SESSION_STORE_UNAVAILABLE", "the session store cannot answer now", error=error)


@dataclass(frozen=True)
class Sentinels:
    """The sentinels of one master, by its name."""

    places: tuple[tuple[str, int], ...]
    master: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Address:
    """Where the store is and who we are there. Never logged: it holds the password."""

    host: str
    port: int
    path: str
    db: int
    username: str
    password: str = field(repr=False)
    tls: ssl.SSLContext | None
    sentinels: Sentinels | None = None
    """Who knows which server it is now; ``None`` for a server of that very address."""


def parse(url: str) -> Address:
    """Return the address in a ``redis://``, ``rediss://`` or ``unix://`` URL. Refused with REDIS_URL_INVALID.

    TLS always verifies the server's certificate and name, against ``ssl_ca_certs`` when it is given.
    ``sentinel://[user:password@]host:port,host:port/master-name`` is a master that sentinels name; with ``sentinels://`` they
    and the master speak TLS. Options in addition to those of ``redis://``: ``db`` and ``sentinel_password``.
    """
    if url.startswith(("sentinel://", "sentinels://")):
        return _sentinels(url)
    try:
        found: dict[str, Any] = dict(parse_url(url))
        tls = _tls(found) if found.get("connection_class") is SSLConnection else None
    except (ValueError, OSError) as error:
        # The text of the error may quote the URL, and with it the password.
        raise _unusable(type(error).__name__) from None
    if unknown := sorted(set(found) - _OPTIONS):
        raise _unusable(f"it has the option {unknown[0]}, which is not known here")
    return Address(
        host=found.get("host", "localhost"),
        port=found.get("port", 6379),
        path=found.get("path", ""),
        db=found.get("db", 0),
        username=found.get("username") or "",
        password=found.get("password") or "",
        tls=tls,
    )


def _sentinels(url: str) -> Address:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    password, db = options.pop("sentinel_password", ""), options.pop("db", "0")
    user, _, hosts = parts.netloc.rpartition("@")
    places = [_PLACE.fullmatch(place) for place in hosts.split(",")]
    master = parts.path.removeprefix("/")
    if not all(places) or not _MASTER.fullmatch(master) or not db.isdecimal() or parts.fragment:
        raise _unusable("it must be sentinel://host:port,host:port/master-name")
    scheme = "rediss" if parts.scheme == "sentinels" else "redis"
    query = f"?{urlencode(options)}" if options else ""
    base = parse(f"{scheme}://{user + '@' if user else ''}localhost/{db}{query}")
    known = tuple((place["host"].strip("[]"), int(place["port"])) for place in places if place)
    return replace(base, sentinels=Sentinels(known, master, password))


def _unusable(why: str) -> Refused:
    return invalid("REDIS_URL_INVALID", f"redis_url cannot be used: {why}")


def _tls(options: dict[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate := options.get("ssl_certfile"):
        context.load_cert_chain(certificate, options.get("ssl_keyfile"))
    return context


async def connect(address: Address, *, timeout_s: float) -> Connection:
    """Return an authenticated connection, or refuse with SESSION_STORE_UNAVAILABLE within *timeout_s*."""
    loop = asyncio.get_running_loop()
    connection = Connection(loop, timeout_s=timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            if address.path:
                await loop.create_unix_connection(lambda: connection, address.path)
            else:
                await loop.create_connection(lambda: connection, address.host, address.port, ssl=address.tls)
            await _introduce(connection, address)
    except TimeoutError:
        connection.abort("CONNECT_TIMEOUT")
        raise store_unavailable("CONNECT_TIMEOUT") from None
    except OSError as error:
        # A certificate that does not verify is an OSError too (ssl.SSLError).
        connection.abort("CONNECT_FAILED")
        raise store_unavailable(f"CONNECT_FAILED {type(error).__name__}") from None
    except BaseException:
        connection.abort("CONNECT_FAILED")
        raise
    return connection


async def _introduce(connection: Connection, address: Address) -> None:
    if address.password:
        user = (address.username,) if address.username else ()
        _accepted(await connection.send("AUTH", *user, address.password))
    if address.db:
        _accepted(await connection.send("SELECT", address.db))


def _accepted(reply: Any) -> None:
    if isinstance(reply, hiredis.ReplyError):
        raise store_unavailable(code_of(reply))


def code_of(error: Exception) -> str:
    """Return the constant first word of an error reply, such as OOM or NOAUTH."""
    word = str(error).partition(" ")[0]
    return word if word.isascii() and word.isupper() and word.isalnum() else "ERR"


@dataclass(frozen=True)
class StoreServer:
    """A server as it describes itself."""

    epoch: str
    """Short digest of its run id and replication id."""
    master: bool
    unfit: str
    """Why it may lose sessions, with what to set; empty when it is fit."""
    hint: str
    """What would make it safer; it is used all the same."""
    cluster: bool = False
    """Whether it is one of a Cluster."""


class Connection(asyncio.Protocol):
    """Sends commands and hands out their replies. Once it has failed it stays closed, and every waiting call is refused."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, timeout_s: float) -> None:
        self.closed = False
        self.chosen = False
        """Whether sentinels named this server: another one may be the master by now."""
        self.server: StoreServer | None = None
        """Who is at the other end; learned before the first script runs."""
        self._loop = loop
        self._timeout_s = timeout_s
        self._reader = hiredis.Reader()
        self._waiting: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._unsent: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._watch: asyncio.TimerHandle | None = None

    def send(self, *command: Any) -> asyncio.Future[Any]:
        """Return the reply to come; an error reply is a value of ``hiredis.ReplyError``.

        Cancelling the future leaves every other call alone: the reply is read and dropped.
        """
        if self.closed:
            raise store_unavailable("CONNECTION_LOST")
        reply: asyncio.Future[Any] = self._loop.create_future()
        packed = hiredis.pack_command(command)
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(packed)
        self._waiting.append((self._loop.time(), reply))
        if self._watch is None:
            self._watch = self._loop.call_later(self._timeout_s, self._check_age)
        return reply

    def abort(self, why: str) -> None:
        """Close at once; waiting calls are refused with *why*."""
        if self.closed:
            return
        self.closed = True
        if self._watch:
            self._watch.cancel()
        if self._transport:
            self._transport.abort()
        self._unsent.clear()
        for _, reply in self._waiting:
            if not reply.done():
                reply.set_exception(store_unavailable(why))
        self._waiting.clear()

    def _flush(self) -> None:
        if self._transport and self._unsent:
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def _check_age(self) -> None:
        """Give up on a silent server: a late answer would no longer have a caller."""
        self._watch = None
        if not self._waiting:
            return
        left = self._waiting[0][0] + self._timeout_s - self._loop.time()
        if left <= 0:
            self.abort("TIMEOUT")
        else:
            self._watch = self._loop.call_later(left, self._check_age)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (asyncio's callback)."""
        # Not checked by isinstance: uvloop's transports are no subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        if self.closed:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Hand replies to those who wait, in order (asyncio's callback)."""
        self._reader.feed(data)
        try:
            while (answer := self._reader.gets()) is not False:
                if not self._waiting:
                    self.abort("PROTOCOL")
                    return
                _, reply = self._waiting.popleft()
                if not reply.done():
                    reply.set_result(answer)
        except hiredis.ProtocolError:
            self.abort("PROTOCOL")

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everyone who waits (asyncio's callback)."""
        del exc
        self.abort("CONNECTION_LOST")
