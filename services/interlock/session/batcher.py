"""Calls to the session store: every call of one tick goes out as one pipeline, one connection per server (design.md, settle).

There is no local fallback: what the store does not answer is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import hiredis

from interlock.domain.errors import Refused, unavailable
from interlock.session.cluster import Routes
from interlock.session.connection import Address, Connection, code_of, store_unavailable

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
        """Return the script of that name from the package, after what all of them share."""
        folder = resources.files("interlock.session") / "lua"
        text = "".join((folder / f"{part}.lua").read_text(encoding="utf-8") for part in ("common", name))
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def state_corrupt() -> Refused:
    """Return the refusal for a key that is not what our scripts write. Nothing is guessed from it."""
    return unavailable("SESSION_STATE_CORRUPT", "the stored session cannot be read", retry_after_ms=0)


class Batcher:
    """Runs scripts and commands, on one server or on those of a Cluster. It connects when the first call comes."""

    def __init__(self, address: Address, *, timeout_s: float = TIMEOUT_S, capacity: int = CAPACITY) -> None:
        self._routes = Routes(address, timeout_s)
        self._capacity = capacity
        self._outstanding = 0

    async def run(self, script: Script, keys: Sequence[str], *arguments: str | int) -> Any:
        """Return a script's reply. A server that does not know the script gets its text, and knows it from then on."""
        try:
            return await self.command("EVALSHA", script.sha, len(keys), *keys, *arguments)
        except _NotLoaded:
            return await self.command("EVAL", script.text, len(keys), *keys, *arguments)

    async def command(self, *command: str | int) -> Any:
        """Return a command's reply.

        Refused with SESSION_STORE_UNAVAILABLE, SESSION_STORE_BUSY or SESSION_STATE_CORRUPT. A refused call may have been
        carried out all the same, so callers repeat only what is idempotent.
        """
        if self._outstanding >= self._capacity:
            raise unavailable("SESSION_STORE_BUSY", "too many calls wait for the session store")
        self._outstanding += 1
        try:
            reply, connection = await self._sent(command)
            if isinstance(reply, hiredis.ReplyError):
                reply, connection = await self._routes.follow(reply, connection, command)
        finally:
            self._outstanding -= 1
        if isinstance(reply, hiredis.ReplyError):
            raise self._failure(reply, connection)
        return reply

    async def _sent(self, command: tuple[str | int, ...]) -> tuple[Any, Connection]:
        link = self._routes.link(command)
        try:
            connection = link.connection
            if connection is None or connection.closed:
                connection = await link.ready()
            return await connection.send(*command), connection
        except Refused:
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
        if code in _STALE:
            connection.abort("CONNECTION_LOST")
        return store_unavailable(code)


class _NotLoaded(Exception):  # noqa: N818 - an answer of the server, not a defect
    """The server does not know the script."""
