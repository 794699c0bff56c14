"""Fair turns between analyses: work is cut into slices, and the analyses that wait take turns slice by slice, and their callers too.

One answer may have four hundred claims and another one. In order of arrival the short one would wait for all of the long one, and the
one answer of a caller for all of a caller who sends many (A-38).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

FRESH = 32
"""Slices that an analysis has in turn with the others that have just begun: an answer of one sentence needs fewer."""
LONG_AFTER = 300
"""Slices after which an analysis counts as long: one to two seconds of work alone."""
_PACE_S = 0.003


_numbers = count()


@dataclass(eq=False)
class TurnTaker:
    """One analysis, as turns are counted: the slices that it was served, whose it is, and where it stands among those that have begun.

    ``turn`` is how many analyses of its caller were to come before it, from the one on whose turn it was when it came. Of equal turns the
    lower ``number`` began earlier.
    """

    served: int = 0
    who: str = ""
    turn: int = 0
    number: int = field(default_factory=lambda: next(_numbers))

    @property
    def is_long(self) -> bool:
        """Whether it had more turns than a short answer needs."""
        return self.served >= LONG_AFTER


_flow: ContextVar[TurnTaker | None] = ContextVar("flow", default=None)
_present: set[TurnTaker] = set()


@contextmanager
def analysing(who: str = "") -> Iterator[TurnTaker]:
    """Let the work of the current task, and of the tasks that it starts, count as that of one analysis of a caller."""
    flow = TurnTaker(who=who, turn=_turn_of(who))
    token = _flow.set(flow)
    _present.add(flow)
    try:
        yield flow
    finally:
        _present.discard(flow)
        _flow.reset(token)


def _turn_of(who: str) -> int:
    """Return the turn of one more analysis of a caller: behind its own, and not before those whose turn it is (start-time fair queueing)."""
    now = min((flow.turn for flow in _present), default=0)
    return max((flow.turn + 1 for flow in _present if flow.who == who), default=now)


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
class _Rounds:
    """Analyses that take turns slice by slice: first between callers, then between the analyses of one."""

    _of: dict[str, deque[TurnTaker]] = field(default_factory=dict)
    """In the order of the callers' turns."""

    def __bool__(self) -> bool:
        return bool(self._of)

    def append(self, of: TurnTaker) -> None:
        """Line up behind the others of its caller."""
        self._of.setdefault(of.who, deque()).append(of)

    def popleft(self) -> TurnTaker:
        """Return whose turn it is; its caller is the last now."""
        who = next(iter(self._of))
        waiting = self._of.pop(who)
        of = waiting.popleft()
        if waiting:
            self._of[who] = waiting
        return of

    def clear(self) -> None:
        """Drop everyone."""
        self._of.clear()


@dataclass
class FairQueue(Generic[T]):
    """Slices by analysis, taken in turn. Not safe for use by several threads at once.

    While both short and long analyses wait, every other slice is of a short one, so that however many there are of the one sort,
    the other has half of the machine. So it is between the short ones that have just begun and the others. New ones and long ones
    have one slice each in their turn, their callers first. The others are served one after the other, by their turn among those of their
    caller, the oldest first: if all of them went on side by side, as many as can be judged in time would all end too late.
    """

    _waiting: dict[TurnTaker, deque[T]] = field(default_factory=dict)
    _fresh: _Rounds = field(default_factory=_Rounds)
    _begun: list[tuple[int, int, TurnTaker]] = field(default_factory=list)
    """A heap by turn and number."""
    _long: _Rounds = field(default_factory=_Rounds)
    _long_next: bool = False
    _begun_next: bool = False

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def put(self, of: TurnTaker, item: T) -> None:
        """Queue a slice of an analysis behind its other ones."""
        if of not in self._waiting:
            self._waiting[of] = deque()
            self._line_up(of)
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
            self._line_up(of)
        else:
            del self._waiting[of]
        return item

    def clear(self) -> list[T]:
        """Drop and return everything that waits."""
        dropped = [item for items in self._waiting.values() for item in items]
        for part in (self._waiting, self._fresh, self._begun, self._long):
            part.clear()
        return dropped

    def _line_up(self, of: TurnTaker) -> None:
        if of.is_long:
            self._long.append(of)
        elif of.served < FRESH:
            self._fresh.append(of)
        else:
            heappush(self._begun, (of.turn, of.number, of))

    def _whose_turn(self, *, hold_long: bool) -> TurnTaker | None:
        short = bool(self._fresh or self._begun)
        long = bool(self._long) and not hold_long and (self._long_next or not short)
        self._long_next = not long
        if long:
            return self._long.popleft()
        return self._next_short() if short else None

    def _next_short(self) -> TurnTaker:
        begun = bool(self._begun) and (self._begun_next or not self._fresh)
        self._begun_next = not begun
        return heappop(self._begun)[2] if begun else self._fresh.popleft()
