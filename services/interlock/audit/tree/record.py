"""The record of a tree: all that the session service needs to rebuild its sessions, in the order in which it was logged.

Nothing is said on the strength of a chain that does not verify, or of one that retention cut off (docs/adr/0012).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.export.export import text
from interlock.audit.requests import Note
from interlock.audit.sealing.seal import Sealer
from interlock.audit.sealing.verify import require_valid_chain
from interlock.audit.settlements import settlement_message
from interlock.audit.store.log import AuditLog, Chain, Writing
from interlock.domain import ids
from interlock.domain.chain import provenance
from interlock.domain.chain.chain import WINDOW_FAILED, WINDOW_SEALED, EventRecord
from interlock.domain.chain.chain_state import CASCADED
from interlock.domain.chain.marks import TRUNCATED
from interlock.domain.errors import Refused, conflict, exhausted, invalid, not_found
from interlock.runtime.keys.derivation import Keyring
from interlock.runtime.rpc.errors import answers_refusals, to_message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MOST_SESSIONS = 1000
"""Sessions of a tree that is rebuilt."""

MOST_TREES = 256
"""Trees that are asked for at a time."""

MOST_RECORD_BYTES = 1_048_576
"""Records of one answer together, bytes: a sixteenth of the largest message as it is set by default."""

_MOVING = frozenset({
    provenance.SESSION_CREATED, WINDOW_SEALED, WINDOW_FAILED, provenance.SUB_AGENT_STARTED, "DELEGATION_GRANTED",
    "SESSION_TERMINATED", CASCADED,
})  # fmt: skip
"""Events that move the state of a session, or say which others do."""


@dataclass(frozen=True)
class _Trail:
    """One session's verified chain, and where its events stand in the log."""

    session_id: str
    chain: Chain
    positions: Mapping[int, int]

    @property
    def created(self) -> Mapping[str, Any]:
        """What its SESSION_CREATED says; empty when there is none."""
        found = (event for event in self.chain.events if event.event_type == provenance.SESSION_CREATED)
        first = next(found, None)
        return _object(first.data_json) if first else {}

    @property
    def started(self) -> list[str]:
        """Sessions that it started."""
        events = (event for event in self.chain.events if event.event_type == provenance.SUB_AGENT_STARTED)
        return [provenance.started_of(_object(event.data_json)).session_id for event in events]

    def steps(self) -> Iterator[audit_pb2.TreeStep]:
        """Yield what moved the session."""
        windows = {window.window_id: window for window in self.chain.windows}
        for event in self.chain.events:
            if event.event_type not in _MOVING:
                continue
            step = _step(event, self.positions[event.sequence])
            if event.event_type == WINDOW_SEALED:
                window = windows[event.window_id]
                step.settle_json, step.hmac, step.timestamp = window.settle_json, window.hmac, window.timestamp
                step.MergeFrom(audit_pb2.TreeStep(settlement=settlement_message(window.settle_json)))
            yield step


