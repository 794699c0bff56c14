"""The headers of a refused opening: whether a new session helps, and what became of this one."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import structlog

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import Peers
from interlock.sidecar.call.verdict import CALLER_HALT, seconds_until
from interlock.sidecar.settlement.effects import SettlementEffects
from interlock.sidecar.trail import response_headers
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()


def tell_caller_halt(refused: Refused, reply: ResponseHeaders) -> bool:
    """Tell whether a call is refused because its caller has spent its budget, and say until when (ATT-2)."""
    if refused.reason != CALLER_HALT:
        return False
    refused.metadata["halt_reason"] = CALLER_HALT
    reply.set({"CRP-Safety-Retry-After": seconds_until(int(refused.metadata["ends_at"]))})
    return True


def _least(refused: Refused, stored: int) -> str:
    """Return the budget that a halt is about: what the signed token says holds against a store that says more (A-02)."""
    told = refused.metadata.get("safety_budget") if refused.reason == "BUDGET_DEPLETED" else None
    shown = as_decimal(Micros(stored))
    return shown if told is None else min(told, shown, key=Decimal)


@dataclass(frozen=True)
class Explanation:
    """Adds to the response headers of a refused opening."""

    peers: Peers
    effects: SettlementEffects
    base_url: str

    async def add(self, refused: Refused, scope: str, token: str, reply: ResponseHeaders) -> None:
        """Set the headers that help the caller. After a halt they name the session, its budget and its last window."""
        if refused.kind is Kind.UNAUTHENTICATED:
            # SPEC-004 §16.2: retry at once, with a new session.
            reply.set({"CRP-Safety-Retry-After": "0"})
        if refused.kind is not Kind.HALTED:
            return
        if not tell_caller_halt(refused, reply):
            reply.set({"CRP-Safety-Retry-After": "new-session-required"})
        request = session_pb2.GetSessionRequest(token=token, scope=scope)
        if not token:
            request.session_id = refused.metadata.get("session_id", "")
            request.root_session_id = refused.metadata.get("root_session_id", "")
        try:
            session = await self.peers.session.get(request)
            reply.session_id = session.session_id
            reply.set(
                {
                    "CRP-Context-Session-Id": session.session_id,
                    "CRP-Agent-Safety-Budget": _least(refused, session.safety_budget_micros),
                }
            )
            deadline = Deadline(self.peers.session.timeout_s)
            await self.effects.replay(session.session_id, session.untold_window_ids, deadline)
            if session.windows:
                await self._name_last(session.windows[-1], reply)
        except Refused as without:
            # The halt stands without its details.
            log.warning("halt.unexplained", session_id=reply.session_id, reason=without.reason)

    async def _name_last(self, last: session_pb2.Window, reply: ResponseHeaders) -> None:
        """Point to the record of the window that spent the budget: a 451 names a risk and a trail (SPEC-002 §13.1)."""
        sealed = await self.peers.audit.get_window(last.session_id, last.window_id)
        reply.window_id, reply.trail_uri = last.window_id, response_headers.trail_uri(self.base_url, sealed.trail_id)
        reply.set(
            {
                "CRP-Safety-Hallucination-Risk": response_headers.word(common_pb2.RiskLevel, last.risk_level),
                "CRP-Compliance-Audit-Trail-Id": sealed.trail_id,
                "CRP-Compliance-Audit-Trail-URI": reply.trail_uri,
            }
        )
