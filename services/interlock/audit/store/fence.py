"""The fence: no write to a log that lost its end. Each transaction first checks that the last entry seen is still there.

A database restored from a backup, or a standby promoted before it had everything, is shorter than the acknowledged log or
continues differently. Within a process the last position and its leaf hash reveal that; across processes the anchor does.
Writes stay refused until a reviewer's acknowledgement of the loss is in the log itself, where every process reads it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from interlock.audit.store.log import AuditLog, LogWriter, RequestOutcome, StoreFailed, Work, Writing
from interlock.domain.chain.chain import EventRecord
from interlock.domain.chain.marks import TRUNCATED
from interlock.domain.merkle.entries import LOG_SESSION, Losses, read_loss

log = structlog.get_logger()

CHAIN_TRUNCATED = "CHAIN_TRUNCATED"
LOG_FORKED = "LOG_FORKED"


@dataclass(frozen=True)
class Lost:
    """A loss: the entries [kept, size) that were anchored or seen by this process. ``root`` is empty if unknown."""

    cause: str
    size: int
    kept: int
    root: bytes = b""
    generation: int = 1

    def failure(self) -> StoreFailed:
        """Return the refusal of every write."""
        failed = StoreFailed(
            self.cause,
            "the audit log is not the acknowledged one; nothing is written until the loss is resolved",
            hint=f"entries {self.kept} to {self.size - 1} are missing or differ. Restore the database, or accept the loss "
            f"with `interlock audit acknowledge-truncation` for size {self.size}",
            cause=self.cause,
        )
        failed.metadata |= {"anchored_size": str(self.size), "kept": str(self.kept)}
        failed.retry_after_ms = 0
        return failed


class Acknowledging:
    """A work that may run despite a loss: its acknowledgement."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, writing: Writing) -> Any:
        return self._work(writing)


class Fence:
    """What this process knows of the log's end. The writer's thread changes it, any thread reads it."""

    def __init__(self) -> None:
        self.generation = 1
        self.size = 0
        self.lost: Lost | None = None
        self.on_durable: Callable[[], None] = _ignore
        """Called after every durable transaction, by the writer's thread."""
        self._leaf = b""
        self._lock = threading.Lock()

    def admit(self, writing: Writing) -> Losses.Loss | None:
        """Raise ``StoreFailed`` if the log is shorter than this process saw it, differs from that, or has a known loss.

        Returns the acknowledgement that lets the transaction through, to pass to ``accept_loss`` once the transaction is durable;
        ``None`` if nothing is lost.
        """
        with self._lock:
            lost = self.lost or self._missing(writing)
            if lost is None:
                return None
            acknowledged = last_loss(writing.chain(LOG_SESSION).events)
            if acknowledged is not None and acknowledged.generation > self.generation:
                return acknowledged
            if self.lost is None:
                self._lose(lost)
        raise lost.failure()

    def accept_loss(self, loss: Losses.Loss) -> None:
        """Accept a loss whose acknowledgement is in the log."""
        with self._lock:
            self.lost, self.generation = None, loss.generation
        log.warning("audit.log.goes_on", number=loss.generation)

    def record_end(self, size: int, leaf: bytes) -> None:
        """Remember the end of the log after a durable transaction."""
        self.size, self._leaf = size, leaf
        self.on_durable()

    def lose(self, lost: Lost) -> None:
        """Remember a loss that the comparison with the anchor found."""
        with self._lock:
            if lost.generation < self.generation:
                return  # it was acknowledged during the comparison
            if self.lost is None or lost.size > self.lost.size:
                self._lose(lost)

    def recheck(self, audit_log: AuditLog) -> None:
        """Lift the fence if the lost entries have been restored."""
        with self._lock:
            if self.lost is not None and self._missing(audit_log) is None:
                log.warning("audit.log.restored", size=self.lost.size)
                self.lost = None

    def start(self, generation: int) -> None:
        """Set the generation of the log, if it is later than the known one."""
        self.generation = max(self.generation, generation)

    def _lose(self, lost: Lost) -> None:
        self.lost = lost
        log.critical("audit.log.truncated", reason=lost.cause, size=lost.size, kept_count=lost.kept)

    def _missing(self, writing: Writing | AuditLog) -> Lost | None:
        size = writing.log_size()
        if size >= self.size and (not self.size or writing.leaf_hashes(self.size - 1, self.size) == [self._leaf]):
            return None
        cause, kept = (CHAIN_TRUNCATED, size) if size < self.size else (LOG_FORKED, self.size - 1)
        return Lost(cause, self.size, kept, generation=self.generation)


class Fenced:
    """The writing side of a log whose every transaction passes the fence. Reads do not pass it."""

    def __init__(self, audit_log: LogWriter, fence: Fence) -> None:
        self._log, self._fence = audit_log, fence

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def commit(self, works: Sequence[Work]) -> list[RequestOutcome]:
        """Run *works* in one transaction; each is refused if the log lost its end."""
        passing = _Passing(self._fence)
        outcomes = self._log.commit([*map(passing.admitted, works), _last])
        seen = outcomes.pop()
        if passing.passed and seen.error is None:  # after a refusal the end is not the acknowledged one
            if passing.acknowledged is not None:
                self._fence.accept_loss(passing.acknowledged)
            self._fence.record_end(*seen.value)
        return outcomes


class _Passing:
    """One transaction on its way through the fence; the check runs once."""

    def __init__(self, fence: Fence) -> None:
        self._fence, self.passed = fence, False
        self.acknowledged: Losses.Loss | None = None

    def admitted(self, work: Work) -> Work:
        """Return *work* so that it runs after the fence has admitted the transaction."""

        def run(writing: Writing) -> Any:
            if not self.passed and not isinstance(work, Acknowledging):
                self.acknowledged = self._fence.admit(writing)
                self.passed = True
            return work(writing)

        return run


def _ignore() -> None:
    """Do nothing."""


def _last(writing: Writing) -> tuple[int, bytes]:
    size = writing.log_size()
    return size, writing.leaf_hashes(size - 1, size)[0] if size else b""


def last_loss(events: Sequence[EventRecord]) -> Losses.Loss | None:
    """Return the last acknowledged loss, from the events of ``LOG_SESSION``."""
    found = [read_loss(0, event) for event in events if event.event_type == TRUNCATED]
    return max((loss for loss in found if loss), key=lambda loss: loss.generation, default=None)


def generation_in(audit_log: AuditLog) -> int:
    """Return the generation of the log."""
    loss = last_loss(audit_log.events(LOG_SESSION, after=0, limit=10_000))
    return loss.generation if loss else 1
