"""The line of an event that the Merkle log hashes and a bundle holds: canonical JSON with all stored fields.

This line and SHA-256 are all that a third party needs to check a log: ``leaf = sha256(0x00 || line)`` (RFC 9162 §2.1.1).
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring as _text
from typing import Any

from interlock.domain.chain.chain import EventRecord

_FIELDS = frozenset({
    "data", "event_type", "hmac", "key_version", "sequence", "session_id", "severity", "timestamp", "window_id",
})  # fmt: skip


def encode_entry(event: EventRecord) -> bytes:
    """Return the line of *event*, without a line break. ``data`` is the stored text, unchanged."""
    # Formatted by hand for speed: the text equals canonical_json's, and it is made and compared once per entry of a log.
    return (
        f'{{"data":{_text(event.data_json)},"event_type":{_text(event.event_type)},"hmac":{_text(event.hmac)},'
        f'"key_version":{event.key_version},"sequence":{event.sequence},"session_id":{_text(event.session_id)},'
        f'"severity":{event.severity},"timestamp":{_text(event.timestamp)},"window_id":{_text(event.window_id)}}}'
    ).encode("utf-8", "surrogatepass")


def decode_entry(entry: bytes) -> EventRecord:
    """Return the event in a line. Raises ``ValueError`` for any text that ``encode_entry`` would not produce."""
    try:
        found: dict[str, Any] = json.loads(entry.decode("utf-8", "surrogatepass"))
        event = EventRecord(
            found["session_id"], found["sequence"], found["window_id"], found["event_type"], found["severity"],
            found["timestamp"], found["data"], found["key_version"], found["hmac"],
        )  # fmt: skip
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("not an entry of the log") from None
    if found.keys() != _FIELDS or not _typed(event) or encode_entry(event) != entry:
        raise ValueError("not an entry of the log")
    return event


def _typed(event: EventRecord) -> bool:
    # Written out for speed: a log is examined by the million, and this is a tenth of the time.
    return (
        type(event.session_id) is type(event.window_id) is type(event.event_type) is type(event.timestamp)
        is type(event.data_json) is type(event.hmac) is str
        and type(event.sequence) is type(event.severity) is type(event.key_version) is int
    )  # fmt: skip
