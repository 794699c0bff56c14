"""An event as the Merkle log hashes it and as a bundle holds it: one line of canonical JSON with everything that is stored.

What a stranger needs to check a log is this line and SHA-256: ``leaf = sha256(0x00 || line)`` (RFC 9162 §2.1.1).
"""

from __future__ import annotations

import json
from typing import Any

from interlock.domain.chain import EventRecord, canonical_json

_FIELDS = frozenset({
    "data", "event_type", "hmac", "key_version", "sequence", "session_id", "severity", "timestamp", "window_id",
})  # fmt: skip


def entry_of(event: EventRecord) -> bytes:
    """Return the line of *event*, without a line break. ``data`` is the stored text itself, whatever it holds."""
    fields = {
        "data": event.data_json, "event_type": event.event_type, "hmac": event.hmac, "key_version": event.key_version,
        "sequence": event.sequence, "session_id": event.session_id, "severity": event.severity,
        "timestamp": event.timestamp, "window_id": event.window_id,
    }  # fmt: skip
    return canonical_json(fields).encode("utf-8", "surrogatepass")


def event_of(entry: bytes) -> EventRecord:
    """Return the event in a line. Raises ``ValueError`` for anything that is not exactly what ``entry_of`` writes."""
    try:
        found: dict[str, Any] = json.loads(entry.decode("utf-8", "surrogatepass"))
        event = EventRecord(
            found["session_id"], found["sequence"], found["window_id"], found["event_type"], found["severity"],
            found["timestamp"], found["data"], found["key_version"], found["hmac"],
        )  # fmt: skip
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("not an entry of the log") from None
    if found.keys() != _FIELDS or not _typed(event) or entry_of(event) != entry:
        raise ValueError("not an entry of the log")
    return event


def _typed(event: EventRecord) -> bool:
    texts = (event.session_id, event.window_id, event.event_type, event.timestamp, event.data_json, event.hmac)
    numbers = (event.sequence, event.severity, event.key_version)
    return all(isinstance(text, str) for text in texts) and all(type(number) is int for number in numbers)
