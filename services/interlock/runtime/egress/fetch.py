"""Egress: the only way to call an address that another party chose. It is checked, resolved, and connected to as checked.

The URL of a webhook or a report is untrusted input (reliability.md A-18, SPEC-006 §7.2). It must have https, a host name and a
listed port, and every address of the name must be public. The connection goes to a checked address, and the certificate is
verified for the name. No redirect is followed, no proxy of the environment is used, and the body of the answer is never read.
``egress_allow`` makes exceptions for single origins by host and port, but never for a link-local or metadata address.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cached_property
from ipaddress import ip_address
from time import time
from typing import Any

import httpcore

from interlock.domain.errors import Kind, Refused, exhausted, invalid, unavailable
from interlock.runtime.egress.addresses import Target, allowed_origins, check_addresses, check_url

SLOTS = 32
SLOTS_OF_ONE = 2
"""Maximum concurrent connections, in total and to one origin: a slow origin holds no more than its share."""

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns every address of a host name. Raises ``OSError`` for a name without addresses."""

_HEADER = re.compile(r"[ -~]*", re.ASCII)


@dataclass(frozen=True)
class HttpReply:
    """The parts of the answer that are read: its body is not."""

    status: int
    retry_after_s: float | None = None


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Return every address of *host* from the machine's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Egress:
    """Posts to addresses that another party chose."""

    def __init__(
        self, *, allow: str = "", ca_file: str | None = None, resolver: Resolver = system_resolver, slots: int = SLOTS
    ) -> None:
        self._allowed, self._resolver = allowed_origins(allow), resolver
        self._ca_file = ca_file
        self._free, self._busy = slots, dict[str, int]()

    @cached_property
    def _ssl(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context

    def check(self, url: str) -> Target:
        """Return the target of *url*. Refused like ``check_url``."""
        return check_url(url, self._allowed)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, deadline_s: float) -> HttpReply:
        """Post *body* and return the status.

        Refused with a reason of ``check_url`` for a forbidden target; otherwise with EGRESS_DEADLINE_EXCEEDED, EGRESS_BUSY,
        EGRESS_UNRESOLVED or EGRESS_FAILED. The body may have arrived even then.
        """
        target = self.check(url)
        if not all(_HEADER.fullmatch(part) for pair in headers.items() for part in pair):
            raise invalid("EGRESS_HEADER_INVALID", "a header contains a control character")
        self._take(target.origin)
        try:
            async with asyncio.timeout(deadline_s):
                addresses = check_addresses(target, await self._resolved(target))
                return await self._posted(target, addresses, body, headers)
        except TimeoutError:
            raise Refused(Kind.TIMEOUT, "EGRESS_DEADLINE_EXCEEDED", "the receiver took too long") from None
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
            ssl.SSLError,
            OSError,
        ) as error:
            raise unavailable("EGRESS_FAILED", "the receiver did not answer", cause=type(error).__name__) from None
        finally:
            self._give(target.origin)

    def _take(self, origin: str) -> None:
        busy = self._busy.get(origin, 0)
        if self._free <= 0 or busy >= SLOTS_OF_ONE:
            raise exhausted("EGRESS_BUSY", "too many outgoing calls are in progress")
        self._free, self._busy[origin] = self._free - 1, busy + 1

    def _give(self, origin: str) -> None:
        self._free += 1
        self._busy[origin] -= 1
        if not self._busy[origin]:
            del self._busy[origin]

    async def _resolved(self, target: Target) -> Sequence[str]:
        try:
            return [str(ip_address(target.host))]  # only a host in egress_allow can be an address here
        except ValueError:
            pass
        try:
            return await self._resolver(target.host, target.port)
        except OSError:
            raise unavailable("EGRESS_UNRESOLVED", "the name has no address") from None

    async def _posted(
        self, target: Target, addresses: Sequence[str], body: bytes, headers: Mapping[str, str]
    ) -> HttpReply:
        pinned = _Pinned(addresses)
        context = self._ssl if target.scheme == "https" else None
        pool = httpcore.AsyncConnectionPool(ssl_context=context, network_backend=pinned, max_connections=1)
        url = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        host = f"[{target.host}]" if ":" in target.host else target.host
        standard = {443: "https", 80: "http"}.get(target.port) == target.scheme
        sent = {"host": host if standard else f"{host}:{target.port}", "connection": "close", **headers}
        async with pool, pool.stream("POST", url, headers=[*sent.items()], content=body) as answer:
            return HttpReply(answer.status, _retry_after(answer.headers))


class _Pinned(httpcore.AsyncNetworkBackend):
    """Connects to the checked addresses in order, whatever host the caller names."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses, self._inner = addresses, httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Open a connection to the first address that accepts one."""
        del host, local_address
        failed: Exception | None = None
        for address in self._addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout=timeout, socket_options=socket_options)
            except httpcore.ConnectError as error:
                failed = error
        raise failed or httpcore.ConnectError

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Refuse: no local socket is called."""
        raise httpcore.ConnectError

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


def _retry_after(headers: Iterable[tuple[bytes, bytes]]) -> float | None:
    """Return the seconds of a Retry-After in either form; ``None`` for an invalid one."""
    text = next((value for name, value in headers if name.lower() == b"retry-after"), b"").decode("latin-1")
    if re.fullmatch(r"[0-9]{1,9}", text, re.ASCII):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time())
    except (ValueError, TypeError, OverflowError):
        return None
