"""Admitting a call: who it belongs to, under which policy, with what budget (design.md, One dispatch, 1)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import structlog

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.breaker import FORCED_STRATEGY, BreakerState, breaker_state
from interlock.domain.budget import OPEN_AT, Micros, as_decimal
from interlock.domain.errors import Kind, Refused, forbidden, invalid, unauthenticated, unavailable
from interlock.domain.headers.headers import APPROVAL, FAN_IN, FAN_OUT, RequestHeaders
from interlock.runtime import failpoints
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission.agents import CallerAgents, allowed_by, check_strategy, check_type
from interlock.sidecar.admission.delegation import Delegations, may_begin_below
from interlock.sidecar.admission.policies import Policies, check_layers, stricter
from interlock.sidecar.admission.start_session import (
    Origin,
    SessionStarter,
    check_depth,
    check_residency,
    nothing_to_spend,
)
from interlock.sidecar.call.deadline import Deadline, retry_idempotent
from interlock.sidecar.call.identity import Caller
from interlock.sidecar.settlement.effects import SettlementEffects
from interlock.sidecar.settlement.recovery import Recovery
from interlock.sidecar.trail import response_headers
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

PUSH = "push"

PATTERNS = {FAN_OUT: "FAN_OUT", FAN_IN: "FAN_IN"}
"""Strategies that say how a window hangs in the DAG (SPEC-004 §6, §7)."""


@dataclass(frozen=True)
class Admitted:
    """The lease of a window, and everything that its decision rests on."""

    opened: session_pb2.OpenedWindow
    policy: policy_pb2.ResolveResponse
    budget: Micros
    """The lowest that anyone vouches for: the ledger, the token, or a ceiling that the caller set itself (§12.4)."""
    allowed: frozenset[str] | None = None
    """Strategies that the agent may use; ``None``: all."""
    safety_mode: str = ""
    """The stricter of the call's own mode and its session's, which a child has from its parent."""
    strategy: str = PUSH
    """The strategy that was asked for and is allowed; what the breaker forces is not in it."""

    @property
    def breaker(self) -> BreakerState:
        """Breaker before this window, never milder than the ledger's."""
        return max(breaker_state(self.budget), BreakerState(self.opened.breaker or BreakerState.OPEN))


