"""``interlock session``: query the running session service about a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import typer

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2, session_pb2_grpc
from interlock.cli import spending
from interlock.cli.asking import asked
from interlock.cli.output import Format, Output, plain, print_json, print_refusal, table
from interlock.cli.session_list import list_sessions
from interlock.cli.watching.session import watch
from interlock.domain.budget import Micros, as_decimal, budget_warning
from interlock.domain.dag.dag import Node, Seal, lineage_text, violations
from interlock.domain.errors import Refused, unavailable
from interlock.domain.ids import ContinuationId, WindowId, check
from interlock.domain.risk.risk import RiskLevel
from interlock.runtime.pictures import picture
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

if TYPE_CHECKING:
    from interlock.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub

app = typer.Typer(
    no_args_is_help=True, help="List sessions and callers. Show a session: budget, breaker, windows. Draw its graph."
)
app.command("list")(list_sessions)
app.command("watch")(watch)


class Picture(StrEnum):
    """Format of a drawn graph."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"
    JSON = "json"


DRAWN: Mapping[Picture, Callable[[Sequence[session_pb2.Session]], str]] = {
    Picture.TEXT: picture.text,
    Picture.MERMAID: picture.mermaid,
    Picture.DOT: picture.dot,
    Picture.SVG: picture.svg,
    Picture.JSON: picture.as_json,
}

SESSION = typer.Argument(help="Session id: crp_sess_ and 32 hex digits, as in CRP-Context-Session-Id.")

FORMAT = typer.Option(Picture.TEXT, "--format", "-o", "--output", help="text, mermaid, dot, svg or json.")
TREE = typer.Option(False, "--tree", help="Include the sessions below it.")
ROOT = typer.Option("", "--root", help="Root session of its tree, for a child session that started long ago.")
FILE = typer.Option(None, "--file", help="File to write. Default: standard output.")

_COLUMNS = ("#", "window", "risk", "tier", "charge", "budget", "status", "strategy", "hmac")


@app.callback()
def session() -> None:
    """List sessions and callers. Show a session: budget, breaker, windows. Draw its graph."""


@app.command()
def show(session_id: str = SESSION, root: str = ROOT, output: Output = Format.TEXT) -> None:
    """Show the state of a session: its budget, its breaker, its windows and their lineage.

    Queries the session service at INTERLOCK_SESSION_ADDRESS. Exit 0: shown. 2: no such session, or no answer.
    """
    try:
        for name in filter(None, (session_id, root)):
            check("crp_sess_", name)
        found = _fetch(load(), session_id, root)
    except Refused as refused:
        _hint(refused, root)
        raise typer.Exit(print_refusal(refused, as_json=output is Format.JSON)) from None
    if output is Format.JSON:
        print_json(_as_json(found))
    else:
        typer.echo(_as_text(found))


@app.command()
def dag(
    session_id: str = SESSION,
    form: Picture = FORMAT,
    tree: bool = TREE,
    root: str = ROOT,
    file: Path | None = FILE,
) -> None:
    """Draw the window graph of a session, and with --tree of its child sessions (SPEC-004 Appendix A).

    Exit 0: drawn. 2: no such session, or no answer.
    """
    request = session_pb2.GetDagRequest(session_id=session_id, root_session_id=root, tree=tree)
    try:
        for name in filter(None, (session_id, root)):
            check("crp_sess_", name)
        settings = load()
        found = asked(
            "session", settings, lambda channel: _stub(channel).GetDag(request, timeout=settings.rpc_timeout_s)
        )
    except Refused as refused:
        _hint(refused, root)
        raise typer.Exit(print_refusal(refused, as_json=form is Picture.JSON)) from None
    drawing = DRAWN[form](found.sessions)
    if file is None:
        typer.echo(drawing, nl=False)
    else:
        _write(file, drawing)


def _write(file: Path, drawing: str) -> None:
    try:
        file.write_text(drawing, encoding="utf-8")
    except OSError as error:
        refused = unavailable("FILE_NOT_WRITTEN", f"{file}: {type(error).__name__}", retry_after_ms=0)
        raise typer.Exit(print_refusal(refused, as_json=False)) from None


def _hint(refused: Refused, root: str) -> None:
    if refused.reason == "SESSION_NOT_FOUND" and not root:
        refused.metadata["hint"] = (
            "to find a child session that started long ago, add --root and the id of the root session of its tree"
        )


def _fetch(settings: Settings, session_id: str, root: str) -> session_pb2.Session:
    request = session_pb2.GetSessionRequest(session_id=session_id, root_session_id=root)
    answer = asked(
        "session", settings, lambda channel: _stub(channel).GetSession(request, timeout=settings.rpc_timeout_s)
    )
    found: session_pb2.Session = answer.session
    return found


def _stub(channel: grpc.aio.Channel) -> SessionServiceAsyncStub:
    return session_pb2_grpc.SessionServiceStub(channel)


