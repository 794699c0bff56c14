"""Rows of the audit database and the records they stand for.

A stored value may have been tampered with: one of the wrong type becomes a value that equals nothing that was sealed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from interlock.audit.store.kept import KeptRow
from interlock.audit.store.log import ContentKey, DeadLetter, Entry, HeldRow, StoredReport
from interlock.audit.store.stuck import StuckRow
from interlock.domain.chain.chain import EventRecord, WindowRecord, content_hash

_NOT_A_TEXT = "\ufffd"
"""Stands for a stored value of the wrong type: nothing that was sealed equals it."""

Row = Sequence[Any]
_EVENT = (str, int, str, str, int, str, str, int, str)
"""The types of an event's row."""
_WINDOW = (str, str, int, str, str, str, int, int, str, str, str, str, str, int, str, str, str)
"""The types of a window's row without the report's bytes."""


def text(value: Any) -> str:
    """Return a stored text."""
    return value if isinstance(value, str) else _NOT_A_TEXT


def number(value: Any) -> int:
    """Return a stored number."""
    return value if isinstance(value, int) else -1


def blob(value: Any) -> bytes:
    """Return stored bytes."""
    return value if isinstance(value, bytes) else b""


def event(row: Row) -> EventRecord:
    """Return the event in a row of ``statements.EVENT``."""
    if tuple(map(type, row)) == _EVENT:  # a chain is read event by event: the common case costs one comparison
        return EventRecord(*row)
    return EventRecord(
        text(row[0]), number(row[1]), text(row[2]), text(row[3]), number(row[4]), text(row[5]), text(row[6]),
        number(row[7]), text(row[8]),
    )  # fmt: skip


def event_row(event: EventRecord) -> tuple[Any, ...]:
    """Return the row of an event."""
    return (
        event.session_id, event.sequence, event.window_id, event.event_type, event.severity, event.timestamp,
        event.data_json, event.key_version, event.hmac,
    )  # fmt: skip


def window(row: Row) -> WindowRecord:
    """Return the window in a row of ``statements.WINDOW`` and the report's bytes."""
    if tuple(map(type, row[:17])) == _WINDOW:  # the common case, as for events
        return WindowRecord(*(*row[:3], _ids(row[3]), *row[4:15], _report_hash(row[17]), *row[15:17]))
    return WindowRecord(
        session_id=text(row[0]),
        window_id=text(row[1]),
        window_number=number(row[2]),
        parent_ids=_ids(row[3]),
        response_hash=text(row[4]),
        report_hash=text(row[5]),
        risk_level=number(row[6]),
        charge_micros=number(row[7]),
        status=text(row[8]),
        settle_json=text(row[9]),
        trail_id=text(row[10]),
        request_hash=text(row[11]),
        timestamp=text(row[12]),
        key_version=number(row[13]),
        hmac=text(row[14]),
        content_hash=text(row[15]),
        sealed_report_hash=text(row[16]),
        stored_report_hash=_report_hash(row[17]),
    )


def window_row(window: WindowRecord) -> tuple[Any, ...]:
    """Return the row of a window."""
    return (
        window.session_id, window.window_id, window.window_number, json.dumps(window.parent_ids), window.response_hash,
        window.report_hash, window.risk_level, window.charge_micros, window.status, window.settle_json, window.trail_id,
        window.request_hash, window.timestamp, window.key_version, window.hmac, window.content_hash,
        window.sealed_report_hash,
    )  # fmt: skip


def stored_report(row: Row) -> StoredReport:
    """Return the report in a row of a window, the report's bytes, and the session's key."""
    key: ContentKey | None = (number(row[18]), blob(row[19])) if row[19] is not None else None
    return StoredReport(window(row), blob(row[17]), key)


def entry(row: Row) -> Entry:
    """Return the entry in a row of position, leaf hash and event; the event may be gone."""
    return Entry(number(row[0]), event(row[2:]) if row[2] is not None else None, blob(row[1]))


def held(row: Row) -> HeldRow:
    """Return the held response in a row of ``statements.HELD``."""
    return HeldRow(
        window_id=text(row[0]),
        session_id=text(row[1]),
        held_at=text(row[2]),
        expires_at=text(row[3]),
        policy_hash=text(row[4]),
        approved=None if row[5] is None else bool(row[5]),
        reviewer_id=row[6] or "",
        approval_id=row[7] or "",
        token=row[8] or "",
        decided_at=row[9] or "",
        decision_expires_at=row[10] or "",
        handed_out_at=row[11] or "",
        sealed=blob(row[12]),
    )


def stuck(row: Row) -> StuckRow:
    """Return the compensation in a row of ``statements.STUCK``."""
    names = (text(row[0]), text(row[1]), text(row[2]))
    return StuckRow(*names, number(row[3]), text(row[4]), text(row[5] or ""))


def kept(row: Row) -> KeptRow:
    """Return the kept answer in a row of ``statements.KEPT``."""
    return KeptRow(text(row[0]), text(row[1]), text(row[2]), text(row[3]), blob(row[4]), text(row[5]))


def dead_letter(row: Row) -> DeadLetter:
    """Return the dead letter in a row."""
    return DeadLetter(text(row[0]), number(row[1]), number(row[2]), text(row[3]), text(row[4]))


def _report_hash(body: Any) -> str:
    if body is None:
        return ""
    return content_hash(body) if isinstance(body, bytes) else _NOT_A_TEXT


def _ids(stored: Any) -> tuple[str, ...]:
    try:
        found = json.loads(text(stored))
    except (ValueError, RecursionError):
        found = None
    return tuple(map(text, found)) if isinstance(found, list) else (_NOT_A_TEXT,)
