"""Nothing is added to a log that lost its end: each transaction first looks whether what this process saw last is still there.

A database that came back from a backup, or a standby that was promoted before it had everything, is shorter than what was
acknowledged, or goes on differently. Within a process the last position and its leaf hash tell; beyond it, the anchor does.
What was lost stays refused until a reviewer's acknowledgement is in the log itself, which every process reads there.
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
from interlock.domain.merkle.entries import LOG_SESSION, Losses, loss_of

log = structlog.get_logger()

CHAIN_TRUNCATED = "CHAIN_TRUNCATED"
LOG_FORKED = "LOG_FORKED"


@dataclass(frozen=True)
class Lost:
    """What is missing: entries [kept, size) that were anchored, or that this process had seen. ``root`` where it is known."""

    cause: str
    size: int
    kept: int
    root: bytes = b""
    generation: int = 1

    def failure(self) -> StoreFailed:
        """Return what writers are told."""
        failed = StoreFailed(
            self.cause,
            "the audit log is not what was acknowledged; nothing is written until that is decided",
            hint=f"entries {self.kept} to {self.size - 1} are missing or differ. Restore the database, or accept the loss "
            f"with `interlock audit acknowledge-truncation` for size {self.size}",
            cause=self.cause,
        )
        failed.metadata |= {"anchored_size": str(self.size), "kept": str(self.kept)}
        failed.retry_after_ms = 0
        return failed


class Acknowledging:
    """A work that may run although something is lost: the acknowledgement itself."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __call__(self, writing: Writing) -> Any:
        return self._work(writing)


class Fence:
    """What this process knows the log to hold. Written by the writer's thread, read by any."""

    def __init__(self) -> None:
        self.generation = 1
        self.size = 0
        self.lost: Lost | None = None
        self.told: Callable[[], None] = _nobody
        """Called after every durable transaction, by the writer's thread."""
        self._leaf = b""
        self._lock = threading.Lock()

    def admit(self, writing: Writing) -> Losses.Loss | None:
        """Raise ``StoreFailed`` when the log is shorter than, or other than, what was seen of it, or is known to be.

        Returns the acknowledgement that lets the transaction through, for ``go_on`` once that is durable; mostly ``None``.
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

    def go_on(self, loss: Losses.Loss) -> None:
        """Note that a loss is accepted, in the log itself."""
        with self._lock:
            self.lost, self.generation = None, loss.generation
        log.warning("audit.log.goes_on", number=loss.generation)

    def saw(self, size: int, leaf: bytes) -> None:
        """Note what a durable transaction left."""
        self.size, self._leaf = size, leaf
        self.told()

    def lose(self, lost: Lost) -> None:
        """Note what the anchor has and the log has not."""
        with self._lock:
            if lost.generation < self.generation:
                return  # it was acknowledged while the two were compared
            if self.lost is None or lost.size > self.lost.size:
                self._lose(lost)

    def look_again(self, audit_log: AuditLog) -> None:
        """Let writing go on where what was lost is back, because somebody restored it."""
        with self._lock:
            if self.lost is not None and self._missing(audit_log) is None:
                log.warning("audit.log.restored", size=self.lost.size)
                self.lost = None

    def start(self, generation: int) -> None:
        """Note the generation that the log is of."""
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
        """Run *works* in one transaction; each is refused when the log lost its end."""
        passing = _Passing(self._fence)
        outcomes = self._log.commit([*map(passing.admitted, works), _last])
        seen = outcomes.pop()
        if passing.passed and seen.error is None:  # of what was refused, the end is not the one that was acknowledged
            if passing.acknowledged is not None:
                self._fence.go_on(passing.acknowledged)
            self._fence.saw(*seen.value)
        return outcomes


class _Passing:
    """One transaction on its way through the fence, which is looked at once."""

    def __init__(self, fence: Fence) -> None:
        self._fence, self.passed = fence, False
        self.acknowledged: Losses.Loss | None = None

    def admitted(self, work: Work) -> Work:
        """Return *work* as it runs after the fence let the transaction through."""

        def run(writing: Writing) -> Any:
            if not self.passed and not isinstance(work, Acknowledging):
                self.acknowledged = self._fence.admit(writing)
                self.passed = True
            return work(writing)

        return run


def _nobody() -> None:
    """Nobody is told."""


def _last(writing: Writing) -> tuple[int, bytes]:
    size = writing.log_size()
    return size, writing.leaf_hashes(size - 1, size)[0] if size else b""


def last_loss(events: Sequence[EventRecord]) -> Losses.Loss | None:
    """Return the last loss that was acknowledged, from the events of ``LOG_SESSION``."""
    found = [loss_of(0, event) for event in events if event.event_type == TRUNCATED]
    return max((loss for loss in found if loss), key=lambda loss: loss.generation, default=None)


def generation_in(audit_log: AuditLog) -> int:
    """Return which generation the log is of."""
    loss = last_loss(audit_log.events(LOG_SESSION, after=0, limit=10_000))
    return loss.generation if loss else 1