def _as_json(found: session_pb2.Session) -> dict[str, Any]:
    return {
        "session_id": found.session_id,
        "root_session_id": found.root_session_id,
        "parent_session_id": found.parent_session_id or None,
        "child_session_ids": list(found.child_session_ids),
        "agent_type": found.agent.agent_type or None,
        "status": _status(found),
        "safety_budget_micros": found.safety_budget_micros,
        "safety_budget": as_decimal(Micros(found.safety_budget_micros)),
        "budget_warning": budget_warning(Micros(found.safety_budget_micros)),
        "charged_micros": found.charged_micros,
        "spending": spending.as_json(found.spending),
        "accumulate": "sum" if found.accumulate_sum else "min",
        "ancestor_halt": _ancestor_halt(found),
        "breaker": _breaker(found),
        "policy_text": found.policy_text,
        "policy_hash": found.policy_hash,
        "max_windows": found.max_windows,
        "scope": found.scope,
        "caller_id": found.caller_id or None,
        "continues_session_id": found.continues_session_id or None,
        "loop_depth": found.loop_depth,
        "created_at": found.created_at,
        "chain_tip": found.chain_tip,
        "lineage": [window.window_id for window in found.windows],
        "dag_violations": list(_violations(found)),
        "windows": [_window_as_json(window) for window in found.windows],
    }


def _window_as_json(window: session_pb2.Window) -> dict[str, Any]:
    return {
        "window_id": window.window_id,
        "window_number": window.window_number,
        "parent_ids": list(window.parent_ids),
        "child_ids": list(window.child_ids),
        "continuation_id": window.continuation_id or None,
        "pattern": window.pattern,
        "strategy": window.strategy,
        "envelope_etag": window.envelope_etag,
        "quality_tier": window.quality_tier,
        "risk_level": _risk(window),
        "safety_budget_micros": window.safety_budget_micros,
        "charge_micros": window.charge_micros,
        "hmac": window.hmac,
        "timestamp": window.timestamp,
        "token_count": window.token_count,
        "response_hash": window.response_hash,
        "status": window.status,
    }


def _as_text(found: session_pb2.Session) -> str:
    budget = Micros(found.safety_budget_micros)
    warning = f" ({budget_warning(budget)})" if budget_warning(budget) else ""
    wrong = _violations(found)
    lines = [
        f"session  {found.session_id}",
        f"status   {_status(found)}",
        f"budget   {as_decimal(budget)} of 1.00{warning}, breaker {_breaker(found)}",
        f"charged  {as_decimal(Micros(found.charged_micros))} by all windows together",
        *spending.as_text(found.spending),
        f"windows  {len(found.windows)} of {found.max_windows}",
        f"scope    {found.scope}, created {found.created_at}",
        *_kin(found),
        f"policy   {found.policy_text or '(none)'}",
        "",
        *table([_COLUMNS, *(_row(window) for window in found.windows)]),
        "",
        f"lineage  {lineage_text(window.window_id for window in found.windows) or '(no window yet)'}",
        f"dag      {'sound' if not wrong else 'BROKEN: ' + ', '.join(wrong)}",
    ]
    return "\n".join(plain(line).rstrip() for line in lines)


def _kin(found: session_pb2.Session) -> Iterable[str]:
    if found.agent.agent_type or found.parent_session_id:
        parent = f", delegated by {found.parent_session_id}" if found.parent_session_id else ""
        yield f"agent    {found.agent.agent_type or '(unregistered)'}, depth {found.loop_depth}{parent}"
    if found.continues_session_id:
        yield f"goes on  from {found.continues_session_id}"
    if above := _ancestor_halt(found):
        yield f"ended by {above['session_id']}, {above['reason']} at {above['safety_budget']}"
    for number, child in enumerate(found.child_session_ids):
        yield f"{'children' if number == 0 else '':<8} {child}"


def _ancestor_halt(found: session_pb2.Session) -> dict[str, str] | None:
    if not found.HasField("ancestor_halt"):
        return None
    above = found.ancestor_halt
    return {
        "session_id": above.session_id, "reason": above.reason,
        "safety_budget": as_decimal(Micros(above.safety_budget_micros)),
    }  # fmt: skip


def _row(window: session_pb2.Window) -> tuple[str, ...]:
    return (
        str(window.window_number),
        window.window_id,
        _risk(window),
        window.quality_tier,
        as_decimal(Micros(window.charge_micros)),
        as_decimal(Micros(window.safety_budget_micros)),
        window.status,
        window.strategy,
        window.hmac[:19],
    )


def _violations(found: session_pb2.Session) -> tuple[str, ...]:
    """Check the received windows against the five invariants of SPEC-004 §3.3."""
    return violations([_node(window) for window in found.windows])


def _node(window: session_pb2.Window) -> Node:
    return Node(
        window_id=WindowId(window.window_id),
        window_number=window.window_number,
        parent_ids=tuple(WindowId(parent) for parent in window.parent_ids),
        continuation_id=ContinuationId(window.continuation_id) if window.continuation_id else None,
        pattern=window.pattern,
        safety_budget=Micros(window.safety_budget_micros),
        charge=Micros(window.charge_micros),
        seal=Seal(
            risk_level=RiskLevel(window.risk_level),
            hmac=window.hmac,
            timestamp=window.timestamp,
            response_hash=window.response_hash,
            envelope_etag=window.envelope_etag,
            quality_tier=window.quality_tier,
            strategy=window.strategy,
            token_count=window.token_count,
            status=window.status,
        ),
    )


def _status(found: session_pb2.Session) -> str:
    return session_pb2.SessionStatus.Name(found.status).removeprefix("SESSION_STATUS_")


def _breaker(found: session_pb2.Session) -> str:
    return common_pb2.BreakerState.Name(found.breaker).removeprefix("BREAKER_STATE_")


def _risk(window: session_pb2.Window) -> str:
    return common_pb2.RiskLevel.Name(window.risk_level).removeprefix("RISK_LEVEL_")
