"""Sealing and reading the records of kernels and of experiments, each kind in chains of its own.

Such a chain is the one history of its subject. A record is appended only right after the one that it names; where the chain has another one
in its place, nothing is appended. So a store that was set back, or went apart at a failover, cannot go on beside the chain.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from interlock.api.session.v1 import session_pb2
from interlock.audit.kernel.stuck import note_stuck
from interlock.audit.requests import Note, json_object
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.chains import VerifiedChains
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.seal import Sealer
from interlock.audit.store.log import AuditLog, Writing
from interlock.domain import ids
from interlock.domain.chain import audit_events
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import EventRecord
from interlock.domain.errors import Refused, conflict, invalid, unavailable
from interlock.domain.kernel.state import following

MOST_RECORDS, PAGE = 512, 500


@dataclass(frozen=True)
class RecordKind:
    """What the records of one kind are called, in the chain and in refusals."""

    prefix: str
    conflict: Refused
    truncated: Refused


def kernel_kind() -> RecordKind:
    """Return the kind of kernels' records."""
    return RecordKind(
        "KERNEL_",
        conflict("KERNEL_CHAIN_CONFLICT", "the chain has another record in this place"),
        unavailable("KERNEL_RECORD_TRUNCATED", "the kernel's record was removed", retry_after_ms=0),
    )


def decision_kind() -> RecordKind:
    """Return the kind of experiments' records."""
    return RecordKind(
        "DECISION_",
        conflict("DECISION_CHAIN_CONFLICT", "the chain has another record in this place"),
        unavailable("DECISION_RECORD_TRUNCATED", "the experiment's record was removed", retry_after_ms=0),
    )


class KernelRecords:
    """The records of kernels or of experiments, in chains of their own."""

    def __init__(  # noqa: PLR0917 - the parts of the audit service, as its servicer has them
        self, kind: Callable[[], RecordKind], audit_log: AuditLog, readers: Readers, appender: Appender, sealer: Sealer,
        chains: VerifiedChains,
    ) -> None:  # fmt: skip
        self._kind = kind
        self._log, self._readers, self._chains = audit_log, readers, chains
        self._appender, self._sealer = appender, sealer

    async def seal(self, chain_id: str, records: Sequence[session_pb2.KernelRecord], size: int) -> int:
        """Append records of *size* bytes after the last one, and return its number.

        Refused with KERNEL_CHAIN_CONFLICT or DECISION_CHAIN_CONFLICT where the chain has others in their place.
        """
        chain_id = ids.check("crp_sess_", chain_id)
        if not 1 <= len(records) <= MOST_RECORDS:
            raise invalid("KERNEL_RECORDS_INVALID", f"1 to {MOST_RECORDS} records are sealed at a time")
        kind = self._kind()
        given = [(one, _note(one, kind)) for one in records]
        work = partial(_append, sealer=self._sealer, kernel_id=chain_id, given=given, kind=kind)
        last: int = await self._appender.submit(work, size=size)
        return last

    async def read(self, chain_id: str, after: int, limit: int) -> tuple[list[session_pb2.KernelRecord], list[str]]:
        """Return the records after one and their times, only from a chain that verifies: a state is made again from them."""
        chain_id = ids.check("crp_sess_", chain_id)
        if after < 0 or limit < 0:
            raise invalid("INVALID_FIELD", "after and limit are 0 or more", field="after")
        async with self._chains.reporting(chain_id):
            found = await self._readers.run(partial(self._records, chain_id, after, limit))
        return [message_of(one) for one in found], [one.timestamp for one in found]

    def _records(self, kernel_id: str, after: int, limit: int) -> list[EventRecord]:
        self._chains.verified(kernel_id, again="due")
        found: list[EventRecord] = []
        prefix = self._kind().prefix
        # A record's place in the chain is never before its number.
        at = after
        while page := self._log.events(kernel_id, after=at, limit=PAGE):
            found += [one for one in page if one.event_type.startswith(prefix) and _number(one) > after]
            at = page[-1].sequence
            if limit and len(found) >= limit:
                break
        return found[:limit] if limit else found


def _append(
    writing: Writing, *, sealer: Sealer, kernel_id: str, given: Sequence[tuple[session_pb2.KernelRecord, Note]],
    kind: RecordKind,
) -> int:  # fmt: skip
    number, link = _last(writing, kernel_id, kind)

    def stands(index: int) -> bool:
        note = given[index][1]
        return writing.has_event(kernel_id, "", note.event_type, note.data_json)

    there, upto = following(number, link, [(one.sequence, one.previous, one.link) for one, _ in given], stands)
    if upto < len(given):
        raise _conflict(given[upto][0], kind)
    if fresh := [note for _, note in given[there:]]:
        sealer.record(writing, kernel_id, "", fresh)
        note_stuck(writing, kernel_id, fresh)
    return max(number, given[-1][0].sequence)


def _last(writing: Writing, kernel_id: str, kind: RecordKind) -> tuple[int, str]:
    """Return number and link of the last record in the chain; the audit service's own events may follow it."""
    head, _ = writing.head(kernel_id)
    at = head
    while at > 0:
        for event in reversed(writing.since(kernel_id, at).events):
            if event.event_type.startswith(kind.prefix):
                return _number(event), str(json.loads(event.data_json)["link"])
        if at == 1:
            break
        at = max(1, at - 2 * (head - at + 1))
    if head:
        raise kind.truncated
    return 0, ""


def _note(record: session_pb2.KernelRecord, kind: RecordKind) -> Note:
    data = {**_object(record.data_json), "link": record.link}
    if data.get("sequence") != str(record.sequence) or data.get("previous") != record.previous or not record.link:
        raise invalid("KERNEL_RECORDS_INVALID", "a record names its number, its link and the one before it")
    if not record.type.startswith(kind.prefix):
        raise invalid("KERNEL_RECORDS_INVALID", "a record is of a type of its kind")
    text = json_object("data_json", _text(data))
    audit_events.check(record.type, record.severity, data)
    return Note(record.type, record.severity, text, "")


def _text(data: dict[str, Any]) -> str:
    """Return the text of a record as it is kept; what is no JSON value stays as it is, to be refused."""
    try:
        return canonical_json(data)
    except ValueError:
        return json.dumps(data)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise invalid("INVALID_JSON", "a record is a JSON object", field="data_json")
    return value


def message_of(event: EventRecord) -> session_pb2.KernelRecord:
    """Return the record that an event holds."""
    data = json.loads(event.data_json)
    link = str(data.pop("link"))
    return session_pb2.KernelRecord(
        sequence=int(data["sequence"]), previous=data["previous"], link=link, type=event.event_type,
        severity=event.severity, data_json=json.dumps(data, ensure_ascii=False),
    )  # fmt: skip


def _number(event: EventRecord) -> int:
    return int(json.loads(event.data_json)["sequence"])


def _conflict(record: session_pb2.KernelRecord, kind: RecordKind) -> Refused:
    kind.conflict.metadata["sequence"] = str(record.sequence)
    return kind.conflict
