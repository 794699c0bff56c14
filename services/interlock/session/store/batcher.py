"""Calls to the session store: every call of one tick goes out as one pipeline, one connection per server (design.md, settle).

There is no local fallback: what the store does not answer is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from types import TracebackType
from typing import Any

import hiredis

from interlock.domain.errors import Refused, unavailable
from interlock.session.store.cluster import Routes, refresh
from interlock.session.store.connection import Address, Connection, StoreServer, code_of, store_unavailable
from interlock.session.store.fitness import unfit

TIMEOUT_S = 2.0
CAPACITY = 4096

_STALE = frozenset({"READONLY", "MASTERDOWN", "NOAUTH", "WRONGPASS"})
"""Answers of a server that is no longer the primary, or no longer ours: the next call looks for it again."""


_BEGINNING = frozenset({"start", "open"})


_PARTS = {
    "kernel_step": ("kernel_noting", "kernel_decision", "kernel_saga", "kernel_ticket"),
    "kernel_sealed": ("kernel_noting",),
}
"""What stands in front of a script that is kept in several files."""


@dataclass(frozen=True)
class LuaScript:
    """One Lua script of ``lua/``; *sha* is the name that the server knows it by."""

    text: str
    sha: str
    begins: bool = False
    """Whether it begins a session or a window; what has begun is finished on any server."""
    settles: bool = False
    """Whether it charges: replicas may have to hold it."""

    @classmethod
    def load(cls, name: str) -> LuaScript:
        """Return the script of that name from the package, after what all of them share."""
        folder = resources.files("interlock.session") / "lua"
        parts = ("common", *_PARTS.get(name, ()), name)
        text = "".join((folder / f"{part}.lua").read_text(encoding="utf-8") for part in parts)
        return cls(
            text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), name in _BEGINNING, name == "commit"
        )


READING = LuaScript("", "")
"""Stands for a command whose caller wants to know which server answered."""


def state_corrupt() -> Refused:
    """Return the refusal for a key that is not what our scripts write. Nothing is guessed from it."""
    return unavailable("SESSION_STATE_CORRUPT", "the stored session cannot be read", retry_after_ms=0)


class _Readable:
    def __enter__(self) -> None:
        """Do nothing: what can be read is left alone."""

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if isinstance(error, ValueError | LookupError | TypeError | AttributeError):
            raise state_corrupt() from None


_READABLE = _Readable()


def readable() -> _Readable:
    """Refuse what is stored and not as our scripts write it."""
    return _READABLE


class Batcher:
    """Runs scripts and commands, on one server or on those of a Cluster. It connects when the first call comes."""

    def __init__(
        self, address: Address, *, timeout_s: float = TIMEOUT_S, capacity: int = CAPACITY, allow_unfit: bool = False,
        wait_replicas: int = 0,
    ) -> None:  # fmt: skip
        self._timeout_s, self._wait_replicas = timeout_s, wait_replicas
        self._routes = Routes(address, timeout_s)
        self.allow_unfit = allow_unfit
        self._capacity = capacity
        self._outstanding = 0

    async def run(self, script: LuaScript, keys: Sequence[str], *arguments: str | int | bytes) -> Any:
        """Return a script's reply. A server that does not know the script gets its text, and knows it from then on.

        The script gets the epoch of the server that it runs on. One that begins something is refused with
        SESSION_STORE_UNFIT on a server that may lose sessions.
        """
        try:
            reply, connection = await self._asked(("EVALSHA", script.sha, len(keys), *keys, *arguments), script)
        except _NotLoaded:
            reply, connection = await self._asked(("EVAL", script.text, len(keys), *keys, *arguments), script)
        if script.settles and self._wait_replicas:
            await self._held_by_replicas(connection)
        return reply

    async def _held_by_replicas(self, connection: Connection) -> None:
        """Wait until replicas hold what was written; with too few the call is refused, and what it wrote stays."""
        count = await connection.send("WAIT", self._wait_replicas, int(self._timeout_s * 500))
        if not isinstance(count, int) or count < self._wait_replicas:
            raise store_unavailable("REPLICAS_SHORT")

    async def read(self, *command: str | int | bytes) -> tuple[Any, str]:
        """Return a command's reply and the epoch of the server that gave it."""
        reply, connection = await self._asked(command, READING)
        return reply, connection.server.epoch if connection.server else ""

    async def command(self, *command: str | int | bytes) -> Any:
        """Return a command's reply.

        Refused with SESSION_STORE_UNAVAILABLE, SESSION_STORE_BUSY or SESSION_STATE_CORRUPT. A refused call may have been
        carried out all the same, so callers repeat only what is idempotent.
        """
        return (await self._asked(command, None))[0]

    async def server(self) -> StoreServer:
        """Ask the server at the way in who it is, now."""
        _, connection = await self._asked(("PING",), READING)
        return await refresh(connection)

    async def primaries(self) -> list[Connection]:
        """Return a connection to each server that has keys of ours, as it is known now."""
        return await self._routes.primaries()

    async def _asked(self, command: tuple[str | int | bytes, ...], script: LuaScript | None) -> tuple[Any, Connection]:
        if self._outstanding >= self._capacity:
            raise unavailable("SESSION_STORE_BUSY", "too many calls wait for the session store")
        self._outstanding += 1
        try:
            reply, connection = await self._sent(command, script)
            if isinstance(reply, hiredis.ReplyError):
                reply, connection = await self._routes.follow(reply, connection, partial(_send, command))
        finally:
            self._outstanding -= 1
        if isinstance(reply, hiredis.ReplyError):
            raise self._failure(reply, connection)
        return reply, connection

    async def _sent(self, command: tuple[str | int | bytes, ...], script: LuaScript | None) -> tuple[Any, Connection]:
        link = self._routes.link(command)
        try:
            connection = link.connection
            if connection is None or connection.closed:
                connection = await link.ready()
            if script is not None:
                server = connection.server or await link.known(connection)
                if server.unfit and script.begins and not self.allow_unfit:
                    raise unfit(server.unfit)
            return await _send(command, connection), connection
        except Refused as refused:
            if refused.reason != "SESSION_STORE_UNFIT":
                self._routes.lost(link)
            raise

    async def close(self) -> None:
        """Close every connection; calls that wait are refused."""
        await self._routes.close()

    def _failure(self, reply: Exception, connection: Connection) -> Exception:
        code = code_of(reply)
        if code == "NOSCRIPT":
            return _NotLoaded()
        if code == "WRONGTYPE" or (code == "ERR" and "user_script" in str(reply)):
            return state_corrupt()
        if code in _STALE or (code == "LOADING" and connection.chosen):
            connection.abort("CONNECTION_LOST")
        return store_unavailable(code)


def _send(command: Sequence[str | int | bytes], connection: Connection) -> asyncio.Future[Any]:
    """Send a command. A script gets the epoch of its server as its first argument (lua/common.lua removes it)."""
    if connection.server and str(command[0]).startswith("EVAL"):
        first = 3 + int(command[2])
        command = (*command[:first], connection.server.epoch, *command[first:])
    return connection.send(*command)


class _NotLoaded(Exception):  # noqa: N818 - an answer of the server, not a defect
    """The server does not know the script."""
