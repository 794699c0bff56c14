"""Keeps the gauge of open sessions up to date, in the background (OBS-2)."""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from interlock.domain.errors import Refused
from interlock.session import metrics
from interlock.session.store.census import SessionCensus

log = structlog.get_logger()

EVERY_S = 30.0
"""How old the gauge may be, seconds."""
PAUSE_S = 0.05
"""Between two steps of a walk, seconds: 10,000 sessions a second at most."""


class OpenSessions:
    """Counts again and again until it is closed. Where the store does not answer, the gauge and its time stay."""

    def __init__(self, census: SessionCensus, *, every_s: float = EVERY_S, pause_s: float = PAUSE_S) -> None:
        self._census, self._every_s, self._pause_s = census, every_s, pause_s
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop counting."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        while True:
            try:
                found = await self._census.counted(within_s=self._every_s, pause_s=self._pause_s)
            except Refused as refused:
                log.info("sessions.not_counted", reason=refused.reason)
                found = None
            if found is not None:
                metrics.OPEN_SESSIONS.set(found.open)
                metrics.COUNTED_AT.set(found.at_s)
            await asyncio.sleep(self._every_s / 2)
