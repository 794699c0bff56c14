"""Reading the log in a few threads: the event loop never waits for the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from interlock.audit.sealing.appender import Appender
from interlock.audit.store.log import StoreFailed
from interlock.domain.errors import exhausted

READERS = 2
READ_LIMIT = 1024

T = TypeVar("T")


class Readers:
    """The reader threads of one log. At most ``READ_LIMIT`` reads run or wait at a time."""

    def __init__(self, appender: Appender) -> None:
        self._appender = appender
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="audit-read")
        self.running = 0
        """Reads that run or wait."""

    async def run(self, reading: Callable[[], T]) -> T:
        """Run *reading* in a reader thread. Refused with AUDIT_QUEUE_FULL instead of queued without bound.

        After a ``StoreFailed`` the log is tried again, so that the next caller may find it open.
        """
        if self.running >= READ_LIMIT:
            raise exhausted("AUDIT_QUEUE_FULL", "too many reads are waiting; try again")
        self.running += 1
        try:
            # Not run_in_executor: uvloop's takes a partial apart each time, to refuse coroutines.
            return await asyncio.wrap_future(self._threads.submit(reading))
        except StoreFailed:
            await self._appender.probe()
            raise
        finally:
            self.running -= 1

    async def close(self) -> None:
        """Return once the last read has ended."""
        await asyncio.to_thread(self._threads.shutdown)
