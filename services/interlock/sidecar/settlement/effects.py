"""What follows a settlement: its moves are put on record, once, by whoever finds them missing; windows that nobody settled or
failed are brought to their end (BRK-4, BRK-5; SPEC-011 §1; docs/adr/0012).

A crash between a settlement and its record loses no event for good: the session remembers which windows moved something until
that is acknowledged, each opening names them, and the audit log takes no event twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import structlog

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused, conflict
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.deadline import Deadline, retry_idempotent
from interlock.sidecar.settlement.recovery import settlement
from interlock.sidecar.trail import events, response_headers, tree_events
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

TOLD_AT_ONCE = 8
"""Windows whose moves one opening puts on record; the next opening goes on with the rest."""

A = TypeVar("A")


class SettlementEffects:
    """Puts moves on record, and brings left windows to their end."""

    def __init__(self, settings: Settings, mesh: Mesh) -> None:
        self._mesh, self._timeout_s = mesh, settings.rpc_timeout_s
        self._telling: set[asyncio.Task[None]] = set()

    async def told(
        self,
        settled: session_pb2.CommitWindowResponse,
        commit: session_pb2.CommitWindowRequest,
        deadline: Deadline,
    ) -> None:
        """Write what a settlement moved: in the session's trail, and in those of the sessions above it, from the parent up.

        They are durable when this returns. That they are is acknowledged beside the call: it waits for nothing more. A quality
        that falls is worth a line too (SPEC-004 §13.2).
        """
        moved = events.of_transitions(settled, window_number=commit.window_number)
        if moved:
            await self._record(commit.session_id, commit.window_id, moved, deadline)
        for ancestor in settled.ancestors:
            await self._record(ancestor.session_id, "", tree_events.cascaded(ancestor, commit), deadline)
        if moved or settled.ancestors:
            task = asyncio.create_task(self._acknowledge(commit))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)
        if settled.degradation:
            log.warning(
                "quality.degraded", session_id=commit.session_id, window_id=commit.window_id,
                pattern=response_headers.word(session_pb2.Degradation, settled.degradation),
            )  # fmt: skip

    async def drain(self) -> None:
        """Wait for what is still being acknowledged."""
        if self._telling:
            await asyncio.wait(self._telling, timeout=self._timeout_s)

    async def tell_again(self, session_id: str, window_ids: Iterable[str], deadline: Deadline) -> None:
        """Put on record what windows moved of which nobody said that it is: their sidecar died, or is about to say so."""
        for window_id in list(window_ids)[:TOLD_AT_ONCE]:
            sealed = await self._sealed(session_id, window_id, deadline)
            if sealed is not None:
                commit = settlement(sealed.settle_json, sealed.hmac, sealed.timestamp)
                await self.told(await self._settled(commit, deadline), commit, deadline)

    async def unsettled(self, opened: session_pb2.OpenedWindow, known: ResponseHeaders, deadline: Deadline) -> None:
        """Settle a window whose lease ran out after its seal; its charge stands, whatever became of its caller.

        Refused with WINDOW_ALREADY_SETTLED and a fresh token when there was one: the token presented is behind it. A part of
        a fan-out that was never sealed has failed, and its place says so from now on.
        """
        if not opened.unsettled_window_id:
            return
        session_id, window_id = opened.session_id, opened.unsettled_window_id
        sealed = await self._sealed(session_id, window_id, deadline)
        if sealed is not None:
            await self._close(session_id, window_id, sealed, known, deadline, most=opened.max_windows)
        elif opened.unsettled_pattern == events.FAN_OUT:
            await self.failed(
                session_pb2.FailWindowRequest(
                    session_id=session_id, root_session_id=opened.root_session_id, window_id=window_id,
                    reason="LEASE_EXPIRED", parent_ids=opened.unsettled_parent_ids, pattern=opened.unsettled_pattern,
                ),
                deadline,
            )  # fmt: skip

    async def late(self, refused: Refused, known: ResponseHeaders, deadline: Deadline) -> None:
        """Answer for a window that was settled while its session was rebuilt: whoever asks for its place never got its answer."""
        session_id, window_id = refused.metadata["session_id"], refused.metadata["window_id"]
        sealed = await self._sealed(session_id, window_id, deadline)
        if sealed is not None:
            await self._close(session_id, window_id, sealed, known, deadline, most=0)

    async def failed(self, request: session_pb2.FailWindowRequest, deadline: Deadline) -> None:
        """Leave a window behind as FAILED: on record first, so that it can never be sealed any more (SPEC-004 §16.3).

        Refused with WINDOW_SEALED when it was: its charge is to be settled.
        """
        noted = [tree_events.window_failed(request.reason, request.parent_ids, request.pattern)]
        await self._record(request.session_id, request.window_id, noted, deadline)
        await call_service("session", self._mesh.session.FailWindow(request, timeout=deadline.within(self._timeout_s)))

    async def _close(
        self, session_id: str, window_id: str, sealed: audit_pb2.GetWindowResponse, known: ResponseHeaders, deadline: Deadline,
        *, most: int,
    ) -> None:  # fmt: skip
        # First what it said: nobody was told. Were it last, a failure here would leave it to be compared with.
        request = audit_pb2.DropContentRequest(session_id=session_id, window_id=window_id)
        await self._insist("audit", lambda limit: self._mesh.audit.DropContent(request, timeout=limit), deadline)
        commit = settlement(sealed.settle_json, sealed.hmac, sealed.timestamp)
        settled = await self._settled(commit, deadline)
        if settled.duplicate:
            # A copy that was put back may hold the lease of a window that is settled in it.
            await self._abandoned(commit, deadline)
        await self.told(settled, commit, deadline)
        known.session_id, known.window_id = session_id, commit.window_id
        told = response_headers.of_settlement(settled, commit.window_number, most)
        known.learn({**told, **({} if most else {"CRP-Context-Window": None})})
        log.info("window.settled_late", session_id=session_id, window_id=commit.window_id)
        raise conflict(
            "WINDOW_ALREADY_SETTLED",
            "the previous window was settled, but its answer was not delivered; go on with the token in CRP-Set-Session",
            window_id=commit.window_id,
        )

    async def _abandoned(self, commit: session_pb2.CommitWindowRequest, deadline: Deadline) -> None:
        request = session_pb2.AbandonWindowRequest(
            session_id=commit.session_id, root_session_id=commit.root_session_id, window_id=commit.window_id
        )
        limit = deadline.within(self._timeout_s)
        await call_service("session", self._mesh.session.AbandonWindow(request, timeout=limit))

    async def _sealed(self, session_id: str, window_id: str, deadline: Deadline) -> audit_pb2.GetWindowResponse | None:
        request = audit_pb2.GetWindowRequest(session_id=session_id, window_id=window_id)
        try:
            return await call_service(
                "audit", self._mesh.audit.GetWindow(request, timeout=deadline.within(self._timeout_s))
            )
        except Refused as refused:
            if refused.kind is Kind.NOT_FOUND:
                return None
            raise

    async def _settled(
        self, commit: session_pb2.CommitWindowRequest, deadline: Deadline
    ) -> session_pb2.CommitWindowResponse:
        return await self._insist(
            "session", lambda limit: self._mesh.session.CommitWindow(commit, timeout=limit), deadline
        )

    async def _record(
        self, session_id: str, window_id: str, noted: list[audit_pb2.NewEvent], deadline: Deadline
    ) -> None:
        request = audit_pb2.RecordRequest(session_id=session_id, window_id=window_id, events=noted, once=True)
        await self._insist("audit", lambda limit: self._mesh.audit.Record(request, timeout=limit), deadline)

    async def _insist(self, service: str, call: Callable[[float], Awaitable[A]], deadline: Deadline) -> A:
        return await retry_idempotent(lambda: call_service(service, call(deadline.within(self._timeout_s))))

    async def _acknowledge(self, commit: session_pb2.CommitWindowRequest) -> None:
        request = session_pb2.AcknowledgeMovesRequest(
            session_id=commit.session_id, root_session_id=commit.root_session_id, window_ids=[commit.window_id]
        )
        try:
            await call_service("session", self._mesh.session.AcknowledgeMoves(request, timeout=self._timeout_s))
        except Refused as refused:
            # The next opening tells it again, which the log takes once.
            log.info("window.untold", session_id=commit.session_id, window_id=commit.window_id, reason=refused.reason)