class Admission:
    """Opens windows, and sessions where there is none yet."""

    def __init__(self, settings: Settings, mesh: Mesh, base_url: str) -> None:
        self._settings, self._mesh = settings, mesh
        self._timeout_s, self._base_url = settings.rpc_timeout_s, base_url
        # No lease outlives the call that took it by more than one step.
        self._lease_ms = int((settings.request_timeout_s + settings.rpc_timeout_s) * 1000)
        self._agents, self._policies = CallerAgents(settings, mesh), Policies(mesh, settings.rpc_timeout_s)
        self.aftermath, self.recovering = SettlementEffects(settings, mesh), Recovery.over(settings, mesh)
        self._starting = SessionStarter(settings, mesh, self._policies, self.record, self.recovering)
        self.delegations = Delegations(settings, mesh, self.record, self.recovering)

    async def admit(
        self, caller: Caller, asked: RequestHeaders, known: ResponseHeaders, deadline: Deadline
    ) -> Admitted:
        """Return the lease of the call's window; a call without a token starts a session, its own or a sub-agent's.

        What a call may not have is refused before anything is begun for it, and what only its lease tells gives that back.
        """
        _check_fields(asked)
        agent = await self._agents.of(caller, deadline)
        _strategy(asked, allowed_by(agent, session_pb2.AgentTerms()))
        check_residency(asked.data_residency, self._settings.data_region)
        known.learn({"CRP-Compliance-Data-Residency": self._settings.data_region or None})
        begun = await self._begun(caller, agent, asked, known, deadline)
        if begun is None:
            opened, policy = await self._resumed(caller, agent, asked, known, deadline)
        else:
            policy = begun[1]
            opened = await self._open(caller.scope, asked, begun[0].token, known, deadline)
        try:
            return self._admitted(asked, agent, opened, policy, known)
        except BaseException:
            await self.give_back(opened)
            raise

    async def start(
        self,
        caller: Caller,
        asked: RequestHeaders,
        known: ResponseHeaders,
        deadline: Deadline,
        *,
        parent_token: str = "",
    ) -> session_pb2.StartSessionResponse:
        """Start a session without a call: a root, or a sub-agent's by its grant or by the token of its parent."""
        agent = await self._agents.of(caller, deadline)
        known.learn({"CRP-Compliance-Data-Residency": self._settings.data_region or None})
        grant = asked.grant or ""
        if parent_token:
            kind = agent.agent_type
            minted = await self.delegations.mint(
                caller, parent_token, asked, agent=agent, agent_type=kind, known=known, deadline=deadline
            )
            grant = minted.grant
        return (await self._starting.begin(Origin(caller, agent, grant), asked, known, deadline))[0]

    async def delegate(
        self,
        caller: Caller,
        asked: RequestHeaders,
        agent_type: str,
        known: ResponseHeaders,
        deadline: Deadline,
        *,
        lifetime_s: int,
    ) -> session_pb2.DelegateResponse:
        """Mint a grant for an agent of another type."""
        agent = await self._agents.of(caller, deadline)
        return await self.delegations.mint(
            caller, asked.session_token or "", asked, agent=agent, agent_type=agent_type, known=known,
            deadline=deadline, lifetime_s=lifetime_s, ceiling=asked.ceiling,
        )  # fmt: skip

    async def _begun(
        self, caller: Caller, agent: policy_pb2.Agent, asked: RequestHeaders, known: ResponseHeaders, deadline: Deadline
    ) -> tuple[session_pb2.StartSessionResponse, policy_pb2.ResolveResponse] | None:
        """Begin the session of a call that has none; ``None`` when it goes on in the session of its token."""
        grant = asked.grant or ""
        if asked.session_token is not None:
            grant = await self.delegations.below(caller, agent, asked, known, deadline)
            if not grant:
                return None
        return await self._starting.begin(Origin(caller, agent, grant), asked, known, deadline)

    async def _resumed(
        self, caller: Caller, agent: policy_pb2.Agent, asked: RequestHeaders, known: ResponseHeaders, deadline: Deadline
    ) -> tuple[session_pb2.OpenedWindow, policy_pb2.ResolveResponse]:
        """Open the next window, bring the session up to date and tighten its policy; a refusal gives the lease back."""
        opened = await self._open(caller.scope, asked, asked.session_token or "", known, deadline)
        try:
            await self.aftermath.tell_again(opened.session_id, opened.untold_window_ids, deadline)
            await self.aftermath.unsettled(opened, known, deadline)
            if opened.ancestor_session_ids:
                check_layers(asked, mode=opened.safety_mode, policy_text=opened.policy_text)
            return opened, await self._policies.resolve(asked, opened.policy_text, agent, known, deadline)
        except BaseException:
            await self.give_back(opened)
            raise

    def _admitted(
        self,
        asked: RequestHeaders,
        agent: policy_pb2.Agent,
        opened: session_pb2.OpenedWindow,
        policy: policy_pb2.ResolveResponse,
        known: ResponseHeaders,
    ) -> Admitted:
        """Hold a lease against what its session is bound to."""
        check_type(agent, opened.agent)
        _check_place(asked, opened)
        check_residency(opened.data_residency, self._settings.data_region)
        self._check_quality(opened)
        allowed = allowed_by(agent, opened.agent)
        mode = stricter(asked.safety_mode or "", opened.safety_mode)
        admitted = Admitted(opened, policy, _effective(opened, asked), allowed, mode, _strategy(asked, allowed))
        if admitted.budget <= OPEN_AT:
            raise nothing_to_spend(known)
        if admitted.breaker is not BreakerState.CLOSED or mode == "strict":
            check_strategy(FORCED_STRATEGY, allowed, forced=True)
        return admitted

    def _check_quality(self, opened: session_pb2.OpenedWindow) -> None:
        """Refuse to go on from two windows of tier D, where the deployment wants that (SPEC-004 §13.2)."""
        deficient = opened.degradation == session_pb2.DEGRADATION_PERSISTENT
        if deficient and self._settings.refuse_persistent_deficiency:
            raise unavailable(
                "PERSISTENT_DEFICIENCY",
                "the last two windows of this session were of quality tier D; start a new session",
                retry_after_ms=0,
            )

    async def record(
        self, session_id: str, window_id: str, noted: list[audit_pb2.NewEvent], deadline: Deadline
    ) -> None:
        """Append events that belong to no seal; they are durable when this returns."""
        request = audit_pb2.RecordRequest(session_id=session_id, window_id=window_id, events=noted)
        await retry_idempotent(
            lambda: call_service("audit", self._mesh.audit.Record(request, timeout=deadline.within(self._timeout_s)))
        )

    async def give_back(self, opened: session_pb2.OpenedWindow) -> None:
        """Return a lease whose window was never sealed. If that fails, the lease runs out by itself."""
        request = session_pb2.AbandonWindowRequest(
            session_id=opened.session_id, root_session_id=opened.root_session_id, window_id=opened.window_id
        )
        try:
            await call_service("session", self._mesh.session.AbandonWindow(request, timeout=self._timeout_s))
        except Refused as refused:
            log.warning(
                "window.lease_kept", session_id=opened.session_id, window_id=opened.window_id, reason=refused.reason
            )

    async def forget(self, session_id: str, window_id: str) -> None:
        """Delete what a window said that was kept back after it was sealed: no later window can repeat it."""
        try:
            await self._drop_content(session_id, window_id, Deadline(self._timeout_s))
        except Refused as refused:
            log.warning("audit.content_kept", session_id=session_id, window_id=window_id, reason=refused.reason)

    async def _drop_content(self, session_id: str, window_id: str, deadline: Deadline) -> None:
        request = audit_pb2.DropContentRequest(session_id=session_id, window_id=window_id)
        await retry_idempotent(
            lambda: call_service(
                "audit", self._mesh.audit.DropContent(request, timeout=deadline.within(self._timeout_s))
            )
        )

    async def _open(
        self, scope: str, asked: RequestHeaders, token: str, known: ResponseHeaders, deadline: Deadline
    ) -> session_pb2.OpenedWindow:
        request = session_pb2.OpenWindowRequest(
            token=token,
            scope=scope,
            continuation_id="" if asked.strategy == FAN_IN else asked.continuation_id or "",
            continuation_ids=asked.continuation_ids if asked.strategy == FAN_IN else (),
            pattern=PATTERNS.get(asked.strategy or "", "BRANCH" if asked.branch else ""),
            partial=asked.strategy == FAN_IN and asked.fan_in_policy == "partial",
            nonce=asked.nonce or "",
            lease_ms=self._lease_ms,
        )
        await failpoints.reached("sidecar.before_open")
        timeout = deadline.within(self._timeout_s)
        try:
            opened = (await call_service("session", self._mesh.session.OpenWindow(request, timeout=timeout))).window
        except Refused as refused:
            if refused.reason == "CONTINUATION_NOT_FOUND":
                refused.metadata["continuation_id"] = ", ".join(asked.continuation_ids)
            if refused.reason == "WINDOW_SETTLED_LATE":
                await self.aftermath.late(refused, known, deadline)
            await self._explain(refused, scope, token, known)
            raise
        known.session_id, known.window_id = opened.session_id, opened.window_id
        known.learn(response_headers.of_opened(opened))
        await failpoints.reached("sidecar.after_open")
        return opened

    async def _explain(self, refused: Refused, scope: str, token: str, known: ResponseHeaders) -> None:
        """Add what a caller needs to go on: that a new session helps, and, after a halt, what became of this one."""
        if refused.kind is Kind.UNAUTHENTICATED:
            # SPEC-004 §16.2: retry at once, with a new session.
            known.learn({"CRP-Safety-Retry-After": "0"})
        if refused.kind is not Kind.HALTED:
            return
        known.learn({"CRP-Safety-Retry-After": "new-session-required"})
        request = session_pb2.GetSessionRequest(token=token, scope=scope)
        try:
            session = (
                await call_service("session", self._mesh.session.GetSession(request, timeout=self._timeout_s))
            ).session
            known.session_id = session.session_id
            known.learn(
                {
                    "CRP-Context-Session-Id": session.session_id,
                    "CRP-Agent-Safety-Budget": as_decimal(Micros(session.safety_budget_micros)),
                }
            )
            await self.aftermath.tell_again(session.session_id, session.untold_window_ids, Deadline(self._timeout_s))
            if session.windows:
                await self._explain_by(session.windows[-1], known)
        except Refused as without:
            # The halt stands without its details.
            log.warning("halt.unexplained", session_id=known.session_id, reason=without.reason)

    async def _explain_by(self, last: session_pb2.Window, known: ResponseHeaders) -> None:
        """Point to the record of the window that spent the budget: a 451 names a risk and a trail (SPEC-002 §13.1)."""
        request = audit_pb2.GetWindowRequest(session_id=last.session_id, window_id=last.window_id)
        sealed = await call_service("audit", self._mesh.audit.GetWindow(request, timeout=self._timeout_s))
        known.window_id, known.trail_uri = last.window_id, response_headers.trail_uri(self._base_url, sealed.trail_id)
        known.learn(
            {
                "CRP-Safety-Hallucination-Risk": response_headers.word(common_pb2.RiskLevel, last.risk_level),
                "CRP-Compliance-Audit-Trail-Id": sealed.trail_id,
                "CRP-Compliance-Audit-Trail-URI": known.trail_uri,
            }
        )


