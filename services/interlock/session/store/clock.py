"""The time of the session store, which all instances share: tokens and leases end by it (reliability.md A-45).

An instance whose own clock is wrong would sign tokens that the others take for forged, and take expired ones for good. It
measures how far it is off with each readiness check, once a second, and goes by the store's time in between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
from prometheus_client import Gauge

from interlock.domain.errors import Refused
from interlock.domain.session.token import LEEWAY_S
from interlock.runtime.clock import Clock, system_clock

log = structlog.get_logger()

SKEW = Gauge("interlock_clock_skew_seconds", "How far this machine's clock is ahead of the session store's, seconds.")

SLOWEST_US = 1_000_000
"""An answer that took longer is too imprecise to measure the clock by."""


class StoreClock:
    """Microseconds since the epoch by the store's clock; by this machine's until the store was first asked."""

    def __init__(self, ask: Callable[[], Awaitable[int]], *, own: Clock = system_clock) -> None:
        self._ask, self._own = ask, own
        self._ahead_us = 0
        self._told = False

    def __call__(self) -> int:
        return self._own() - self._ahead_us

    async def follow(self) -> None:
        """Measure again. A store that does not answer changes nothing. Never raises."""
        begun = self._own()
        try:
            theirs = await self._ask()
        except Refused:
            return
        took = self._own() - begun
        if 0 <= took <= SLOWEST_US:
            self._ahead_us = begun + took // 2 - theirs
            SKEW.set(self._ahead_us / 1_000_000)
            self._tell()

    def _tell(self) -> None:
        off = abs(self._ahead_us) > LEEWAY_S * 1_000_000
        if off and not self._told:
            log.warning("clock.skewed", skew_s=round(self._ahead_us / 1_000_000), hint="tokens go by the store's clock")
        self._told = off
