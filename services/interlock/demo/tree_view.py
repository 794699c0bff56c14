"""Display of a tree of agents in a terminal, in words and ASCII marks, so that it is readable without colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.demo.view import BREAKER_COLOURS, COLOURS, bar

SHOWN = 96


def breaker_state(session: session_pb2.Session) -> str:
    """Return CLOSED, HALF_OPEN or OPEN."""
    return common_pb2.BreakerState.Name(session.breaker).removeprefix("BREAKER_STATE_")


def agent_name(session: session_pb2.Session) -> str:
    """Return the agent type of a session."""
    return session.agent.agent_type or "agent"


def show_step(out: Console, line: Mapping[str, Any]) -> None:
    """Print an action of an agent."""
    text = Text(f"\n{line['agent']}", style="bold").append(f" {line['event']}", style="default")
    if line["event"] == "answered":
        text.append(f" {line['question']!r}: ").append(line["risk"], style=COLOURS.get(line["risk"], ""))
        text.append(f", {line['strategy']}")
        out.print(text, soft_wrap=True)
        out.print(Text(f"  {short(line['answer'])}", style="dim"))
    elif line["event"] == "refused":
        why = ", ".join(part for part in (line["halt_reason"] or line["reason"], line["risk"]) if part)
        out.print(
            text.append(f" {line['question']!r}: ").append(f"{line['status']} {why}", style="bold red"), soft_wrap=True
        )
    else:
        fields = {name: value for name, value in line.items() if name not in {"agent", "event", "headers"}}
        out.print(text.append(" " + ", ".join(f"{name} {value}" for name, value in fields.items())))
        out.print(Text("  headers: " + ", ".join(line.get("headers", ())), style="dim"))


def short(text: str) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1].rstrip() + "…"


def show_tree(out: Console, sessions: Sequence[session_pb2.Session], before: Mapping[str, int]) -> None:
    """Print the tree with budgets and breakers; an arrow marks a budget that changed since *before*."""
    branches: dict[str, Tree] = {}
    for session in sessions:
        label = _label(session, before.get(session.session_id))
        parent = branches.get(session.parent_session_id)
        branches[session.session_id] = parent.add(label) if parent else Tree(label, guide_style="dim")
    if sessions:
        out.print(branches[sessions[0].session_id])


def _label(session: session_pb2.Session, before: int | None) -> Text:
    micros, breaker = session.safety_budget_micros, breaker_state(session)
    windows = len(session.windows)
    text = Text(f"{agent_name(session):<13}{bar(micros)} ")
    text.append(f"{breaker:<9}", style=BREAKER_COLOURS.get(breaker, ""))
    text.append(f" {windows} window{'s' if windows != 1 else ''}")
    if before is not None and before != micros:
        text.append(f"  <- was {before / 1_000_000:.2f}", style="yellow")
    return text
