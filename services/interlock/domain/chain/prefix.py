"""What a process keeps of a chain that it verified, so that the next call verifies the new links alone (reliability.md §7, 17).

A prefix is made from a chain that verified whole. ``continues`` accepts nothing but a clean continuation of it: where it does,
the whole chain verifies, if the prefix still stands. Anything else is for ``verify_chain``, which names the faults. That the
prefix still stands is shown by reading its segments again, a few at a time: their bytes must have the digests of the bytes
that were verified.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from interlock.domain.budget import FULL, Micros
from interlock.domain.chain.chain import (
    CHAIN_BROKEN,
    CONTENT_DROPPED,
    RESPONSE_RELEASED,
    WINDOW_FAILED,
    WINDOW_SEALED,
    EventRecord,
    KeyOf,
    WindowRecord,
    event_faults,
    faults_of_window,
    seals_of,
)
from interlock.domain.chain.chain_state import (
    CASCADED,
    ChainState,
    OpenStreams,
    cascaded_budget,
    ended_by_client,
    started_session,
)
from interlock.domain.chain.marks import CONTENT_ERASED, TRUNCATED
from interlock.domain.chain.provenance import SUB_AGENT_STARTED

SEGMENT_WINDOWS, SEGMENT_EVENTS = 2, 64
"""A segment ends where it holds that many windows or events."""

SHORT = 4
"""Parts up to which a chain is read again whole: eight windows."""
AT_LEAST = 2
"""Parts of a longer chain that are read again at a time, at least."""


EventValues = tuple[Any, ...]
"""What is stored of an event, in the order of the fields of ``EventRecord``. To be compared, it need not become a record."""
_TYPE, _WINDOW_ID = (list(EventRecord.__slots__).index(name) for name in ("event_type", "window_id"))

_DIGEST_BYTES = 16
_ENDS_CONTINUATION = frozenset({CHAIN_BROKEN, CONTENT_ERASED, TRUNCATED})


class Link(NamedTuple):
    """What later calls need of a verified window: what a child is chained to, and what its content must be."""

    number: int
    hmac: str
    status: str
    content_hash: str


def link_of(window: WindowRecord) -> Link:
    """Return what later calls need of a window that verifies."""
    return Link(window.window_number, window.hmac, window.status, window.content_hash)


class ReadAgain(NamedTuple):
    """Records that were verified before, read again to be compared with what they were then."""

    windows: tuple[WindowRecord, ...] = ()
    events: tuple[EventValues, ...] = ()


class Segment(NamedTuple):
    """Events from *first* to *last*, and the windows sealed by them; digests of what was verified."""

    first: int
    last: int
    events: bytes
    windows: bytes


class Prefix:
    """A verified chain, up to the event of ``sequence``. It takes about 1.1 kB a window.

    Not for several threads at a time.
    """

    def __init__(self) -> None:
        self.sequence, self.hmac, self.anchor = 0, "", b""
        self.links: dict[str, Link] = {}
        self.segments: list[Segment] = []
        self.budget = Micros(FULL)
        self.started: set[str] = set()
        self.ended = False
        self.streams = OpenStreams()
        self.failed: set[str] = set()
        self.dropped: set[str] = set()
        self.released: set[str] = set()
        self._first, self._windows = 1, 0
        self._open = (_hasher(), _hasher())
        self._next = 0

    def state(self, *, excluding: str = "") -> ChainState:
        """Return the state that the chain shows. The window *excluding* is left out."""
        sealed = len(self.links) - (excluding in self.links)
        until = self.streams.until_ms(excluding=excluding)
        return ChainState(self.budget, sealed, len(self.started), self.ended, until)

    def add(self, windows: Iterable[WindowRecord], events: Iterable[EventRecord]) -> None:
        """Take over what was verified to continue this prefix."""
        rows, event = {window.window_id: window for window in windows}, None
        for event in events:
            self._open[0].update(_event_bytes(event))
            self.sequence, self.hmac = event.sequence, event.hmac
            self.streams.note(event)
            if event.event_type == WINDOW_SEALED:
                self._seal(rows[event.window_id])
            else:
                self._note(event)
            if self._windows == SEGMENT_WINDOWS or self.sequence - self._first + 1 >= SEGMENT_EVENTS:
                self._end_segment()
        if event is not None:
            self.anchor = digest_of_event(event)

    def _seal(self, window: WindowRecord) -> None:
        self.links[window.window_id] = link_of(window)
        self._open[1].update(_window_bytes(window))
        self._windows += 1

    def _note(self, event: EventRecord) -> None:
        noted = {WINDOW_FAILED: self.failed, CONTENT_DROPPED: self.dropped, RESPONSE_RELEASED: self.released}
        if event.event_type == CASCADED:
            self.budget = min(self.budget, cascaded_budget(event.data_json))
        elif event.event_type == SUB_AGENT_STARTED:
            if started := started_session(event.data_json):
                self.started.add(started)
        elif ended_by_client(event.event_type, event.data_json):
            self.ended = True
        elif event.event_type in noted:
            noted[event.event_type].add(event.window_id)

    def _end_segment(self) -> None:
        events, windows = self._open
        self.segments.append(Segment(self._first, self.sequence, events.digest(), windows.digest()))
        self._first, self._windows, self._open = self.sequence + 1, 0, (_hasher(), _hasher())

    def due(self, within: int, *, only_short: bool = False) -> tuple[int, int] | None:
        """Return the parts, by place, that are to be read again now, so that each is once in every *within* windows.

        A short chain is read again whole every time; with *only_short* a longer one is not. The count allows for the windows
        that come during a round.
        """
        total = len(self.segments) + (self.sequence >= self._first)
        if not total or (only_short and total > SHORT):
            return None
        if total <= SHORT:
            return 0, total
        at_once = max(AT_LEAST, -(-(total + within // SEGMENT_WINDOWS) // (within - SEGMENT_WINDOWS - 1)))
        first = self._next if self._next < total else 0
        if total <= at_once:
            first = 0
        return first, min(first + at_once, total)

    def part(self, place: int) -> Segment:
        """Return a part of the chain: a segment, or behind the last one what will become the next."""
        if place < len(self.segments):
            return self.segments[place]
        events, windows = self._open
        return Segment(self._first, self.sequence, events.digest(), windows.digest())

    def stands(self, places: tuple[int, int], windows: Iterable[WindowRecord], events: Sequence[EventValues]) -> bool:
        """Return whether parts that were read again are what was verified; the next ones are due then."""
        rows = {window.window_id: window for window in windows}
        at = 0
        for part in map(self.part, range(*places)):
            size = part.last - part.first + 1
            of_events, of_windows = _hasher(), _hasher()
            for values in events[at : at + size]:
                of_events.update(_stored_bytes(values))
                if values[_TYPE] == WINDOW_SEALED and (window := rows.get(values[_WINDOW_ID])) is not None:
                    of_windows.update(_window_bytes(window))
            if (of_events.digest(), of_windows.digest()) != (part.events, part.windows):
                return False
            at += size
        self._next = places[1]
        return at == len(events)


def continues(
    prefix: Prefix, windows: Sequence[WindowRecord], events: Sequence[EventRecord], key_of: KeyOf, *, rows: int
) -> bool:
    """Return whether *events*, and the *windows* that they seal, continue the prefix without any fault or mark.

    *rows* is how many windows the session has in all: one without a seal is a fault. ``False`` says only that the chain must
    be verified whole.
    """
    if rows != len(prefix.links) + len(windows):
        return False
    if any(event.event_type in _ENDS_CONTINUATION for event in events):
        return False
    if len({window.session_id for window in windows} | {event.session_id for event in events}) > 1:
        return False
    if next(event_faults(events, key_of, sequence=prefix.sequence, previous=prefix.hmac), None) is not None:
        return False
    sealed = [event.window_id for event in events if event.event_type == WINDOW_SEALED]
    by_id = {window.window_id: window for window in windows}
    if len(windows) != len(sealed) or by_id.keys() != set(sealed) or len(by_id) != len(sealed):
        return False
    return _windows_continue(prefix, [by_id[each] for each in sealed], seals_of(events), key_of)


def _windows_continue(
    prefix: Prefix, ordered: Iterable[WindowRecord], seals: Mapping[str, Sequence[Mapping[str, Any]]], key_of: KeyOf
) -> bool:
    """Verify windows in the order of their seals: each on windows before it, one root in all."""
    known: dict[str, Sequence[Mapping[str, Any]]] = {}
    for window in ordered:
        if window.window_id in prefix.links or (not window.parent_ids and (prefix.links or known)):
            return False
        for parent in window.parent_ids:
            if parent in known:
                continue
            link = prefix.links.get(parent)
            if link is None:
                return False
            known[parent] = ({"window_number": link.number, "hmac": link.hmac},)
        known[window.window_id] = seals[window.window_id]
        if next(faults_of_window(window, {}, known, key_of), None) is not None:
            return False
    return True


def digest_of_event(event: EventRecord) -> bytes:
    """Return a digest of all that is stored of an event."""
    return _digest(_event_bytes(event))


def _event_bytes(event: EventRecord) -> bytes:
    return _bytes((
        event.session_id, event.sequence, event.window_id, event.event_type, event.severity, event.timestamp,
        event.data_json, event.key_version, event.hmac,
    ))  # fmt: skip


def _window_bytes(window: WindowRecord) -> bytes:
    return _bytes((
        window.session_id, window.window_id, window.window_number, window.parent_ids, window.response_hash,
        window.report_hash, window.risk_level, window.charge_micros, window.status, window.settle_json, window.trail_id,
        window.request_hash, window.timestamp, window.key_version, window.hmac, window.content_hash,
        window.sealed_report_hash, window.stored_report_hash,
    ))  # fmt: skip


def _bytes(fields: tuple[Any, ...]) -> bytes:
    """Return bytes that no other fields have. Only this process compares them, so that they need not stay the same."""
    return marshal.dumps(fields, _WITHOUT_REFERENCES)


def _stored_bytes(values: EventValues) -> bytes:
    """Return the bytes of an event's values. One of a type that no record has makes them differ from all that was verified."""
    try:
        return _bytes(values)
    except ValueError:
        return b""


_WITHOUT_REFERENCES = 2
"""The last version of marshal whose bytes depend on the values alone."""


def _hasher() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=_DIGEST_BYTES)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
