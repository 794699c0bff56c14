"""Answers that are kept for what goes on from them: the part of the log's port that is no chain (docs/adr/0033)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class KeptRow:
    """A kept answer. ``previous_id`` is the window that it goes on from; empty: none."""

    window_id: str
    session_id: str
    scope: str
    previous_id: str
    sealed: bytes
    expires_at: str


class KeptWriting(Protocol):
    """What a transaction does with kept answers."""

    def add_kept(self, row: KeptRow) -> None:
        """Add an answer; once."""

    def kept(self, window_id: str) -> KeptRow | None:
        """Return a kept answer, expired or not."""

    def drop_kept(self, window_id: str) -> bool:
        """Delete an answer and return whether there was one."""

    def drop_expired_kept(self, now: str) -> int:
        """Delete the answers whose time was over at *now*; return how many."""


class KeptReading(Protocol):
    """What any thread may read of kept answers."""

    def kept(self, window_id: str) -> KeptRow | None:
        """Return a kept answer, expired or not."""
