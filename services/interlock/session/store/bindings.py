"""The port to the index of bindings, and its in-memory twin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import structlog
from prometheus_client import Counter

from interlock.domain.binding.index import Index, IndexBounds, IndexNote
from interlock.runtime.clock import Clock, system_clock

FORGOTTEN = Counter(
    "interlock_bindings_forgotten_total",
    "Names and answers that no longer find a session, because newer ones of the same caller took their place.",
)

log = structlog.get_logger()


class BindingIndex(Protocol):
    """What names and turns of each caller stand for. *scope* is the caller's; digests are 16 bytes, and keyed by it.

    Both raise ``Refused`` when the store is unavailable.
    """

    async def find(self, scope: str, digests: Sequence[bytes], bounds: IndexBounds) -> list[bytes]:
        """Return the value of each digest, empty where it is unknown. What is found counts as used."""
        ...

    async def note(self, scope: str, notes: Sequence[IndexNote], bounds: IndexBounds) -> list[bytes]:
        """Keep entries in one step; return the value that stands for each now."""
        ...


class MemoryBindings:
    """BindingIndex of this one process, for ``memory://``."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._indexes: dict[str, Index] = {}

    async def find(self, scope: str, digests: Sequence[bytes], bounds: IndexBounds) -> list[bytes]:
        """Look up digests; a caller of whom nothing was kept gets no index for asking."""
        index = self._indexes.get(scope)
        if index is None:
            return [b""] * len(digests)
        values, forgotten = index.find(digests, bounds, now_ms=self._clock() // 1000)
        note_forgotten(scope, forgotten)
        return values

    async def note(self, scope: str, notes: Sequence[IndexNote], bounds: IndexBounds) -> list[bytes]:
        """Keep entries."""
        index = self._indexes.setdefault(scope, Index())
        values, forgotten = index.note(notes, bounds, now_ms=self._clock() // 1000)
        note_forgotten(scope, forgotten)
        return values


def note_forgotten(scope: str, count: int) -> None:
    """Say that the oldest bindings of a caller were forgotten."""
    if count:
        FORGOTTEN.inc(count)
        log.info("bindings.oldest_forgotten", scope=scope, entries=count)
