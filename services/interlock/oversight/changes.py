"""Tells open pages that something happened: one look at the log for all of them, and none while no page is open.

Each page reads itself anew when it is told. Few are told at once; many are told in turn, and looked for less often, so that what they
cost together stays the same.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import structlog

from interlock.domain.errors import Refused

log = structlog.get_logger()

LOOK_S = 0.25
LOOK_OF_A_PAGE_S = 0.06
"""Time between two looks for each page that is open, seconds, where that is more."""
TURN_S = 0.05
"""Time between two pages that are told, seconds."""
QUIET_S = 15.0
"""After so long without a change a comment is sent: a proxy between would close the line."""
MOST_PAGES = 256


class Changes:
    """Server-sent events for the pages that are open."""

    def __init__(self, log_size: Callable[[], Awaitable[int]], *, look_s: float = LOOK_S) -> None:
        self._log_size, self._look_s = log_size, look_s
        self._size = -1
        self._moved = asyncio.Condition()
        self._pages = 0
        self._looking: asyncio.Task[None] | None = None
        self._ended = False
        self._turn_s = float("-inf")

    @property
    def seen(self) -> int | None:
        """The size of the log at the last look; ``None`` while nobody looks."""
        return self._size if self._looking is not None and self._size >= 0 else None

    async def close(self) -> None:
        """End every line: the process is ending, and must not wait for pages that stay open."""
        async with self._moved:
            self._ended = True
            self._moved.notify_all()

    @property
    def is_full(self) -> bool:
        """Whether no more pages can be told."""
        return self._pages >= MOST_PAGES

    async def events(self) -> AsyncIterator[bytes]:
        """Yield an event for each change of the log, until the page is closed."""
        self._pages += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            seen = self._size
            yield b"retry: 2000\n\n"
            while not self._ended:
                moved = await self._wait(seen)
                if moved:
                    await self._turn()
                if self._ended:
                    return
                seen = self._size if moved else seen
                yield b"event: changed\ndata: %d\n\n" % seen if moved else b": quiet\n\n"
        finally:
            self._pages -= 1
            if not self._pages and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _turn(self) -> None:
        """Wait for the turn of one page: at once where no other was told a moment ago."""
        now_s = asyncio.get_running_loop().time()
        self._turn_s = max(now_s, self._turn_s + TURN_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._turn_s - now_s), self._moved:
                await self._moved.wait_for(lambda: self._ended)

    async def _wait(self, seen: int) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(QUIET_S), self._moved:
                await self._moved.wait_for(lambda: self._ended or self._size != seen)
                return True
        return False

    async def _look(self) -> None:
        while True:
            try:
                size = await self._log_size()
            except Refused as refused:  # the page shows what is the matter when it is asked for again
                log.debug("console.log_unread", reason=refused.reason)
                size = -1
            if size != self._size:
                async with self._moved:
                    self._size = size
                    self._moved.notify_all()
            await asyncio.sleep(max(self._look_s, self._pages * LOOK_OF_A_PAGE_S))
