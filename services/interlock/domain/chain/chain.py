"""The audit chain: HMACs over unambiguous fields, and the verification of a stored chain (SPEC-011 §2 and §3).

Every HMAC covers its fields joined by U+241F, so that no two lists give the same bytes (A-28). A session has two chains: one over
its windows, whose HMAC is CRP-Provenance-HMAC, and one over its events. Each sealed window has one WINDOW_SEALED event with what
its HMAC leaves out (id, charge, status, settlement), so each chain vouches for the other.

A bare chain cannot show that both were cut off together, or that a holder of the key made new ones: signed checkpoints can.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

from interlock.domain.chain.keyless import KEYLESS
from interlock.domain.chain.marks import json_object, read_marks
from interlock.domain.chain.membership import of_session
from interlock.domain.errors import Refused, invalid

SEPARATOR = "\u241f"
EVENT_TAG = "crp-event-v1"
UNCHAINED_TAG = "crp-window-unchained-v1"
WHOLE_BUDGET_MICROS = 1_000_000

WINDOW_SEALED = "WINDOW_SEALED"
CHAIN_BROKEN = "CHAIN_BROKEN"
WINDOW_FAILED = "WINDOW_FAILED"
CONTENT_DROPPED = "CONTENT_DROPPED"
RESPONSE_RELEASED = "RESPONSE_RELEASED"

KeyOf = Callable[[int], bytes | None]
"""Returns a session's HMAC key for a key version; ``None`` for an unavailable version."""

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A stored event. ``severity`` has the numbers of ``audit.v1.Severity``; ``window_id`` may be empty."""

    session_id: str
    sequence: int
    window_id: str
    event_type: str
    severity: int
    timestamp: str
    data_json: str
    key_version: int
    hmac: str


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """The stored seal of a window. ``stored_report_hash`` is computed from the stored report; empty without a report."""

    session_id: str
    window_id: str
    window_number: int
    parent_ids: tuple[str, ...]
    response_hash: str
    report_hash: str
    risk_level: int
    charge_micros: int
    status: str
    settle_json: str
    trail_id: str
    request_hash: str
    timestamp: str
    key_version: int
    hmac: str
    stored_report_hash: str
    content_hash: str = ""
    """Hash of the encrypted content that is stored next to the chain; empty when none is."""
    sealed_report_hash: str = ""
    """Hash of the report's stored bytes when they are encrypted; empty where they are the report itself."""
    settle_hash: str = ""
    """Hash of the settlement where its text is not at hand, else empty."""


class Integrity(IntEnum):
    """State of a chain (SPEC-011 §3.3); numbers equal ``interlock.api.common.v1.ChainIntegrity``."""

    VALID = 1
    BROKEN = 2
    PARTIAL = 3
    UNVERIFIED = 4
    TRUNCATED = 5


@dataclass(frozen=True)
class Fault:
    """A record that does not verify: an event's sequence, a window's number, or a position in the log over all."""

    what: Literal["event", "window", "log"]
    index: int
    reason: str
    window_id: str = field(default="", compare=False)
    """Tells the windows of one number apart: windows of a fan-out share a number."""


ONLY_MISSING = frozenset({"MISSING_WINDOW", "MISSING_REPORT"})
"""Faults of absent records. The present records verify, so the chain is PARTIAL, not BROKEN (SPEC-002 §6.4)."""


@dataclass(frozen=True)
class Verification:
    """The result of verifying a stored chain. ``charged_micros`` takes the higher figure wherever two records differ.

    ``chain_tip`` is the HMAC of the window that was sealed last, by the sequence of its seal. A DAG may have several
    leaves; this one represents the session (SPEC-012 §8.1).
    """

    faults: tuple[Fault, ...]
    events: int
    windows: int
    charged_micros: int
    chain_tip: str
    marks: Sequence[EventRecord] = ()
    """The events that declare an erasure or a truncation. The remaining records verify, but are not complete."""

    @property
    def integrity(self) -> Integrity:
        """Return the verdict. A single window has no predecessor and is UNVERIFIED."""
        if not self.faults:
            whole = Integrity.VALID if self.windows > 1 else Integrity.UNVERIFIED
            return Integrity.TRUNCATED if self.marks else whole
        return Integrity.PARTIAL if all(f.reason in ONLY_MISSING for f in self.faults) else Integrity.BROKEN


