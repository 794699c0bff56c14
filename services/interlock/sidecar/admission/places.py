"""Places in the dpe: a call takes one before its provider is asked, so that nobody pays for an answer that no one can judge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from interlock.domain.errors import Refused
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import DpePeer

OVERLOADED = "OVERLOADED"
_REMEMBERED_S = 0.1
_MOST_REMEMBERED = 1000


class Places:
    """Takes places for the calls of one sidecar, and gives them back."""

    def __init__(self, dpe: DpePeer) -> None:
        self._dpe = dpe
        self._full: dict[str, tuple[float, Refused]] = {}
        """When a caller was refused last, and with what, the oldest first."""
        self._returning: set[asyncio.Task[None]] = set()

    def require(self, who: str) -> None:
        """Refuse a caller whom the dpe refused a moment ago, without asking it. Under too much load a refusal must cost next to nothing."""
        if who not in self._full:
            return
        at_s, last = self._full[who]
        since_s = time.monotonic() - at_s
        if since_s * 1000 >= min(_REMEMBERED_S * 1000, last.retry_after_ms):
            del self._full[who]
            return
        left_ms = last.retry_after_ms - round(since_s * 1000)
        raise Refused(last.kind, last.reason, last.message, metadata=last.metadata, retry_after_ms=max(1, left_ms))

    @asynccontextmanager
    async def held(self, deadline: Deadline, who: str) -> AsyncIterator[str]:
        """Hold a place for a caller. Refused with OVERLOADED while there is none."""
        place_id = await self._take(deadline, who)
        try:
            yield place_id
        finally:
            self._give_back(place_id)

    @contextmanager
    def taken_by_analysis(self, who: str) -> Iterator[None]:
        """Remember it when the analysis of an answer that a caller brings found no place: the next of its calls begins nothing."""
        with self._remembering(who):
            yield
        self._full.clear()

    async def _take(self, deadline: Deadline, who: str) -> str:
        with self._remembering(who):
            return await self._dpe.reserve(deadline, who)

    @contextmanager
    def _remembering(self, who: str) -> Iterator[None]:
        try:
            yield
        except Refused as refused:
            if refused.reason == OVERLOADED:
                self._full.pop(who, None)
                self._full[who] = (time.monotonic(), refused)
                if len(self._full) > _MOST_REMEMBERED:
                    del self._full[next(iter(self._full))]
            raise

    def _give_back(self, place_id: str) -> None:
        """Give a place back without waiting: the caller's answer does not depend on it. Empty: the dpe knows no places."""
        self._full.clear()
        if not place_id:
            return
        task = asyncio.create_task(self._dpe.release(place_id))
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)

    async def drain(self) -> None:
        """Wait until what was given back has arrived."""
        if self._returning:
            await asyncio.wait(self._returning)
