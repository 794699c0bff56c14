"""What is asked of a kernel: decided by the session service, sealed by the audit service, then answered.

The chain is the one history of a kernel. A store that lost the kernel, holds it from before a restart, or went on beside the chain is
made what the chain says, and asked again: an action that is not in the chain was never answered, so it is not done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from interlock.api.audit.v1 import audit_pb2
from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused, invalid, unavailable
from interlock.domain.ids import SessionId
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.errors import from_message
from interlock.runtime.rpc.kernels.gathering import Answer, Gathering, Passing
from interlock.runtime.rpc.kernels.sealing import NONE_IN_HAND, InHand, Sealing
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings

if TYPE_CHECKING:
    from interlock.domain.kernel.emergency import EmergencyEntry
    from interlock.runtime.rpc.kernels.emergencies import Emergencies, KernelOwner

log = structlog.get_logger()

TRIES = 8
"""How often a call is decided again after its kernel was restored, or its records waited to be sealed."""
WATCHED_EVERY_S = 0.5
PAGE = 500
LAST_RECORD = 2**63 - 1
"""Highest number that a record can have."""

A = TypeVar(
    "A", session_pb2.StepKernelResponse, session_pb2.StepKernelsResponse, session_pb2.ReadKernelResponse,
    session_pb2.DecideCompensationResponse,
)  # fmt: skip
R = TypeVar("R", session_pb2.StepKernelResponse, session_pb2.ReadKernelResponse)

_READING = frozenset({"open", "describe", "evaluate"})
"""What is asked alone: it reads the whole kernel."""
_LOST = frozenset({"KERNEL_NOT_FOUND", "KERNEL_STATE_UNVERIFIED"})
_OF_THE_WHOLE = _LOST | {"KERNEL_CHAIN_CONFLICT"}
"""Refusals of every step of a kernel, whatever it asks."""


class Kernels:
    """Kernels of the callers of one process."""

    def __init__(self, settings: Settings, peers: Peers, *, emergencies: bool = False) -> None:
        """With *emergencies* what is recorded in this process's folder stands, and emergency actions are recorded there (T8)."""
        self._settings, self._peers, self._records = settings, peers, emergencies
        self._emergencies: Emergencies | None = None
        self._sealing = Sealing(peers.audit, peers.session)
        self._gathering = Gathering(self._decide)
        self._restoring: dict[str, asyncio.Task[bool]] = {}

    async def close(self) -> None:
        """End what goes on behind the answers."""
        if self._emergencies:
            await self._emergencies.close()
        await self._sealing.close()

    def resume(self) -> None:
        """Seal what an earlier process of this folder recorded, in the background."""
        if (self._settings.emergency_dir or self._settings.state_dir / "emergencies").is_dir():
            self._here().look()

    async def ask(self, scope: str, token: str, what: str, request: Any) -> session_pb2.StepKernelResponse:
        """Return the answer to what is asked; everything that it rests on is sealed.

        *token* is that of a session, whose tree the kernel belongs to, or empty. Refused with the reasons of docs/kernel.md, and
        with KERNEL_UNSETTLED where the call could not be settled: asked again under its key it is done once at most.
        """
        if not self._records:
            return await self.ask_in(scope, await self._root(scope, token), what, request)
        if what == "emergency":
            return await self._emergency(scope, token, request)
        return await self._learned(scope, token, await self._root(scope, token), what, request)

    async def _learned(self, scope: str, token: str, root: str, what: str, request: Any) -> session_pb2.StepKernelResponse:  # fmt: skip
        from interlock.runtime.rpc.kernels.emergencies import KernelOwner

        found = await self.ask_in(scope, root, what, request)
        await self._here().learn(KernelOwner(scope, root, request.kernel), token, what, request, found)
        return found

    async def _emergency(self, scope: str, token: str, request: Any) -> session_pb2.StepKernelResponse:
        """Have an emergency action decided and sealed; recorded here where the kernel cannot be reached in time."""
        from interlock.runtime.rpc.kernels.emergencies import unreachable

        root: str | None = None
        try:
            async with asyncio.timeout(self._settings.emergency_reach_s):
                root = await self._root(scope, token)
                return await self._learned(scope, token, root, "emergency", request)
        except TimeoutError:
            pass
        except Refused as refused:
            if not unreachable(refused):
                raise
        verdict = await self._here().record(scope, token, root, request)
        return session_pb2.StepKernelResponse(verdict=verdict)

    def _here(self) -> Emergencies:
        """Return what is recorded here. Imported on use, as the rules of kernels are."""
        if self._emergencies is None:
            from interlock.runtime.rpc.kernels.emergencies import Emergencies

            self._emergencies = Emergencies(self._settings, self._append, self._described)
        return self._emergencies

    async def _append(self, entry: EmergencyEntry) -> kernel_pb2.Verdict:
        """Have an action decided and sealed that was recorded here."""
        step = session_pb2.StepKernelRequest(scope=entry.scope, root_session_id=entry.root)
        step.emergency.CopyFrom(
            kernel_pb2.EmergencyRequest(
                kernel=entry.kernel, action=entry.action, stop=entry.stop, key=entry.key, child=entry.child
            )
        )
        step.recorded.CopyFrom(
            session_pb2.RecordedEmergency(
                spool=entry.spool, number=entry.number, at_ms=entry.at_ms, signed_by=entry.signed_by, signature=entry.signature
            )
        )  # fmt: skip
        return (await self._stepped(entry.kernel_id, step)).verdict

    async def _described(self, owner: KernelOwner) -> object:
        return await self._learned(
            owner.scope, "", owner.root, "describe", kernel_pb2.DescribeRequest(kernel=owner.kernel)
        )

    async def ask_in(self, scope: str, root: str, what: str, request: Any) -> session_pb2.StepKernelResponse:
        """Return the same for the kernel of a scope, or of the tree of a root where one is named: for an operator, without a token."""
        step = session_pb2.StepKernelRequest(scope=scope, root_session_id=root)
        getattr(step, what).CopyFrom(request)
        kernel_id = _id_of(scope, step.root_session_id, request.kernel)
        if not self._records:
            return await self._asked(kernel_id, what, step)
        here = self._here()
        await here.before(kernel_id, what, request)
        found = await self._asked(kernel_id, what, step)
        here.after(kernel_id, what, request)
        return found

    async def _asked(self, kernel_id: str, what: str, step: session_pb2.StepKernelRequest) -> session_pb2.StepKernelResponse:  # fmt: skip
        if what == "describe":
            return await self._with_the_chain(kernel_id, partial(self._alone, kernel_id, step))
        if what in _READING:
            return await self._alone(kernel_id, step, Deadline(self._settings.request_timeout_s))
        return await self._stepped(kernel_id, step)

    async def _stepped(self, kernel_id: str, step: session_pb2.StepKernelRequest) -> session_pb2.StepKernelResponse:
        for _ in range(TRIES):
            found = await self._gathering.step(kernel_id, step, Deadline(self._settings.request_timeout_s))
            if not found.full:  # else the next try tells the store what is sealed by now
                return found
        raise _unsettled()

    async def read(self, kernel_id: str) -> kernel_pb2.DescribeResponse:
        """Return a kernel by its id, for people. Refused with KERNEL_NOT_FOUND."""

        async def read(deadline: Deadline, _mark: InHand) -> session_pb2.ReadKernelResponse:
            return await self._peers.session.read_kernel(kernel_id, deadline)

        return (await self._with_the_chain(kernel_id, partial(self._settled, kernel_id, read))).described

    async def decide(self, request: session_pb2.DecideCompensationRequest) -> kernel_pb2.Verdict:
        """Return the verdict of a person's decision, sealed. Whether the person may decide is the caller's to check."""

        async def decided(deadline: Deadline, _mark: InHand) -> session_pb2.DecideCompensationResponse:
            return await self._peers.session.decide_compensation(request, deadline)

        deadline = Deadline(self._settings.request_timeout_s)
        return (await self._settled(request.kernel_id, decided, deadline)).verdict

    async def _decide(
        self, kernel_id: str, steps: Sequence[session_pb2.StepKernelRequest], deadline: Deadline, passing: Passing
    ) -> Sequence[Answer]:
        """Return the answers to steps of one kernel. A group that is refused as a whole for what one asks is asked one by one."""
        if len(steps) == 1:
            return [await self._alone(kernel_id, steps[0], deadline, passing)]
        try:
            return await self._together(kernel_id, steps, deadline, passing)
        except Refused as refused:
            waits = refused.kind in {Kind.UNAVAILABLE, Kind.TIMEOUT} and refused.reason != "SESSION_STATE_CORRUPT"
            if waits or refused.reason in _OF_THE_WHOLE:
                raise
        return [await _answer_of(self._alone(kernel_id, one, deadline)) for one in steps]

    async def _alone(
        self, kernel_id: str, step: session_pb2.StepKernelRequest, deadline: Deadline, passing: Passing | None = None
    ) -> session_pb2.StepKernelResponse:
        async def stepped(deadline: Deadline, mark: InHand) -> session_pb2.StepKernelResponse:
            self._sealing.put(step, kernel_id, mark)
            found = await self._peers.session.step_kernel(step, deadline)
            if passing:
                passing()
            return found

        return await self._settled(kernel_id, stepped, deadline)

    async def _together(
        self, kernel_id: str, steps: Sequence[session_pb2.StepKernelRequest], deadline: Deadline, passing: Passing
    ) -> Sequence[Answer]:
        request = session_pb2.StepKernelsRequest(steps=steps)

        async def stepped(deadline: Deadline, mark: InHand) -> session_pb2.StepKernelsResponse:
            self._sealing.put(request.steps[0], kernel_id, mark)
            found = await self._peers.session.step_kernels(request, deadline)
            passing()
            return found

        found = await self._settled(kernel_id, stepped, deadline)
        return [from_message(one.refusal) if one.HasField("refusal") else one for one in found.answers]

    async def opened(self, kernel_id: str) -> audit_pb2.GetKernelRecordResponse:
        """Return the first record of a kernel, from a chain that verifies; none for one that the log does not know."""
        request = audit_pb2.GetKernelRecordRequest(kernel_id=kernel_id, limit=1)
        return await self._peers.audit.get_kernel_record(request, Deadline(self._settings.request_timeout_s))

    async def _settled(self, kernel_id: str, call: Callable[[Deadline, InHand], Awaitable[A]], deadline: Deadline) -> A:
        """Return the answer of *call* once all that it rests on is sealed."""
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
        raise _unsettled()

    async def _with_the_chain(self, kernel_id: str, read: Callable[[Deadline], Awaitable[R]]) -> R:
        """Return what *read* tells of a kernel, with all that is sealed of it.

        A step finds by a conflict that its store was set back. A store that is only read would show the old figures for ever.
        """
        deadline = Deadline(self._settings.request_timeout_s)
        found = await read(deadline)
        sealed = await self._sealed_after(kernel_id, found.described.sequence, deadline)
        if not sealed:
            return found
        # A step may have come between. What is sealed was in the store before, so a store that still lacks it was set back.
        found = await read(deadline)
        if found.described.sequence < sealed and await self._restored(kernel_id, deadline):
            found = await read(deadline)
        return found

    async def _sealed_after(self, kernel_id: str, sequence: int, deadline: Deadline) -> int:
        """Return the number of the next record in the chain; 0 where there is none."""
        request = audit_pb2.GetKernelRecordRequest(kernel_id=kernel_id, after=sequence, limit=1)
        found = await self._peers.audit.get_kernel_record(request, deadline)
        return found.records[0].sequence if found.records else 0

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
        if refused.reason not in _OF_THE_WHOLE:
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


def _unsettled() -> Refused:
    return unavailable("KERNEL_UNSETTLED", "the kernel is too busy to settle this; ask again under the same key")


async def _answer_of(call: Awaitable[session_pb2.StepKernelResponse]) -> Answer:
    try:
        return await call
    except Refused as refused:
        return refused


def _id_of(scope: str, root: str, name: str) -> SessionId:
    """Return the id of a kernel's chain. Its rules are imported on use, so that a sidecar that nobody asks for a kernel stays small."""
    from interlock.domain.kernel.definition import kernel_id_of

    return kernel_id_of(scope, root, name)
