"""Retention: erase a session's contents after some days, remove its events after more, each with a mark (AUD-5).

Each session is one transaction: a long backlog blocks no one, and a crash leaves no session half removed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from interlock.audit.erasure.erasure import ERASED, RETENTION, TRUNCATED_TOTAL, erase, truncate
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.seal import Sealer
from interlock.audit.store.log import AuditLog, Writing
from interlock.domain.errors import Refused
from interlock.runtime import failpoints
from interlock.runtime.clock import Clock, iso8601
from interlock.runtime.settings.model import Settings

log = structlog.get_logger()

PERIOD_S = 600.0
PAGE = 200
TASK = "retention"
_DAY = 86_400_000_000


class Retention:
    """The retention task. Of several audit processes on one database, the leader of this task runs it."""

    def __init__(
        self, settings: Settings, audit_log: AuditLog, appender: Appender, sealer: Sealer, clock: Clock
    ) -> None:
        self._contents_days = settings.retention_contents_days
        self._events_days = settings.retention_events_days
        self._log, self._appender, self._sealer, self._clock = audit_log, appender, sealer, clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task: what is kept for a time goes when it is over, and the rest as the settings say."""
        self._task = asyncio.create_task(self._run(), name="audit-retention")

    async def close(self) -> None:
        """Stop; a session whose removal is under way is finished."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        while True:
            try:
                await self.once()
            except Exception as error:  # noqa: BLE001 - the next round tries again; nothing is removed without its mark
                reason = error.reason if isinstance(error, Refused) else type(error).__name__
                log.warning("audit.retention.failed", reason=reason)
            await asyncio.sleep(PERIOD_S)

    async def once(self) -> tuple[int, int]:
        """Remove everything that is due now; return how many sessions were erased and how many truncated."""
        if not await asyncio.to_thread(self._log.leads, TASK):
            return 0, 0
        now = iso8601(self._clock())
        await self._appender.submit(lambda writing: writing.drop_expired_kept(now))
        truncated = await self._each(self._events_days, truncate, erasable=False)
        TRUNCATED_TOTAL.inc(truncated)
        erased = await self._each(self._contents_days, partial(erase, reason=RETENTION), erasable=True)
        ERASED.labels(RETENTION).inc(erased)
        return erased, truncated

    async def _each(self, days: int | None, remove: Callable[..., Any], *, erasable: bool) -> int:
        if days is None:
            return 0
        before, after, removed = iso8601(self._clock() - days * _DAY), "", 0
        while True:
            look = partial(self._log.session_ids, before, PAGE, after=after, erasable=erasable)
            page = await asyncio.to_thread(look)
            for session_id in page:
                removed += await self._one(session_id, remove)
            if len(page) < PAGE:
                return removed
            after = page[-1]

    async def _one(self, session_id: str, remove: Callable[..., Any]) -> int:
        def work(writing: Writing) -> Any:
            return remove(writing, self._sealer, session_id)

        try:
            removed = await self._appender.submit(work)
        except Refused as refused:
            if refused.reason != "CHAIN_BROKEN":
                raise
            # A broken chain is evidence: none of it is removed, and the other sessions continue.
            log.warning("audit.retention.kept", session_id=session_id, reason=refused.reason)
            return 0
        await failpoints.reached("audit.after_erase")
        return int(bool(removed))
