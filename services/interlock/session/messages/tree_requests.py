"""Requests about sessions of a tree as domain values: starting, delegating, naming results. Refused as in ``requests.py``."""

from __future__ import annotations

import re

from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import FULL, Micros
from interlock.domain.dag.dag import STRATEGIES
from interlock.domain.errors import invalid
from interlock.domain.ids import SessionId
from interlock.domain.session.grant import AGENT_TYPE, APPROVAL_ID
from interlock.domain.session.session_policy import limits_in
from interlock.domain.session.state import AgentTerms
from interlock.session.delegation import DelegationCommand
from interlock.session.messages.requests import (
    hash_of,
    one_of,
    policy_of,
    scope_of,
    session_of,
    strategy_of,
    token_of,
    within,
    wrong,
)
from interlock.session.terms import NewSession

LARGEST_LIMIT = 10_000
LONGEST_GRANT_S = 3600
MOST_RESULTS = 100
MOST_CHARGES = 1_000_000
LARGEST_PERIOD = 2**31 - 1
LARGEST_SUM = 2**52

_RESIDENCY = re.compile(r"(?:[A-Z]{2,8})?", re.ASCII)
_MODE = re.compile(r"(?:[a-z][a-z-]{0,31})?", re.ASCII)


def wanted_of(request: session_pb2.StartSessionRequest) -> NewSession:
    """Return the session that a StartSession asks for."""
    if not _RESIDENCY.fullmatch(request.data_residency):
        raise wrong("data_residency", "a jurisdiction in capitals, such as EU")
    if not _MODE.fullmatch(request.safety_mode):
        raise wrong("safety_mode", "a word in lower case")
    return NewSession(
        scope=scope_of(request.scope),
        policy=policy_of(request.policy_text, request.policy_hash),
        strategy=strategy_of(request.strategy),
        agent=_agent(request.agent),
        residency=request.data_residency,
        safety_mode=request.safety_mode,
        ceiling=_ceiling(request),
        continues=session_of(request.continues_session_id) if request.continues_session_id else None,
        aware=request.aware,
        caller_scope=scope_of(request.caller_scope or request.scope),
        spending=limits_in(request.policy_text),
    )


def _ceiling(request: session_pb2.StartSessionRequest | session_pb2.DelegateRequest) -> Micros:
    given = within("ceiling_micros", request.ceiling_micros, 0, FULL)
    return Micros(given) if request.HasField("ceiling_micros") else FULL


def _agent(agent: session_pb2.AgentTerms) -> AgentTerms:
    depth = within("max_loop_depth", agent.max_loop_depth, 0, LARGEST_LIMIT)
    delegations = within("max_delegations", agent.max_delegations, 0, LARGEST_LIMIT)
    if len(set(agent.allowed_strategies)) < len(agent.allowed_strategies):
        raise wrong("allowed_strategies", "each once")
    return AgentTerms(
        agent_type=agent_type_of(agent.agent_type),
        max_loop_depth=depth if agent.HasField("max_loop_depth") else None,
        max_delegations=delegations if agent.HasField("max_delegations") else None,
        allowed_strategies=tuple(one_of("allowed_strategies", each, STRATEGIES) for each in agent.allowed_strategies),
    )


def charges_of(request: session_pb2.RestoreCallerRequest) -> list[tuple[int, SessionId, Micros]]:
    """Return what the audit log says that the sessions of a caller were charged, by period."""
    if len(request.charges) > MOST_CHARGES:
        raise invalid("RECORD_TOO_LONG", f"a record has at most {MOST_CHARGES} charges", limit=str(MOST_CHARGES))
    return [
        (
            within("period", charge.period, 1, LARGEST_PERIOD),
            session_of(charge.session_id),
            Micros(within("charged_micros", charge.charged_micros, 0, LARGEST_SUM)),
        )
        for charge in request.charges
    ]


def agent_type_of(value: str) -> str:
    """Return the name of an agent type; empty for an agent that is not registered."""
    if value and not AGENT_TYPE.fullmatch(value):
        raise wrong("agent_type", "1 to 64 letters, digits, dots, underscores and hyphens")
    return value


def parent_hash_of(request: session_pb2.StartSessionRequest) -> str:
    """Return the hash of the parent's policy; a root has none."""
    given = request.parent_policy_hash
    if given and not request.grant:
        raise wrong("parent_policy_hash", "empty without a grant")
    return hash_of("parent_policy_hash", given) if given else ""


def asked_of(request: session_pb2.DelegateRequest) -> DelegationCommand:
    """Return what a Delegate asks for."""
    if request.approval_id and not APPROVAL_ID.fullmatch(request.approval_id):
        raise wrong("approval_id", "an id of 1 to 128 letters, digits and . _ : -")
    return DelegationCommand(
        token=token_of(request.token),
        scope=scope_of(request.scope),
        agent_type=agent_type_of(request.agent_type),
        lifetime_s=within("lifetime_s", request.lifetime_s, 0, LONGEST_GRANT_S),
        approval_id=request.approval_id,
        ceiling=_ceiling(request),
    )


def depth_of(request: session_pb2.ReadGrantRequest) -> int | None:
    """Return the depth that a presenter names."""
    return request.loop_depth if request.HasField("loop_depth") else None


def results_of(request: session_pb2.VerifyResultsRequest) -> list[tuple[SessionId, str]]:
    """Return the results that are asked about, as child session and window HMAC."""
    if len(request.results) > MOST_RESULTS:
        raise invalid(
            "TOO_MANY_RESULTS",
            f"at most {MOST_RESULTS} results at once",
            limit=str(MOST_RESULTS),
            attempted=str(len(request.results)),
        )
    return [(session_of(result.session_id), hash_of("hmac", result.hmac)) for result in request.results]
