"""``interlock session list``: the sessions that began last, and what their callers have left (ATT-2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2, session_pb2_grpc
from interlock.cli.asking import asked
from interlock.cli.output import Format, Output, plain, print_json, print_refusal, table
from interlock.cli.spending import cost
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.errors import Refused
from interlock.runtime.clock import iso8601
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

SCOPE = typer.Option("", "--scope", help="Caller: the name of its API key, or the beginning of its hash. Default: all.")
LIMIT = typer.Option(20, "--limit", help="How many sessions.", min=1, max=1000)

SHARED = "unverified"
"""Stands for all callers whose keys nobody verifies: they share one budget."""

_SESSIONS = (
    "session",
    "caller",
    "agent",
    "began",
    "windows",
    "budget",
    "charged",
    "tokens",
    "usd",
    "breaker",
    "status",
)
_CALLERS = ("caller", "left", "of", "period ends")


def list_sessions(scope: str = SCOPE, limit: int = LIMIT, output: Output = Format.TEXT) -> None:
    """List the sessions that began last, and the budgets of their callers.

    Queries the audit service and the session service. Exit 0: listed. 2: no answer.
    """
    settings = load()
    try:
        listed = listed_last(settings, scope, limit)
        sessions = [session_now(settings, one) for one in listed]
        scopes = dict.fromkeys([*([scope] if scope else [SHARED]), *(one.scope for one in listed)])
        callers = {name: _caller(settings, name) for name in scopes}
    except Refused as refused:
        raise typer.Exit(print_refusal(refused, as_json=output is Format.JSON)) from None
    if output is Format.JSON:
        print_json({"sessions": sessions, "callers": [one for one in callers.values() if one]})
        return
    for line in _as_text(sessions, [one for one in callers.values() if one]):
        typer.echo(plain(line).rstrip())


def listed_last(settings: Settings, scope: str, limit: int) -> Sequence[audit_pb2.ListedSession]:
    """Return the sessions of a caller, or of all, that began last. One answer looks at some of them: it is asked on until there are enough."""
    found: list[audit_pb2.ListedSession] = []
    request = audit_pb2.ListSessionsRequest(scope=scope, limit=limit)
    while True:
        answer = asked(
            "audit", settings,
            lambda channel: audit_pb2_grpc.AuditServiceStub(channel).ListSessions(request, timeout=settings.rpc_timeout_s),
        )  # fmt: skip
        found += answer.sessions
        if len(found) >= limit or not answer.HasField("next"):
            return found[:limit]
        request.before.CopyFrom(answer.next)


def session_now(settings: Settings, listed: audit_pb2.ListedSession) -> dict[str, Any]:
    """Return what is shown of a session; one that the store no longer holds has no budget."""
    request = session_pb2.GetSessionRequest(session_id=listed.session_id, root_session_id=listed.root_session_id)
    shown: dict[str, Any] = {
        "session_id": listed.session_id, "scope": listed.scope, "agent_type": listed.agent_type or None,
        "created_at": listed.created_at, "windows": None, "safety_budget": None, "charged": None, "tokens": None, "usd": None,
        "breaker": None, "status": "GONE",
    }  # fmt: skip
    try:
        answer = asked(
            "session", settings,
            lambda channel: session_pb2_grpc.SessionServiceStub(channel).GetSession(
                request, timeout=settings.rpc_timeout_s
            ),
        )  # fmt: skip
    except Refused as refused:
        if refused.reason != "SESSION_NOT_FOUND":
            raise
        return shown
    found: session_pb2.Session = answer.session
    return shown | {
        "windows": len(found.windows),
        "safety_budget": as_decimal(Micros(found.safety_budget_micros)),
        "charged": as_decimal(Micros(found.charged_micros)),
        "tokens": found.spending.tokens + found.spending.reserved_tokens,
        "usd": cost(found.spending),
        "breaker": common_pb2.BreakerState.Name(found.breaker).removeprefix("BREAKER_STATE_"),
        "status": session_pb2.SessionStatus.Name(found.status).removeprefix("SESSION_STATUS_"),
    }


def _caller(settings: Settings, scope: str) -> dict[str, Any] | None:
    request = session_pb2.GetCallerRequest(scope=scope)
    answer = asked(
        "session", settings,
        lambda channel: session_pb2_grpc.SessionServiceStub(channel).GetCaller(request, timeout=settings.rpc_timeout_s),
    )  # fmt: skip
    if not answer.HasField("budget"):
        return None
    budget: session_pb2.CallerBudget = answer.budget
    return {
        "scope": scope, "caller_id": budget.caller_id, "left": as_decimal(Micros(budget.left_micros)),
        "caller_budget": as_decimal(Micros(budget.budget_micros)), "ends_at": iso8601(budget.ends_at * 1_000_000),
    }  # fmt: skip


def _as_text(sessions: Sequence[Mapping[str, Any]], callers: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["no session has begun yet"]
    if sessions:
        fields = (
            "session_id",
            "scope",
            "agent_type",
            "created_at",
            "windows",
            "safety_budget",
            "charged",
            "tokens",
            "usd",
            "breaker",
            "status",
        )
        lines = list(table([_SESSIONS, *(tuple(_cell(one[name]) for name in fields) for one in sessions)]))
    if callers:
        named = ("scope", "left", "caller_budget", "ends_at")
        lines += ["", *table([_CALLERS, *(tuple(str(one[name]) for name in named) for one in callers)])]
    return lines


def _cell(value: object) -> str:
    return "-" if value is None else str(value)
