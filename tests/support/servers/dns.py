"""A real DNS server on this machine whose answers a test chooses, and a resolver that asks it."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Sequence
from ipaddress import ip_address

A, AAAA = 1, 28


class DnsServer(asyncio.DatagramProtocol):
    """Answers A and AAAA over UDP. Each query of a name takes the next of its answers; the last one stays."""

    def __init__(self, **names: Sequence[Sequence[str]]) -> None:
        self.names = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def __aenter__(self) -> DnsServer:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self.port = self._transport.get_extra_info("sockname")[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._transport.close()

    def datagram_received(self, data: bytes, addr) -> None:
        question, end = _question(data)
        name, kind = question
        answers = self.names.get(name, [[]])
        if kind == A:
            self.asked.append(name)
        current = answers[0]
        if kind == AAAA and len(answers) > 1:
            answers.pop(0)  # a resolver asks for A, then for AAAA: both see the same answer
        found = [ip_address(text) for text in current if (ip_address(text).version == 4) == (kind == A)]
        header = data[:2] + struct.pack(">HHHHH", 0x8180, 1, len(found), 0, 0)
        records = b"".join(
            b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(address.packed)) + address.packed for address in found
        )
        self._transport.sendto(header + data[12:end] + records, addr)

    async def resolve(self, host: str, port: int) -> list[str]:
        """Ask this server over UDP: a resolver for ``Egress``."""
        del port
        found = [*await self._ask(host, A), *await self._ask(host, AAAA)]
        if not found:
            raise OSError("no such name")
        return found

    async def _ask(self, host: str, kind: int) -> list[str]:
        loop = asyncio.get_running_loop()
        answered = loop.create_future()
        transport, _ = await loop.create_datagram_endpoint(
            lambda: _Asking(answered), remote_addr=("127.0.0.1", self.port)
        )
        number = next(_NUMBERS) & 0xFFFF
        name = b"".join(bytes([len(label)]) + label.encode() for label in host.split(".")) + b"\0"
        transport.sendto(struct.pack(">HHHHHH", number, 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", kind, 1))
        try:
            async with asyncio.timeout(5):
                return _addresses(await answered, kind)
        finally:
            transport.close()


_NUMBERS = itertools.count(1)


class _Asking(asyncio.DatagramProtocol):
    def __init__(self, answered: asyncio.Future) -> None:
        self._answered = answered

    def datagram_received(self, data: bytes, addr) -> None:
        if not self._answered.done():
            self._answered.set_result(data)


def _question(data: bytes) -> tuple[tuple[str, int], int]:
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]].decode())
        at += 1 + data[at]
    (kind,) = struct.unpack(">H", data[at + 1 : at + 3])
    return (".".join(labels).lower(), kind), at + 5


def _addresses(data: bytes, kind: int) -> list[str]:
    (count,) = struct.unpack(">H", data[6:8])
    at, found = _question(data)[1], []
    for _ in range(count):
        found_kind, _, _, length = struct.unpack(">HHIH", data[at + 2 : at + 12])
        if found_kind == kind:
            found.append(str(ip_address(data[at + 12 : at + 12 + length])))
        at += 12 + length
    return found
