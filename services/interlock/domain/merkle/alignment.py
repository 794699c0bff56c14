"""Compares a list of entries with their known leaf hashes: which entries are missing, changed, moved or inserted.

Both lists are read once with a short look-ahead, so that one deletion is one finding, not one for every later entry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from interlock.domain.merkle.tiles import Line

AHEAD = 64

MISSING = "MISSING_ENTRY"
TRUNCATED = "CHAIN_TRUNCATED"
"""Like MISSING, but no entry follows the missing one."""
INSERTED = "INSERTED_ENTRY"
CHANGED = "ENTRY_MISMATCH"
MOVED = "MOVED_ENTRY"

Pair = tuple[int, Line | None, bytes | None, str]
"""Position, entry, known hash, and the fault; the fault is empty without one."""

T = TypeVar("T")


class _Ahead(Generic[T]):
    """Reads a list once, with look-ahead."""

    def __init__(self, source: Iterable[T]) -> None:
        self._source, self.held = iter(source), deque[T]()

    def take(self) -> T | None:
        return self.held.popleft() if self.held else next(self._source, None)

    def back(self, value: T | None) -> None:
        if value is not None:
            self.held.appendleft(value)

    def fill(self, count: int) -> deque[T]:
        while len(self.held) < count and (value := next(self._source, None)) is not None:
            self.held.append(value)
        return self.held


def aligned(lines: Iterable[Line], leaves: Iterable[bytes], *, whole: bool = True) -> Iterator[Pair]:
    """Pair entries with their known hashes, in order of position.

    An inserted entry has no hash, and the position of the entry that it displaced. Unless the hashes are *whole*, entries
    after the last known hash are accepted as they are.
    """
    found, known = _Ahead(lines), _Ahead(leaves)
    position = 0
    while True:
        line, leaf = found.take(), known.take()
        if line is not None and line[1] == leaf:
            yield position, line, leaf, ""
            position += 1
            continue
        if line is None and leaf is None:
            return
        if leaf is None and line is not None and not whole:
            yield position, line, None, ""
            position += 1
            continue
        found.back(line)
        known.back(leaf)
        for pair in _difference(found, known, position):
            position += pair[2] is not None
            yield pair


def _difference(found: _Ahead[Line], known: _Ahead[bytes], position: int) -> Iterator[Pair]:
    reason, lines, leaves = _judged([line[1] for line in found.fill(AHEAD + 2)], list(known.fill(AHEAD + 2)))
    for at in range(max(lines, leaves)):
        line = found.take() if at < lines else None
        leaf = known.take() if at < leaves else None
        yield (position + at if leaves else position), line, leaf, reason


def _judged(have: list[bytes], want: list[bytes]) -> tuple[str, int, int]:  # noqa: PLR0911 - one for each thing that can have happened
    """Return the fault at the first place of both lists, and how many items of each it covers."""
    if not want:
        return INSERTED, 1, 0
    if not have:
        return TRUNCATED, 0, 1
    if have[1:2] == want[1:2]:
        return CHANGED, 1, 1
    if have[:2] == want[1::-1]:
        return MOVED, 2, 2
    for count in range(1, AHEAD + 1):
        if have[:2] == want[count : count + 2]:
            return MISSING, 0, count
        if have[count : count + 2] == want[:2]:
            return INSERTED, count, 0
    return CHANGED, 1, 1
