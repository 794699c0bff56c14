"""What the records of each session say of themselves, for every verifier of a log the same (AUD-6, PRV-2).

The Merkle log says that nothing was changed since it was signed; a session's own records say whether they belong together:
windows and their seals, numbers, parents, and with a key every HMAC. ``interlock audit verify``, ``fsck`` and ``verify
--offline`` all ask here, of a database or of a bundle, so that the same bytes get the same verdict.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from interlock.audit.merkle.folder import UnusableError
from interlock.audit.store.log import LogReader
from interlock.domain.chain.chain import (
    WINDOW_SEALED,
    EventRecord,
    Fault,
    KeyOf,
    WindowRecord,
    content_hash,
    verify_chain,
)
from interlock.domain.chain.keyless import KEYLESS
from interlock.domain.chain.marks import TRUNCATED
from interlock.domain.merkle.bundle import Examined, Finding
from interlock.domain.merkle.entries import LOG_SESSION
from interlock.domain.merkle.entry import decode_entry
from interlock.domain.merkle.tiles import LONGEST_LINE, parse_line

WINDOWS = "windows"
"""Name of the file of a bundle that holds the rows of its windows."""
NO_LEAF = "NO_LEAF"
FOLLOWING_A_GAP = frozenset({"SEQUENCE_GAP", "MISSING_SEAL", "MISSING_PARENT"})
"""Faults that follow from entries that are gone, which the examination of the log has told."""
SESSION_KEY = Callable[[str], KeyOf]
"""Returns what maps a key version to a session's HMAC key."""


@dataclass(frozen=True)
class SessionRecords:
    """One session's records. ``positions``: sequence to position in the log; ``windows`` is ``None`` where they are not at hand."""

    session_id: str
    events: Sequence[EventRecord]
    windows: Sequence[WindowRecord] | None
    positions: Mapping[int, int]

    @property
    def seals(self) -> Mapping[str, int]:
        """The sequence of each window's seal."""
        return {event.window_id: event.sequence for event in self.events if event.event_type == WINDOW_SEALED}

    def windows_within(self, size: int) -> list[WindowRecord]:
        """Return the rows of the windows whose seals are among the first *size* entries, and those that have no seal."""
        seals = self.seals
        places = {window_id: self.positions.get(sequence, 0) for window_id, sequence in seals.items()}
        return [window for window in self.windows or () if places.get(window.window_id, 0) < size]


def keyless(session_id: str) -> KeyOf:
    """Return no key: HMACs are not checked."""
    del session_id
    return KEYLESS


def with_sessions(found: Examined, sessions: Iterable[SessionRecords], key_of: SESSION_KEY = keyless) -> Examined:
    """Return *found* with the faults that the records of its sessions have besides."""
    known = {one.index for one in found.findings if one.what == "entry"}
    gone = any(one.reason in {"CHAIN_TRUNCATED", "MISSING_ENTRY", "MISSING_BYTES"} for one in found.findings)
    more = [
        one
        for session in sessions
        for one in faults_of(session, key_of, signed=found.signed)
        if not _told(one, known, gone=gone)
    ]
    if not more:
        return found
    return replace(found, findings=(*found.findings, *more), found=found.found + len(more))


def faults_of(session: SessionRecords, key_of: SESSION_KEY = keyless, *, signed: int = 0) -> Iterator[Finding]:
    """Yield the faults of one session: at the position of an entry where it has one, else by sequence or window number.

    A bundle that was continued after retention still has the entries of before: a mark below *signed* excuses their windows.
    """
    truncated = max((one.sequence for one in session.events if _truncates(session, one, signed)), default=0)
    seals = session.seals
    windows = () if session.windows is None else session.windows
    key = key_of(session.session_id)
    for fault in verify_chain(windows, session.events, key, session.session_id).faults:
        excused = fault.reason == "MISSING_WINDOW" and 0 < seals.get(fault.window_id, 0) < truncated
        if (session.windows is not None or fault.what == "event") and not excused:
            yield _finding(session, fault)
    for event in session.events:
        if event.sequence not in session.positions and key is KEYLESS:
            yield Finding("session", event.sequence, NO_LEAF, session.session_id)


def _truncates(session: SessionRecords, event: EventRecord, signed: int) -> bool:
    return event.event_type == TRUNCATED and session.positions.get(event.sequence, signed) < signed


def _finding(session: SessionRecords, fault: Fault) -> Finding:
    sequence = fault.index if fault.what == "event" else session.seals.get(fault.window_id, 0)
    position = session.positions.get(sequence)
    name = f"{session.session_id} {fault.window_id}".rstrip()
    if position is None:
        return Finding("session", fault.index, fault.reason, name)
    return Finding("entry" if fault.what == "event" else "window", position, fault.reason, name)


