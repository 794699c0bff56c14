"""Which server of a Cluster a key lies on: slots, redirections and the links to every server that we were sent to.

A single server never redirects, so none of this is used with one. A tree of sessions has one hash tag, so every script stays
on one server, and trees spread over all of them.
"""

from __future__ import annotations

import asyncio
import binascii
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import hiredis

from interlock.domain.errors import Refused
from interlock.session.store.connection import Address, Connection, StoreServer, code_of, connect, store_unavailable
from interlock.session.store.fitness import CHECK_EVERY_S, learn
from interlock.session.store.sentinel import connect_master, follow

SLOTS = 16_384
REDIRECTIONS = 5
"""How often one call follows before it is refused."""

MOST_SERVERS = 1000
LEARN_EVERY_S = 1.0
OUR_KEYS = "il:"


def slot_of(key: str) -> int:
    """Return the slot of a key: CRC-16 of its hash tag, or of all of it when there is none."""
    start = key.find("{")
    end = key.find("}", start + 1)
    tag = key[start + 1 : end] if start >= 0 and end > start + 1 else key
    return binascii.crc_hqx(tag.encode(), 0) % SLOTS


def beside(tag: str, other: str) -> str:
    """Return *tag* with other last five hex digits, so that as a hash tag it has the slot of *other*.

    The digits are tried from those of *tag* on: a random tag gives a random one.
    """
    wanted, head = slot_of(other), binascii.crc_hqx(tag[:-5].encode(), 0)
    first = int(tag[-5:], 16)
    for step in range(0x100000):
        tail = f"{(first + step) & 0xFFFFF:05x}"
        if binascii.crc_hqx(tail.encode(), head) % SLOTS == wanted:
            return tag[:-5] + tail
    raise ValueError("five hex digits reach every slot")  # a test shows it for all of them


