"""Chains that are no sessions: the part of the log's port that says which kernels and experiments there are, and what an experiment decided."""

from __future__ import annotations

from typing import Protocol

from interlock.domain.chain.chain import EventRecord


class OpenedReading(Protocol):
    """What any thread may read of them."""

    def opened_last(self, kind: str, mentioning: tuple[str, str], limit: int, before: tuple[str, str]) -> list[tuple[str, str, str]]:  # fmt: skip
        """Return id, time and data of the events of a type with both texts, the latest first, before *before* (time, id)."""

    def cycles(self, experiment_id: str, before: int, limit: int) -> list[EventRecord]:
        """Return up to *limit* DECISION_CYCLE events before the one of that number, the latest first; 0: from the last one on."""
