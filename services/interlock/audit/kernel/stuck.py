"""Which compensations wait for a person: noted with the records that say so, and listed for reviewers (KRN-5)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.requests import Note
from interlock.audit.sealing.readers import Readers
from interlock.audit.store.log import AuditLog, Writing
from interlock.audit.store.stuck import Place, StuckRow
from interlock.domain import ids
from interlock.domain.errors import invalid
from interlock.domain.kernel.saga import NOBODY, CompensationDue
from interlock.domain.kernel.stuck import LEFT, MOVING, waiting_after
from interlock.runtime.clock import iso8601

LIMIT, MOST = 50, 200
_FIRST: Place = (-1, "", "")


def note_stuck(writing: Writing, kernel_id: str, notes: Iterable[Note]) -> None:
    """Note what records leave for a person, in the transaction that seals them."""
    for note in notes:
        if note.event_type not in MOVING:
            continue
        data = json.loads(note.data_json)
        stuck, ended = waiting_after(data)
        for step in ended:
            writing.drop_stuck(kernel_id, step)
        left = json.dumps({**data["decided"], "at_ms": data["at_ms"]}) if note.event_type == LEFT else ""
        for step, job in stuck.items():
            writing.set_stuck(StuckRow(kernel_id, step, job, int(data["at_ms"]), left))


class StuckCompensations:
    """Lists them."""

    def __init__(self, audit_log: AuditLog, readers: Readers) -> None:
        self._log, self._readers = audit_log, readers

    async def page(self, request: audit_pb2.ListStuckRequest) -> audit_pb2.ListStuckResponse:
        """Return a page, the oldest first."""
        limit = request.limit or LIMIT
        if not 1 <= limit <= MOST:
            raise invalid("INVALID_FIELD", f"a page has 1 to {MOST}", field="limit")
        after = _place(request.after) if request.HasField("after") else _FIRST
        found = await self._readers.run(partial(self._log.stuck, after, limit + 1))
        return audit_pb2.ListStuckResponse(items=map(_message, found[:limit]), more=len(found) > limit)


def _place(last: audit_pb2.StuckCompensation) -> Place:
    try:
        at_ms = round(datetime.fromisoformat(last.stuck_at).timestamp() * 1000)
    except ValueError:
        raise invalid("INVALID_FIELD", "a page goes on after one of the page before", field="after") from None
    return at_ms, ids.check("crp_sess_", last.kernel_id), last.execution


def _message(row: StuckRow) -> audit_pb2.StuckCompensation:
    job = CompensationDue.of_text(row.job)
    opened: dict[str, Any] = json.loads(row.opened_json or "{}")
    left: dict[str, str] = json.loads(row.left_json or "{}")
    return audit_pb2.StuckCompensation(
        kernel_id=row.kernel_id, execution=row.execution, kernel=opened.get("kernel", ""), scope=opened.get("scope", ""),
        saga=job.saga, action="" if job.action == NOBODY else job.action, of=job.of, attempts=job.attempts,
        fence=int(job.fence), stuck_at=iso8601(row.stuck_ms * 1000), left_by=left.get("reviewer_id", ""),
        left_reason=left.get("reason", ""), left_at=iso8601(int(left["at_ms"]) * 1000) if left else "",
    )  # fmt: skip
