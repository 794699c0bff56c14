"""Calls to the session store: every call of one tick goes out as one pipeline, on one connection (design.md, settle).

There is no local fallback: what the store does not answer is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Any

import hiredis

from interlock.domain.errors import Refused, unavailable
from interlock.session.connection import Address, Connection, code_of, connect, store_unavailable

TIMEOUT_S = 2.0
CAPACITY = 4096

_STALE = frozenset({"READONLY", "MASTERDOWN", "NOAUTH", "WRONGPASS"})
"""Answers of a server that is not, or not for us, the primary any more: the next call looks for it afresh."""


@dataclass(frozen=True)
class Script:
    """One Lua script of ``lua/``; *sha* is the name that the server knows it by."""

    text: str
    sha: str

    @classmethod
    def load(cls, name: str) -> Script:
        """Return the script of that name from the package."""
        text = (resources.files("interlock.session") / "lua" / f"{name}.lua").read_text(encoding="utf-8")
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def state_corrupt() -> Refused:
    """Return the refusal for a key that is not what our scripts write. Nothing is guessed from it."""
    return unavailable("SESSION_STATE_CORRUPT", "the stored session cannot be read", retry_after_ms=0)


class Batcher:
    """Runs scripts and commands. It connects when the first call comes, and again after a connection is lost."""

    def __init__(self, address: Address, *, timeout_s: float = TIMEOUT_S, capacity: int = CAPACITY) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._capacity = capacity
        self._outstanding = 0
        self._connection: Connection | None = None
        self._connecting: asyncio.Task[Connection | Refused] | None = None

    async def run(self, script: Script, key: str, *arguments: str | int) -> Any:
        """Return a script's reply. A server that does not know the script gets its text, and knows it from then on."""
        try:
            return await self.command("EVALSHA", script.sha, 1, key, *arguments)
        except _NotLoaded:
            return await self.command("EVAL", script.text, 1, key, *arguments)

    async def command(self, *command: str | int) -> Any:
        """Return a command's reply.

        Refused with SESSION_STORE_UNAVAILABLE, SESSION_STORE_BUSY or SESSION_STATE_CORRUPT. A refused call may have been
        carried out all the same, so callers repeat only what is idempotent.
        """
        if self._outstanding >= self._capacity:
            raise unavailable("SESSION_STORE_BUSY", "too many calls wait for the session store")
        self._outstanding += 1
        try:
            connection = self._connection
            if connection is None or connection.closed:
                connection = await self._connected()
            reply = await connection.send(*command)
        finally:
            self._outstanding -= 1
        if isinstance(reply, hiredis.ReplyError):
            raise self._failure(reply, connection)
        return reply

    async def close(self) -> None:
        """Close the connection; calls that wait are refused."""
        if self._connecting:
            await asyncio.wait([self._connecting])  # bounded by its own time limit
        if self._connection:
            self._connection.abort("CLOSED")

    async def _connected(self) -> Connection:
        """Return the connection that all callers share while it is being made. One who leaves does not end it."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._made)
        made = await asyncio.shield(self._connecting)
        if isinstance(made, Refused):
            raise store_unavailable(made.metadata["error"])
        return made

    async def _connect(self) -> Connection | Refused:
        try:
            return await connect(self._address, timeout_s=self._timeout_s)
        except Refused as refused:
            return refused

    def _made(self, task: asyncio.Task[Connection | Refused]) -> None:
        self._connecting = None
        if not task.cancelled() and isinstance(made := task.result(), Connection):
            self._connection = made

    def _failure(self, reply: Exception, connection: Connection) -> Exception:
        code = code_of(reply)
        if code == "NOSCRIPT":
            return _NotLoaded()
        if code == "WRONGTYPE" or (code == "ERR" and "user_script" in str(reply)):
            return state_corrupt()
        if code in _STALE:
            connection.abort("CONNECTION_LOST")
        return store_unavailable(code)


class _NotLoaded(Exception):  # noqa: N818 - an answer of the server, not a defect
    """The server does not know the script."""
