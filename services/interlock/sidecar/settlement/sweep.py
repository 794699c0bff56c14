"""Verifies the trees that this process served lately after the store came back as another server: in the background, many at a
time, before calls ask for them (BUD-4, BUD-9; docs/adr/0012).

Nothing rests on it. A tree that the sweep did not reach is refused as before and rebuilt by the call that asks for it.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Container
from dataclasses import dataclass

import structlog
from prometheus_client import Counter, Histogram

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.errors import from_message, internal
from interlock.runtime.rpc.peers import AuditPeer, SessionPeer

log = structlog.get_logger()

SWEPT = Counter(
    "interlock_session_swept", "Trees that were verified in the background after the store had changed, by outcome.",
    ["outcome"],
)  # fmt: skip
SWEEP_SECONDS = Histogram(
    "interlock_session_sweep_seconds", "Time of one sweep over the trees that were served lately, seconds.",
    buckets=(0.1, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120),
)  # fmt: skip

REMEMBERED = 20_000
"""Trees that one process remembers; the one that was served longest ago goes first."""

BATCH = 100
"""Trees of one call."""

IN_FLIGHT = 2
"""Batches at the same time: the log reads one while the store writes the other."""

RESTING = 3
"""A sweep is followed by a rest of so many times its length: a Cluster whose slots are moved is another server again and again."""

_MAY_PASS = frozenset({Kind.UNAVAILABLE, Kind.TIMEOUT})

Restoring = Callable[[audit_pb2.GetTreeRecordResponse], session_pb2.RestoreTreeRequest]


@dataclass(slots=True)
class _Tree:
    """When a tree was last used here, and since when it is known to be verified."""

    used: float
    good: float


class Sweep:
    """Remembers the trees that calls use, and sweeps over them; one sweep at a time."""

    def __init__(
        self, lasting_s: float, audit: AuditPeer, session: SessionPeer, *, restoring: Restoring, busy: Container[str]
    ) -> None:
        self._lasting_s, self._audit, self._session = lasting_s, audit, session
        self._restoring, self._busy = restoring, busy
        self._trees: OrderedDict[str, _Tree] = OrderedDict()
        self._changed = self._rested = -math.inf
        self._unfinished = self._closed = False
        self._task: asyncio.Task[None] | None = None

    def verified(self, root: str, since: float) -> None:
        """Note that the store vouched for a tree that is used, at some moment after *since*."""
        tree = self._trees.setdefault(root, _Tree(since, since))
        tree.used = tree.good = max(since, tree.good)
        self._trees.move_to_end(root)
        if len(self._trees) > REMEMBERED:
            self._trees.popitem(last=False)

    def refused(self, root: str, since: float) -> None:
        """Note that a call, begun at *since*, found a tree unverified. The others are swept if that is news.

        It is news where the tree was good after the last change that is known of. One that was never served here, or that the
        last sweep had to leave out, tells nothing of the others.
        """
        tree = self._trees.get(root)
        if tree is not None and self._changed <= tree.good < since:
            self._changed = time.monotonic()
        elif not self._unfinished:
            return
        if self._task is None and not self._closed:
            # Not in the caller's context: it is no part of one call's trace.
            self._task = asyncio.create_task(self._run(), name="session-sweep", context=contextvars.Context())

    async def close(self) -> None:
        """End a sweep that is under way, and begin no other."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        changed = math.nan
        try:
            while changed != self._changed:  # it changed again meanwhile: start over
                await asyncio.sleep(max(0.0, self._rested - time.monotonic()))
                changed, self._unfinished = self._changed, False
                await self._sweep(changed)
        except Exception:
            # No call waits for it, and each call still verifies its own tree.
            log.exception("call.defect", method="sweep")
        finally:
            self._task = None

    async def _sweep(self, changed: float) -> None:
        queue, done = deque(reversed(self._trees)), dict.fromkeys(("restored", "verified", "skipped"), 0)
        begun = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for _ in range(IN_FLIGHT):
                group.create_task(self._work(queue, changed, done))
        took = time.monotonic() - begun
        SWEEP_SECONDS.observe(took)
        if not self._unfinished:
            self._rested = time.monotonic() + RESTING * took
        outcome = "STOPPED" if self._unfinished else "SWEPT"
        log.info("sessions.swept", outcome=outcome, **{f"{name}_count": n for name, n in done.items()})

    async def _work(self, queue: deque[str], changed: float, done: dict[str, int]) -> None:
        while batch := self._next(queue, changed):
            try:
                outcomes = await self._rebuilt(batch, queue)
            except Refused as refused:
                outcomes = ["skipped"] * len(batch)
                if refused.kind in _MAY_PASS:
                    log.warning("sweep.stopped", reason=refused.reason)
                    self._unfinished = True
                    queue.clear()
            for outcome in outcomes:
                SWEPT.labels(outcome).inc()
                done[outcome] += 1

    def _next(self, queue: deque[str], changed: float) -> list[str]:
        """Take the next batch, without what a call has verified or is rebuilding, or whose last token has run out."""
        batch, ended = list[str](), time.monotonic() - self._lasting_s
        while queue and len(batch) < BATCH and self._changed == changed:
            root = queue.popleft()
            tree = self._trees.get(root)
            if tree and tree.good < changed and tree.used > ended and root not in self._busy:
                batch.append(root)
        return batch

    async def _rebuilt(self, batch: list[str], queue: deque[str]) -> list[str]:
        """Rebuild a batch and return the outcome of each tree that was seen to; what the log left out is queued again.

        Refused where no tree could be rebuilt for a reason that may pass: neither can the others, then.
        """
        since, refusals = time.monotonic(), list[Refused]()
        records = await self._audit.get_tree_records(batch)
        trees: dict[str, session_pb2.RestoreTreeRequest] = {}
        for root, record in zip(batch, records, strict=True):
            if record.refusal.reason == "RECORDS_LEFT_OUT":
                queue.append(root)
                continue
            try:
                trees[root] = self._tree(record)
            except Refused as refused:
                refusals.append(refused)
            await asyncio.sleep(0)  # calls go first
        outcomes = await self._restored(trees, since, refusals) if trees else []
        passing = [one for one in refusals if one.kind in _MAY_PASS and one.retry_after_ms]
        if passing and not outcomes:
            raise passing[0]
        return outcomes + ["skipped"] * len(refusals)

    def _tree(self, record: audit_pb2.GetTreeRecordResponse) -> session_pb2.RestoreTreeRequest:
        if record.HasField("refusal"):
            raise from_message(record.refusal)
        try:
            return self._restoring(record)
        except Refused:
            raise
        except Exception:
            # A record that trips us is one tree's; its own calls answer for it.
            log.exception("call.defect", method="sweep")
            raise internal() from None

    async def _restored(
        self, trees: dict[str, session_pb2.RestoreTreeRequest], since: float, refusals: list[Refused]
    ) -> list[str]:
        results = await self._session.restore_trees(trees.values())
        outcomes: list[str] = []
        for root, result in zip(trees, results, strict=True):
            if result.HasField("refusal"):
                refusals.append(from_message(result.refusal))
                continue
            if tree := self._trees.get(root):
                tree.good = max(since, tree.good)
            outcomes.append("restored" if result.restored else "verified")
        return outcomes
