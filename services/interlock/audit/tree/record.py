"""The record of a tree: everything the session service needs to rebuild its sessions, in the order it was logged.

A chain that does not verify, or that retention cut off, gives no record (docs/adr/0012).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.export.export import text
from interlock.audit.sealing.chains import VerifiedChains
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.verify import no_session, require_valid_chain
from interlock.audit.settlements import settlement_message
from interlock.audit.store.log import AuditLog, Chain
from interlock.domain import ids
from interlock.domain.chain import provenance
from interlock.domain.chain.audit_events import RELEASING_TYPES, SPENDING_TYPES
from interlock.domain.chain.chain import WINDOW_FAILED, WINDOW_SEALED, EventRecord
from interlock.domain.chain.chain_state import CASCADED
from interlock.domain.chain.marks import TRUNCATED
from interlock.domain.errors import Refused, conflict, exhausted, invalid
from interlock.runtime.keys.derivation import Keyring
from interlock.runtime.rpc.errors import to_message

MOST_SESSIONS = 1000
"""Sessions in a tree that is rebuilt, at most."""

MOST_TREES = 256
"""Trees in one request, at most."""

MOST_RECORD_BYTES = 1_048_576
"""All records of one answer together, bytes, at most: a sixteenth of the default message limit."""

_MOVING = frozenset({
    provenance.SESSION_CREATED, WINDOW_SEALED, WINDOW_FAILED, provenance.SUB_AGENT_STARTED, "DELEGATION_GRANTED",
    "SESSION_TERMINATED", CASCADED,
    *RELEASING_TYPES, *SPENDING_TYPES,
})  # fmt: skip
"""Events that change the state of a session, or that name sessions which do."""


@dataclass(frozen=True)
class _Trail:
    """One session's verified chain, and the position of each of its events in the log, by sequence."""

    session_id: str
    chain: Chain
    positions: Mapping[int, int]

    @property
    def created(self) -> Mapping[str, Any]:
        """Data of its SESSION_CREATED event; empty without one."""
        found = (event for event in self.chain.events if event.event_type == provenance.SESSION_CREATED)
        first = next(found, None)
        return _object(first.data_json) if first else {}

    @property
    def started(self) -> list[str]:
        """Ids of the sessions that it started."""
        events = (event for event in self.chain.events if event.event_type == provenance.SUB_AGENT_STARTED)
        return [provenance.read_started(_object(event.data_json)).session_id for event in events]

    def steps(self) -> Iterator[audit_pb2.TreeStep]:
        """Yield the steps that changed the session."""
        windows = {window.window_id: window for window in self.chain.windows}
        for event in self.chain.events:
            if event.event_type not in _MOVING:
                continue
            if event.event_type in RELEASING_TYPES | SPENDING_TYPES and event.window_id in windows:
                continue  # its seal tells all
            step = _step(event, self.positions[event.sequence])
            if event.event_type == WINDOW_SEALED:
                window = windows[event.window_id]
                step.settle_json, step.hmac, step.timestamp = window.settle_json, window.hmac, window.timestamp
                step.MergeFrom(audit_pb2.TreeStep(settlement=settlement_message(window.settle_json)))
            yield step


class TreeRecords:
    """Reads the records of trees from chains that verify."""

    def __init__(self, audit_log: AuditLog, readers: Readers, chains: VerifiedChains, keyring: Keyring) -> None:
        self._log, self._readers, self._chains, self._keyring = audit_log, readers, chains, keyring

    async def one(self, request: audit_pb2.GetTreeRecordRequest) -> audit_pb2.GetTreeRecordResponse:
        """Return the record of the tree that a session belongs to. Each session is a read of its own."""
        return await self._record(ids.check("crp_sess_", request.root_session_id))

    async def several(
        self, request: audit_pb2.GetTreeRecordsRequest, *, time_remaining: Callable[[], float | None]
    ) -> audit_pb2.GetTreeRecordsResponse:
        """Return the records of several trees, one after the other, as far as an answer and half the caller's time allow.

        *time_remaining* returns the seconds left to the caller's deadline, ``None`` without one. The first tree is always
        read; a tree that is left out has a refusal in its place.
        """
        if len(request.root_session_ids) > MOST_TREES:
            raise invalid("TOO_MANY_TREES", f"at most {MOST_TREES} trees at a time", limit=str(MOST_TREES))
        room, answer = MOST_RECORD_BYTES, audit_pb2.GetTreeRecordsResponse()
        given = time_remaining()
        for number, root_id in enumerate(request.root_session_ids):
            left = time_remaining()
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
        root_id = provenance.read_origin(top.created).root_session_id if top else ""
        if root_id and top and root_id != top.session_id:
            top = await self._trail(ids.check("crp_sess_", root_id))
        if top is None or not top.created:
            raise no_session()
        trails = {top.session_id: top}
        waiting = list(top.started)
        while waiting:
            session_id = waiting.pop()
            if session_id in trails:
                continue
            if len(trails) >= MOST_SESSIONS:
                raise exhausted("TREE_TOO_LARGE", f"a tree of at most {MOST_SESSIONS} sessions is rebuilt")
            trail = await self._trail(session_id)
            # A session that names another root is not of this tree: a forged event must not pull it in.
            if trail is None or provenance.read_origin(trail.created).root_session_id != top.session_id:
                raise _contradicted(session_id)
            trails[session_id] = trail
            waiting.extend(trail.started)
        # In a reader thread, like the reading itself: parsing the settlements of a large tree takes a while.
        steps = await self._readers.run(lambda: [step for trail in trails.values() for step in trail.steps()])
        record = audit_pb2.GetTreeRecordResponse(steps=sorted(steps, key=lambda step: step.position))
        if record.ByteSize() > MOST_RECORD_BYTES:
            # With the settlements as JSON alone, the record may still fit into an answer.
            for step in record.steps:
                step.ClearField("settlement")
        return record

    async def _trail(self, session_id: str) -> _Trail | None:
        async with self._chains.reporting(session_id):
            return await self._readers.run(partial(self._read_trail, session_id))

    def _read_trail(self, session_id: str) -> _Trail | None:
        chain = self._log.chain(session_id)
        if not chain.events and not chain.windows:
            return None
        require_valid_chain(chain, session_id, self._keyring)
        if any(event.event_type == TRUNCATED for event in chain.events):
            raise conflict("SESSION_TRUNCATED", "retention removed the record of this session; it cannot be rebuilt")
        # Read the positions after the events: each event that was read then has its position, from the same transaction.
        return _Trail(session_id, chain, self._log.positions(session_id))


def _step(event: EventRecord, position: int) -> audit_pb2.TreeStep:
    return audit_pb2.TreeStep(
        position=position, session_id=event.session_id, window_id=text(event.window_id), event_type=event.event_type,
        data_json=text(event.data_json), timestamp=text(event.timestamp),
    )  # fmt: skip


def _contradicted(session_id: str) -> Refused:
    return conflict(
        "RECORD_CONTRADICTORY", "the trails of the tree do not agree on its sessions", session_id=session_id
    )


def _alone() -> audit_pb2.GetTreeRecordResponse:
    refused = exhausted(
        "RECORD_TOO_LARGE", "the record of this tree is too large for an answer with others; request it alone"
    )
    return audit_pb2.GetTreeRecordResponse(refusal=to_message(refused))


def _left_out() -> audit_pb2.GetTreeRecordResponse:
    refused = exhausted("RECORDS_LEFT_OUT", "this answer had no room or time left for this tree; request it again")
    return audit_pb2.GetTreeRecordResponse(refusal=to_message(refused))


def _object(data: str) -> Mapping[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
