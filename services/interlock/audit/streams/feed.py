"""One sink and its cursor in the log: cut batches, send them, record each with the cursor in one transaction (AUD-4)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Protocol

import structlog
from prometheus_client import Counter, Gauge

from interlock.audit.sealing.seal import Sealer
from interlock.audit.store.log import AuditLog, Entry, Work, Writing
from interlock.audit.streams.delivery import Courier, Positioned, Post, Undelivered
from interlock.audit.streams.sinks import Sink
from interlock.domain.errors import Refused, unavailable
from interlock.runtime.clock import iso8601

log = structlog.get_logger()

LAG = Gauge("interlock_audit_stream_lag_entries", "Entries of the audit log that a sink has yet to be shown.", ["sink"])
SENT = Counter("interlock_audit_stream_sent", "Events that a sink accepted.", ["sink"])
FAILED = Counter(
    "interlock_audit_stream_failures", "Attempts that a sink did not accept, by reason.", ["sink", "reason"]
)
GONE = Counter(
    "interlock_audit_stream_gone", "Entries that retention took before the sink had got so far, by sink.", ["sink"]
)
DEAD = Counter("interlock_audit_stream_dead_letters", "Batches that were given up and kept, by sink.", ["sink"])

PAGE = 512
"""Entries per read."""
MOST_WAIT_S = 3600.0
MOST_TEXT = 1_048_576
"""Characters of event data in one batch, unless a single event is larger."""
LEAST_ATTEMPTS = 3
"""Attempts before a batch is given up because its events are old: after a long stop all events are old."""
SUSPENDED_S = 1.0


class Submitting(Protocol):
    """The writing side: the appender."""

    async def submit(self, work: Work, *, size: int = 0) -> Any:
        """Run *work* in a transaction and return its value once it is durable."""


@dataclass(frozen=True)
class Batch:
    """The entries [start, end), and the events among them that the sink takes."""

    start: int
    end: int
    events: tuple[Positioned, ...]


def cut(sink: Sink, entries: Sequence[Entry], start: int, limit: int) -> Batch:
    """Return the next batch: at most *limit* events and ``MOST_TEXT`` characters. Events the sink does not take are skipped."""
    events: list[Positioned] = []
    size, end = 0, start
    for entry in entries:
        if entry.event is not None and sink.takes(entry.event):
            size += len(entry.event.data_json)
            if events and (len(events) >= limit or size > MOST_TEXT):
                break
            events.append((entry.position, entry.event))
        end = entry.position + 1
    return Batch(start, end, tuple(events))


def _begin(name: str, size: int, writing: Writing) -> None:
    writing.set_cursor(f"{name}#begun", 1)
    writing.set_cursor(name, size)


def delivered(sealer: Sealer, sink: Sink, end: int, posts: Sequence[Post], writing: Writing) -> None:
    """Record the delivery and move the cursor, in one transaction."""
    record(sealer, posts, writing)
    writing.set_cursor(sink.name, end)


def record(sealer: Sealer, posts: Sequence[Post], writing: Writing) -> None:
    """Record accepted posts in the trails of their sessions."""
    for post in posts:
        for session_id, note in post.notes:
            sealer.record(writing, session_id, "", (note,))


@dataclass
class Feed:
    """One sink while it is served."""

    sink: Sink
    audit_log: AuditLog
    writer: Submitting
    sealer: Sealer
    courier: Courier
    grown: asyncio.Event = field(default_factory=asyncio.Event)
    size: int = 0
    cursor: int = -1
    limit: int = 0
    failures: int = 0
    """Consecutive failures of this service, not of the receiver."""

    async def run(self) -> None:
        """Serve until cancelled. After a failure of the store, try again with back-off; the cursor has not moved."""
        while True:
            try:
                await self._serve()
            except Refused as refused:
                log.warning("stream.store_failed", name=self.sink.name, reason=refused.reason)
            except Exception:
                log.exception("stream.defect", name=self.sink.name)
            self.failures += 1
            await asyncio.sleep(self._wait_s(self.failures))

    async def _serve(self) -> None:
        self.cursor, self.limit = await self._begin(), self.sink.batch
        while True:
            LAG.labels(self.sink.name).set(max(0, self.size - self.cursor))
            if self.cursor >= self.size:
                self.grown.clear()
                await self.grown.wait()
                continue
            page = await asyncio.to_thread(self.audit_log.entries, self.cursor, min(self.size, self.cursor + PAGE))
            batch = cut(self.sink, page, self.cursor, self.limit)
            if batch.end == batch.start:
                raise unavailable("AUDIT_ENTRIES_MISSING", "the log is shorter than the size it reported")
            if gone := sum(entry.event is None for entry in page[: batch.end - batch.start]):
                GONE.labels(self.sink.name).inc(gone)
                log.error("stream.entries_gone", name=self.sink.name, count=gone)
            await self._pass(batch)

    async def _begin(self) -> int:
        """Return the cursor. A sink that starts with new entries records its start once, so that later it skips nothing."""
        mark = f"{self.sink.name}#begun"
        if not self.sink.beginning and not await asyncio.to_thread(self.audit_log.cursor, mark):
            size = await asyncio.to_thread(self.audit_log.log_size)
            await self.writer.submit(partial(_begin, self.sink.name, size))
        return await asyncio.to_thread(self.audit_log.cursor, self.sink.name)

    async def _pass(self, batch: Batch) -> None:
        """Deliver one batch, or make it smaller, or keep it as a dead letter."""
        posts = self.courier.posts(self.sink, batch.events)
        failed, accepted = await self._sent(posts, batch)
        if failed is None:
            await self.writer.submit(partial(delivered, self.sealer, self.sink, batch.end, posts))
            SENT.labels(self.sink.name).inc(len(batch.events) if posts else 0)
            self.limit = min(self.sink.batch, self.limit * 2)
        elif failed.for_good and len(batch.events) > 1:
            self.limit = max(1, len(batch.events) // 2)  # a single event is at fault; only it is given up
            return
        else:
            await self._give_up(batch, failed.reason, accepted)
        self.cursor, self.failures = batch.end, 0

    async def _sent(self, posts: Sequence[Post], batch: Batch) -> tuple[Undelivered | None, list[Post]]:
        """Post all; return the first failure, ``None`` if all were accepted, and the accepted posts.

        An event may be reported to several addresses: one that refuses its report does not keep it from the others.
        """
        given_up: Undelivered | None = None
        accepted: list[Post] = []
        for post in posts:
            failed = await self._accepted(post, batch)
            if failed is None:
                accepted.append(post)
                continue
            given_up = given_up or failed
            if len(batch.events) > 1 or not failed.for_good:
                break
        return given_up, accepted

    async def _accepted(self, post: Post, batch: Batch) -> Undelivered | None:
        """Post one message until it is accepted; return ``None`` then, or the failure that ended the attempts."""
        begun, attempts = time.monotonic(), 0
        while True:
            try:
                await self.courier.send(self.sink, post)
            except Undelivered as failed:
                attempts += 1
                FAILED.labels(self.sink.name, failed.reason).inc()
                if attempts == 1 or failed.gone:
                    log.warning("stream.not_delivered", name=self.sink.name, reason=failed.reason)
                if failed.gone:
                    await self._suspended()
                age_s = max(time.monotonic() - begun, self._age_s(batch) if attempts >= LEAST_ATTEMPTS else 0.0)
                if failed.for_good or age_s > self.sink.max_age_s:
                    return failed
                await asyncio.sleep(max(self._wait_s(attempts), min(failed.after_s, MOST_WAIT_S)))
            else:
                return None

    def _age_s(self, batch: Batch) -> float:
        """Return the age of a batch's last event, seconds; 0 if its time is unreadable."""
        try:
            happened = datetime.fromisoformat(batch.events[-1][1].timestamp).timestamp()
        except (ValueError, OverflowError):
            return 0.0
        return self.courier.clock() / 1_000_000 - happened

    async def _suspended(self) -> None:
        """Wait until cancelled: the receiver answered 410. A changed sinks file or a restart starts again; nothing is lost."""
        log.error("stream.suspended", name=self.sink.name, reason="HTTP_410")
        while True:
            await asyncio.sleep(SUSPENDED_S)
            LAG.labels(self.sink.name).set(max(0, self.size - self.cursor))

    def _wait_s(self, failures: int) -> float:
        """Return an exponential wait, seconds, with jitter over its upper half, so that replicas do not fall into step."""
        longest = min(self.sink.retry_most_s, self.sink.retry_first_s * float(2 ** min(failures - 1, 30)))
        spread: float = random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, keeps no secret
        return longest * spread

    async def _give_up(self, batch: Batch, reason: str, accepted: Sequence[Post]) -> None:
        at = iso8601(self.courier.clock())

        def keep(writing: Writing) -> None:
            record(self.sealer, accepted, writing)
            writing.add_dead_letter(self.sink.name, batch.start, batch.end - 1, reason, at)
            writing.set_cursor(self.sink.name, batch.end)

        await self.writer.submit(keep)
        DEAD.labels(self.sink.name).inc()
        log.error("stream.dead_letter", name=self.sink.name, reason=reason, count=len(batch.events))
