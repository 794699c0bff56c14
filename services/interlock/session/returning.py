"""Leases on their way back to the store: nobody waits for them."""

from __future__ import annotations

import asyncio

import structlog

from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId, WindowId
from interlock.session.store.store import Store

log = structlog.get_logger()


class ReturningLeases:
    """Gives leases back; one that cannot be given back runs out by itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._under_way: set[asyncio.Task[None]] = set()

    def give_back(self, root: SessionId, session: SessionId, window: WindowId) -> None:
        """Give back the lease of a window, without waiting for it."""
        task = asyncio.create_task(self._given_back(root, session, window))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def settled(self) -> None:
        """Wait for all that are on their way."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def _given_back(self, root: SessionId, session: SessionId, window: WindowId) -> None:
        try:
            await self._store.abandon(root, session, window)
        except Refused as refused:
            log.info("window.lease_left", session_id=session, window_id=window, reason=refused.reason)