def _told(finding: Finding, known: set[int], *, gone: bool) -> bool:
    """Return whether the examination of the log says the same already, at that entry or by what is missing."""
    if finding.what in {"entry", "window"}:
        return finding.index in known
    return gone and finding.reason in FOLLOWING_A_GAP


class DatabaseSessions:
    """The sessions of a database."""

    def __init__(self, log: LogReader) -> None:
        self._log = log

    def each(self) -> Iterator[SessionRecords]:
        for session_id in self._log.sessions():
            yield self.one(session_id)

    def one(self, session_id: str) -> SessionRecords:
        """Return one session. Its positions are read last, so that no event that was added meanwhile lacks one."""
        chain = self._log.chain(session_id)
        windows = None if session_id == LOG_SESSION else chain.windows
        return SessionRecords(session_id, chain.events, windows, self._log.positions(session_id))


class BundleSessions:
    """The sessions of a bundle: its entries by session, found again by their place in the file."""

    def __init__(self, entries: BinaryIO, windows: BinaryIO | None) -> None:
        self._entries, self._windows = entries, windows

    def each(self) -> Iterator[SessionRecords]:
        rows = _rows(self._windows) if self._windows is not None else None
        places = self._places()
        for session_id in sorted({*places, *(rows or ())}):
            found = list(self._at(places[session_id])) if session_id in places else []
            events = [event for event, _ in found]
            mine = None if rows is None or session_id == LOG_SESSION else rows.get(session_id, ())
            yield SessionRecords(session_id, events, mine, {event.sequence: position for event, position in found})

    def _places(self) -> dict[str, array[int]]:
        """Return where each session's entries are: of each its offset and its position in the log."""
        found: dict[str, array[int]] = {}
        self._entries.seek(0)
        offset = 0
        for position, line in enumerate(iter(self._entries.readline, b"")):
            event = _event(line)
            if event is not None:
                found.setdefault(event.session_id, array("Q")).extend((offset, position))
            offset += len(line)
        return found

    def _at(self, places: array[int]) -> Iterator[tuple[EventRecord, int]]:
        for offset, position in zip(places[::2], places[1::2], strict=True):
            self._entries.seek(offset)
            event = _event(self._entries.readline())
            if event is not None:
                yield event, position


def _event(line: bytes) -> EventRecord | None:
    """Return the event of a line; ``None`` where retention removed it or it is malformed, which the log's examination tells."""
    if len(line) > LONGEST_LINE:
        return None
    try:
        text, _ = parse_line(line.rstrip(b"\n"))
        return decode_entry(text) if text else None
    except ValueError:
        return None


def window_line(window: WindowRecord) -> bytes:
    """Return the row of a window for a bundle: what its seal says again, and no content, settlement or key."""
    row: dict[str, Any] = {
        "session_id": window.session_id, "window_id": window.window_id, "window_number": window.window_number,
        "parent_ids": list(window.parent_ids), "response_hash": window.response_hash, "report_hash": window.report_hash,
        "risk_level": window.risk_level, "charge_micros": window.charge_micros, "status": window.status,
        "settle_hash": window.settle_hash or content_hash(window.settle_json.encode("utf-8", "surrogatepass")),
        "trail_id": window.trail_id, "request_hash": window.request_hash, "timestamp": window.timestamp,
        "key_version": window.key_version, "hmac": window.hmac, "stored_report_hash": window.stored_report_hash,
        "content_hash": window.content_hash, "sealed_report_hash": window.sealed_report_hash,
    }  # fmt: skip
    return json.dumps(row, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _rows(file: BinaryIO) -> dict[str, list[WindowRecord]]:
    """Return the rows of a bundle's windows by session. Raises ``UnusableError``."""
    found: dict[str, list[WindowRecord]] = {}
    for line in iter(lambda: file.readline(LONGEST_LINE), b""):
        try:
            row: Any = json.loads(line)
            window = WindowRecord(settle_json="", **{**row, "parent_ids": tuple(row["parent_ids"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            raise UnusableError(f"{WINDOWS}: not the rows of windows") from None
        if not all(type(getattr(window, name)) is kind for name, kind in _TYPES.items()):
            raise UnusableError(f"{WINDOWS}: not the rows of windows")
        found.setdefault(window.session_id, []).append(window)
    return found


_TYPES: Mapping[str, type] = {
    **dict.fromkeys(
        ("session_id", "window_id", "response_hash", "report_hash", "status", "settle_hash", "trail_id"), str
    ),
    **dict.fromkeys(
        ("request_hash", "timestamp", "hmac", "stored_report_hash", "content_hash", "sealed_report_hash"), str
    ),
    **dict.fromkeys(("window_number", "risk_level", "charge_micros", "key_version"), int),
}