def _check_fields(asked: RequestHeaders) -> None:
    """Refuse headers that only mean something beside others."""
    if asked.session_token is None:
        _check_first(asked)
    elif asked.grant is not None:
        raise invalid(
            "DELEGATION_GRANT_UNEXPECTED", "a grant starts a session; this call has the token of one already",
            header="crp-agent-delegation-grant",
        )  # fmt: skip
    if asked.oversight_token is not None and not may_begin_below(asked):
        message = f"{APPROVAL} approves a delegation; this call is none"
        raise invalid("HEADER_NOT_SUPPORTED", message, header=APPROVAL)


def _check_first(asked: RequestHeaders) -> None:
    if asked.continuation_ids or asked.branch or asked.strategy in PATTERNS:
        raise unauthenticated("SESSION_TOKEN_REQUIRED", "a continuation needs the token of its session")
    if asked.nonce is not None:
        raise invalid("NONCE_MISMATCH", "a nonce is bound to a session; there is none without its token")


def _check_place(asked: RequestHeaders, opened: session_pb2.OpenedWindow) -> None:
    """Refuse a parent or a depth that is not the session's; in a fan-out the session is its windows' parent (§14.3)."""
    depth, parent = opened.loop_depth, next(iter(opened.ancestor_session_ids), "")
    fanned = asked.strategy == FAN_OUT and asked.session_parent == opened.session_id
    if asked.session_parent is not None and asked.session_parent != parent and not fanned:
        raise forbidden(
            "SESSION_PARENT_MISMATCH", "CRP-Agent-Session-Parent is not the session that delegated to this one",
            header="crp-agent-session-parent", attempted=asked.session_parent,
        )  # fmt: skip
    check_depth(asked, depth, *([depth + 1] if fanned else []))


def _strategy(asked: RequestHeaders, allowed: Collection[str] | None) -> str:
    """Return the strategy of a call that its agent may use: what it demands, else what it prefers, else a plain one."""
    if asked.strategy and not asked.preferred:
        return check_strategy(asked.strategy, allowed)
    usable = (name for name in (*asked.preferred, PUSH, FORCED_STRATEGY) if allowed is None or name in allowed)
    return next(usable, None) or check_strategy(PUSH, allowed)


def _effective(opened: session_pb2.OpenedWindow, asked: RequestHeaders) -> Micros:
    vouched = [opened.safety_budget_micros, opened.session_budget_micros]
    return Micros(min([*vouched, *([] if asked.ceiling is None else [asked.ceiling])]))
