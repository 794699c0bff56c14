"""One look at all parts for all who ask: bounded in time, and used again for a few seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import structlog

from interlock.runtime.rpc.health import Look, ProbeFinding

log = structlog.get_logger()

USED_AGAIN_S = 5.0
LIMIT_S = 8.0
"""A page waits no longer. The probes end by themselves before; this holds where one does not."""


class Health:
    """What is known of the parts."""

    def __init__(self, look: Look, *, limit_s: float = LIMIT_S) -> None:
        self._look, self._limit_s = look, limit_s
        self._looking: asyncio.Task[Sequence[ProbeFinding]] | None = None
        self._begun = 0.0

    async def now(self) -> Sequence[ProbeFinding] | None:
        """Return what was found, at most a few seconds ago; ``None`` where the look does not end in time, or breaks."""
        if self._looking is None or (self._looking.done() and time.monotonic() - self._begun > USED_AGAIN_S):
            self._looking, self._begun = asyncio.create_task(_looked(self._look)), time.monotonic()
        looking = self._looking
        await asyncio.wait({looking}, timeout=self._limit_s)
        if not looking.done():
            return None
        if error := looking.exception():
            self._looking = None
            log.warning("oversight.health_unread", error=type(error).__name__)
            return None
        return looking.result()

    async def close(self) -> None:
        """End a look that is under way."""
        if self._looking is not None:
            self._looking.cancel()


async def _looked(look: Look) -> Sequence[ProbeFinding]:
    return await look()
