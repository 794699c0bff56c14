"""How long a call may wait, and how often it may try again (SVC-4; reliability.md §4)."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

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


class TimeLimit:
    """Cancels its block after so many seconds, which then raises ``TimeoutError``, as ``asyncio.timeout`` does. ``None``: never.

    A timer for each block is what costs most there, and a governed call has eight. Blocks of one limit end in the order in which they
    began, so that one timer of the event loop watches all of them.
    """

    __slots__ = ("_cancelling", "_seconds", "_timer", "end", "expired", "task")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self.end = 0.0
        self.expired = False
        self.task: asyncio.Task[Any] | None = None
        """Whose block it is; ``None`` once it has been left."""
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        if self._seconds is None:
            return self
        loop = asyncio.get_running_loop()
        self.task = asyncio.current_task(loop)
        assert self.task is not None
        self._cancelling = self.task.cancelling()
        self.end = loop.time() + self._seconds
        if not _Watch.of(loop).takes(self):
            self._timer = loop.call_at(self.end, self.expire)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        task, self.task = self.task, None
        if self._timer is not None:
            self._timer.cancel()
        if self.expired and task is not None and task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """End the block."""
        if self.task is not None:
            self.expired = True
            self.task.cancel()


class _Watch:
    """The limits of one event loop that end one after the other, and the timer of the first of them."""

    current: _Watch | None = None

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._limits: deque[TimeLimit] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._rings = 0.0

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> _Watch:
        """Return the watch of *loop*. The one of another loop goes on with what it has."""
        if cls.current is None or cls.current.loop is not loop:
            cls.current = cls(loop)
        return cls.current

    def takes(self, limit: TimeLimit) -> bool:
        """Watch *limit*; not if it ends before one that is watched."""
        limits = self._limits
        while limits and limits[-1].task is None:
            limits.pop()
        if limits and limit.end < limits[-1].end:
            return False
        while limits and limits[0].task is None:
            limits.popleft()
        limits.append(limit)
        # The timer may be that of a longer limit, which has been left.
        if self._timer is None or limit.end < self._rings:
            self._set(limit.end)
        return True

    def _set(self, end: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._rings = self.loop.call_at(end, self._tick), end

    def _tick(self) -> None:
        now, self._timer = self.loop.time(), None
        while self._limits and (self._limits[0].task is None or self._limits[0].end <= now):
            self._limits.popleft().expire()
        if self._limits:
            self._set(self._limits[0].end)
