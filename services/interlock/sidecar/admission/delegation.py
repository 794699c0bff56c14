"""Delegation: the grant with which one sub-agent starts one child session (SPEC-012 §5.1, §7.2, §10.2; AGT-2, BRK-2)."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, TypeVar

from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros
from interlock.domain.errors import Kind, Refused, invalid
from interlock.domain.headers import propagation as crossing
from interlock.domain.headers.headers import APPROVAL, RequestHeaders
from interlock.domain.headers.propagation import Direction
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import Peers
from interlock.sidecar.admission.agents import check_type
from interlock.sidecar.settlement.recovery import Recovery
from interlock.sidecar.trail import response_headers, tree_events
from interlock.sidecar.trail.response_headers import ResponseHeaders

_RETRY = {Kind.UNAUTHENTICATED: "0", Kind.HALTED: "new-session-required"}
"""When it helps to try again: at once with a new session (SPEC-004 §16.2), or with none of this budget (BRK-3)."""

A = TypeVar("A", bound=Any)

DELEGATE = "delegate"
"""What an approval must be for (SPEC-012 §6.2)."""


@dataclass(frozen=True)
class Delegations:
    """Mints grants; each is on record in the parent's trail before it is handed out."""

    peers: Peers
    recovery: Recovery

    async def mint(
        self,
        caller: Caller,
        token: str,
        asked: RequestHeaders,
        *,
        agent: policy_pb2.Agent,
        agent_type: str,
        reply: ResponseHeaders,
        deadline: Deadline,
        lifetime_s: int = 0,
        ceiling: Micros | None = None,
    ) -> session_pb2.DelegateResponse:
        """Return a grant under the session of *token*, whose caller is of type *agent*, for an agent of *agent_type*.

        Refused as the child would be. Under a half-open breaker an approval by a registered reviewer is needed, and verified.
        """
        session = await self._session(token, caller, reply, deadline)
        check_type(agent, session.agent)
        approval = await self._approval(session, asked, agent_type, deadline)
        request = session_pb2.DelegateRequest(
            token=token,
            scope=caller.scope,
            agent_type=agent_type,
            lifetime_s=lifetime_s,
            approval_id=approval.approval_id,
            ceiling_micros=ceiling,
        )
        granted = await _with_advice(reply, self.peers.session.delegate(request, deadline))
        parent = granted.delegation.parent_session_id
        reply.session_id = parent
        reply.set(response_headers.of_delegation(granted.delegation))
        await self.peers.audit.record(parent, "", [tree_events.granted(granted.delegation, approval)], deadline)
        return granted

    async def below(
        self, caller: Caller, agent: policy_pb2.Agent, asked: RequestHeaders, reply: ResponseHeaders, deadline: Deadline
    ) -> str:
        """Return a grant for the caller itself when its call names the session of its own token as the parent.

        A sub-agent with its orchestrator's key starts this way. Empty for a call that continues its token's session.
        """
        if not may_begin_below(asked):
            return ""
        token = asked.session_token or ""
        if (await self._session(token, caller, reply, deadline)).session_id != asked.session_parent:
            if asked.oversight_token is not None:
                message = f"{APPROVAL} approves a delegation; this call is none"
                raise invalid("HEADER_NOT_SUPPORTED", message, header=APPROVAL)
            return ""
        kind = agent.agent_type
        return (
            await self.mint(caller, token, asked, agent=agent, agent_type=kind, reply=reply, deadline=deadline)
        ).grant

    async def _approval(
        self, session: session_pb2.Session, asked: RequestHeaders, agent_type: str, deadline: Deadline
    ) -> policy_pb2.VerifyApprovalResponse:
        """Return whose approval the call presents; an empty answer when it presents none."""
        if asked.oversight_token is None:
            return policy_pb2.VerifyApprovalResponse()
        request = policy_pb2.VerifyApprovalRequest(
            token=asked.oversight_token, action=DELEGATE, session_id=session.session_id, agent_type=agent_type
        )
        return await self.peers.policy.verify_approval(request, deadline)

    async def _session(
        self, token: str, caller: Caller, reply: ResponseHeaders, deadline: Deadline
    ) -> session_pb2.Session:
        """Return the session that delegates, verified against its chain: a child's budget comes from it."""
        request = session_pb2.GetSessionRequest(token=token, scope=caller.scope)

        async def look() -> session_pb2.Session:
            return await _with_advice(reply, self.peers.session.get(request, deadline))

        return await self.recovery.verified_against_chain(await look(), look, deadline)


async def _with_advice(reply: ResponseHeaders, call: Awaitable[A]) -> A:
    """Return what the session service answers; a refusal sets when it helps to try again."""
    try:
        return await call
    except Refused as refused:
        reply.set({"CRP-Safety-Retry-After": _RETRY.get(refused.kind)})
        raise


def may_begin_below(asked: RequestHeaders) -> bool:
    """Tell whether a call may start a child of its token's session: it names a parent, and no window to continue."""
    demanded = asked.strategy if not asked.preferred else None
    continues = asked.continuation_ids or asked.branch or demanded
    return asked.session_token is not None and asked.session_parent is not None and not continues


def headers_of(granted: session_pb2.DelegateResponse) -> dict[str, str]:
    """Return the headers that the sub-agent's first call must carry (SPEC-012 §3.1)."""
    given = granted.delegation
    fields = crossing.delegated(
        parent=given.parent_session_id, grant=granted.grant, loop_depth=given.loop_depth,
        budget=Micros(given.safety_budget_micros), policy=given.policy_text, mode=given.safety_mode,
        residency=given.data_residency,
    )  # fmt: skip
    return dict(crossing.to_http(fields, Direction.DOWNSTREAM))
