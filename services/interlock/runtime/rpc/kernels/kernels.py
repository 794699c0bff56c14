"""What is asked of a kernel: decided by the session service, sealed by the audit service, then answered.

The chain is the one history of a kernel. A store that lost the kernel, holds it from before a restart, or went on beside the chain is
made what the chain says, and asked again: an action that is not in the chain was never answered, so it is not done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

import structlog

from interlock.api.audit.v1 import audit_pb2
from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused, invalid, unavailable
from interlock.domain.ids import SessionId
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.kernels.sealing import NONE_IN_HAND, InHand, Sealing
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings

log = structlog.get_logger()

TRIES = 8
"""How often a call is decided again after its kernel was restored, or its records waited to be sealed."""
WATCHED_EVERY_S = 0.5
PAGE = 500
LAST_RECORD = 2**63 - 1
"""Highest number that a record can have."""

A = TypeVar("A", session_pb2.StepKernelResponse, session_pb2.ReadKernelResponse, session_pb2.DecideCompensationResponse)

_LOST = frozenset({"KERNEL_NOT_FOUND", "KERNEL_STATE_UNVERIFIED"})


class Kernels:
    """Kernels of the callers of one process."""

    def __init__(self, settings: Settings, peers: Peers) -> None:
        self._settings, self._peers = settings, peers
        self._sealing = Sealing(peers.audit, peers.session)
        self._restoring: dict[str, asyncio.Task[bool]] = {}

    async def ask(self, scope: str, token: str, what: str, request: Any) -> session_pb2.StepKernelResponse:
        """Return the answer to what is asked; everything that it rests on is sealed.

        *token* is that of a session, whose tree the kernel belongs to, or empty. Refused with the reasons of docs/kernel.md, and
        with KERNEL_UNSETTLED where the call could not be settled: asked again under its key it is done once at most.
        """
        return await self.ask_in(scope, await self._root(scope, token), what, request)

    async def ask_in(self, scope: str, root: str, what: str, request: Any) -> session_pb2.StepKernelResponse:
        """Return the same for the kernel of a scope, or of the tree of a root where one is named: for an operator, without a token."""
        step = session_pb2.StepKernelRequest(scope=scope, root_session_id=root)
        getattr(step, what).CopyFrom(request)
        kernel_id = _id_of(scope, step.root_session_id, request.kernel)

        async def stepped(deadline: Deadline, mark: InHand) -> session_pb2.StepKernelResponse:
            step.have, step.have_link = mark.sequence, mark.link
            return await self._peers.session.step_kernel(step, deadline)

        return await self._settled(kernel_id, stepped)

    async def read(self, kernel_id: str) -> kernel_pb2.DescribeResponse:
        """Return a kernel by its id, for people. Refused with KERNEL_NOT_FOUND."""

        async def read(deadline: Deadline, _mark: InHand) -> session_pb2.ReadKernelResponse:
            return await self._peers.session.read_kernel(kernel_id, deadline)

        return (await self._settled(kernel_id, read)).described

    async def decide(self, request: session_pb2.DecideCompensationRequest) -> kernel_pb2.Verdict:
        """Return the verdict of a person's decision, sealed. Whether the person may decide is the caller's to check."""

        async def decided(deadline: Deadline, _mark: InHand) -> session_pb2.DecideCompensationResponse:
            return await self._peers.session.decide_compensation(request, deadline)

        return (await self._settled(request.kernel_id, decided)).verdict

    async def opened(self, kernel_id: str) -> audit_pb2.GetKernelRecordResponse:
        """Return the first record of a kernel, from a chain that verifies; none for one that the log does not know."""
        request = audit_pb2.GetKernelRecordRequest(kernel_id=kernel_id, limit=1)
        return await self._peers.audit.get_kernel_record(request, Deadline(self._settings.request_timeout_s))

    async def _settled(self, kernel_id: str, call: Callable[[Deadline, InHand], Awaitable[A]]) -> A:
        """Return the answer of *call* once all that it rests on is sealed."""
        deadline = Deadline(self._settings.request_timeout_s)
        for tried in range(TRIES):
            # What is in hand is not sent again, as long as nothing went wrong: with many in flight it would be sent to each of them.
            mark = NONE_IN_HAND if tried else self._sealing.mark(kernel_id)
            try:
                found = await call(deadline, mark)
                await self._sealing.seal(kernel_id, found.unsealed, deadline)
            except Refused as refused:
                await self._recover(kernel_id, refused, deadline)
                continue
            if found.full:
                await self._sealing.noted(kernel_id)
            elif self._sealing.stands(mark):
                return found
        raise unavailable("KERNEL_UNSETTLED", "the kernel is too busy to settle this; ask again under the same key")

    async def trace(self, scope: str, token: str, kernel: str, after: int) -> list[kernel_pb2.WatchResponse]:
        """Return a page of the sealed records of a kernel after one. Refused with KERNEL_NOT_FOUND."""
        kernel_id = _id_of(scope, await self._root(scope, token), kernel)
        page = await self._page(kernel_id, after)
        if not page and not await self._page(kernel_id, 0, limit=1):
            from interlock.domain.kernel.state import refusal

            raise refusal("KERNEL_NOT_FOUND")
        return page

    async def watch(self, scope: str, token: str, kernel: str, after: int) -> AsyncIterator[kernel_pb2.WatchResponse]:
        """Yield the sealed records of a kernel after one, and those to come."""
        kernel_id = _id_of(scope, await self._root(scope, token), kernel)
        page = await self.trace(scope, token, kernel, after)
        while True:
            for one in page:
                yield one
                after = one.sequence
            if len(page) < PAGE:
                await asyncio.sleep(WATCHED_EVERY_S)
            page = await self._page(kernel_id, after)

    async def _page(self, kernel_id: str, after: int, limit: int = PAGE) -> list[kernel_pb2.WatchResponse]:
        if not 0 <= after <= LAST_RECORD:
            raise invalid("KERNEL_PLACE_INVALID", "after is 0 or the number of a record")
        request = audit_pb2.GetKernelRecordRequest(kernel_id=kernel_id, after=after, limit=limit)
        found = await self._peers.audit.get_kernel_record(request, Deadline(self._settings.request_timeout_s))
        return [
            kernel_pb2.WatchResponse(sequence=one.sequence, type=one.type, timestamp=timestamp, data_json=one.data_json)
            for one, timestamp in zip(found.records, found.timestamps, strict=True)
        ]

    async def _root(self, scope: str, token: str) -> str:
        """Return the root of the tree that a token's session belongs to."""
        if not token:
            return ""
        session = await self._peers.session.get(session_pb2.GetSessionRequest(token=token, scope=scope))
        return session.root_session_id

    async def _recover(self, kernel_id: str, refused: Refused, deadline: Deadline) -> None:
        """Make the store what the chain says, or pass the refusal on where that cures nothing."""
        if refused.reason not in _LOST | {"KERNEL_CHAIN_CONFLICT"}:
            raise refused
        if not await self._restored(kernel_id, deadline):
            raise refused

    async def _restored(self, kernel_id: str, deadline: Deadline) -> bool:
        """Restore a kernel; concurrent callers share it. False where the log does not know it."""
        task = self._restoring.get(kernel_id)
        if task is None:
            task = self._restoring[kernel_id] = asyncio.create_task(self._restore(kernel_id, deadline))
            task.add_done_callback(partial(self._ended, kernel_id))
        return await asyncio.shield(task)

    def _ended(self, kernel_id: str, task: asyncio.Task[bool]) -> None:
        self._restoring.pop(kernel_id, None)
        if not task.cancelled():
            task.exception()  # told to whoever waits; dropped where all have left

    async def _restore(self, kernel_id: str, deadline: Deadline) -> bool:
        request = audit_pb2.GetKernelRecordRequest(kernel_id=kernel_id)
        found = await self._peers.audit.get_kernel_record(request, deadline)
        if not found.records:
            return False
        restore = session_pb2.RestoreKernelRequest(kernel_id=kernel_id, records=found.records)
        await self._peers.session.restore_kernel(restore, deadline)
        log.info("kernel.restored", kernel_id=kernel_id, records_count=len(found.records))
        return True


def _id_of(scope: str, root: str, name: str) -> SessionId:
    """Return the id of a kernel's chain. Its rules are imported on use, so that a sidecar that nobody asks for a kernel stays small."""
    from interlock.domain.kernel.definition import kernel_id_of

    return kernel_id_of(scope, root, name)