def content_hash(content: bytes) -> str:
    """Return ``sha256:<hex>`` of *content*."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def window_hmac(
    key: bytes,
    *,
    session_id: str,
    window_number: int,
    timestamp: str,
    response_hash: str,
    report_hash: str,
    parent_hmacs: Sequence[str],
) -> str:
    """Return CRP-Provenance-HMAC, chained to no parent (root), one parent, or several in sorted order (SPEC-004 §9)."""
    if any(not parent or "|" in parent for parent in parent_hmacs):
        raise _ambiguous()
    previous = "|".join(sorted(parent_hmacs))
    return _hmac(key, session_id, str(window_number), timestamp, response_hash, report_hash, previous)


def unchained_window_hmac(
    key: bytes, *, session_id: str, window_number: int, timestamp: str, response_hash: str, report_hash: str
) -> str:
    """Return CRP-Provenance-Window-HMAC, which verifies one window without its chain (SPEC-002 §6.2).

    It covers a tag and the fields of ``window_hmac`` without the previous HMAC. The tag keeps the two HMACs apart.
    """
    return _hmac(key, UNCHAINED_TAG, session_id, str(window_number), timestamp, response_hash, report_hash)


def event_hmac(key: bytes, event: EventRecord, previous: str) -> str:
    """Return the HMAC of an event after *previous*, which is empty for the first (SPEC-011 §2.1). ``event.hmac`` is not read.

    It covers a tag, session, sequence and severity in addition to the specification's fields, so that moving an event or
    lowering its severity is detected.
    """
    return _hmac(
        key,
        EVENT_TAG,
        event.session_id,
        str(event.sequence),
        event.event_type,
        str(event.severity),
        event.timestamp,
        content_hash(event.data_json.encode("utf-8", "surrogatepass")),
        event.window_id,
        previous,
    )


def chained(key: bytes, events: Iterable[EventRecord], previous: str) -> Iterator[EventRecord]:
    """Return *events* with their HMACs, each chained to the one before it and the first to *previous*."""
    for event in events:
        previous = event_hmac(key, event, previous)
        yield EventRecord(
            event.session_id, event.sequence, event.window_id, event.event_type, event.severity, event.timestamp,
            event.data_json, event.key_version, previous,
        )  # fmt: skip


def _hmac(key: bytes, *fields: str) -> str:
    text = SEPARATOR.join(fields)
    if text.count(SEPARATOR) != len(fields) - 1 or _UNSAFE.search(text):
        raise _ambiguous()
    return "sha256:" + hmac.digest(key, text.encode(), "sha256").hex()


def _ambiguous() -> Refused:
    return invalid("AMBIGUOUS_FIELD", "a field of the chain holds U+241F, a control character or a stray separator")


def seal_data(window: WindowRecord) -> dict[str, Any]:
    """Return the data of a window's WINDOW_SEALED event: the whole record, with long texts as hashes."""
    kept = {"content_hash": window.content_hash, "sealed_report_hash": window.sealed_report_hash}
    return {name: value for name, value in kept.items() if value} | {
        "window_number": window.window_number,
        "parent_ids": list(window.parent_ids),
        "response_hash": window.response_hash,
        "report_hash": window.report_hash,
        "risk_level": window.risk_level,
        "charge_micros": window.charge_micros,
        "status": window.status,
        "settle_hash": window.settle_hash or content_hash(window.settle_json.encode("utf-8", "surrogatepass")),
        "trail_id": window.trail_id,
        "request_hash": window.request_hash,
        "timestamp": window.timestamp,
        "key_version": window.key_version,
        "hmac": window.hmac,
    }


