"""Trying an action again where others changed the state meanwhile: freely at first, then by a ticket, in the order of asking."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Self

import httpx

from interlock.client.errors import InterlockError
from interlock.client.kernel.calls import KernelCalls, pause

OPTIMISTIC = 6
"""How often an action is evaluated again before a ticket is taken."""
TRIES = 64
"""How often in all, waiting for one's turn not counted."""
TURN_MS = 2_000
PATIENCE_S = 120.0


class Contended(RuntimeError):  # noqa: N818 - what happened
    """Others changed the state again and again while a predicate was evaluated. Nothing was done; try later."""


class Turns:
    """The tries of one action."""

    def __init__(self, calls: KernelCalls, kernel: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._calls, self._kernel, self._clock = calls, kernel, clock
        self._begun, self._tries = clock(), 0
        self.ticket = ""

    def refused(self, error: InterlockError) -> None:
        """Wait until it can be tried again. Raises what is no matter of turns, or ``Contended``."""
        if error.reason == "KERNEL_TICKET_AHEAD":
            self._wait(int(error.metadata.get("subject", "1")))
        elif error.reason in {"KERNEL_VERSION_CHANGED", "KERNEL_TICKET_UNKNOWN"}:
            self._again(lost=error.reason == "KERNEL_TICKET_UNKNOWN")
        else:
            raise error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, at: TracebackType | None
    ) -> None:
        """Leave the line where no action comes of it, as where a precondition raises: others need not wait for the turn to run out."""
        ticket, self.ticket = self.ticket, ""
        if ticket and failure is not None and not isinstance(failure, httpx.TransportError):
            with contextlib.suppress(InterlockError, httpx.TransportError):
                self._calls.post(self._kernel, "return-ticket", {"ticket": ticket, "key": uuid.uuid4().hex})

    def _again(self, *, lost: bool) -> None:
        self._tries += 1
        if self._tries >= TRIES:
            raise Contended(f"the state changed {TRIES} times while an action was evaluated")
        if lost or (self._tries >= OPTIMISTIC and not self.ticket):
            self._take()
        elif not self.ticket:
            pause(min(self._tries - 1, 5))

    def _wait(self, ahead: int) -> None:
        if self._clock() - self._begun > PATIENCE_S:
            raise Contended(f"its turn did not come in {PATIENCE_S:.0f} s")
        if not self.ticket:
            self._take()
        pause(min(ahead, 4))

    def _take(self) -> None:
        key = uuid.uuid4().hex
        told = self._calls.post(self._kernel, "ticket", {"lifetime_ms": TURN_MS, "key": key})
        self.ticket = key if told["verdict"]["approved"] else ""