class ServerLink:
    """One server: its connection is made when the first call comes, and again after it was lost."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        self.connection: Connection | None = None
        self._address = address
        self._timeout_s = timeout_s
        self._connecting: asyncio.Task[Connection | Refused] | None = None
        self._learning: asyncio.Task[StoreServer | Refused] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._closed = False

    async def ready(self) -> Connection:
        """Return the connection that all callers share while it is being made. One who leaves does not end it."""
        if self.connection and not self.connection.closed:
            return self.connection
        if self._closed:
            raise store_unavailable("CLOSED")
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._made)
        made = await asyncio.shield(self._connecting)
        if isinstance(made, Refused):
            raise store_unavailable(made.metadata["error"])
        return made

    async def known(self, connection: Connection) -> StoreServer:
        """Return who is at the other end of *connection*, and look again every minute; asked once for all callers."""
        if connection.server:
            return connection.server
        if self._learning is None or self._learning.done():
            self._learning = asyncio.create_task(self._learn(connection))
        learned = await asyncio.shield(self._learning)
        if isinstance(learned, Refused):
            raise store_unavailable(learned.metadata["error"])
        return learned

    async def _learn(self, connection: Connection) -> StoreServer | Refused:
        try:
            server = await learn(connection)
        except Refused as refused:
            return refused
        connection.server = server
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        return server

    async def _watch(self) -> None:
        """Notice settings that change, and a history that was replaced under an open connection."""
        while (connection := self.connection) and not connection.closed:
            await asyncio.sleep(CHECK_EVERY_S)
            with contextlib.suppress(Refused):
                await refresh(connection)

    async def close(self) -> None:
        """Close the connection; calls that wait, or come later, are refused."""
        self._closed = True
        for task in (self._watching, self._following):
            if task:
                task.cancel()
        for made in (self._connecting, self._learning):
            if made:
                await asyncio.wait([made])  # bounded by its own time limit
        if self.connection:
            self.connection.abort("CLOSED")

    async def _connect(self) -> Connection | Refused:
        try:
            if not self._address.sentinels:
                return await connect(self._address, timeout_s=self._timeout_s)
            connection, place = await connect_master(self._address, timeout_s=self._timeout_s)
        except Refused as refused:
            return refused
        if self._following:
            self._following.cancel()
        self._following = asyncio.create_task(follow(self._address, connection, place))
        return connection

    def _made(self, task: asyncio.Task[Connection | Refused]) -> None:
        self._connecting = None
        if not task.cancelled() and isinstance(made := task.result(), Connection):
            self.connection = made


async def refresh(connection: Connection) -> StoreServer:
    """Ask a server again who it is; a connection whose server took over another history is given up."""
    server, before = await learn(connection), connection.server
    if before and before.epoch != server.epoch:
        connection.abort("CONNECTION_LOST")
    connection.server = server
    return server


class Routes:
    """Knows a link for every call: the configured server's, until a server of a Cluster lists the others."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        self._home = self.entry = ServerLink(address, timeout_s)
        self._address = address
        self._timeout_s = timeout_s
        self._links: dict[tuple[str, int], ServerLink] = {}
        self._slots: dict[int, ServerLink] = {}
        self._learning: asyncio.Task[None] | None = None
        self._learned_at = float("-inf")
        self._closed = False

    def link(self, command: Sequence[str | int | bytes]) -> ServerLink:
        """Return where to send a command first."""
        if not self._slots:
            return self.entry
        key = str(command[3] if str(command[0]).startswith("EVAL") else command[1] if len(command) > 1 else "")
        return self._slots.get(slot_of(key), self.entry) if key.startswith(OUR_KEYS) else self.entry

    async def follow(
        self, reply: Any, connection: Connection, send: Callable[[Connection], asyncio.Future[Any]]
    ) -> tuple[Any, Connection]:
        """Return the reply of the server that a reply redirects to, and of the next, within a bound, and who gave it.

        *send* sends the command again.
        """
        for _ in range(REDIRECTIONS):
            if not isinstance(reply, hiredis.ReplyError) or code_of(reply) not in {"MOVED", "ASK"}:
                break
            how, slot, target = str(reply).split(" ")[:3]
            link = self._named(target)
            try:
                connection = await link.ready()
                await link.known(connection)
                if how == "MOVED":
                    self._slots[int(slot)] = link
                    self._learn(connection)
                    reply = await send(connection)
                else:  # ASK: the slot is on its way there, so it is for this call only
                    _, reply = await asyncio.gather(connection.send("ASKING"), send(connection))
            except Refused:
                self.lost(link)
                raise
        return reply, connection

    async def primaries(self) -> list[Connection]:
        """Return a connection to each server that has slots, the one at the way in where there is no Cluster."""
        entry = await self.entry.ready()
        if not (await self.entry.known(entry)).cluster:
            return [entry]
        await self._read_slots(entry)
        if not self._slots:
            raise store_unavailable("CLUSTER")
        return [await link.ready() for link in dict.fromkeys(self._slots.values())]

    def lost(self, link: ServerLink) -> None:
        """Forget what a server held that cannot be reached; where it was the way in, take another one next time."""
        if not self._links:
            return
        self._slots = {slot: held for slot, held in self._slots.items() if held is not link}
        if link is self.entry:
            others = [other for other in (self._home, *self._links.values()) if other is not link]
            # One that answers, before one that may have gone too.
            self.entry = next(
                (other for other in others if other.connection and not other.connection.closed), others[0]
            )

    async def close(self) -> None:
        """Close every connection. A call that is redirected from now on is refused."""
        self._closed = True
        if self._learning:
            await asyncio.wait([self._learning])
        for link in (self._home, *self._links.values()):
            await link.close()

    def _named(self, target: str) -> ServerLink:
        host, _, port = target.rpartition(":")
        if not port.isdecimal() or len(self._links) >= MOST_SERVERS:
            raise store_unavailable("MOVED")
        return self._at(host.strip("[]"), int(port))

    def _at(self, host: str, port: int) -> ServerLink:
        """Return the link to a server; without a name it is the host that we know."""
        place = (host or self._address.host, port)
        if place == (self._address.host, self._address.port):
            return self._home
        if place not in self._links:
            if self._closed:
                raise store_unavailable("CLOSED")
            address = replace(self._address, host=place[0], port=port, path="")
            self._links[place] = ServerLink(address, self._timeout_s)
        return self._links[place]

    def _learn(self, connection: Connection) -> None:
        """Ask for all slots at once, now and then, so that not every new tree is redirected first."""
        now = asyncio.get_running_loop().time()
        if self._learning is None and now - self._learned_at >= LEARN_EVERY_S:
            self._learned_at = now
            self._learning = asyncio.create_task(self._read_slots(connection))
            self._learning.add_done_callback(self._read)

    def _read(self, task: asyncio.Task[None]) -> None:
        del task
        self._learning = None

    async def _read_slots(self, connection: Connection) -> None:
        try:
            ranges = await connection.send("CLUSTER", "SLOTS")
            for first, last, (host, port, *_), *_ in ranges if isinstance(ranges, list) else ():
                link = self._at((host or b"").decode(), port)
                self._slots.update(dict.fromkeys(range(first, last + 1), link))
        except (Refused, ValueError, TypeError, AttributeError):
            return  # redirections teach the same, one slot at a time