class RecordHandlers:
    """The part of the audit service that tells what happened to a tree."""

    _log: AuditLog
    _keyring: Keyring
    if TYPE_CHECKING:
        read: Callable[[Callable[[], Any]], Awaitable[Any]]
        _noticing: Callable[[str], AbstractAsyncContextManager[None]]

    @answers_refusals(audit_pb2.GetTreeRecordResponse)
    async def GetTreeRecord(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetTreeRecordRequest, context: Any
    ) -> audit_pb2.GetTreeRecordResponse:
        """Read the record of the tree that a session belongs to; each session is read by itself."""
        del context
        return await self._record(ids.check("crp_sess_", request.root_session_id))

    @answers_refusals(audit_pb2.GetTreeRecordsResponse)
    async def GetTreeRecords(  # noqa: N802 - gRPC's name
        self, request: audit_pb2.GetTreeRecordsRequest, context: Any
    ) -> audit_pb2.GetTreeRecordsResponse:
        """Read the records of several trees, one after the other, as far as an answer and its caller's deadline hold them."""
        if len(request.root_session_ids) > MOST_TREES:
            raise invalid("TOO_MANY_TREES", f"at most {MOST_TREES} trees at a time", limit=str(MOST_TREES))
        room, answer = MOST_RECORD_BYTES, audit_pb2.GetTreeRecordsResponse()
        given = context.time_remaining()
        for number, root_id in enumerate(request.root_session_ids):
            left = context.time_remaining()
            late = bool(number) and given is not None and left is not None and left < given / 2
            record = _left_out() if late or room <= 0 else await self._record_or_refusal(root_id)
            size = record.ByteSize()
            if size > MOST_RECORD_BYTES:
                record = _alone()
            elif size > room:
                record, room = _left_out(), 0
            else:
                room -= size
            answer.records.append(record)
        return answer

    async def _record_or_refusal(self, root_id: str) -> audit_pb2.GetTreeRecordResponse:
        try:
            return await self._record(ids.check("crp_sess_", root_id))
        except Refused as refused:
            return audit_pb2.GetTreeRecordResponse(refusal=to_message(refused))

    async def _record(self, named_id: str) -> audit_pb2.GetTreeRecordResponse:
        top = await self._trail(named_id)
        root_id = provenance.created_of(top.created).root_session_id if top else ""
        if root_id and top and root_id != top.session_id:
            top = await self._trail(ids.check("crp_sess_", root_id))
        if top is None or not top.created:
            raise not_found("SESSION_NOT_FOUND", "the audit log has nothing of that session")
        trails = {top.session_id: top}
        waiting = list(top.started)
        while waiting:
            session_id = waiting.pop()
            if session_id in trails:
                continue
            if len(trails) >= MOST_SESSIONS:
                raise exhausted("TREE_TOO_LARGE", f"a tree of at most {MOST_SESSIONS} sessions is rebuilt")
            trail = await self._trail(session_id)
            # A session that names another root is not of this tree: a forged event must not pull it in here.
            if trail is None or provenance.created_of(trail.created).root_session_id != top.session_id:
                raise _contradicted(session_id)
            trails[session_id] = trail
            waiting.extend(trail.started)
        # In a reader thread, like the reading itself: parsing the settlements of a large tree takes a while.
        steps = await self.read(lambda: [step for trail in trails.values() for step in trail.steps()])
        record = audit_pb2.GetTreeRecordResponse(steps=sorted(steps, key=lambda step: step.position))
        if (
            record.ByteSize() > MOST_RECORD_BYTES
        ):  # a record that fits into an answer as JSON must not be too large for it twice
            for step in record.steps:
                step.ClearField("settlement")
        return record

    async def _trail(self, session_id: str) -> _Trail | None:
        async with self._noticing(session_id):
            found: _Trail | None = await self.read(partial(self._read_trail, session_id))
        return found

    def _read_trail(self, session_id: str) -> _Trail | None:
        chain = self._log.chain(session_id)
        if not chain.events and not chain.windows:
            return None
        require_valid_chain(chain, session_id, self._keyring)
        if any(event.event_type == TRUNCATED for event in chain.events):
            raise conflict("SESSION_TRUNCATED", "retention removed the record of this session; it cannot be rebuilt")
        # Positions after the events: an event that is there has its position (both are of one transaction).
        return _Trail(session_id, chain, self._log.positions(session_id))


def noted(
    writing: Writing, *, sealer: Sealer, once: bool, session_id: str, window_id: str, notes: Sequence[Note]
) -> int:
    """Append events and return the sequence of the session's last one; *once* leaves out those that are there.

    A window is sealed or it failed, never both: whichever comes first is what the log says.
    """
    failing = any(note.event_type == WINDOW_FAILED for note in notes)
    if failing and window_id and writing.window(window_id) is not None:
        raise conflict("WINDOW_SEALED", "this window was sealed; it cannot fail any more", window_id=window_id)
    missing = [note for note in notes if not (once and _holds(writing, session_id, window_id, note))]
    if not missing:
        return writing.head(session_id)[0]
    return sealer.record(writing, session_id, window_id, missing)


def _holds(writing: Writing, session_id: str, window_id: str, note: Note) -> bool:
    return writing.has_event(session_id, window_id, note.event_type, note.data_json)


def _step(event: EventRecord, position: int) -> audit_pb2.TreeStep:
    return audit_pb2.TreeStep(
        position=position, session_id=event.session_id, window_id=text(event.window_id), event_type=event.event_type,
        data_json=text(event.data_json), timestamp=text(event.timestamp),
    )  # fmt: skip


def _contradicted(session_id: str) -> Refused:
    return conflict("RECORD_CONTRADICTORY", "the trails of a tree do not agree on its sessions", session_id=session_id)


def _alone() -> audit_pb2.GetTreeRecordResponse:
    refused = exhausted("RECORD_TOO_LARGE", "the record of this tree fits into no answer with others; ask for it alone")
    return audit_pb2.GetTreeRecordResponse(refusal=to_message(refused))


def _left_out() -> audit_pb2.GetTreeRecordResponse:
    refused = exhausted("RECORDS_LEFT_OUT", "no room or time was left in this answer; ask for this tree again")
    return audit_pb2.GetTreeRecordResponse(refusal=to_message(refused))


def _object(data: str) -> Mapping[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
