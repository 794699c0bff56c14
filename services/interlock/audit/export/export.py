"""Events on their way out: as messages, and as NDJSON (SPEC-011 §4.1; AUD-4)."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from typing import Any, Protocol, cast

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.chain.chain import EventRecord

PAGE = 256
SURELY_FLAT = 256
"""Brackets that no depth can come of that is too much for a writer of JSON."""

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters, line breaks that only some readers see, what turns the writing direction, what nobody sees (A-17)."""


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
    """Return compact JSON on one line that steers no terminal."""
    return printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def printable(line: str) -> str:
    """Return *line* with everything that could fool a terminal or a log reader written as a JSON escape."""
    return _UNPRINTABLE.sub(_escaped, line)


def _escaped(found: re.Match[str]) -> str:
    """Return a character as JSON escapes it; beyond U+FFFF as a surrogate pair."""
    return "".join(
        f"\\u{unit:04x}" for (unit,) in struct.iter_unpack(">H", found[0].encode("utf-16-be", "surrogatepass"))
    )


def included(event: EventRecord, least: int) -> bool:
    """Return whether an export from severity *least* up holds an event: WARN and above always, and what is no severity."""
    return not 0 < event.severity < min(least, audit_pb2.SEVERITY_WARN)


def severity_name(number: int) -> str:
    """Return the name of a severity; of a number that is none, the number."""
    names = audit_pb2.Severity
    return names.Name(cast("Any", number)).removeprefix("SEVERITY_") if number in names.values() else str(number)


def data_of(stored: str) -> Any:
    """Return the data as JSON, or as text where somebody made it no JSON: an export leaves nothing out."""
    try:
        value = json.loads(stored)
        if stored.count("[") + stored.count("{") > SURELY_FLAT:
            json.dumps([[value]])  # what could be read may still be too deep to be written
    except (ValueError, RecursionError):
        return stored
    return value
