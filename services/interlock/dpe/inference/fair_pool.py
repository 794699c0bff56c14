"""Worker threads for the embedded models, on which analyses take turns."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from interlock.dpe.inference.fairness import FairQueue, TurnTaker, current_flow, short_present

T = TypeVar("T")

_LOOK_AGAIN_S = 0.05


class FairPool:
    """A number of threads over one fair queue; a slice is one item, because an item is some milliseconds of work.

    While a short analysis is under way, long ones leave one of several threads free: it need not wait for a slice of theirs to end.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._queue: FairQueue[_Slice] = FairQueue()
        self._changed = threading.Condition()
        self._closed = False
        self._running_long = 0
        self._most_long = max(1, threads - 1)
        self._threads = [
            threading.Thread(target=self._loop, name=f"{name}_{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def spread(self, work: Callable[[Any], T], items: Sequence[Any], *, key: Callable[[Any], int]) -> list[T]:
        """Return what *work* makes of each item, in order. Those with the smallest *key* run first.

        Items that did not run yet are skipped when the caller is cancelled, and when one of them fails.
        """
        if not items:
            return []
        spread, flow = _Spread(work, items), current_flow()
        order = sorted(range(len(items)), key=lambda number: key(items[number]))
        self._put(flow, [_Slice(flow, spread, number) for number in order])
        try:
            await spread.done
        finally:
            spread.stopped = True
        return [spread.made[number] for number in range(len(items))]

    def close(self) -> None:
        """Stop the threads and drop queued work."""
        with self._changed:
            self._closed = True
            for dropped in self._queue.clear():
                dropped.spread.note(asyncio.CancelledError())
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _put(self, of: TurnTaker, parts: Sequence[_Slice]) -> None:
        with self._changed:
            if self._closed:
                raise asyncio.CancelledError
            for part in parts:
                self._queue.put(of, part)
            self._changed.notify(len(parts))

    def _loop(self) -> None:
        while (taken := self._take()) is not None:
            part, long = taken
            part.run()
            if long:
                with self._changed:
                    self._running_long -= 1
                    self._changed.notify()

    def _take(self) -> tuple[_Slice, bool] | None:
        """Return the next slice and whether it counts as one of a long analysis, or ``None`` at the end."""
        with self._changed:
            while True:
                hold_long = self._running_long >= self._most_long and short_present()
                if (part := self._queue.take(hold_long=hold_long)) is not None:
                    long = part.of.is_long
                    self._running_long += long
                    return part, long
                if self._closed:
                    return None
                self._changed.wait(_LOOK_AGAIN_S if len(self._queue) else None)


@dataclass(frozen=True)
class _Slice:
    """One item of a call."""

    of: TurnTaker
    spread: _Spread
    number: int

    def run(self) -> None:
        """Do the work on a thread of the pool, and pass on a failure."""
        spread, failure = self.spread, None
        try:
            if not spread.stopped:
                spread.made[self.number] = spread.work(spread.items[self.number])
        except BaseException as error:  # noqa: BLE001 - raised in the caller
            failure = error
        spread.note(failure)


class _Spread:
    """The items of one call while they run."""

    def __init__(self, work: Callable[[Any], Any], items: Sequence[Any]) -> None:
        self.work, self.items = work, items
        self.made: dict[int, Any] = {}
        self.stopped = False
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self._left = len(items)
        self._counting = threading.Lock()

    def note(self, failure: BaseException | None) -> None:
        """Note, from any thread, that an item is done. The event loop is told of the last one, and of a failure."""
        with self._counting:
            self._left -= 1
            tell = not self.stopped and (failure is not None or not self._left)
            self.stopped = self.stopped or failure is not None
        if tell:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and so has the caller
                self._loop.call_soon_threadsafe(self._end, failure)

    def _end(self, failure: BaseException | None) -> None:
        if self.done.done():
            return
        if isinstance(failure, asyncio.CancelledError):
            self.done.cancel()
        elif failure is not None:
            self.done.set_exception(failure)
        else:
            self.done.set_result(None)
