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


class Sealing:
    """Seals records in order. What it returns from is durable."""

    def __init__(self, audit: AuditPeer, session: SessionPeer) -> None:
        self._audit, self._session = audit, session
        self._kernels: dict[str, _Kernel] = {}

    async def seal(self, kernel_id: str, records: Sequence[session_pb2.KernelRecord], deadline: Deadline) -> None:
        """Seal records, then let the store forget them. Refused with KERNEL_CHAIN_CONFLICT where another history was sealed."""
        kernel = self._kernels.setdefault(kernel_id, _Kernel())
        batch = kernel.gathering
        if batch.done or not batch.takes(records):
            batch = kernel.gathering = _Batch()
            batch.takes(records)
        kernel.waiting += 1
        try:
            async with kernel.lock:
                if not batch.done:
                    await self._sealed(kernel_id, batch, deadline)
        finally:
            kernel.waiting -= 1
            if not kernel.waiting:
                self._kernels.pop(kernel_id, None)
        if batch.refused:
            raise batch.refused

    async def _sealed(self, kernel_id: str, batch: _Batch, deadline: Deadline) -> None:
        batch.done = True  # no record is added from here on
        records = [batch.records[number] for number in sorted(batch.records)]
        try:
            await failpoints.reached("kernel.before_seal")
            await self._audit.seal_kernel(kernel_id, records, deadline)
            await failpoints.reached("kernel.after_seal")
        except Refused as refused:
            batch.refused = refused
            return
        except BaseException:
            # The caller left in the middle: the others of this batch ask again.
            batch.done = False
            raise
        last = records[-1]
        request = session_pb2.AcknowledgeKernelRequest(kernel_id=kernel_id, sequence=last.sequence, link=last.link)
        with contextlib.suppress(Refused):  # sealed again by the next call, which changes nothing
            await self._session.acknowledge_kernel(request, deadline)
