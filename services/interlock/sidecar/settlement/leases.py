"""The lease of a window that comes to nothing: given back, or left behind as a failed node, with a line in the trail."""

from __future__ import annotations

import structlog

from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import Peers
from interlock.sidecar.settlement.effects import SettlementEffects
from interlock.sidecar.trail import events

log = structlog.get_logger()


class Leases:
    """Ends leases whose windows were never sealed. A failure here is logged: the lease then runs out by itself."""

    def __init__(self, peers: Peers, effects: SettlementEffects) -> None:
        self._session, self._audit, self._effects = peers.session, peers.audit, effects
        self._timeout_s = peers.session.timeout_s

    async def give_back(self, opened: session_pb2.OpenedWindow) -> None:
        """Return a lease whose window was never sealed."""
        request = session_pb2.AbandonWindowRequest(
            session_id=opened.session_id, root_session_id=opened.root_session_id, window_id=opened.window_id,
            caller_id=opened.caller_budget.caller_id,
        )  # fmt: skip
        try:
            await self._session.abandon_window(request)
        except Refused as refused:
            log.warning(
                "window.lease_kept", session_id=opened.session_id, window_id=opened.window_id, reason=refused.reason
            )

    async def fail(
        self, opened: session_pb2.OpenedWindow, failure: BaseException, dispatch: events.Dispatch, *, dispatched: bool
    ) -> None:
        """End the lease of a call that failed, and record why. Nothing was released, so nothing is charged.

        A child of a fan-out that was *dispatched* leaves a failed node behind, so that a fan-in knows of it (SPEC-004 §16.3).
        """
        reason = failure.reason if isinstance(failure, Refused) else "INTERNAL"
        if not (opened.pattern == events.FAN_OUT and dispatched and await self._leave_failed(opened, reason)):
            await self.give_back(opened)
        failed = [events.dispatch_failed(reason, dispatch)]
        try:
            await self._audit.record(opened.session_id, opened.window_id, failed, Deadline(self._timeout_s))
        except Refused as lost:
            log.warning(
                "audit.event_lost", session_id=opened.session_id, event_type="DISPATCH_FAILED", reason=lost.reason
            )

    async def _leave_failed(self, opened: session_pb2.OpenedWindow, reason: str) -> bool:
        """Leave the window behind as FAILED; ``False`` when that could not be recorded."""
        request = session_pb2.FailWindowRequest(
            session_id=opened.session_id, root_session_id=opened.root_session_id, window_id=opened.window_id,
            reason=reason, parent_ids=opened.parent_ids, pattern=opened.pattern,
        )  # fmt: skip
        try:
            await self._effects.fail(request, Deadline(self._timeout_s))
        except Refused as refused:
            if refused.reason == "WINDOW_SEALED":
                return True  # its lease stays, and the call that finds it expired settles it
            log.warning(
                "window.failure_lost", session_id=opened.session_id, window_id=opened.window_id, reason=refused.reason
            )
            return False
        return True

    async def forget(self, session_id: str, window_id: str) -> None:
        """Delete what a sealed window said that is not released: no later window can repeat it."""
        try:
            await self._audit.drop_content(session_id, window_id, Deadline(self._timeout_s))
        except Refused as refused:
            log.warning("audit.content_kept", session_id=session_id, window_id=window_id, reason=refused.reason)
