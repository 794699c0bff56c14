"""Fair turns between analyses: work is cut into slices, and the analyses that wait take turns slice by slice.

One answer may have four hundred claims and another one. In order of arrival the short one would wait for all of the long one.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

LONG_AFTER = 300
"""Slices after which an analysis counts as long: one to two seconds of work alone."""
_PACE_S = 0.003


@dataclass(eq=False)
class TurnTaker:
    """One analysis, as turns are counted: the slices that it was served."""

    served: int = 0

    @property
    def is_long(self) -> bool:
        """Whether it had more turns than a short answer needs."""
        return self.served >= LONG_AFTER


_flow: ContextVar[TurnTaker | None] = ContextVar("flow", default=None)
_present: set[TurnTaker] = set()


@contextmanager
def analysing() -> Iterator[TurnTaker]:
    """Let the work of the current task, and of the tasks that it starts, count as that of one analysis."""
    flow = TurnTaker()
    token = _flow.set(flow)
    _present.add(flow)
    try:
        yield flow
    finally:
        _present.discard(flow)
        _flow.reset(token)


def current_flow() -> TurnTaker:
    """Return the analysis of the current task; work outside of any counts as one of its own."""
    return _flow.get() or TurnTaker()


def short_present() -> bool:
    """Whether a short analysis is under way."""
    return any(not flow.is_long for flow in tuple(_present))


async def paced(work: Iterable[T]) -> list[T]:
    """Return what lazy *work* on the event loop yields. Every few milliseconds it lets the other tasks have their turns."""
    done: list[T] = []
    began = time.monotonic()
    for each in work:
        done.append(each)
        if time.monotonic() - began >= _PACE_S:
            await asyncio.sleep(0)
            began = time.monotonic()
    return done


@dataclass
class FairQueue(Generic[T]):
    """Slices by analysis, taken in turn. Not safe for use by several threads at once.

    While both short and long analyses wait, every other slice is of a short one, so that however many there are of the one sort,
    the other has half of the machine. Within a sort each analysis has one slice in its turn.
    """

    _waiting: dict[TurnTaker, deque[T]] = field(default_factory=dict)
    _short: deque[TurnTaker] = field(default_factory=deque)
    _long: deque[TurnTaker] = field(default_factory=deque)
    _long_next: bool = False

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def put(self, of: TurnTaker, item: T) -> None:
        """Queue a slice of an analysis behind its other ones."""
        if of not in self._waiting:
            self._waiting[of] = deque()
            self._ring(of).append(of)
        self._waiting[of].append(item)

    def take(self, *, hold_long: bool = False) -> T | None:
        """Return the slice whose turn it is, or ``None`` when none waits. *hold_long*: none of a long analysis."""
        of = self._whose_turn(hold_long=hold_long)
        if of is None:
            return None
        items = self._waiting[of]
        item = items.popleft()
        of.served += 1
        if items:
            self._ring(of).append(of)
        else:
            del self._waiting[of]
        return item

    def clear(self) -> list[T]:
        """Drop and return everything that waits."""
        dropped = [item for items in self._waiting.values() for item in items]
        for part in (self._waiting, self._short, self._long):
            part.clear()
        return dropped

    def _ring(self, of: TurnTaker) -> deque[TurnTaker]:
        return self._long if of.is_long else self._short

    def _whose_turn(self, *, hold_long: bool) -> TurnTaker | None:
        long = bool(self._long) and not hold_long and (self._long_next or not self._short)
        ring = self._long if long else self._short
        self._long_next = not long
        return ring.popleft() if ring else None
