"""Signing checkpoints of the log and publishing them to the anchor (AUD-6): a task of the audit service.

A checkpoint is signed after enough new entries or enough time, and once more at the end. It is stored in the log before it is
published, so that a crash in between loses nothing: the next round publishes it. A hanging anchor blocks only its own thread;
a setting decides whether sealing continues while it hangs.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import structlog
from prometheus_client import Counter, Gauge

from interlock.audit.merkle.anchor import Anchor, AnchorFailedError, LostError, Newest, missing
from interlock.audit.merkle.checkpoint_key import CheckpointKey
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.genuine import LOG_FORGED, MOST_AT_ONCE, Genuine
from interlock.audit.store.fence import LOG_FORKED, Fence, generation_in, last_loss
from interlock.audit.store.log import AuditLog, StoreFailed, Writing
from interlock.domain.errors import Refused, unavailable
from interlock.domain.merkle.entries import LOG_SESSION
from interlock.domain.merkle.note import MalformedNoteError, checkpoint_in
from interlock.domain.merkle.tree import NodeOf, StoredTree, tree_root
from interlock.runtime import failpoints
from interlock.runtime.clock import Clock
from interlock.runtime.settings.model import Settings

log = structlog.get_logger()

UNANCHORED = Gauge("interlock_audit_unanchored_entries", "Entries of the audit log that no anchor has yet.")
CHECKPOINTS = Counter("interlock_audit_checkpoints", "Checkpoints signed.")
ANCHOR_FAILURES = Counter(
    "interlock_audit_anchor_failures", "Rounds in which the anchor could not be used.", ["reason"]
)

TASK = "checkpoint"
LAST_ROUND_S = 3.0
OPENING_S = 3.0
DEPENDENCY = "audit_anchor"

T = TypeVar("T")


class Notary:
    """Signs checkpoints and publishes them."""

    def __init__(  # noqa: PLR0917 - the parts of the service, wired once
        self, settings: Settings, audit_log: AuditLog, appender: Appender, key: CheckpointKey, fence: Fence, clock: Clock,
        genuine: Genuine,
    ) -> None:  # fmt: skip
        self.key, self.fence = key, fence
        self._settings, self._log, self._appender, self._clock = settings, audit_log, appender, clock
        self._genuine = genuine
        self.forged: StoreFailed | None = None
        """Why nothing more is signed: an entry that this deployment did not seal."""
        self._anchor = Anchor(settings.audit_anchor, key) if settings.audit_anchor else None
        self._anchored: int | None = None
        self._signed = 0
        self._looked = False  # a database that was missing at the start is compared with the anchor once it is there
        self.trouble = ""
        """Why the anchor could not be used in the last round; empty after a good round."""
        self._busy: threading.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._new = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        fence.on_durable = self._appended

    async def open(self) -> None:
        """Compare the log with the anchor once, for ``OPENING_S`` seconds at most; then start the task."""
        with contextlib.suppress(StoreFailed, TimeoutError):
            self.fence.start(await asyncio.to_thread(generation_in, self._log))
            end = await asyncio.to_thread(_end, self._log)
            self._looked = True
            self.fence.record_end(*end)
            async with asyncio.timeout(OPENING_S):
                await self._look()
        self._tell()
        self._task = asyncio.create_task(self._run(), name="audit-checkpoints")

    async def close(self) -> None:
        """Sign and publish the new entries, for ``LAST_ROUND_S`` seconds at most, and end the task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with contextlib.suppress(TimeoutError, Refused):
            async with asyncio.timeout(LAST_ROUND_S):
                if self._busy is not None:  # a publication that was under way when the task ended
                    await asyncio.to_thread(self._busy.wait, LAST_ROUND_S / 2)
                await self.round()

    def _appended(self) -> None:
        """Start a round if enough entries are new. The writer's thread calls this after each durable transaction."""
        due = self.fence.size - self._signed >= self._settings.checkpoint_entries or not self._looked
        if due and not self._new.is_set():
            self._looked = True
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._new.set)

    @property
    def unanchored(self) -> int:
        """Entries that the anchor lacks, as far as this process knows."""
        return max(0, self.fence.size - (self._anchored or 0))

    @property
    def stuck(self) -> bool:
        """Whether the anchor's thread is still waiting for the anchor."""
        return self._busy is not None and not self._busy.is_set()

    def require_anchored(self) -> None:
        """Refuse with AUDIT_ANCHOR_LAG while more entries wait for publication than the settings allow.

        Refuse with LOG_FORGED while an entry keeps the log from being signed: what is sealed now would have no witness.
        """
        if self.forged is not None:
            raise self.forged
        if not self._settings.audit_anchor_required:
            return
        if self._anchored is None or self.unanchored > self._settings.audit_anchor_max_lag:
            raise unavailable("AUDIT_ANCHOR_LAG", "too much of the audit log is not yet published to the anchor")

    def unready_dependencies(self) -> Mapping[str, str]:
        """Return the anchor's part of readiness: a loss, or an anchor that is behind."""
        lost = self.fence.lost
        if lost is not None:
            return {DEPENDENCY: f"{lost.cause}: {lost.failure().hint}"}
        try:
            self.require_anchored()
        except StoreFailed as failed:
            return {"audit_log": f"{failed.reason}: {failed.hint}"}
        except Refused as refused:
            return {DEPENDENCY: f"{refused.reason}: {self.trouble or 'it is behind'}"}
        return {}

    async def round(self) -> None:
        """Sign the new entries and publish the checkpoint. Refused if the log cannot be written."""
        self._new.clear()
        if self.fence.lost is not None and await self._look():
            await asyncio.to_thread(self.fence.recheck, self._log)
        if await asyncio.to_thread(self._log.leads, TASK):
            try:
                await self._sign()
            except StoreFailed as failed:
                self._note_forged(failed)
                await self._look()  # a log that cannot be signed may no longer be the published one
                raise
            self.forged = None
            await self._use(self._publish)
        else:
            await self._look()
        self._tell()

    async def _sign(self) -> None:
        """Sign the log up to its end, a part at a time where much is new."""
        while True:
            now_s = self._clock() // 1_000_000
            sign = partial(sign_checkpoint, key=self.key, now_s=now_s, genuine=self._genuine)
            before, (self._signed, size) = self._signed, await self._appender.submit(sign)
            if self._signed >= size or self._signed == before:
                return

    def _note_forged(self, failed: StoreFailed) -> None:
        if failed.reason == LOG_FORGED:
            if self.forged is None:
                log.critical("audit.log.forged", reason=failed.reason, hint=failed.hint, **failed.metadata)
            self.forged = failed

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.checkpoint_s):
                    await self._new.wait()
            try:
                await self.round()
            except Refused as refused:
                log.warning("audit.checkpoint.failed", reason=refused.reason)
                await asyncio.sleep(min(1.0, self._settings.checkpoint_s))
            except Exception as error:  # noqa: BLE001 - a defect costs a round, not the task
                log.error("audit.checkpoint.failed", error=type(error).__name__)  # noqa: TRY400 - no text of exceptions
                await asyncio.sleep(min(1.0, self._settings.checkpoint_s))

    async def _look(self) -> bool:
        """Compare the log with the anchor, without writing; return whether that succeeded without a loss."""
        return await self._use(self._compare)

    def _compare(self, anchor: Anchor) -> Newest | None:
        newest = anchor.newest()
        lost = missing(self._log, newest, anchor)
        if lost is not None:
            raise LostError(lost)
        return newest

    def _publish(self, anchor: Anchor) -> Newest | None:
        checkpoint = self._log.checkpoint()
        if (
            checkpoint is None
            or checkpoint_in(checkpoint[1]).origin != self.key.verifier(generation_in(self._log)).name
        ):
            return self._compare(anchor)  # nothing is signed yet in this generation
        failpoints.reached_sync("audit.before_anchor")
        anchor.publish(self._log, *checkpoint)
        failpoints.reached_sync("audit.after_anchor")
        return anchor.newest()

    async def _use(self, work: Callable[[Anchor], Newest | None]) -> bool:
        """Do *work* with the anchor in a thread of its own, one at a time: it may hang for any time."""
        if self._anchor is None:
            return True
        if self.stuck:
            self._failed("ANCHOR_HANGS", f"{self._settings.audit_anchor} does not answer")
            return False
        try:
            newest = await self._in_thread(partial(work, self._anchor))
        except LostError as error:
            self.fence.lose(error.lost)
        except AnchorFailedError as error:
            self._failed(error.reason, error.hint)
        except TimeoutError:
            self._failed("ANCHOR_HANGS", f"{self._settings.audit_anchor} does not answer")
        except (Refused, OSError) as error:
            self._failed("ANCHOR_NOT_COMPARED", type(error).__name__)
        else:
            self.trouble = ""
            here = newest is not None and newest.generation == self.fence.generation
            self._anchored = newest.size if newest is not None and here else 0
            return True
        return False

    async def _in_thread(self, work: Callable[[], T]) -> T:
        future: asyncio.Future[T] = self._loop.create_future()
        self._busy = back = threading.Event()

        def run() -> None:
            try:
                value, error = work(), None
            except Exception as failed:  # noqa: BLE001 - raised again in the waiting task
                value, error = None, failed
            back.set()  # before the result: the waiting task may start the next work at once
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(_resolve, future, value, error)

        threading.Thread(target=run, name="audit-anchor", daemon=True).start()
        return await asyncio.wait_for(future, self._settings.checkpoint_s + OPENING_S)

    def _failed(self, reason: str, hint: str) -> None:
        ANCHOR_FAILURES.labels(reason).inc()
        if self.trouble != f"{reason}: {hint}":
            log.warning("audit.anchor.failed", reason=reason, hint=hint)
        self.trouble = f"{reason}: {hint}"

    def _tell(self) -> None:
        UNANCHORED.set(self.unanchored)


