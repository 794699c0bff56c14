"""Admitting a call: who it belongs to, under which policy, with what budget (design.md, One dispatch, 1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.binding.rank import Rank
from interlock.domain.breaker import FORCED_STRATEGY, BreakerState, breaker_state
from interlock.domain.budget import OPEN_AT, Micros
from interlock.domain.errors import Refused, forbidden, invalid, unauthenticated, unavailable
from interlock.domain.headers.awareness import aware
from interlock.domain.headers.headers import APPROVAL, FAN_IN, FAN_OUT, RequestHeaders
from interlock.domain.session.session_refusals import LEFT_OPEN, RECOVERABLE
from interlock.runtime import failpoints
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.errors import unwrap
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission import bindings
from interlock.sidecar.admission.agents import CallerAgents, allowed_by, check_strategy, check_type
from interlock.sidecar.admission.bindings import Beginning, Bindings, Bound
from interlock.sidecar.admission.delegation import Delegations, may_begin_below
from interlock.sidecar.admission.explanation import Explanation
from interlock.sidecar.admission.policies import Policies, check_layers, stricter
from interlock.sidecar.admission.start_session import (
    Origin,
    SessionStarter,
    check_depth,
    check_residency,
    nothing_to_spend,
)
from interlock.sidecar.call.binding import UNBOUND, CallBinding
from interlock.sidecar.settlement.effects import SettlementEffects
from interlock.sidecar.settlement.leases import Leases
from interlock.sidecar.trail import response_headers
from interlock.sidecar.trail.response_headers import ResponseHeaders

PUSH = "push"

PATTERNS = {FAN_OUT: "FAN_OUT", FAN_IN: "FAN_IN"}
"""Strategies that say how a window hangs in the DAG (SPEC-004 §6, §7)."""


@dataclass(frozen=True)
class Admitted:
    """The lease of a window, and everything that its decision rests on."""

    opened: session_pb2.OpenedWindow
    policy: policy_pb2.ResolveResponse
    budget: Micros
    """The lowest of the ledger's, the token's, and a ceiling that the caller set itself (§12.4)."""
    allowed: frozenset[str] | None = None
    """Strategies that the agent may use; ``None``: all."""
    safety_mode: str = ""
    """The stricter of the call's own mode and its session's, which a child has from its parent."""
    strategy: str = PUSH
    """The strategy that was asked for and is allowed; what the breaker forces is not in it."""
    observed: bool = False
    """Whether the answer is delivered in any case: its caller knows nothing of CRP, and such callers are only watched."""
    bound: Bound = bindings.BY_TOKEN
    """What bound the call to its session."""

    @property
    def breaker(self) -> BreakerState:
        """Breaker before this window, never milder than the ledger's."""
        return max(breaker_state(self.budget), BreakerState(self.opened.breaker or BreakerState.OPEN))


