"""Starting, delegating, reading and ending sessions, within the caller's scope (SPEC-016 §2.2)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import OPEN_AT
from interlock.domain.errors import Kind, Refused, not_found
from interlock.domain.headers.awareness import aware
from interlock.domain.headers.headers import RequestHeaders
from interlock.domain.session.session_refusals import refusal
from interlock.runtime.keys.api_keys import UNVERIFIED, Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission.agents import CallerAgents, check_type
from interlock.sidecar.admission.delegation import Delegations
from interlock.sidecar.admission.explanation import tell_caller_halt
from interlock.sidecar.admission.start_session import Origin, SessionStarter, check_residency
from interlock.sidecar.settlement.recovery import Recovery
from interlock.sidecar.trail import events
from interlock.sidecar.trail.response_headers import ResponseHeaders


@dataclass(frozen=True)
class Sessions:
    """What a caller may do with sessions besides calls. What is not the caller's does not exist for it."""

    settings: Settings
    peers: Peers
    recovery: Recovery
    agents: CallerAgents
    starter: SessionStarter
    delegations: Delegations

    async def start(
        self,
        caller: Caller,
        asked: RequestHeaders,
        reply: ResponseHeaders,
        deadline: Deadline,
        *,
        parent_token: str = "",
    ) -> session_pb2.StartSessionResponse:
        """Start a session without a call: a root, or a sub-agent's by its grant or by the token of its parent."""
        agent = await self.agents.of(caller, deadline)
        reply.set({"CRP-Compliance-Data-Residency": self.settings.data_region or None})
        grant = asked.grant or ""
        if parent_token:
            kind = agent.agent_type
            minted = await self.delegations.mint(
                caller, parent_token, asked, agent=agent, agent_type=kind, reply=reply, deadline=deadline
            )
            grant = minted.grant
        return (await self.starter.begin(Origin(caller, agent, grant), asked, reply, deadline))[0]

    async def delegate(
        self,
        caller: Caller,
        asked: RequestHeaders,
        agent_type: str,
        reply: ResponseHeaders,
        deadline: Deadline,
        *,
        lifetime_s: int,
    ) -> session_pb2.DelegateResponse:
        """Mint a grant for an agent of another type."""
        agent = await self.agents.of(caller, deadline)
        return await self.delegations.mint(
            caller, asked.session_token or "", asked, agent=agent, agent_type=agent_type, reply=reply,
            deadline=deadline, lifetime_s=lifetime_s, ceiling=asked.ceiling,
        )  # fmt: skip

    async def in_standing(
        self, caller: Caller, asked: RequestHeaders, named: str, reply: ResponseHeaders, deadline: Deadline
    ) -> session_pb2.Session | None:
        """Return the session of a call that opens no window: its token's, or the one that it *named*; ``None`` for neither.

        Refused where its agent may make no calls, where its caller's budget is spent, or where the session, or one above it, is halted.
        """
        agent = await self.agents.of(caller, deadline)
        reply.agent_type = agent.agent_type
        check_residency(asked.data_residency, self.settings.data_region)
        watched = self.settings.unaware_callers == "observe" and not aware(asked)
        if self.settings.caller_budget and not watched:
            scope = caller.scope if caller.verified or agent.agent_type else UNVERIFIED
            _require_caller(await self.peers.session.get_caller(scope), reply)
        if not (asked.session_token or named):
            return None
        if asked.session_token:
            session = await self.of_token(asked.session_token, caller.scope)
        else:
            request = session_pb2.GetSessionRequest(session_id=named, scope=caller.scope)
            session = await self.peers.session.get(request)
        check_type(agent, session.agent)
        reply.session_id = session.session_id
        reply.set({"CRP-Context-Session-Id": session.session_id})
        _require_going(session, reply)
        return session

    async def of_token(self, token: str, scope: str) -> session_pb2.Session:
        """Return the session of a token, verified against its chain; as the store has it where the chain cannot be asked."""
        request = session_pb2.GetSessionRequest(token=token, scope=scope)
        deadline = Deadline(self.settings.rpc_timeout_s)
        session = await self.peers.session.get(request)
        with contextlib.suppress(Refused):
            session = await self.recovery.verified_against_chain(
                session, lambda: self.peers.session.get(request), deadline
            )
        return session

    async def dag(self, token: str, scope: str, *, tree: bool) -> list[session_pb2.Session]:
        """Return the session of a token with its windows, and the sessions below it when asked, each after its parent.

        Its chain is asked first, as for a look: a tree that was set back is rebuilt before it is shown.
        """
        await self.of_token(token, scope)
        request = session_pb2.GetDagRequest(token=token, scope=scope, tree=tree)
        return list(await self.peers.session.dag(request))

    async def terminate(self, token: str, scope: str) -> session_pb2.Session:
        """End the session of a token for good.

        The event comes first: after a crash between the two, an end that is recorded twice is the better trace.
        """
        session = await self.of_token(token, scope)
        if session.status != session_pb2.SESSION_STATUS_TERMINATED:
            ended = events.session_terminated(
                "CLIENT", windows=len(session.windows), budget_micros=session.safety_budget_micros
            )
            await self.peers.audit.record(session.session_id, "", [ended], Deadline(self.settings.request_timeout_s))
        request = session_pb2.TerminateSessionRequest(token=token, scope=scope)
        return await self.peers.session.terminate(request)

    async def report(self, scope: str, *, window_id: str = "", trail_id: str = "") -> audit_pb2.GetReportResponse:
        """Return a stored report when its session is the caller's.

        Refused with REPORT_NOT_FOUND, the same for a report that does not exist and for another caller's (A-10).
        """
        try:
            found = await self.peers.audit.get_report(window_id=window_id, trail_id=trail_id)
            await self.peers.session.get(session_pb2.GetSessionRequest(session_id=found.session_id, scope=scope))
        except Refused as refused:
            if refused.kind in {Kind.NOT_FOUND, Kind.UNAUTHENTICATED, Kind.FORBIDDEN}:
                raise not_found("REPORT_NOT_FOUND", "there is no such report for this caller") from None
            raise
        return found


def _require_caller(budget: session_pb2.CallerBudget | None, reply: ResponseHeaders) -> None:
    """Refuse a caller whose budget is spent for its period. One of whom the store knows nothing has spent nothing that it knows of."""
    if budget is None or budget.left_micros > OPEN_AT:
        return
    spent = refusal("CALLER_BUDGET_DEPLETED", budget.left_micros, budget.period)
    spent.metadata |= {"caller_id": budget.caller_id, "ends_at": str(budget.ends_at)}
    tell_caller_halt(spent, reply)
    raise spent


def _require_going(session: session_pb2.Session, reply: ResponseHeaders) -> None:
    """Refuse a session that has ended or has nothing left, and one below such a session."""
    reply.set({"CRP-Safety-Retry-After": "new-session-required"})
    above = session.ancestor_halt
    if above.reason:
        raise refusal(above.reason, above.session_id, above.safety_budget_micros)
    if session.safety_budget_micros <= OPEN_AT:
        raise refusal("BUDGET_DEPLETED", session.safety_budget_micros)
    if session.status == session_pb2.SESSION_STATUS_TERMINATED:
        raise refusal("SESSION_TERMINATED")
    reply.set({"CRP-Safety-Retry-After": None})
