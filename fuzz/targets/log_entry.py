"""Lines of the audit log: what is read is written again to the byte, so that a leaf has one line (AUD-6)."""

from __future__ import annotations

from interlock.domain.chain.chain import EventRecord
from interlock.domain.merkle.entry import decode_entry, encode_entry

WORDS = (
    b'"data":"', b'"event_type":"', b'"hmac":"', b'"key_version":1', b'"sequence":1', b'"session_id":"', b'"severity":1',
    b'"timestamp":"', b'"window_id":"', b"true", b"1.0", b"\\ud800", b"\\u241f", b"\xed\xa0\x80", b"NaN",
)  # fmt: skip


def TestOneInput(data: bytes) -> None:
    """A line is refused as a ``ValueError``, or is exactly what its event is written as."""
    try:
        event = decode_entry(data)
    except ValueError:
        return
    assert encode_entry(event) == data
    assert type(event.sequence) is int
    assert isinstance(event.data_json, str)


def seeds() -> dict[str, bytes]:
    """A line, and lines that say the same in another way."""
    event = EventRecord(
        "crp_sess_" + "0a" * 16, 3, "crp_win_" + "0b" * 16, "WINDOW_SEALED", 6, "2026-05-25T10:00:00.000001Z",
        '{"risk":"LOW","note":"\u00e9\u241f"}', 1, "sha256:" + "ab" * 32,
    )  # fmt: skip
    line = encode_entry(event)
    return {
        "line": line,
        "spaced": line.replace(b",", b", "),
        "duplicate": line[:-1] + b',"sequence":3}',
        "surrogate": encode_entry(EventRecord("s", 0, "", "T", 0, "", "\ud800", 1, "")),
        "true": line.replace(b'"sequence":3', b'"sequence":true'),
        "list": b"[]",
        "deep": b"[" * 3000,
    }
