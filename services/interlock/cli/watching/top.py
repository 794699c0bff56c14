"""``interlock top``: the sessions that were active last, in a terminal, from the sources of the console (OBS-5)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import typer

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.api.session.v1 import session_pb2, session_pb2_grpc
from interlock.cli.asking import channel_of
from interlock.cli.output import Format, Output, plain, print_json, refusals, table
from interlock.cli.watching.following import ago, bar, breaker, follow, paint, risk, sealed, status
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.errors import Kind, Refused
from interlock.runtime.clock import system_clock
from interlock.runtime.rpc.client import call_service
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

LIMIT = typer.Option(20, "--limit", help="How many sessions, of those that began last.", min=1, max=200)
EVERY = typer.Option(2.0, "--every", help="Seconds between two looks.", min=0.5, max=60)
ONCE = typer.Option(False, "--once", help="Print one picture, and end. So it does where the output is no terminal.")

SHARED = "unverified"
"""Stands for all callers whose keys nobody verifies: they share one budget."""
MINUTE = timedelta(minutes=1)
_SHORT = 6

_COLUMNS = ("agent", "session", "budget", "left", "calls", "halted", "held", "risk", "breaker", "state", "last")


@dataclass(frozen=True)
class Look:
    """What one look found: sessions with their state, the last active first, and callers with what they have left."""

    now: datetime
    sessions: Sequence[session_pb2.Session]
    gone: int
    """Sessions of the list that the store has forgotten."""
    callers: Sequence[tuple[str, session_pb2.CallerBudget]]

    def windows(self) -> list[session_pb2.Window]:
        """Return the judged answers of the last minute."""
        return [
            window
            for session in self.sessions
            for window in sealed(session)
            if self.now - datetime.fromisoformat(window.timestamp) <= MINUTE
        ]


def top(limit: int = LIMIT, every: float = EVERY, once: bool = ONCE, output: Output = Format.TEXT) -> None:
    """Show sessions with their budgets, calls, halts and breakers, and callers with theirs, as they change. Ctrl-C ends it.

    Queries the audit service and the session service. With -o json each look is one line. Exit 0: ended. 2: no answer.
    """
    with refusals(output):
        asyncio.run(_follow(load(), limit, every, once, output))


async def _follow(settings: Settings, limit: int, every: float, once: bool, output: Format) -> None:
    single, first = once or (output is Format.TEXT and not sys.stdout.isatty()), True
    async with channel_of("audit", settings) as audit, channel_of("session", settings) as session:
        reader = TopReader(
            audit_pb2_grpc.AuditServiceStub(audit), session_pb2_grpc.SessionServiceStub(session), settings.rpc_timeout_s
        )

        async def look() -> bool:
            nonlocal first
            found = await reader.look(limit)
            if output is Format.JSON:
                print_json(as_json(found))
            elif single:
                typer.echo("\n".join(picture(found)))
            else:
                paint(list(picture(found)), first=first)
            first = False
            return single

        def away(refused: Refused) -> None:
            if output is Format.JSON:
                print_json({"error": {"reason": refused.reason, "message": refused.message}})
            else:
                paint([f"interlock  {refused.reason}: looking again"], first=True)

        await follow(look, every, away)


class TopReader:
    """Reads what a look shows."""

    def __init__(self, audit: Any, session: Any, timeout_s: float) -> None:
        self._audit, self._session, self._timeout_s = audit, session, timeout_s

    async def look(self, limit: int) -> Look:
        """Return the sessions that began last, and the budgets of their callers."""
        request = audit_pb2.ListSessionsRequest(limit=limit)
        listed = (await call_service("audit", self._audit.ListSessions(request, timeout=self._timeout_s))).sessions
        found = await asyncio.gather(*(self._state(one) for one in listed))
        sessions = sorted(filter(None, found), key=_last, reverse=True)
        scopes = sorted({SHARED, *(one.scope for one in listed)})
        budgets = await asyncio.gather(*map(self._caller, scopes))
        callers = [(scope, budget) for scope, budget in zip(scopes, budgets, strict=True) if budget]
        now = datetime.fromtimestamp(system_clock() / 1_000_000, UTC)
        return Look(now, sessions, len(listed) - len(sessions), callers)

    async def _state(self, listed: audit_pb2.ListedSession) -> session_pb2.Session | None:
        request = session_pb2.GetSessionRequest(session_id=listed.session_id, root_session_id=listed.root_session_id)
        try:
            answer = await call_service("session", self._session.GetSession(request, timeout=self._timeout_s))
        except Refused as refused:
            if refused.kind is Kind.NOT_FOUND:
                return None
            raise
        found: session_pb2.Session = answer.session
        return found

    async def _caller(self, scope: str) -> session_pb2.CallerBudget | None:
        request = session_pb2.GetCallerRequest(scope=scope)
        answer = await call_service("session", self._session.GetCaller(request, timeout=self._timeout_s))
        return answer.budget if answer.HasField("budget") else None


def picture(look: Look) -> Iterator[str]:
    """Yield the lines of a look."""
    recent = look.windows()
    halted, held = (sum(one.status == name for one in recent) for name in ("HALTED", "HELD"))
    active = sum(one.status == session_pb2.SESSION_STATUS_ACTIVE for one in look.sessions)
    yield (
        f"interlock  {look.now:%H:%M:%S} UTC  {len(look.sessions)} sessions, {active} active   "
        f"last minute: {len(recent)} calls, {halted} halted, {held} held"
    )
    yield ""
    if not look.sessions:
        yield "no session has begun yet"
    else:
        for line in table([_COLUMNS, *(_row(one, look.now) for one in look.sessions)]):
            yield plain(line).rstrip()
    if look.gone:
        yield f"and {look.gone} that the store has forgotten"
    if look.callers:
        rows = [(scope, bar(one.left_micros, one.budget_micros), f"{as_decimal(Micros(one.left_micros))} of {as_decimal(Micros(one.budget_micros))}") for scope, one in look.callers]  # fmt: skip
        yield ""
        for line in table([("caller", "budget", "left"), *rows]):
            yield plain(line).rstrip()


def _row(session: session_pb2.Session, now: datetime) -> tuple[str, ...]:
    judged = sealed(session)
    halted, held = (sum(one.status == name for one in judged) for name in ("HALTED", "HELD"))
    return (
        session.agent.agent_type or "agent", session.session_id[-_SHORT:], bar(session.safety_budget_micros),
        as_decimal(Micros(session.safety_budget_micros)), str(len(judged)), str(halted or "-"), str(held or "-"),
        risk(judged[-1]) if judged else "-", breaker(session), status(session), ago(_last(session), now),
    )  # fmt: skip


def _last(session: session_pb2.Session) -> str:
    return max((one.timestamp for one in sealed(session)), default=session.created_at)


def as_json(look: Look) -> dict[str, Any]:
    """Return a look as a document."""
    recent = look.windows()
    return {
        "at": look.now.isoformat(),
        "last_minute": {
            "calls": len(recent),
            "halted": sum(one.status == "HALTED" for one in recent),
            "held": sum(one.status == "HELD" for one in recent),
        },
        "sessions": [_session(one) for one in look.sessions],
        "forgotten": look.gone,
        "callers": [
            {"scope": scope, "left": as_decimal(Micros(one.left_micros)), "caller_budget": as_decimal(Micros(one.budget_micros))}
            for scope, one in look.callers
        ],
    }  # fmt: skip


def _session(session: session_pb2.Session) -> dict[str, Any]:
    judged = sealed(session)
    return {
        "session_id": session.session_id, "agent_type": session.agent.agent_type or None, "scope": session.scope,
        "safety_budget": as_decimal(Micros(session.safety_budget_micros)), "breaker": breaker(session), "status": status(session),
        "calls": len(judged), "halted": sum(one.status == "HALTED" for one in judged),
        "held": sum(one.status == "HELD" for one in judged), "risk": risk(judged[-1]) if judged else None, "last_at": _last(session),
    }  # fmt: skip
