"""Looking at sessions and ending them, for whoever holds their token or made them (SPEC-016 §2.2)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused, not_found
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission.admission import Admission
from interlock.sidecar.call.deadline import Deadline
from interlock.sidecar.trail import events


@dataclass(frozen=True)
class Sessions:
    """Reads sessions and reports within the caller's scope; what is not the caller's does not exist."""

    settings: Settings
    mesh: Mesh
    admission: Admission

    async def of_token(self, token: str, scope: str) -> session_pb2.Session:
        """Return the session of a token, as its chain vouches for it; as the store has it where the chain cannot be asked."""
        request = session_pb2.GetSessionRequest(token=token, scope=scope)
        deadline = Deadline(self.settings.rpc_timeout_s)
        session = await self._session(request)
        with contextlib.suppress(Refused):
            session = await self.admission.recovering.vouched(session, lambda: self._session(request), deadline)
        return session

    async def dag(self, token: str, scope: str, *, tree: bool) -> list[session_pb2.Session]:
        """Return the session of a token with its windows, and the sessions below it when asked, each after its parent.

        Its chain is asked first, as for a look: a tree that was set back is rebuilt before it is shown.
        """
        await self.of_token(token, scope)
        request = session_pb2.GetDagRequest(token=token, scope=scope, tree=tree)
        found = await call_service("session", self.mesh.session.GetDag(request, timeout=self.settings.rpc_timeout_s))
        return list(found.sessions)

    async def terminate(self, token: str, scope: str) -> session_pb2.Session:
        """End the session of a token for good.

        The event comes first: of a crash between the two, an end that is on record twice is the better trace.
        """
        session = await self.of_token(token, scope)
        if session.status != session_pb2.SESSION_STATUS_TERMINATED:
            ended = events.session_terminated(
                "CLIENT", windows=len(session.windows), budget_micros=session.safety_budget_micros
            )
            await self.admission.record(session.session_id, "", [ended], Deadline(self.settings.request_timeout_s))
        request = session_pb2.TerminateSessionRequest(token=token, scope=scope)
        call = self.mesh.session.TerminateSession(request, timeout=self.settings.rpc_timeout_s)
        return (await call_service("session", call)).session

    async def report(self, scope: str, *, window_id: str = "", trail_id: str = "") -> audit_pb2.GetReportResponse:
        """Return a stored report when its session is the caller's.

        Refused with REPORT_NOT_FOUND, the same for a report that does not exist and for one of somebody else (A-10).
        """
        request = audit_pb2.GetReportRequest(window_id=window_id, trail_id=trail_id)
        try:
            found = await call_service("audit", self.mesh.audit.GetReport(request, timeout=self.settings.rpc_timeout_s))
            await self._session(session_pb2.GetSessionRequest(session_id=found.session_id, scope=scope))
        except Refused as refused:
            if refused.kind in {Kind.NOT_FOUND, Kind.UNAUTHENTICATED, Kind.FORBIDDEN}:
                raise not_found("REPORT_NOT_FOUND", "there is no such report for this caller") from None
            raise
        return found

    async def _session(self, request: session_pb2.GetSessionRequest) -> session_pb2.Session:
        return (
            await call_service("session", self.mesh.session.GetSession(request, timeout=self.settings.rpc_timeout_s))
        ).session