@dataclass(frozen=True)
class Admission:
    """Opens the window of a call, and its session where there is none yet. It does nothing else."""

    settings: Settings
    peers: Peers
    agents: CallerAgents
    policies: Policies
    starter: SessionStarter
    delegations: Delegations
    effects: SettlementEffects
    leases: Leases
    explanation: Explanation
    bindings: Bindings

    async def admit(
        self,
        caller: Caller,
        asked: RequestHeaders,
        reply: ResponseHeaders,
        deadline: Deadline,
        binding: CallBinding = UNBOUND,
    ) -> Admitted:
        """Return the lease of the call's window. A call without a token goes on in the session that *binding* speaks for, or
        starts one, its own or a sub-agent's.

        What a call may not have is refused before anything is begun for it. What only its lease tells gives the lease back.
        """
        _check_fields(asked)
        agent = await self.agents.of(caller, deadline)
        reply.agent_type = agent.agent_type
        _strategy(asked, allowed_by(agent, session_pb2.AgentTerms()))
        check_residency(asked.data_residency, self.settings.data_region)
        reply.set({"CRP-Compliance-Data-Residency": self.settings.data_region or None})
        grant = await self._grant(caller, agent, asked, reply, deadline)
        beginning = Beginning()
        if grant is None:
            request = self._opening(asked, asked.session_token or "", caller.scope)
            opened, policy = await self._resume(request, agent, asked, reply, deadline)
        elif grant or asked.session_token or asked.session_parent:
            opened, policy = await self._begin(Origin(caller, agent, grant), asked, reply, deadline)
        else:
            opened, policy, beginning = await self._root(Origin(caller, agent), asked, binding, reply, deadline)
        try:
            bound = bindings.bound_by(opened, binding, token=grant is None or bool(grant), beginning=beginning)
            reply.told_binding(bound.rank.word)
            return replace(self._admitted(asked, agent, opened, policy, reply), bound=bound)
        except BaseException:
            await self.leases.give_back(opened)
            raise

    async def _grant(
        self, caller: Caller, agent: policy_pb2.Agent, asked: RequestHeaders, reply: ResponseHeaders, deadline: Deadline
    ) -> str | None:
        """Return the grant that a new session begins under, empty for a root; ``None`` for a call of its token's session."""
        if asked.session_token is None:
            return asked.grant or ""
        return await self.delegations.below(caller, agent, asked, reply, deadline) or None

    async def _root(
        self, origin: Origin, asked: RequestHeaders, binding: CallBinding, reply: ResponseHeaders, deadline: Deadline
    ) -> tuple[session_pb2.OpenedWindow, policy_pb2.ResolveResponse, Beginning]:
        """Open a window of the session that the evidence speaks for; where it speaks for none, begin one under its names.

        Another call may begin one under the same name at the same time: then both belong to it.
        """
        scope, beginning = origin.caller.scope, Beginning()
        await self.bindings.require_own(binding, scope, deadline)
        for left in reversed(range(bindings.TRIES)):
            if binding.speaks:
                try:
                    return *await self._bound(origin, asked, binding, reply, deadline), beginning
                except Refused as refused:
                    if refused.reason in bindings.ASK_AGAIN and left:
                        continue
                    beginning = await self.bindings.beginning(refused, asked, scope, deadline)
            self.bindings.check_may_begin(binding, beginning)
            # In the last try without names: whoever holds them cannot be gone on with, so this call gets a session of its own.
            names = tuple(binding.names(without={Rank.COOKIE, Rank.RESPONSE})) if left else ()
            named = replace(origin, names=names, continues=beginning.earlier)
            try:
                return *await self._begin(named, asked, reply, deadline), beginning
            except Refused as refused:
                if refused.reason != bindings.TAKEN or not left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _bound(
        self, origin: Origin, asked: RequestHeaders, binding: CallBinding, reply: ResponseHeaders, deadline: Deadline
    ) -> tuple[session_pb2.OpenedWindow, policy_pb2.ResolveResponse]:
        """Open the window that the evidence names."""
        request = self._opening(asked, "", origin.caller.scope)
        request.evidence.CopyFrom(binding.evidence())
        try:
            opened, policy = await self._resume(request, origin.agent, asked, reply, deadline)
        except Refused as refused:
            reply.cookie = binding.cookie_for(refused.metadata.get("session_id", ""))
            raise
        if binding.said.session_id not in {"", opened.session_id}:
            await self.leases.give_back(opened)
            raise bindings.foreign()
        return opened, policy

    async def _begin(
        self, origin: Origin, asked: RequestHeaders, reply: ResponseHeaders, deadline: Deadline
    ) -> tuple[session_pb2.OpenedWindow, policy_pb2.ResolveResponse]:
        """Begin a session together with its first window."""
        await failpoints.reached("sidecar.before_open")
        scope = origin.caller.scope
        opening = self._opening(asked, "", scope)
        started, policy = await self.starter.begin(replace(origin, first_window=opening), asked, reply, deadline)
        first = started.first_window
        if not first.HasField("window") and first.refusal.reason in {"", *RECOVERABLE}:
            # An older session service opens no window here, and a store that changed meanwhile is rebuilt by another try.
            return await self._open(self._opening(asked, started.token, scope), asked, reply, deadline), policy
        async with self._explained(started.token, scope, asked, reply, deadline):
            opened = unwrap(first).window
        await self._note_opened(opened, reply)
        return opened, policy

    async def _resume(
        self,
        request: session_pb2.OpenWindowRequest,
        agent: policy_pb2.Agent,
        asked: RequestHeaders,
        reply: ResponseHeaders,
        deadline: Deadline,
    ) -> tuple[session_pb2.OpenedWindow, policy_pb2.ResolveResponse]:
        """Open the next window, bring the session up to date and tighten its policy; a refusal gives the lease back."""
        opened = await self._open(request, asked, reply, deadline)
        try:
            await self.effects.replay(opened.session_id, opened.untold_window_ids, deadline)
            await self.effects.settle_left_open(opened, reply, deadline)
            if opened.ancestor_session_ids:
                check_layers(asked, mode=opened.safety_mode, policy_text=opened.policy_text)
            return opened, await self.policies.resolve(asked, opened.policy_text, agent, reply, deadline)
        except BaseException:
            await self.leases.give_back(opened)
            raise

    def _opening(self, asked: RequestHeaders, token: str, scope: str) -> session_pb2.OpenWindowRequest:
        """Ask for the lease of the call's window; no lease outlives the call that took it by more than one step."""
        fan_in = asked.strategy == FAN_IN
        return session_pb2.OpenWindowRequest(
            token=token,
            scope=scope,
            continuation_id="" if fan_in else asked.continuation_id or "",
            continuation_ids=asked.continuation_ids if fan_in else (),
            pattern=PATTERNS.get(asked.strategy or "", "BRANCH" if asked.branch else ""),
            partial=fan_in and asked.fan_in_policy == "partial",
            nonce=asked.nonce or "",
            lease_ms=int((self.settings.request_timeout_s + self.settings.rpc_timeout_s) * 1000),
        )

    async def _open(
        self, request: session_pb2.OpenWindowRequest, asked: RequestHeaders, reply: ResponseHeaders, deadline: Deadline
    ) -> session_pb2.OpenedWindow:
        await failpoints.reached("sidecar.before_open")
        async with self._explained(request.token, request.scope, asked, reply, deadline):
            opened = await self.peers.session.open_window(request, deadline)
        await self._note_opened(opened, reply)
        return opened

    @asynccontextmanager
    async def _explained(
        self, token: str, scope: str, asked: RequestHeaders, reply: ResponseHeaders, deadline: Deadline
    ) -> AsyncIterator[None]:
        """Tell a caller whose window is refused what became of its session."""
        try:
            yield
        except Refused as refused:
            if refused.reason == "CONTINUATION_NOT_FOUND":
                refused.metadata["continuation_id"] = ", ".join(asked.continuation_ids)
            if refused.reason == "WINDOW_SETTLED_LATE":
                await self.effects.settle_late(refused, reply, deadline)
            if left := refused.metadata.pop(LEFT_OPEN, ""):
                await self.effects.settle_crowding(refused, left, reply, deadline)
            await self.explanation.add(refused, scope, token, reply)
            raise

    async def _note_opened(self, opened: session_pb2.OpenedWindow, reply: ResponseHeaders) -> None:
        reply.session_id, reply.window_id = opened.session_id, opened.window_id
        reply.set(response_headers.of_opened(opened))
        await failpoints.reached("sidecar.after_open")

    def _admitted(
        self,
        asked: RequestHeaders,
        agent: policy_pb2.Agent,
        opened: session_pb2.OpenedWindow,
        policy: policy_pb2.ResolveResponse,
        reply: ResponseHeaders,
    ) -> Admitted:
        """Check a lease against what its session is bound to."""
        check_type(agent, opened.agent)
        _check_place(asked, opened)
        check_residency(opened.data_residency, self.settings.data_region)
        allowed = allowed_by(agent, opened.agent)
        mode = stricter(asked.safety_mode or "", opened.safety_mode)
        budget, strategy = _effective(opened, asked), _strategy(asked, allowed)
        observed = self.settings.unaware_callers == "observe" and not _protected(asked, opened, policy)
        admitted = Admitted(opened, policy, budget, allowed, mode, strategy, observed)
        if observed:
            return admitted
        self._check_quality(opened)
        if admitted.budget <= OPEN_AT:
            raise nothing_to_spend(reply)
        if admitted.breaker is not BreakerState.CLOSED or mode == "strict":
            check_strategy(FORCED_STRATEGY, allowed, forced=True)
        return admitted

    def _check_quality(self, opened: session_pb2.OpenedWindow) -> None:
        """Refuse to continue after two windows of tier D, where the deployment wants that (SPEC-004 §13.2)."""
        if deficient(self.settings, opened):
            raise unavailable(
                "PERSISTENT_DEFICIENCY",
                "the last two windows of this session were of quality tier D; start a new session",
                retry_after_ms=0,
            )


def deficient(settings: Settings, opened: session_pb2.OpenedWindow) -> bool:
    """Tell whether a session's quality fell so far that this deployment refuses to go on (SPEC-004 §13.2)."""
    return settings.refuse_persistent_deficiency and opened.degradation == session_pb2.DEGRADATION_PERSISTENT


def _check_fields(asked: RequestHeaders) -> None:
    """Refuse headers that need others."""
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


def _protected(asked: RequestHeaders, opened: session_pb2.OpenedWindow, policy: policy_pb2.ResolveResponse) -> bool:
    """Tell whether a caller asked for protection, with this call or with an earlier one of the session, or an orchestrator did."""
    return aware(asked) or opened.aware or bool(opened.ancestor_session_ids) or policy.asked_for


def _effective(opened: session_pb2.OpenedWindow, asked: RequestHeaders) -> Micros:
    vouched = [opened.safety_budget_micros, opened.session_budget_micros]
    return Micros(min([*vouched, *([] if asked.ceiling is None else [asked.ceiling])]))