def verify_chain(
    windows: Sequence[WindowRecord], events: Sequence[EventRecord], key_of: KeyOf, session_id: str = ""
) -> Verification:
    """Verify one session's stored records with its keys. Every fault is listed; a single edit gives one fault, at its index.

    A record of another session is a fault, with whatever HMAC. Events are ordered by sequence, never by time.
    """
    of = of_session(windows, events, session_id)
    windows, ordered = of.windows, sorted(of.events, key=lambda event: event.sequence)
    seals, marks = seals_of(ordered), read_marks(ordered)
    chained_on = event_faults(ordered, key_of, sequence=marks.sequence, previous=marks.head)
    erased = {e.window_id for e in ordered if e.event_type == WINDOW_SEALED and e.sequence < marks.erased_before}
    found = _window_faults(windows, seals, key_of)
    return Verification(
        faults=(*(Fault(*each) for each in of.foreign), *chained_on, *(f for f in found if f.reason != "MISSING_REPORT" or f.window_id not in erased)),
        events=len(events), windows=len(windows), charged_micros=_charged(windows, seals) + marks.charged_micros,
        chain_tip=_tip(windows, seals) or marks.chain_tip, marks=marks.found,
    )  # fmt: skip


def _tip(windows: Sequence[WindowRecord], seals: Seals) -> str:
    """Return the HMAC of the window sealed last. Rows without a seal, which no valid chain has, come first."""
    order = {window_id: position for position, window_id in enumerate(seals)}
    last = max(windows, key=lambda one: (order.get(one.window_id, -1), one.window_number), default=None)
    return last.hmac if last else ""


def event_faults(
    events: Iterable[EventRecord], key_of: KeyOf, *, sequence: int = 0, previous: str = ""
) -> Iterator[Fault]:
    """Verify events in order, after the event of *sequence* whose HMAC is *previous*.

    After a fault the stored HMAC is taken as given, so that one bad record is one fault. The event after a gap cannot
    be verified, because its predecessor is gone.
    """
    linked = True
    for event in events:
        if event.sequence <= sequence:
            yield Fault("event", event.sequence, "DUPLICATE_SEQUENCE")
            continue
        if event.sequence > sequence + 1:
            yield Fault("event", sequence + 1, "SEQUENCE_GAP")
            linked = False
        if linked and (reason := event_fault(event, previous, key_of)):
            yield Fault("event", event.sequence, reason)
        sequence, previous, linked = event.sequence, event.hmac, True


def event_fault(event: EventRecord, previous: str, key_of: KeyOf) -> str:
    """Return why an event was not sealed after the one whose HMAC is *previous*; empty if it was."""
    key = key_of(event.key_version)
    if key is None:
        return "" if key_of is KEYLESS else "KEY_UNKNOWN"
    try:
        expected = event_hmac(key, event, previous)
    except Refused:
        return "MALFORMED"
    return "" if _same(expected, event.hmac) else "HMAC_MISMATCH"


def _same(expected: str, stored: str) -> bool:
    return hmac.compare_digest(expected.encode(), stored.encode("utf-8", "surrogatepass"))


Seals = Mapping[str, Sequence[Mapping[str, Any]]]


def seals_of(events: Iterable[EventRecord]) -> Seals:
    """Return the data of every WINDOW_SEALED event, by window."""
    seals: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        if event.event_type == WINDOW_SEALED:
            seals.setdefault(event.window_id, []).append(json_object(event.data_json))
    return seals


