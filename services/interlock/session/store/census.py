"""How many sessions are open in a store: counted by walking over its keys, a few at a time, by one process for all (OBS-2).

A count that every script kept would be wrong: keys of a Cluster lie in slots that no script spans, and a session that expires tells
nobody. A walk is right after whatever was lost, restored or restarted. It reads two small answers for each session and pauses in
between, so that the store serves as before. What it found is kept in the store: other processes read it instead of walking too.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import hiredis

from interlock.domain.errors import Refused
from interlock.domain.session.state import Status
from interlock.session.store.batcher import Batcher, readable
from interlock.session.store.connection import Connection, store_unavailable

FOUND, TURN = "il:{census}:found", "il:{census}:turn"
"""What the last walk found and when it began, and who walks now."""

AT_A_TIME = 500
"""Keys that one step of a walk looks at."""
TURN_S = 60
"""How long a walk may take for one step, seconds; then another process may walk."""
KEPT_S = 86_400
MOST_TOLD_APART = 1_000_000
"""Keys that a walk tells apart. Of more, one that the server names twice while it grows may count twice."""

_SESSION = re.compile(rb"il:\{crp_sess_[0-9a-f]{32}\}:s:crp_sess_[0-9a-f]{32}")
_PATTERN = "il:{crp_sess_*}:s:*"


@dataclass(frozen=True)
class SessionCount:
    """What a walk found."""

    open: int
    """Sessions that are there and were not ended: neither by their client nor by their budget."""
    at_s: float
    """When it began, seconds since the epoch on the store's clock."""


class SessionCensus(Protocol):
    """Counts the sessions of a store."""

    async def counted(self, *, within_s: float, pause_s: float) -> SessionCount | None:
        """Return a count that is no older than *within_s*; ``None`` while another process counts and there is none yet.

        *pause_s* is the pause between two steps of a walk. Refused with SESSION_STORE_UNAVAILABLE.
        """
        ...


class MemoryCensus:
    """Counts the sessions of this process."""

    def __init__(self, statuses: Callable[[], list[Status]], now_s: Callable[[], float]) -> None:
        self._statuses, self._now_s = statuses, now_s

    async def counted(self, *, within_s: float, pause_s: float) -> SessionCount | None:
        """Return how many there are now."""
        del within_s, pause_s
        return SessionCount(self._statuses().count(Status.ACTIVE), self._now_s())


class RedisCensus:
    """Counts the sessions of all servers behind a batcher."""

    def __init__(self, batcher: Batcher) -> None:
        self._batcher = batcher

    async def counted(self, *, within_s: float, pause_s: float) -> SessionCount | None:
        """Return the last count, or walk where that is too old and nobody else does."""
        seconds, micros = await self._batcher.command("TIME")
        now_s = int(seconds) + int(micros) / 1e6
        known = await self._found()
        if known and now_s - known.at_s <= within_s:
            return known
        if not await self._batcher.command("SET", TURN, "1", "NX", "EX", TURN_S):
            return known
        try:
            found = SessionCount(await self._walked(pause_s), now_s)
            await self._batcher.command("HSET", FOUND, "open", found.open, "at_s", repr(found.at_s))
            await self._batcher.command("EXPIRE", FOUND, KEPT_S)
        finally:
            with contextlib.suppress(Refused):  # then it runs out
                await self._batcher.command("DEL", TURN)
        return found

    async def _found(self) -> SessionCount | None:
        count, at_s = await self._batcher.command("HMGET", FOUND, "open", "at_s")
        with readable():
            return SessionCount(int(count), float(at_s)) if count and at_s else None

    async def _walked(self, pause_s: float) -> int:
        count, seen = 0, set[int]()
        for connection in await self._batcher.primaries():
            cursor: Any = b"0"
            while True:
                cursor, keys = await _step(connection, cursor)
                fresh = [key for key in keys if _SESSION.fullmatch(key) and hash(key) not in seen]
                if len(seen) < MOST_TOLD_APART:
                    seen.update(map(hash, fresh))
                statuses = await asyncio.gather(*(connection.send("HGET", key, "status") for key in fresh))
                count += statuses.count(str(int(Status.ACTIVE)).encode())
                if cursor == b"0":
                    break
                await self._batcher.command("EXPIRE", TURN, TURN_S)
                await asyncio.sleep(pause_s)
        return count


async def _step(connection: Connection, cursor: Any) -> tuple[Any, list[bytes]]:
    reply = await connection.send("SCAN", cursor, "MATCH", _PATTERN, "COUNT", AT_A_TIME)
    if isinstance(reply, hiredis.ReplyError):
        raise store_unavailable("SCAN")
    with readable():
        after, keys = reply
        return after, list(keys)
