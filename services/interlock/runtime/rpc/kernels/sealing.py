"""Sealing what kernels decided, before anybody is told. Calls that wait at the same time share one append."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused
from interlock.runtime import failpoints
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import AuditPeer, SessionPeer

MOST_IN_A_BATCH = 256


@dataclass
class _Batch:
    """Records that are sealed together, by number, and how that ended."""

    records: dict[int, session_pb2.KernelRecord] = field(default_factory=dict)
    done: bool = False
    refused: Refused | None = None

    def takes(self, records: Sequence[session_pb2.KernelRecord]) -> bool:
        """Add records; not those of another history, with another record in the place of one."""
        held = self.records
        if len(held) + len(records) > MOST_IN_A_BATCH:
            return False
        if any(one.sequence in held and held[one.sequence].link != one.link for one in records):
            return False
        held.update({one.sequence: one for one in records})
        return True


@dataclass
class _Kernel:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    gathering: _Batch = field(default_factory=_Batch)
    waiting: int = 0


@dataclass(frozen=True)
class InHand:
    """The last record of a kernel that this process has in hand. The store need not send it again, nor those before it."""

    sequence: int = 0
    link: str = ""
    failures: int = 0


NONE_IN_HAND = InHand()
MOST_MARKS = 10_000
TOLD_AFTER_S = 0.1
"""The next step tells the store what is sealed. Where none comes, it is told by itself after so long."""

_NO_STEP = frozenset({"open", "describe"})
"""Answered without a step of the store, which is told nothing by them."""


class Sealing:
    """Seals records in order. What it returns from is durable."""

    def __init__(self, audit: AuditPeer, session: SessionPeer) -> None:
        self._audit, self._session = audit, session
        self._kernels: dict[str, _Kernel] = {}
        self._marks: dict[str, tuple[int, str]] = {}
        self._failures = 0
        """How often records were not sealed, or nobody was left to seal them: what rested on them has to be asked again."""
        self._untold: dict[str, tuple[int, str]] = {}
        """The last record of a kernel that is sealed, and that the store was not told of."""
        self._telling: dict[str, asyncio.TimerHandle] = {}
        self._told: set[asyncio.Task[None]] = set()
        self._closed = False

    def put(self, step: session_pb2.StepKernelRequest, kernel_id: str, mark: InHand) -> None:
        """Have a step tell what is in hand of a kernel, and what is sealed of it."""
        step.have, step.have_link = mark.sequence, mark.link
        if step.WhichOneof("ask") not in _NO_STEP:
            step.sealed, step.sealed_link = self._untold.pop(kernel_id, (0, ""))

    def mark(self, kernel_id: str) -> InHand:
        """Return what this process has in hand of a kernel."""
        return InHand(*self._marks.get(kernel_id, (0, "")), self._failures)

    def stands(self, mark: InHand) -> bool:
        """Tell whether all that was in hand at that mark is sealed, once ``seal`` has returned."""
        return not mark.sequence or mark.failures == self._failures

    async def seal(self, kernel_id: str, records: Sequence[session_pb2.KernelRecord], deadline: Deadline) -> None:
        """Seal records after those in hand, then let the store forget them.

        Without records it waits for those in hand. Refused with KERNEL_CHAIN_CONFLICT where another history was sealed.
        """
        records = self._fresh(kernel_id, records)
        if not records and kernel_id not in self._kernels:
            return
        kernel = self._kernels.setdefault(kernel_id, _Kernel())
        batch = kernel.gathering
        if batch.done or not batch.takes(records):
            batch = kernel.gathering = _Batch()
            batch.takes(records)
        self._in_hand(kernel_id, records)
        kernel.waiting += 1
        try:
            async with kernel.lock:  # in the order of asking: those in hand are sealed first
                if not batch.done:
                    await self._sealed(kernel_id, batch, deadline)
        except BaseException:
            self._failed()
            raise
        finally:
            kernel.waiting -= 1
            if not kernel.waiting:
                self._kernels.pop(kernel_id, None)
        if batch.refused:
            raise batch.refused

    async def noted(self, kernel_id: str) -> None:
        """Tell the store what is sealed of a kernel."""
        if untold := self._untold.pop(kernel_id, None):
            await self._note(kernel_id, *untold)

    def _fresh(self, kernel_id: str, records: Sequence[session_pb2.KernelRecord]) -> Sequence[session_pb2.KernelRecord]:
        """Return records without those that are sealed: a store that was not told yet sends them again."""
        upto = self._untold.get(kernel_id)
        place = next((n for n, one in enumerate(records, 1) if (one.sequence, one.link) == upto), 0)
        return records[place:]

    def _in_hand(self, kernel_id: str, records: Sequence[session_pb2.KernelRecord]) -> None:
        last, known = records[-1] if records else None, self._marks.pop(kernel_id, (0, ""))
        if len(self._marks) >= MOST_MARKS:
            del self._marks[next(iter(self._marks))]
        self._marks[kernel_id] = (last.sequence, last.link) if last and last.sequence > known[0] else known

    def _failed(self) -> None:
        self._failures += 1
        self._marks.clear()

    async def _sealed(self, kernel_id: str, batch: _Batch, deadline: Deadline) -> None:
        batch.done = True  # no record is added from here on
        records = [batch.records[number] for number in sorted(batch.records)]
        if not records:
            return
        try:
            await failpoints.reached("kernel.before_seal")
            await self._audit.seal_kernel(kernel_id, records, deadline)
            await failpoints.reached("kernel.after_seal")
        except Refused as refused:
            batch.refused = refused
            self._failed()
            return
        except BaseException:
            # The caller left in the middle: the others of this batch ask again.
            batch.done = False
            raise
        self._untold[kernel_id] = (records[-1].sequence, records[-1].link)
        if kernel_id not in self._telling and not self._closed:
            self._telling[kernel_id] = asyncio.get_running_loop().call_later(TOLD_AFTER_S, self._tell, kernel_id)

    async def close(self) -> None:
        """Tell nothing more. What the store was not told is sealed again by the next call, which changes nothing."""
        self._closed = True  # a step that ends after this begins no new one
        for timer in self._telling.values():
            timer.cancel()
        self._telling.clear()
        for task in self._told:
            task.cancel()
        await asyncio.gather(*self._told, return_exceptions=True)

    def _tell(self, kernel_id: str) -> None:
        del self._telling[kernel_id]
        if kernel_id in self._untold:
            task = asyncio.create_task(self.noted(kernel_id))
            self._told.add(task)
            task.add_done_callback(self._told.discard)

    async def _note(self, kernel_id: str, sequence: int, link: str) -> None:
        request = session_pb2.AcknowledgeKernelRequest(kernel_id=kernel_id, sequence=sequence, link=link)
        with contextlib.suppress(Refused):  # sealed again by the next call, which changes nothing
            await self._session.acknowledge_kernel(request, Deadline(self._session.timeout_s))
