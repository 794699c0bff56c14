"""A slice of a budget that is spent without a round trip (KRN-4). It left the budget when it was granted, so it cannot be overspent."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from interlock.client.errors import InterlockError
from interlock.client.kernel.calls import KernelCalls, micros, number

SAFETY_SHARE = 0.9
"""How much of its lifetime a slice is spent for, by this process's own steady clock, counted from before it was asked for."""


class Lease:
    """Spends slices of one resource and takes another when one is used up. Thread-safe; ``with`` returns the rest at the end.

    The size adapts: a slice that is used up early is followed by one twice as large, one that ends unspent by half of it. A process
    that dies loses its slice at most: what it did not return counts as spent.
    """

    def __init__(
        self, calls: KernelCalls, kernel: str, resource: str, *, wanted: float = 0.0, lifetime_s: float = 30.0, child: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """*wanted* is the size of the first slice; 0: a fair share of what is left."""
        self._calls, self._kernel, self._resource, self._child = calls, kernel, resource, child
        self._wanted, self._lifetime_s, self._clock = micros(wanted), lifetime_s, clock
        self._least = self._min_cost()
        self._lock = threading.Lock()
        self._key, self._fence = "", "0"
        self._granted, self._left, self._begun = 0, 0, 0.0

    def spend(self, amount: float) -> bool:
        """Spend from the slice, or from a new one. False where the budget does not hold it, or it is below the least cost."""
        cost = micros(amount)
        if cost < 0:
            raise ValueError(f"an amount must be ≥ 0, got {amount}")
        if cost < self._least:
            return False
        with self._lock:
            if not self._usable() or self._left < cost:
                self._renew(cost)
            if self._left < cost or not self._usable():
                return False
            self._left -= cost
            return True

    @property
    def left(self) -> float:
        """What is left of the present slice."""
        return number(self._left)

    def close(self) -> None:
        """Return what is left."""
        with self._lock:
            self._return()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _usable(self) -> bool:
        return bool(self._key) and self._clock() - self._begun < self._lifetime_s * SAFETY_SHARE

    def _renew(self, cost: int) -> None:
        self._adapt()
        self._return()
        wanted = max(self._wanted, cost) if self._wanted else 0
        key, begun = uuid.uuid4().hex, self._clock()
        asked: dict[str, Any] = {"resource": self._resource, "lifetime_ms": int(self._lifetime_s * 1000), "key": key}
        asked |= {"wanted_micros": str(wanted), "child": self._child}
        told = self._calls.post(self._kernel, "lease", asked)
        if told["verdict"]["approved"]:
            self._key, self._fence, self._begun = key, told["fence"], begun
            self._granted = self._left = int(told["granted_micros"])
            self._wanted = self._wanted or self._granted

    def _adapt(self) -> None:
        if not self._granted or not self._key:
            return
        if self._left * 4 < self._granted and self._clock() - self._begun < self._lifetime_s / 4:
            self._wanted = self._granted * 2
        elif self._left * 2 > self._granted and not self._usable():
            self._wanted = max(self._least, self._granted // 2, 1)

    def _return(self) -> None:
        """Give the rest back. A slice that ended meanwhile is over: nothing of it is spent any more."""
        if not self._key:
            return
        asked = {"lease": self._key, "fence": self._fence, "unspent_micros": str(self._left), "key": uuid.uuid4().hex}
        self._key, self._left = "", 0
        try:
            self._calls.post(self._kernel, "return", asked)
        except InterlockError as error:
            if error.reason not in {"KERNEL_LEASE_EXPIRED", "KERNEL_LEASE_UNKNOWN"}:
                raise

    def _min_cost(self) -> int:
        shown = self._calls.describe(self._kernel)["resources"]
        return next((int(one["min_cost_micros"]) for one in shown if one["name"] == self._resource), 0)
