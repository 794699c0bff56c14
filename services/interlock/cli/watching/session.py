"""``interlock session watch``: a session as it happens, one line for each answer and each step of its breaker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import typer

from interlock.api.session.v1 import session_pb2, session_pb2_grpc
from interlock.cli.asking import conversed
from interlock.cli.output import Format, Output, plain, print_json, refusals
from interlock.cli.watching.following import breaker, clock, follow, risk, sealed, status
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.errors import Refused
from interlock.domain.ids import check
from interlock.runtime.rpc.client import call_service
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

SESSION = typer.Argument(help="Session id: crp_sess_ and 32 hex digits, as in CRP-Context-Session-Id.")
ROOT = typer.Option("", "--root", help="Root session of its tree, for a child session that started long ago.")
EVERY = typer.Option(1.0, "--every", help="Seconds between two looks.", min=0.1, max=60)
ONCE = typer.Option(False, "--once", help="Print what there is, and end.")


def watch(
    session_id: str = SESSION, root: str = ROOT, every: float = EVERY, once: bool = ONCE, output: Output = Format.TEXT
) -> None:
    """Follow a session until it ends: each answer with its risk, its charge and what is left. Ctrl-C ends it sooner.

    With -o json each line is a document of its own. Exit 0: the session ended, or --once. 2: no such session, or no answer.
    """
    with refusals(output):
        for name in filter(None, (session_id, root)):
            check("crp_sess_", name)
        settings = load()
        request = session_pb2.GetSessionRequest(session_id=session_id, root_session_id=root)
        seen = SessionNews()

        async def talk(channel: grpc.aio.Channel) -> None:
            async def look() -> bool:
                found = await _session(channel, request, settings)
                for happened in seen.news(found):
                    _tell(happened, output)
                return once or found.status != session_pb2.SESSION_STATUS_ACTIVE

            await follow(look, every, _away)

        conversed("session", settings, talk)


async def _session(
    channel: grpc.aio.Channel, request: session_pb2.GetSessionRequest, settings: Settings
) -> session_pb2.Session:
    stub = session_pb2_grpc.SessionServiceStub(channel)
    answer = await call_service("session", stub.GetSession(request, timeout=settings.rpc_timeout_s))
    found: session_pb2.Session = answer.session
    return found


def _away(refused: Refused) -> None:
    typer.echo(f"--:--:--  {refused.reason}: looking again", err=True)


class SessionNews:
    """What was told of a session so far."""

    def __init__(self) -> None:
        self._windows: set[str] = set()
        self._breaker = self._status = ""

    def news(self, session: session_pb2.Session) -> Iterator[dict[str, Any]]:
        """Yield what is new, in the order in which it happened."""
        if not self._status:
            yield {"event": "session", **_state(session)}
        last = session.created_at
        for window in sealed(session):
            last = max(last, window.timestamp)
            if window.window_id not in self._windows:
                self._windows.add(window.window_id)
                yield _answer(window)
        if self._breaker not in {"", breaker(session)}:
            yield {"event": "breaker", "at": last, "before": self._breaker, "after": breaker(session)}
        if session.status != session_pb2.SESSION_STATUS_ACTIVE and self._status != status(session):
            yield {"event": "end", "at": last, "status": status(session)}
        self._breaker, self._status = breaker(session), status(session)


def _state(session: session_pb2.Session) -> dict[str, Any]:
    return {
        "at": session.created_at, "session_id": session.session_id, "agent_type": session.agent.agent_type or None,
        "safety_budget": as_decimal(Micros(session.safety_budget_micros)), "breaker": breaker(session), "status": status(session),
    }  # fmt: skip


def _answer(window: session_pb2.Window) -> dict[str, Any]:
    return {
        "event": "answer", "at": window.timestamp, "window_number": window.window_number, "risk": risk(window),
        "status": window.status, "charge": as_decimal(Micros(window.charge_micros)),
        "left": as_decimal(Micros(window.safety_budget_micros)), "tokens": window.token_count, "window_id": window.window_id,
    }  # fmt: skip


def _tell(happened: dict[str, Any], output: Format) -> None:
    if output is Format.JSON:
        print_json(happened)
    else:
        typer.echo(plain(f"{clock(happened['at'])}  {_line(happened)}"))


def _line(happened: dict[str, Any]) -> str:
    match happened["event"]:
        case "session":
            return (
                f"{happened['agent_type'] or 'agent'}: {happened['safety_budget']} left, breaker {happened['breaker']}"
            )
        case "answer":
            return (
                f"{happened['window_number']:>3}  {happened['risk']:<8}  {happened['status']:<9}  "
                f"charged {happened['charge']}, left {happened['left']}"
            )
        case "breaker":
            return f"breaker {happened['before']} -> {happened['after']}"
        case _:
            return f"ended: {happened['status']}"
