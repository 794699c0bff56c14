"""The terms of a session, in one place: what a deployment sets, what a new session gets, how terms are stored and answered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from interlock.api.session.v1 import session_pb2
from interlock.domain.binding.index import USUAL, IndexBounds
from interlock.domain.budget import Decrements, Micros, micros
from interlock.domain.dag.dag import Limits
from interlock.domain.ids import SessionId
from interlock.domain.session.spending import UNLIMITED, SpendingLimits
from interlock.domain.session.state import AgentTerms, PolicyText, Terms
from interlock.runtime.clock import iso8601
from interlock.runtime.settings.model import Settings


@dataclass(frozen=True)
class SessionRules:
    """What a deployment sets for all of its sessions."""

    limits: Limits
    decrements: Decrements
    token_lifetime_s: int
    lease_ms: int
    grant_lifetime_s: int
    max_loop_depth: int
    max_delegations: int
    accumulate: bool
    max_roots_per_minute: int = 0
    caller_budget: Micros = Micros(0)  # noqa: RUF009 - a NewType's constructor returns the number itself
    """Budget of one caller and period; 0: callers have none."""
    caller_period_s: int = 3600
    bindings: IndexBounds = USUAL
    spending: SpendingLimits = UNLIMITED
    """What a tree of agents may spend on model calls: a limit of its root."""
    stuck_by_reviewers: bool = False
    """Whether a step of a kernel that could not be compensated is settled by reviewers alone."""


@dataclass(frozen=True)
class NewSession:
    """What a caller asks of a new session: its owner, policy, agent, and a ceiling on its budget."""

    scope: str
    policy: PolicyText
    strategy: str
    agent: AgentTerms
    residency: str
    safety_mode: str
    ceiling: Micros
    aware: bool
    caller_scope: str = ""
    """Whose budget stands above it; empty: the scope's own."""
    continues: SessionId | None = None
    """Session whose windows were used up, which this one goes on from."""
    spending: SpendingLimits = UNLIMITED
    """What its policy lets it and all below it spend on model calls."""


def rules_of(settings: Settings) -> SessionRules:
    """Return what the settings set for every session. Refused with DECREMENT_OUT_OF_RANGE."""
    return SessionRules(
        limits=Limits(settings.max_windows, settings.max_dag_nodes, settings.max_fan_out),
        decrements=Decrements(
            low=micros(settings.decrement_low),
            medium=micros(settings.decrement_medium),
            high=micros(settings.decrement_high),
            critical=micros(settings.decrement_critical),
        ),
        token_lifetime_s=settings.token_lifetime_s,
        lease_ms=int(settings.request_timeout_s * 1000),
        grant_lifetime_s=settings.grant_lifetime_s,
        max_loop_depth=settings.max_loop_depth,
        max_delegations=settings.max_delegations,
        accumulate=settings.budget_accumulate == "sum",
        max_roots_per_minute=settings.max_roots_per_minute,
        caller_budget=micros(settings.caller_budget),
        caller_period_s=settings.caller_period_s,
        bindings=IndexBounds(settings.bindings_per_caller, settings.binding_ttl_s * 1000),
        spending=SpendingLimits(
            settings.spending_limit_tokens or None,
            micros(settings.spending_limit_usd) if settings.spending_limit_usd else None,
        ),
        stuck_by_reviewers=settings.stuck_by_reviewers,
    )


def new_terms(
    wanted: NewSession,
    parent: Terms | None,
    rules: SessionRules,
    *,
    session: SessionId,
    nonce: str,
    key_version: int,
    created_us: int,
    caller_id: str = "",
) -> Terms:
    """Return the terms of a new session, below *parent* or as a root. A child keeps what holds for its whole tree."""
    depth = parent.loop_depth + 1 if parent else 0
    agent = wanted.agent
    own_levels = [] if agent.max_loop_depth is None else [depth + agent.max_loop_depth]
    own_delegations = [] if agent.max_delegations is None else [agent.max_delegations]
    return Terms(
        session_id=session,
        root_session_id=parent.root_session_id if parent else session,
        scope=wanted.scope,
        strategy=wanted.strategy,
        nonce=nonce,
        key_version=key_version,
        loop_depth=depth,
        limits=rules.limits,
        created_us=created_us,
        ancestors=(parent.session_id, *parent.ancestors) if parent else (),
        agent=agent,
        deepest=min([rules.max_loop_depth, *([parent.deepest] if parent else []), *own_levels]),
        max_delegations=min([rules.max_delegations, *own_delegations]),
        accumulate=parent.accumulate if parent else rules.accumulate,
        residency=wanted.residency or (parent.residency if parent else ""),
        safety_mode=wanted.safety_mode or (parent.safety_mode if parent else ""),
        caller_id=caller_id,
        continues=wanted.continues,
        aware=wanted.aware,
        spending=wanted.spending if parent else rules.spending.tightened(wanted.spending),
    )


def terms_to_json(terms: Terms) -> str:
    """Return the terms of a session as stored."""
    return orjson.dumps(terms).decode()


@lru_cache(maxsize=4096)
def terms_from_json(data: bytes) -> Terms:
    """Return the terms of a session from what is stored; what older writers left out has its default.

    Terms never change, so what was read once is kept.
    """
    found: dict[str, Any] = orjson.loads(data)
    agent = found.pop("agent", {})
    return Terms(
        **{
            **found,
            "session_id": SessionId(found["session_id"]),
            "limits": Limits(**found["limits"]),
            "spending": SpendingLimits(**found.get("spending", {})),
            "ancestors": tuple(SessionId(each) for each in found.get("ancestors", ())),
            "agent": AgentTerms(**{**agent, "allowed_strategies": tuple(agent.get("allowed_strategies", ()))}),
        }
    )


def hash_fields(terms: Terms) -> dict[str, str]:
    """Return the fields of a session's hash that its terms fill: their JSON, and by name what the scripts look at."""
    return {
        "terms": terms_to_json(terms),
        "ancestors": ",".join(terms.ancestors),
        "max_windows": str(terms.limits.max_windows),
        "max_nodes": str(terms.limits.max_dag_nodes),
        "max_fan_out": str(terms.limits.max_fan_out),
        "sum": str(int(terms.accumulate)),
        "limits": limits_text(terms.spending),
    }


def limits_text(limits: SpendingLimits) -> str:
    """Return spending limits as stored, ``-`` for none."""
    return " ".join("-" if each is None else str(each) for each in (limits.tokens, limits.usd))


def terms_message(terms: Terms) -> session_pb2.Session:
    """Return a session of which only the terms are set."""
    return session_pb2.Session(
        session_id=terms.session_id,
        root_session_id=terms.root_session_id,
        max_windows=terms.limits.max_windows,
        created_at=iso8601(terms.created_us),
        scope=terms.scope,
        loop_depth=terms.loop_depth,
        parent_session_id=terms.parent_session_id or "",
        ancestor_session_ids=terms.ancestors,
        agent=agent_message(terms.agent),
        data_residency=terms.residency,
        safety_mode=terms.safety_mode,
        accumulate_sum=terms.accumulate,
        caller_id=terms.caller_id,
        continues_session_id=terms.continues or "",
        aware=terms.aware,
    )


def agent_message(agent: AgentTerms) -> session_pb2.AgentTerms:
    """Return what an agent type may do."""
    return session_pb2.AgentTerms(
        agent_type=agent.agent_type,
        max_loop_depth=agent.max_loop_depth,
        max_delegations=agent.max_delegations,
        allowed_strategies=agent.allowed_strategies,
    )
