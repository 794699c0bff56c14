"""Compensations that wait for a person: the part of the log's port that says which ones there are (docs/kernel.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Place = tuple[int, str, str]
"""Where a page begins: since when the one before it is stuck (milliseconds), its kernel and its step."""


@dataclass(frozen=True)
class StuckRow:
    """A compensation that is stuck. ``job`` is its form in the kernel; ``left_json`` who left it last, or empty."""

    kernel_id: str
    execution: str
    job: str
    stuck_ms: int
    left_json: str
    opened_json: str = ""
    """Data of the first event of its kernel's chain; empty where that is gone."""


class StuckWriting(Protocol):
    """What a transaction does with them."""

    def set_stuck(self, row: StuckRow) -> None:
        """Add one, or replace what is known of it; since when it is stuck stays."""

    def drop_stuck(self, kernel_id: str, execution: str) -> None:
        """Forget one that is stuck no longer, if there is one."""


class StuckReading(Protocol):
    """What any thread may read of them."""

    def stuck(self, after: Place, limit: int) -> Sequence[StuckRow]:
        """Return up to *limit* of them, the oldest first, after a place."""
