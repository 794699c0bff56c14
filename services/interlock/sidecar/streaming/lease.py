"""The time of an answer that leaves in parts: its lease and its call's deadline move on together while the provider sends (API-4, BUD-11).

The deadline is never later than the lease that was confirmed: a stream whose lease cannot be renewed ends before it runs out, and
one whose process dies is found within one lease. Nothing lasts longer than ``longest``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog

from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.call import Run

log = structlog.get_logger()

_TICKS = 4
"""Renewals in the time of one call, of which what comes after the provider has a part: some may fail before the stream has to end."""


class StreamLease:
    """Keeps the lease of one window while its answer comes in."""

    def __init__(self, settings: Settings, peers: Peers, run: Run, opened: session_pb2.OpenedWindow) -> None:
        self._peers, self._run, self._deadline, self._opened = peers, run, run.deadline, opened
        self._step_s = settings.request_timeout_s
        self._lease_ms = int((settings.request_timeout_s + settings.rpc_timeout_s) * 1000)
        behind_s = max(0.0, settings.request_timeout_s - settings.upstream_timeout_s)
        self._tail_s = min(behind_s, settings.request_timeout_s / _TICKS)
        self._tick_s = (settings.request_timeout_s - self._tail_s) / _TICKS
        self.longest = Deadline(settings.stream_timeout_s + self._tail_s)
        """The end of the call, however long its provider sends."""

    @contextlib.asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Keep the lease while the provider is asked.

        Refused with UPSTREAM_TIMEOUT after ``stream_timeout_s``, and with DEADLINE_EXCEEDED where the lease could not be renewed. Either
        leaves the steps after it their time.
        """
        if self.longest.left_s < self._deadline.left_s:
            self._deadline.follow(self.longest)
        try:
            async with asyncio.timeout(self._left_s) as limit:
                keeping = asyncio.ensure_future(self._keep(limit))
                try:
                    yield
                finally:
                    keeping.cancel()
        except TimeoutError:
            if self.longest.left_s <= self._tail_s:
                message = "the model provider's answer took longer than stream_timeout_s"
                raise Refused(Kind.TIMEOUT, "UPSTREAM_TIMEOUT", message) from None
            message = "the lease of the stream could not be renewed in time"
            raise Refused(Kind.TIMEOUT, "DEADLINE_EXCEEDED", message) from None

    @property
    def _left_s(self) -> float:
        """Seconds that the provider has."""
        return max(0.0, self._deadline.left_s - self._tail_s)

    async def _keep(self, limit: asyncio.Timeout) -> None:
        """Renew the lease again and again, and move the deadline and the provider's *limit* on with it."""
        while True:
            await asyncio.sleep(self._tick_s)
            until = Deadline(min(self._step_s, self.longest.left_s))  # from before the renewal: the lease ends later
            try:
                await self._renew()
            except Refused as refused:
                log.warning("stream.lease_not_renewed", window_id=self._opened.window_id, reason=refused.reason)
                if refused.reason == "LEASE_LOST":
                    return
                continue
            self._deadline.follow(until)
            limit.reschedule(asyncio.get_running_loop().time() + self._left_s)
            await self._keep_place()

    async def _renew(self) -> None:
        opened = self._opened
        request = session_pb2.RenewWindowRequest(
            session_id=opened.session_id, root_session_id=opened.root_session_id, window_id=opened.window_id,
            lease_ms=self._lease_ms,
        )  # fmt: skip
        await self._peers.session.renew_window(request, self._deadline)

    async def _keep_place(self) -> None:
        """Keep the call's place in the dpe, too. Where that fails its analyses go on without one, as those of any place that was lost."""
        before = self._run.place_id
        if not before:
            return
        try:
            self._run.place_id = await self._peers.dpe.reserve(self._deadline, self._run.call.caller.sharing, before)
        except Refused as refused:
            log.info("stream.place_not_kept", window_id=self._opened.window_id, reason=refused.reason)
            return
        if self._run.place_id != before:  # of an engine that keeps none, or where it had ended
            await self._peers.dpe.release(before)