def _resolve(future: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


def sign_checkpoint(writing: Writing, key: CheckpointKey, now_s: int, genuine: Genuine) -> tuple[int, int]:
    """Sign the log as this transaction sees it, unless that size is signed already; return the signed size and the log's.

    At most ``MOST_AT_ONCE`` entries more than before. Refused with LOG_FORKED if it does not extend the last checkpoint: no
    signature contradicts an earlier one (I6). Refused with LOG_FORGED if an entry is not one that this deployment sealed.
    """
    whole, last = writing.log_size(), writing.checkpoint()
    loss = last_loss(writing.chain(LOG_SESSION).events)
    generation = loss.generation if loss else 1
    node = StoredTree(lambda level, start, end: _stored(writing, level, start, end)).node
    signed = _require_extended(last[1], whole, node) if last is not None else 0
    size = min(whole, signed + MOST_AT_ONCE)
    if size == signed:
        return signed, whole
    genuine.require(writing, signed, size)
    failpoints.reached_sync("audit.before_checkpoint")
    writing.add_checkpoint(size, key.sign(size, tree_root(size, node), generation=generation, now_s=now_s))
    CHECKPOINTS.inc()
    return size, whole


def _require_extended(note: str, size: int, node: NodeOf) -> int:
    """Refuse a log that does not begin with the one *note* signed; return the size that *note* signed."""
    try:
        before = checkpoint_in(note)
        if before.size <= size and tree_root(before.size, node) == before.root:
            return before.size
    except (MalformedNoteError, LookupError):
        pass
    raise StoreFailed(
        LOG_FORKED,
        "the log does not extend the one that was signed",
        hint="run `interlock audit fsck`",
        cause=LOG_FORKED,
    )


def _end(audit_log: AuditLog) -> tuple[int, bytes]:
    size = audit_log.log_size()
    return size, audit_log.leaf_hashes(size - 1, size)[0] if size else b""


def _stored(writing: Writing, level: int, start: int, end: int) -> list[bytes]:
    return writing.nodes(level, start, end) if level else writing.leaf_hashes(start, end)
