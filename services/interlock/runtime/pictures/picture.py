"""Pictures of window DAGs as Mermaid, DOT and JSON; text and SVG are in other modules (DAG-12, SPEC-004 Appendix A).

Every function takes the sessions of a ``GetDag`` response and returns a text. A session is a frame, a delegation an edge
between frames. Shape and word show a failure, not only colour. All text in a label is escaped, because callers choose the names
of agents and strategies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from interlock.api.session.v1 import session_pb2
from interlock.runtime.pictures.names import (
    COMPLETED,
    FAILED,
    HALTED,
    HELD,
    Drawn,
    breaker_word,
    delegations,
    drawn,
    risk_word,
    status_word,
    title_lines,
    transfer_words,
)  # fmt: skip
from interlock.runtime.pictures.svg import svg
from interlock.runtime.pictures.text import text

__all__ = ["as_json", "dot", "mermaid", "svg", "text"]

Sessions = Sequence[session_pb2.Session]

_MERMAID_SHAPES = {COMPLETED: ('["', '"]'), HALTED: ('{{"', '"}}'), HELD: ('(["', '"])'), FAILED: ('[/"', '"\\]')}
_MERMAID_CLASSES = (
    "classDef completed fill:#e8f5e9,stroke:#2e7d32,color:#000",
    "classDef halted fill:#ffebee,stroke:#b71c1c,stroke-width:3px,color:#000",
    "classDef held fill:#fff8e1,stroke:#ff8f00,stroke-width:2px,color:#000",
    "classDef failed fill:#eeeeee,stroke:#616161,stroke-dasharray:5 5,color:#000",
)
_DOT_STYLES = {
    COMPLETED: 'shape=box, style=filled, fillcolor="#e8f5e9", color="#2e7d32"',
    HALTED: 'shape=octagon, style=filled, fillcolor="#ffebee", color="#b71c1c", penwidth=3',
    HELD: 'shape=box, style="filled,rounded", fillcolor="#fff8e1", color="#ff8f00", penwidth=2',
    FAILED: 'shape=invtrapezium, style="filled,dashed", fillcolor="#eeeeee", color="#616161"',
}
_EMPTY = "no window yet"


def mermaid(sessions: Sessions) -> str:
    """Return a Mermaid flowchart."""
    lines = ["flowchart TD"]
    for place, session in enumerate(sessions):
        # One line, because Mermaid leaves no room for more above the windows.
        lines.append(f'  subgraph s{place}["{_in_mermaid([", ".join(title_lines(session))])}"]')
        lines.extend(f"    {line}" for line in _mermaid_windows(place, session))
        lines.append("  end")
    for parent, child in delegations(sessions):
        name = _in_mermaid([f"delegates to {sessions[child].agent.agent_type or 'an agent'}"])
        lines.append(f'  s{parent} -. "{name}" .-> s{child}')
    lines.extend(f"  {line}" for line in _MERMAID_CLASSES)
    return "\n".join(lines) + "\n"


def _mermaid_windows(place: int, session: session_pb2.Session) -> Iterator[str]:
    windows = drawn(session)
    names = _names(place, windows)
    if not windows:
        yield f's{place}e["{_EMPTY}"]'
    for one in windows:
        before, after = _MERMAID_SHAPES[one.status]
        yield f"{names[one.window.window_id]}{before}{_in_mermaid(_label(one))}{after}:::{one.status.lower()}"
    for one in windows:
        for parent, told in _edges(one):
            arrow = f'-- "{_in_mermaid([told])}" -->' if told else "-->"
            yield f"{names[parent]} {arrow} {names[one.window.window_id]}"


def _names(place: int, windows: Sequence[Drawn]) -> dict[str, str]:
    return {one.window.window_id: f"s{place}w{number}" for number, one in enumerate(windows)}


def _label(one: Drawn) -> list[str]:
    status = [] if one.status == COMPLETED else [one.status]
    return [f"Window {one.name}", *status, ", ".join(one.facts), one.window.strategy]


def _edges(one: Drawn) -> Iterator[tuple[str, str]]:
    told = {edge.source_id: transfer_words(edge) for edge in one.window.edges}
    for parent in one.parents:
        yield parent, told.get(parent, "")


def _in_mermaid(lines: Sequence[str]) -> str:
    """Return a label's lines with entities for all characters that could end it or be markup, above all # and &."""
    return "<br/>".join("".join(_entity(char) for char in line) for line in lines if line)


