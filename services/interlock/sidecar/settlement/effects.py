"""What follows a settlement: its moves are put on record once; windows that were left open are settled or failed
(BRK-4, BRK-5; SPEC-011 §1; docs/adr/0012).

A crash between a settlement and its record loses no event for good. The session remembers which windows moved something until
that is acknowledged, each opening names them, and the audit log takes no event twice.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from functools import partial
from typing import Any

import structlog

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.chain.chain import WINDOW_SEALED
from interlock.domain.dag.dag import LINEAR
from interlock.domain.errors import Refused, conflict
from interlock.domain.session.state import VOID
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peer import WriteFailedError
from interlock.runtime.rpc.peers import Peers
from interlock.sidecar.settlement.recovery import settlement
from interlock.sidecar.trail import events, response_headers, spending_events, stream_events, tree_events
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

_RELEASED = frozenset({stream_events.BEGUN, stream_events.PART, spending_events.RESERVED})
"""What the log tells of a window that was released in parts."""

REPLAYED_AT_ONCE = 8
"""Windows whose moves one opening puts on record; the next opening continues with the rest."""


class SettlementEffects:
    """Puts moves on record, and settles or fails windows that were left open."""

    def __init__(self, peers: Peers) -> None:
        self._session, self._audit = peers.session, peers.audit
        self._acknowledging: set[asyncio.Task[None]] = set()

    async def record(
        self,
        settled: session_pb2.CommitWindowResponse,
        commit: session_pb2.CommitWindowRequest,
        deadline: Deadline,
    ) -> None:
        """Write what a settlement moved: in the session's trail, in those of the sessions above it, from the parent up, and in
        its caller's.

        They are durable when this returns. The acknowledgement to the session service runs in the background. A falling
        quality gets a log line too (SPEC-004 §13.2).
        """
        moved = events.of_transitions(settled, window_number=commit.window_number)
        if moved:
            await self._record(commit.session_id, commit.window_id, moved, deadline)
        for ancestor in settled.ancestors:
            await self._record(ancestor.session_id, "", tree_events.cascaded(ancestor, commit), deadline)
        lowered = bool(commit.caller_id and commit.charge_micros)
        if lowered:
            told = tree_events.caller_lowered(settled.caller_budget, commit)
            await self._record(commit.caller_id, "", told, deadline)
        if moved or settled.ancestors or lowered:
            task = asyncio.create_task(self._acknowledge(commit))
            self._acknowledging.add(task)
            task.add_done_callback(self._acknowledging.discard)
        if settled.degradation:
            log.warning(
                "quality.degraded", session_id=commit.session_id, window_id=commit.window_id,
                pattern=response_headers.word(session_pb2.Degradation, settled.degradation),
            )  # fmt: skip

    async def drain(self) -> None:
        """Wait for acknowledgements that are under way."""
        if self._acknowledging:
            await asyncio.wait(self._acknowledging, timeout=self._session.timeout_s)

    async def replay(self, session_id: str, window_ids: Iterable[str], deadline: Deadline) -> None:
        """Put on record what windows moved whose record was never acknowledged: their sidecar died, or is about to do it."""
        for window_id in list(window_ids)[:REPLAYED_AT_ONCE]:
            sealed = await self._audit.find_window(session_id, window_id, deadline)
            if sealed is not None:
                commit = settlement(sealed)
                await self.record(await self._session.commit_window(commit, deadline), commit, deadline)

    async def settle_left_open(
        self, opened: session_pb2.OpenedWindow, reply: ResponseHeaders, deadline: Deadline
    ) -> None:
        """Settle a window whose lease ran out after its seal; its charge stands, no matter what became of its caller.

        Refused with WINDOW_ALREADY_SETTLED and a fresh token when there was one: the token presented is behind it. A part of
        a fan-out that was never sealed has failed, and its place says so from now on.
        """
        if not opened.unsettled_window_id:
            return
        session_id, window_id = opened.session_id, opened.unsettled_window_id
        sealed = await self._audit.find_window(session_id, window_id, deadline)
        if sealed is None and opened.unsettled_hold_micros:
            sealed = await self._lost_stream(
                session_id, opened.root_session_id, window_id, opened.caller_budget.caller_id, deadline
            )
        if sealed is not None:
            await self._close(session_id, window_id, sealed, reply, deadline, most=opened.max_windows)
        elif opened.unsettled_pattern == events.FAN_OUT:
            await self.fail(
                session_pb2.FailWindowRequest(
                    session_id=session_id, root_session_id=opened.root_session_id, window_id=window_id,
                    reason="LEASE_EXPIRED", parent_ids=opened.unsettled_parent_ids, pattern=opened.unsettled_pattern,
                ),
                deadline,
            )  # fmt: skip

    async def settle_crowding(
        self, refused: Refused, left_open: str, reply: ResponseHeaders, deadline: Deadline
    ) -> None:
        """Settle or fail the windows that were left open in a session that is full or held, for a call that was *refused* there.

        No opening looks at them any more: without this, a charge that was sealed would never count, a stream that was lost would hold
        its budget for ever, and a fan-in would wait for parts that were never sealed. Refused with WINDOW_ALREADY_SETTLED and a fresh
        token when one was sealed; where the budget is spent nothing goes on, and the call stays *refused* for that.
        """
        try:
            await self._settled_crowding(refused, left_open, reply, deadline)
        except Refused as found:
            if refused.reason != "BUDGET_DEPLETED":
                raise
            log.info("session.spent_settled", session_id=refused.metadata["session_id"], reason=found.reason)

    async def _settled_crowding(
        self, refused: Refused, left_open: str, reply: ResponseHeaders, deadline: Deadline
    ) -> None:
        session_id, root = refused.metadata["session_id"], refused.metadata["root_session_id"]
        caller_id = refused.metadata.pop("caller_id", "")
        for entry in left_open.split(","):
            window_id, pattern, parents = entry.split(" ")
            sealed = await self._audit.find_window(session_id, window_id, deadline)
            if sealed is None and pattern in {LINEAR, VOID}:  # no other window is released in parts
                freed = caller_id if refused.reason in {"BUDGET_HELD", "BUDGET_DEPLETED"} else None
                sealed = await self._lost_stream(session_id, root, window_id, freed, deadline)
            if sealed is not None:
                await self._close(session_id, window_id, sealed, reply, deadline, most=0)
            elif pattern == events.FAN_OUT:
                await self.fail(
                    session_pb2.FailWindowRequest(
                        session_id=session_id, root_session_id=root, window_id=window_id, reason="LEASE_EXPIRED",
                        parent_ids=parents.split("+"), pattern=pattern,
                    ),
                    deadline,
                )  # fmt: skip

    async def close_lost(self, opened: session_pb2.OpenedWindow) -> None:
        """Close a window that failed after a part of its answer had left, at what it holds. A failure here is logged: the call that
        finds its lease expired does it then.
        """
        deadline = Deadline(self._session.timeout_s)
        try:
            sealed = await self._lost_stream(
                opened.session_id, opened.root_session_id, opened.window_id, opened.caller_budget.caller_id, deadline
            )
            if sealed is not None:
                commit = settlement(sealed)
                await self.record(await self._session.commit_window(commit, deadline), commit, deadline)
        except Refused as refused:
            log.warning(
                "stream.left_open", session_id=opened.session_id, window_id=opened.window_id, reason=refused.reason
            )

    async def _lost_stream(
        self, session_id: str, root: str, window_id: str, caller_id: str | None, deadline: Deadline
    ) -> audit_pb2.GetWindowResponse | None:
        """Seal a window that ended while it released parts, at what it holds. Where none left, free that, for *caller_id* too.

        Without a *caller_id* nothing is freed: a window that holds nothing may still be sealed. Before it is freed the log is told,
        so that a first part that is still on its way is refused there: what was read before does not show it.
        """
        told = await self._released(root, window_id, deadline)
        if not told.get(stream_events.BEGUN) and caller_id is not None:
            if await self._given_up(session_id, window_id, deadline):
                request = session_pb2.AbandonWindowRequest(
                    session_id=session_id, root_session_id=root, window_id=window_id, caller_id=caller_id,
                )  # fmt: skip
                await self._session.abandon_window(request, deadline)
                return None
            told = await self._released(root, window_id, deadline)
        if not told.get(stream_events.BEGUN):
            return None
        begun, parts = told[stream_events.BEGUN][0], told.get(stream_events.PART, ())
        last: dict[str, Any] = max(parts, key=lambda part: part["part"], default={})
        spent = told.get(spending_events.RESERVED, [{}])[-1]
        sealing = partial(stream_events.lost, session_id, root, window_id, spent=spent)
        try:
            await self._audit.append(sealing(begun, last), deadline)
        except WriteFailedError as failed:
            if failed.refused.reason != "CHAIN_CONFLICT":
                raise failed.refused from None
            # The store was set back, and had admitted it in a place that is taken in the chain.
            place = {} if begun["parent_ids"] else await self._below_the_root(session_id, root, deadline)
            await self._sealed_beside(sealing(begun | place, last, beside=True), deadline)
        log.warning("stream.lost", session_id=session_id, window_id=window_id, charge_micros=begun["hold_micros"])
        return await self._audit.get_window(session_id, window_id, deadline)

    async def _sealed_beside(self, request: audit_pb2.AppendRequest, deadline: Deadline) -> None:
        try:
            await self._audit.append(request, deadline)
        except WriteFailedError as failed:
            raise failed.refused from None

    async def _below_the_root(self, session_id: str, root: str, deadline: Deadline) -> dict[str, Any]:
        """Return the place below the window that a session begins with: beside that one there is none."""
        steps = (await self._audit.get_tree_record(root, deadline)).steps
        sealed = (step for step in steps if step.session_id == session_id and step.event_type == WINDOW_SEALED)
        first = next(step for step in sealed if not settlement(step).parent_ids)
        return {"parent_ids": [first.window_id], "parent_hmacs": [first.hmac], "window_number": 2}

    async def _released(self, root: str, window_id: str, deadline: Deadline) -> dict[str, list[dict[str, Any]]]:
        """Return what the log holds of a window that was released in parts: the data of its events, by type."""
        found: dict[str, list[dict[str, Any]]] = {}
        for step in (await self._audit.get_tree_record(root, deadline)).steps:
            if step.window_id == window_id and step.event_type in _RELEASED:
                found.setdefault(step.event_type, []).append(json.loads(step.data_json))
        return found

    async def _given_up(self, session_id: str, window_id: str, deadline: Deadline) -> bool:
        """Put on record that no part of a window leaves any more; ``False`` where one is on record by now."""
        try:
            await self._record(session_id, window_id, [stream_events.given_up()], deadline)
        except Refused as refused:
            if refused.reason != "STREAM_HAS_BEGUN":
                raise
            return False
        return True

    async def settle_late(self, refused: Refused, reply: ResponseHeaders, deadline: Deadline) -> None:
        """Answer for a window that was settled while its session was rebuilt: the caller never got its answer."""
        session_id, window_id = refused.metadata["session_id"], refused.metadata["window_id"]
        sealed = await self._audit.find_window(session_id, window_id, deadline)
        if sealed is not None:
            await self._close(session_id, window_id, sealed, reply, deadline, most=0)

    async def fail(self, request: session_pb2.FailWindowRequest, deadline: Deadline) -> None:
        """Leave a window behind as FAILED: on record first, so that it can never be sealed again (SPEC-004 §16.3).

        Refused with WINDOW_SEALED when it was: its charge is to be settled.
        """
        noted = [tree_events.window_failed(request.reason, request.parent_ids, request.pattern)]
        await self._record(request.session_id, request.window_id, noted, deadline)
        await self._session.fail_window(request, deadline)

    async def _close(
        self, session_id: str, window_id: str, sealed: audit_pb2.GetWindowResponse, reply: ResponseHeaders, deadline: Deadline,
        *, most: int,
    ) -> None:  # fmt: skip
        # Its content goes first, since no one received it. If it went last, a failure here would leave it to be compared with.
        await self._audit.drop_content(session_id, window_id, deadline)
        commit = settlement(sealed)
        settled = await self._session.commit_window(commit, deadline)
        if settled.duplicate:
            # A copy that was put back may hold the lease of a window that is settled in it.
            await self._session.abandon_window(
                session_pb2.AbandonWindowRequest(
                    session_id=commit.session_id, root_session_id=commit.root_session_id, window_id=commit.window_id
                ),
                deadline,
            )
        await self.record(settled, commit, deadline)
        reply.session_id, reply.window_id = session_id, commit.window_id
        told = response_headers.of_settlement(settled, commit.window_number, most)
        reply.set({**told, **({} if most else {"CRP-Context-Window": None})})
        log.info("window.settled_late", session_id=session_id, window_id=commit.window_id)
        raise conflict(
            "WINDOW_ALREADY_SETTLED",
            "the previous window was settled, but its answer was not delivered; continue with the token in CRP-Set-Session",
            window_id=commit.window_id,
        )

    async def _record(
        self, session_id: str, window_id: str, moves: list[audit_pb2.NewEvent], deadline: Deadline
    ) -> None:
        await self._audit.record(session_id, window_id, moves, deadline, once=True)

    async def _acknowledge(self, commit: session_pb2.CommitWindowRequest) -> None:
        request = session_pb2.AcknowledgeMovesRequest(
            session_id=commit.session_id, root_session_id=commit.root_session_id, window_ids=[commit.window_id]
        )
        try:
            await self._session.acknowledge_moves(request)
        except Refused as refused:
            # The next opening records it again, and the log takes it once.
            log.info("window.untold", session_id=commit.session_id, window_id=commit.window_id, reason=refused.reason)
