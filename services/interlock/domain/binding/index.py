"""The index of bindings of one caller: which names and turns stand for which sessions and windows (ATT-1).

``bindings.lua`` is this in Redis; a property test holds the two together. There are two generations. When the current one is
full or as old as the lifetime, it becomes the previous one, and what was the previous one is forgotten. What is found in the
previous one is carried over, so what is in use stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from interlock.domain.binding.places import records_of

CANDIDATES = 4
"""Windows that are kept of one turn, the latest ones."""

_ID = slice(1, 17)


@dataclass(frozen=True)
class IndexBounds:
    """How much is kept of one caller: entries of a generation, and how long one is the current one, milliseconds."""

    entries: int
    lifetime_ms: int


USUAL = IndexBounds(entries=20_000, lifetime_ms=86_400_000)


@dataclass(frozen=True)
class IndexNote:
    """An entry to be kept. A turn joins what is known of its digest; a name is kept where it is free.

    ``over`` is the session, 16 bytes, that a name may be taken from; empty: none.
    """

    digest: bytes
    record: bytes
    turn: bool = False
    over: bytes = b""


class Index:
    """The two generations. Times are milliseconds since the epoch, and the caller's."""

    def __init__(self) -> None:
        self._current: dict[bytes, bytes] = {}
        self._previous: dict[bytes, bytes] = {}
        self._current_ends = self._previous_ends = 0
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._current) + len(self._previous)

    def find(self, digests: Sequence[bytes], bounds: IndexBounds, *, now_ms: int) -> tuple[list[bytes], int]:
        """Return the value of each digest, empty where it is unknown, and how many entries were forgotten meanwhile."""
        self._grow_old(bounds, now_ms)
        found = [self._get(digest) for digest in digests]
        carried = [digest not in self._current for digest in digests]
        for digest, value, old in zip(digests, found, carried, strict=True):
            if value and old:
                self._put(digest, value, bounds, now_ms)
        return found, self._told()

    def note(self, notes: Sequence[IndexNote], bounds: IndexBounds, *, now_ms: int) -> tuple[list[bytes], int]:
        """Keep entries; return the value that stands for each now, and how many others were forgotten."""
        self._grow_old(bounds, now_ms)
        stands = []
        for note in notes:
            present = records_of(self._get(note.digest))
            value = _joined(present, note) if note.turn else _named(present, note)
            if value:
                self._put(note.digest, value, bounds, now_ms)
            stands.append(value or present[0])
        return stands, self._told()

    def _get(self, digest: bytes) -> bytes:
        return self._current.get(digest) or self._previous.get(digest) or b""

    def _put(self, digest: bytes, value: bytes, bounds: IndexBounds, now_ms: int) -> None:
        if digest not in self._current and len(self._current) >= bounds.entries:
            self._turn_over()
        if not self._current:
            self._current_ends = now_ms + 2 * bounds.lifetime_ms
        self._current[digest] = value

    def _grow_old(self, bounds: IndexBounds, now_ms: int) -> None:
        if self._previous and self._previous_ends < now_ms:
            self._previous = {}
        if self._current and self._current_ends < now_ms:
            self._current = {}
        if self._current and self._current_ends - now_ms < bounds.lifetime_ms:
            self._turn_over()

    def _turn_over(self) -> None:
        self._forgotten += len(self._previous)
        self._previous, self._previous_ends, self._current = self._current, self._current_ends, {}

    def _told(self) -> int:
        forgotten, self._forgotten = self._forgotten, 0
        return forgotten


def _named(present: Sequence[bytes], note: IndexNote) -> bytes:
    """Return the record that a name stands for from now on; empty where it stays another session's."""
    if not present:
        return note.record
    holder = present[0][_ID]
    return note.record if holder in (note.record[_ID], note.over) else b""


def _joined(present: Sequence[bytes], note: IndexNote) -> bytes:
    """Return the windows that a turn stands for from now on, the latest first."""
    others = [each for each in present if each != note.record]
    return b"".join([note.record, *others[: CANDIDATES - 1]])
