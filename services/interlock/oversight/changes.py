"""Tells open pages that something happened: one look at the log a second for all of them, and none while no page is open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import structlog

from interlock.domain.errors import Refused

log = structlog.get_logger()

LOOK_S = 1.0
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
                if self._ended:
                    return
                seen = self._size if moved else seen
                yield b"event: changed\ndata: %d\n\n" % seen if moved else b": quiet\n\n"
        finally:
            self._pages -= 1
            if not self._pages and self._looking is not None:
                self._looking.cancel()
                self._looking = None

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
            await asyncio.sleep(self._look_s)
