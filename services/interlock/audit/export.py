"""Events on their way out: as messages, and as NDJSON (SPEC-011 §4.1; AUD-4)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Protocol, cast

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.chain import EventRecord

PAGE = 256

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
"""Control characters, line breaks that only some readers see, and what turns the writing direction (A-17)."""


class Pages(Protocol):
    """Where events are read from, a page at a time."""

    def events(self, session_id: str, *, after: int, limit: int) -> list[EventRecord]:
        """Return up to *limit* events whose sequence is above *after*."""


def read(log: Pages, session_id: str) -> Iterator[EventRecord]:
    """Return a session's events in order; what is appended meanwhile may or may not be among them."""
    page = log.events(session_id, after=0, limit=PAGE)
    while page:
        yield from page
        page = log.events(session_id, after=page[-1].sequence, limit=PAGE)


def to_message(event: EventRecord) -> audit_pb2.Event:
    """Return the event as a message, even if somebody wrote into it what no message can hold."""
    return audit_pb2.Event(
        sequence=event.sequence,
        session_id=text(event.session_id),
        window_id=text(event.window_id),
        event_type=text(event.event_type),
        severity=cast("Any", event.severity if event.severity in audit_pb2.Severity.values() else 0),
        timestamp=text(event.timestamp),
        data_json=text(event.data_json),
        hmac=text(event.hmac),
    )


def text(stored: str) -> str:
    """Return a stored text as UTF-8 can carry it."""
    return stored.encode("utf-8", "replace").decode()


def to_line(event: EventRecord) -> str:
    """Return the event as one line of JSON, without the line break.

    ``data`` has the canonical text's order, so that the data hash can be computed from the parsed line again.
    """
    line = {
        "event_type": event.event_type,
        "timestamp": event.timestamp,
        "session_id": event.session_id,
        "window_id": event.window_id,
        "severity": _severity(event.severity),
        "sequence": event.sequence,
        "data": _data(event.data_json),
        "hmac": event.hmac,
    }
    return printable(json.dumps(line, ensure_ascii=False, separators=(",", ":")))


def printable(line: str) -> str:
    """Return *line* with everything that could fool a terminal or a log reader written as a JSON escape."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def _severity(number: int) -> str:
    names = audit_pb2.Severity
    return names.Name(cast("Any", number)).removeprefix("SEVERITY_") if number in names.values() else str(number)


def _data(stored: str) -> Any:
    """Return the data as JSON, or as text where somebody made it no JSON: an export leaves nothing out."""
    try:
        return json.loads(stored)
    except (ValueError, RecursionError):
        return stored
