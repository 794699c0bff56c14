"""How long a call may wait, and how often it may try again (SVC-4; reliability.md §4)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from interlock.domain.errors import Kind, Refused

A = TypeVar("A")

DELAYS_S = (0.05, 0.2, 0.8)
"""Pauses between tries of a write that is idempotent by window id."""

_MAY_PASS = frozenset({Kind.UNAVAILABLE, Kind.TIMEOUT})


class Deadline:
    """The end of a governed call. Every step gets what is left, and no step starts after it."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """Seconds that are left; negative after the end."""
        return self._end - time.monotonic()

    def follow(self, other: Deadline) -> None:
        """Move to the end of another deadline: a stream that lives gets more time, step by step."""
        self._end = other._end

    def within(self, limit_s: float) -> float:
        """Return *limit_s* or what is left, whichever is less. Refused with DEADLINE_EXCEEDED when nothing is left."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise Refused(Kind.TIMEOUT, "DEADLINE_EXCEEDED", "the deadline of the call has passed")
        return min(limit_s, left)


async def retry_idempotent(attempt: Callable[[], Awaitable[A]]) -> A:
    """Return what *attempt* gives, trying again while the service behind it cannot answer."""
    for delay_s in DELAYS_S:
        try:
            return await attempt()
        except Refused as refused:
            if refused.kind not in _MAY_PASS:
                raise
        await asyncio.sleep(delay_s)
    return await attempt()
