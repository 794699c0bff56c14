"""Group commit: requests that wait at the same time share one transaction and one fsync (performance.md §3).

No accepted request is dropped: it is acknowledged after its commit, or refused. There is no timer: while one transaction is
being written to the disk, the requests of the next one gather.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import structlog
from prometheus_client import Histogram

from interlock.audit.store.log import LogWriter, RequestOutcome, StoreFailed, Work
from interlock.domain.errors import exhausted, unavailable

log = structlog.get_logger()

BATCH_SIZE = Histogram(
    "interlock_audit_batch_size", "Requests per durable commit.", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256)
)

QUEUE_LIMIT = 1024
QUEUE_BYTES = 268_435_456
BATCH_LIMIT = 256


@dataclass(frozen=True)
class _Waiting:
    work: Work
    size: int
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class Appender:
    """The only writer of a log, in a thread of its own. The event loop never waits for the disk."""

    def __init__(self, audit_log: LogWriter, *, queue_limit: int = QUEUE_LIMIT, batch_limit: int = BATCH_LIMIT) -> None:
        self._log, self._queue_limit, self._batch_limit = audit_log, queue_limit, batch_limit
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._closing = False
        self._changed = threading.Condition()
        self.failure: StoreFailed | None = None
        """Why the last transaction failed; ``None`` after a successful one."""
        self._thread = threading.Thread(target=self._run, name="audit-writer", daemon=True)
        self._thread.start()

    async def submit(self, work: Work, *, size: int = 0) -> Any:
        """Run *work* in a transaction and return its value once it is durable.

        *size* is the memory that the request holds, bytes. Refused with AUDIT_QUEUE_FULL or AUDIT_CLOSING, never dropped.
        The work of a caller that stops waiting may still be done.
        """
        loop = asyncio.get_running_loop()
        request = _Waiting(work, size, loop.create_future(), loop)
        with self._changed:
            if self._closing:
                raise unavailable("AUDIT_CLOSING", "the audit service is shutting down")
            if len(self._waiting) >= self._queue_limit or self._bytes + size > QUEUE_BYTES:
                raise exhausted("AUDIT_QUEUE_FULL", "too many writes are waiting; try again")
            self._waiting.append(request)
            self._bytes += size
        # After what else this tick does: the thread would only wait for the interpreter's lock.
        loop.call_soon(self._wake)
        return await request.future

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    async def probe(self) -> StoreFailed | None:
        """Return why writing fails; ``None`` when it works. If the last write failed, try again first."""
        if self.failure is not None:
            with contextlib.suppress(StoreFailed):
                await self.submit(lambda writing: writing.touch())
        return self.failure

    async def close(self) -> None:
        """Accept no more requests, write those that wait, close the log."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while batch := self._next_batch():
            outcomes = self._write(batch)
            _deliver(zip(batch, outcomes, strict=True))
        self._log.close()

    def _next_batch(self) -> list[_Waiting]:
        """Wait for requests and return those that still have a caller; an empty list means: end."""
        with self._changed:
            while True:
                batch: list[_Waiting] = []
                while self._waiting and len(batch) < self._batch_limit:
                    request = self._waiting.popleft()
                    self._bytes -= request.size
                    if not request.future.cancelled():
                        batch.append(request)
                if batch or self._closing:
                    return batch
                self._changed.wait()

    def _write(self, batch: list[_Waiting]) -> list[RequestOutcome]:
        BATCH_SIZE.observe(len(batch))
        try:
            outcomes = self._log.commit([request.work for request in batch])
        except StoreFailed as failed:
            if self.failure is None:
                log.warning("audit.store.failed", reason=failed.reason, hint=failed.hint)
            self.failure = failed
            return [RequestOutcome(error=failed)] * len(batch)
        except Exception as error:  # noqa: BLE001 - a defect fails its callers; the writer continues
            return [RequestOutcome(error=error)] * len(batch)
        if self.failure is not None:
            log.info("audit.store.recovered")
        self.failure = None
        return outcomes


def _deliver(done: Iterable[tuple[_Waiting, RequestOutcome]]) -> None:
    """Hand every outcome to its event loop, one wake-up per loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], RequestOutcome]]] = {}
    for request, outcome in done:
        by_loop.setdefault(request.loop, []).append((request.future, outcome))
    for loop, outcomes in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop has ended together with its callers
            loop.call_soon_threadsafe(_resolve, outcomes)


def _resolve(outcomes: Iterable[tuple[asyncio.Future[Any], RequestOutcome]]) -> None:
    for future, outcome in outcomes:
        if future.done():
            continue
        if outcome.error is not None:
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome.value)
