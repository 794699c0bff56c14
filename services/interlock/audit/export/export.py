"""Exported events: as messages, and as NDJSON (SPEC-011 §4.1; AUD-4)."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from typing import Any, Protocol

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.chain.chain import EventRecord

PAGE = 256
SURELY_FLAT = 256
"""Number of brackets that cannot nest too deeply for a JSON writer."""

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters, unusual line breaks, direction overrides and invisible characters (A-17)."""


class Pages(Protocol):
    """A source of events, read a page at a time."""

    def events(self, session_id: str, *, after: int, limit: int) -> list[EventRecord]:
        """Return up to *limit* events whose sequence is above *after*."""


def read(log: Pages, session_id: str) -> Iterator[EventRecord]:
    """Yield a session's events in order; events appended meanwhile may or may not be included."""
    page = log.events(session_id, after=0, limit=PAGE)
    while page:
        yield from page
        page = log.events(session_id, after=page[-1].sequence, limit=PAGE)


def to_message(event: EventRecord) -> audit_pb2.Event:
    """Return the event as a message. A stored value that no message can hold is replaced."""
    return audit_pb2.Event(
        sequence=event.sequence,
        session_id=text(event.session_id),
        window_id=text(event.window_id),
        event_type=text(event.event_type),
        severity=audit_pb2.Severity.ValueType(event.severity if event.severity in audit_pb2.Severity.values() else 0),
        timestamp=text(event.timestamp),
        data_json=text(event.data_json),
        hmac=text(event.hmac),
    )


def text(stored: str) -> str:
    """Return a stored text with characters that UTF-8 cannot encode replaced."""
    return stored.encode("utf-8", "replace").decode()


def to_line(event: EventRecord) -> str:
    """Return the event as one line of JSON, without the line break.

    ``data`` keeps the order of the canonical text, so that its hash can be computed from the parsed line.
    """
    return json_text(line_of(event))


def line_of(event: EventRecord) -> dict[str, Any]:
    """Return the fields of an event's line."""
    return {
        "event_type": event.event_type,
        "timestamp": event.timestamp,
        "session_id": event.session_id,
        "window_id": event.window_id,
        "severity": severity_name(event.severity),
        "sequence": event.sequence,
        "data": data_of(event.data_json),
        "hmac": event.hmac,
    }


def json_text(value: Any) -> str:
    """Return compact JSON on one line, safe to show in a terminal."""
    return printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def printable(line: str) -> str:
    """Return *line* with every character that could mislead a terminal or a log reader as a JSON escape."""
    return _UNPRINTABLE.sub(_escaped, line)


def _escaped(found: re.Match[str]) -> str:
    """Return the JSON escape of a character; beyond U+FFFF a surrogate pair."""
    return "".join(
        f"\\u{unit:04x}" for (unit,) in struct.iter_unpack(">H", found[0].encode("utf-16-be", "surrogatepass"))
    )


def included(event: EventRecord, least: int) -> bool:
    """Return whether an export from severity *least* up includes an event. WARN, above, and unknown severities always are."""
    return not 0 < event.severity < min(least, audit_pb2.SEVERITY_WARN)


def severity_name(number: int) -> str:
    """Return the name of a severity; the number itself if it is no severity."""
    names = audit_pb2.Severity
    return names.Name(names.ValueType(number)).removeprefix("SEVERITY_") if number in names.values() else str(number)


def data_of(stored: str) -> Any:
    """Return the data as JSON, or as text if it was tampered with and is not JSON: an export omits nothing."""
    try:
        value = json.loads(stored)
        if stored.count("[") + stored.count("{") > SURELY_FLAT:
            json.dumps([[value]])  # readable JSON may still be too deep to write
    except (ValueError, RecursionError):
        return stored
    return value