def _entity(char: str) -> str:
    if char.isalnum() or char in " .,:=_-()+@/":
        return char
    return f"#{ord(char)};" if char.isprintable() else " "


def dot(sessions: Sessions) -> str:
    """Return a Graphviz digraph, one cluster per session."""
    lines = [
        "digraph windows {",
        "  compound=true;",
        '  node [fontname="Helvetica"];',
        '  edge [fontname="Helvetica"];',
    ]
    for place, session in enumerate(sessions):
        lines.append(f"  subgraph cluster_s{place} {{")
        lines.append(f"    label={_in_dot(title_lines(session))};")
        lines.extend(f"    {line}" for line in _dot_windows(place, session))
        lines.append("  }")
    for parent, child in delegations(sessions):
        name = _in_dot([f"delegates to {sessions[child].agent.agent_type or 'an agent'}"])
        frames = f"ltail=cluster_s{parent}, lhead=cluster_s{child}"
        lines.append(
            f"  {_first(parent, sessions)} -> {_first(child, sessions)} [label={name}, style=dashed, {frames}];"
        )
    return "\n".join([*lines, "}"]) + "\n"


def _first(place: int, sessions: Sessions) -> str:
    return f"s{place}w0" if sessions[place].windows else f"s{place}e"


def _dot_windows(place: int, session: session_pb2.Session) -> Iterator[str]:
    windows = drawn(session)
    names = _names(place, windows)
    if not windows:
        yield f"s{place}e [label={_in_dot([_EMPTY])}, shape=plaintext];"
    for one in windows:
        yield f"{names[one.window.window_id]} [label={_in_dot(_label(one))}, {_DOT_STYLES[one.status]}];"
    for one in windows:
        for parent, told in _edges(one):
            label = f" [label={_in_dot([told])}]" if told else ""
            yield f"{names[parent]} -> {names[one.window.window_id]}{label};"


def _in_dot(lines: Sequence[str]) -> str:
    safe = ("".join(char if char.isprintable() else " " for char in line) for line in lines if line)
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in safe) + '"'


def as_json(sessions: Sessions) -> str:
    """Return a JSON document: the sessions with windows and edges, and the delegations. Budgets are in millionths."""
    document = {
        "sessions": [_session(session) for session in sessions],
        "delegations": [
            {
                "parent_session_id": sessions[parent].session_id,
                "child_session_id": sessions[child].session_id,
                "agent_type": sessions[child].agent.agent_type,
            }
            for parent, child in delegations(sessions)
        ],
    }
    return json.dumps(document, ensure_ascii=False) + "\n"


def _session(session: session_pb2.Session) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "root_session_id": session.root_session_id,
        "parent_session_id": session.parent_session_id or None,
        "agent_type": session.agent.agent_type or None,
        "loop_depth": session.loop_depth,
        "status": status_word(session),
        "breaker": breaker_word(session),
        "safety_budget_micros": session.safety_budget_micros,
        "charged_micros": session.charged_micros,
        "accumulate": "sum" if session.accumulate_sum else "min",
        "ancestor_halt": session.ancestor_halt.reason or None,
        "chain_tip": session.chain_tip,
        "leaf_ids": list(session.leaf_ids),
        "windows": [_window(one) for one in drawn(session)],
    }


def _window(one: Drawn) -> dict[str, Any]:
    window = one.window
    return {
        "name": one.name,
        "window_id": window.window_id,
        "window_number": window.window_number,
        "parent_ids": list(window.parent_ids),
        "child_ids": list(window.child_ids),
        "pattern": window.pattern,
        "strategy": window.strategy,
        "status": window.status,
        "quality_tier": window.quality_tier,
        "risk_level": risk_word(window),
        "safety_budget_micros": window.safety_budget_micros,
        "charge_micros": window.charge_micros,
        "hmac": window.hmac,
        "hmac_chain_tip": window.hmac_chain_tip,
        "envelope_etag": window.envelope_etag,
        "token_count": window.token_count,
        "response_hash": window.response_hash,
        "timestamp": window.timestamp,
        "edges": [
            {
                "source_id": edge.source_id,
                "target_id": edge.target_id,
                "transfer_type": session_pb2.TransferType.Name(edge.transfer_type).removeprefix("TRANSFER_TYPE_"),
                "transferred_tokens": edge.transferred_tokens,
                "summary_hash": edge.summary_hash or None,
            }
            for edge in window.edges
        ],
    }