def _window_faults(windows: Sequence[WindowRecord], seals: Seals, key_of: KeyOf) -> Iterator[Fault]:
    ordered = sorted(windows, key=lambda window: (window.window_number, window.window_id))
    known: dict[str, WindowRecord] = {}
    for window in ordered:
        if window.window_id in known:
            yield Fault("window", window.window_number, "DUPLICATE_WINDOW", window.window_id)
        known[window.window_id] = window
    if sum(1 for window in ordered if not window.parent_ids) > 1:
        yield Fault("window", 1, "SEVERAL_ROOTS")
    order = {window_id: position for position, window_id in enumerate(seals)}
    for window in ordered:
        for reason in faults_of_window(window, known, seals, key_of):
            yield Fault("window", window.window_number, reason, window.window_id)
        if any(order.get(parent, -1) > order.get(window.window_id, len(order)) for parent in window.parent_ids):
            yield Fault("window", window.window_number, "SEALED_BEFORE_PARENT", window.window_id)
    missing = ((_integer(found[0].get("window_number")), id_) for id_, found in seals.items() if id_ not in known)
    for number, id_ in sorted(missing):
        yield Fault("window", number, "MISSING_WINDOW", id_)


def faults_of_window(
    window: WindowRecord, known: Mapping[str, WindowRecord], seals: Seals, key_of: KeyOf
) -> Iterator[str]:
    """Verify one window against its seal, its report and its parents; yield a reason for each fault."""
    yield from _link_faults(window, known, seals, key_of)
    if not window.stored_report_hash:
        yield "MISSING_REPORT"
    elif window.stored_report_hash != (window.sealed_report_hash or window.report_hash):
        yield "REPORT_HASH_MISMATCH"
    found = seals.get(window.window_id, ())
    if not found:
        yield "MISSING_SEAL"
    elif len(found) > 1:
        yield "DUPLICATE_SEAL"
    elif found[0] != seal_data(window):
        yield "SEAL_MISMATCH"


def _link_faults(window: WindowRecord, known: Mapping[str, WindowRecord], seals: Seals, key_of: KeyOf) -> Iterator[str]:
    """Verify number and HMAC against the parents. A parent's seal takes precedence over its row."""
    parents = [_parent(parent_id, known, seals) for parent_id in window.parent_ids]
    if not all(hmac_ for _, hmac_ in parents):
        yield "MISSING_PARENT"
        return
    if window.window_number != max((number for number, _ in parents), default=0) + 1:
        yield "NUMBER_MISMATCH"
    key = key_of(window.key_version)
    if key is None and key_of is not KEYLESS:
        yield "KEY_UNKNOWN"
    elif key and (reason := _hmac_fault(window, key, [hmac_ for _, hmac_ in parents])):
        yield reason


def _parent(parent_id: str, known: Mapping[str, WindowRecord], seals: Seals) -> tuple[int, str]:
    for seal in seals.get(parent_id, ()):
        return _integer(seal.get("window_number")), str(seal.get("hmac", ""))
    row = known.get(parent_id)
    return (row.window_number, row.hmac) if row else (0, "")


def _hmac_fault(window: WindowRecord, key: bytes, parent_hmacs: Sequence[str]) -> str:
    try:
        expected = window_hmac(
            key,
            session_id=window.session_id,
            window_number=window.window_number,
            timestamp=window.timestamp,
            response_hash=window.response_hash,
            report_hash=window.report_hash,
            parent_hmacs=parent_hmacs,
        )
    except Refused:
        return "MALFORMED"
    return "" if _same(expected, window.hmac) else "HMAC_MISMATCH"


def _charged(windows: Sequence[WindowRecord], seals: Seals) -> int:
    """Return the sum of all charges. The higher of a window's row and seal counts, so that no edit refills a budget."""
    charges = {id_: max(_charge(seal.get("charge_micros")) for seal in found) for id_, found in seals.items()}
    for window in windows:
        charges[window.window_id] = max(charges.get(window.window_id, 0), _charge(window.charge_micros))
    return sum(charges.values())


def _charge(value: object) -> int:
    return min(max(_integer(value), 0), WHOLE_BUDGET_MICROS)


def _integer(value: object) -> int:
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else 0
