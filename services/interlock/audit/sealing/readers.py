"""Reading the log in a few threads: the event loop never waits for the disk."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from interlock.audit.sealing.appender import Appender
from interlock.audit.store.log import StoreFailed
from interlock.domain.errors import exhausted, unavailable

READERS = 2
READ_LIMIT = 1024

T = TypeVar("T")


class _Asked(NamedTuple):
    reading: Callable[[], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class Readers:
    """The reader threads of one log. At most ``READ_LIMIT`` reads run or wait at a time.

    No executor: its futures take a lock and two conversions for each read, and every governed call has one.
    """

    def __init__(self, appender: Appender) -> None:
        self._appender = appender
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._read, name=f"audit-read_{number}", daemon=True) for number in range(READERS)
        ]
        for thread in self._threads:
            thread.start()
        self._closed = False
        self.running = 0
        """Reads that run or wait."""

    async def run(self, reading: Callable[[], T]) -> T:
        """Run *reading* in a reader thread. Refused with AUDIT_QUEUE_FULL instead of queued without bound, and with AUDIT_CLOSING.

        After a ``StoreFailed`` the log is tried again, so that the next caller may find it open.
        """
        if self.running >= READ_LIMIT:
            raise exhausted("AUDIT_QUEUE_FULL", "too many reads are waiting; try again")
        if self._closed:
            raise unavailable("AUDIT_CLOSING", "the audit service is shutting down")
        self.running += 1
        loop = asyncio.get_running_loop()
        asked = _Asked(reading, loop.create_future(), loop)
        self._asked.put(asked)
        try:
            found: T = await asked.future
        except StoreFailed:
            await self._appender.probe()
            raise
        else:
            return found
        finally:
            self.running -= 1

    async def close(self) -> None:
        """Return once the last read has ended."""
        self._closed = True
        for _ in self._threads:
            self._asked.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _read(self) -> None:
        while (asked := self._asked.get()) is not None:
            if not asked.future.cancelled():
                _answer(asked)
            del asked  # what was read must not wait here for the next one


def _answer(asked: _Asked) -> None:
    found, error = None, None
    try:
        found = asked.reading()
    except BaseException as failure:  # noqa: BLE001 - whoever asked gets it
        error = failure
    with contextlib.suppress(RuntimeError):  # the loop has ended together with its callers
        asked.loop.call_soon_threadsafe(_resolve, asked.future, found, error)


def _resolve(future: asyncio.Future[Any], found: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(found)
