"""Which registered agent type a caller is, and what that lets it do (SPEC-012 §7; AGT-1, AGT-2)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import forbidden
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import PolicyPeer
from interlock.runtime.settings.model import Settings

MOST_KEPT = 4096
"""Callers that are remembered; the one that was looked up longest ago goes first."""

NOBODY = policy_pb2.Agent()


@dataclass(frozen=True)
class _Known:
    until: float
    agent: policy_pb2.Agent
    """Without a name when the key is of no registered type."""
    admitted: bool
    """Whether it may make sessions."""


class CallerAgents:
    """Asks policy for the agent type of a service account or a key, by its digest, and keeps the answer for ``agent_cache_s``.

    A change of the registry holds everywhere after that time. Where policy cannot answer, the call is refused.
    """

    def __init__(self, settings: Settings, policy: PolicyPeer, now: Callable[[], float] = time.monotonic) -> None:
        self._policy, self._now, self._keep_s = policy, now, settings.agent_cache_s
        self._kept: OrderedDict[tuple[str, ...], _Known] = OrderedDict()

    async def of(self, caller: Caller, deadline: Deadline) -> policy_pb2.Agent:
        """Return the caller's agent type, without a name when it has none.

        Refused with AGENT_NOT_REGISTERED where only registered agents may make calls.
        """
        known = self._kept.get(caller.known_by)
        if known is None or known.until <= self._now():
            known = await self._asked(caller, deadline)
        if not known.admitted:
            raise forbidden("AGENT_NOT_REGISTERED", "this key or service account belongs to no registered agent type")
        return known.agent

    async def _asked(self, caller: Caller, deadline: Deadline) -> _Known:
        found = policy_pb2.IdentifyAgentResponse()
        for digest in caller.known_by:
            found = await self._policy.identify_agent(digest, deadline)
            if found.agent.agent_type:
                break
        registered = bool(found.agent.agent_type)
        known = _Known(
            until=self._now() + self._keep_s,
            agent=found.agent if registered else NOBODY,
            admitted=registered or found.unregistered_allowed,
        )
        self._kept.pop(caller.known_by, None)
        self._kept[caller.known_by] = known
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return known


def terms_of(agent: policy_pb2.Agent) -> session_pb2.AgentTerms:
    """Return what a session of this agent type is bound to for its life."""
    return session_pb2.AgentTerms(
        agent_type=agent.agent_type,
        max_loop_depth=agent.max_loop_depth if agent.HasField("max_loop_depth") else None,
        max_delegations=agent.max_delegations if agent.HasField("max_delegations") else None,
        allowed_strategies=agent.allowed_strategies,
    )


def check_type(agent: policy_pb2.Agent, terms: session_pb2.AgentTerms) -> None:
    """Refuse with AGENT_TYPE_MISMATCH when a session is no longer its caller's agent type's: it lost its registration."""
    if terms.agent_type and terms.agent_type != agent.agent_type:
        raise forbidden(
            "AGENT_TYPE_MISMATCH",
            "the session belongs to an agent type that this key is no longer registered for",
            agent_type=terms.agent_type,
        )


def allowed_by(agent: policy_pb2.Agent, terms: session_pb2.AgentTerms) -> frozenset[str] | None:
    """Return the strategies that both the registry and the session's terms allow; ``None``: all of them."""
    limits = [frozenset(names) for names in (agent.allowed_strategies, terms.allowed_strategies) if names]
    return frozenset.intersection(*limits) if limits else None


def check_strategy(strategy: str, allowed: Collection[str] | None, *, forced: bool = False) -> str:
    """Return *strategy* when it is allowed. Refused with STRATEGY_NOT_ALLOWED, a forced one too (SPEC-012 §7.2)."""
    if allowed is not None and strategy not in allowed:
        why = "which its circuit breaker or strict mode forces, " if forced else ""
        raise forbidden(
            "STRATEGY_NOT_ALLOWED",
            f"this agent may not use the strategy {strategy}, {why}but only {', '.join(sorted(allowed)) or 'none'}",
            name="allowed_strategies", limit=",".join(sorted(allowed)), attempted=strategy,
        )  # fmt: skip
    return strategy
