"""Output of ``interlock audit verify --tree``: the tree of sessions with every link, for people and for programs."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.text import Text
from rich.tree import Tree as Drawn

from interlock.audit.export.export import printable
from interlock.audit.tree.walk import Tree, TreeLink
from interlock.domain.budget import Micros, as_decimal
from interlock.domain.chain.chain import Integrity, Verification
from interlock.domain.chain.provenance import DELEGATED, MEANING, SUB_AGENT_RESULT, Trail

WIDE = 240

STYLES = {
    Integrity.VALID: "green",
    Integrity.UNVERIFIED: "green",
    Integrity.PARTIAL: "yellow",
    Integrity.BROKEN: "red",
    Integrity.TRUNCATED: "yellow",
}


def as_json(found: Verification) -> dict[str, Any]:
    """Return the result for one chain."""
    return {
        "integrity": found.integrity.name,
        "events": found.events,
        "windows": found.windows,
        "chain_tip": printable(found.chain_tip),
        "charged_micros": found.charged_micros,
        "marks": [
            {"sequence": mark.sequence, "event_type": mark.event_type, "timestamp": printable(mark.timestamp)}
            | {"data": printable(mark.data_json)}
            for mark in found.marks
        ],
        "faults": [
            {"what": fault.what, "index": fault.index, "reason": fault.reason}
            | ({"window_id": printable(fault.window_id)} if fault.window_id else {})
            for fault in found.faults
        ],
    }


def tree_as_json(tree: Tree) -> dict[str, Any]:
    """Return the result for the tree, with the fields of VerifyTreeResponse."""
    return {
        "session_id": tree.root_id,
        "integrity": tree.integrity.name,
        "broken": printable(tree.broken),
        "charged_micros": tree.charged_micros,
        "sessions": [
            {
                "session_id": trail.session_id,
                "parent_session_id": printable(trail.created.parent_session_id),
                "agent_type": printable(trail.created.agent_type),
                "loop_depth": trail.created.loop_depth,
                "chain": as_json(trail.found),
            }
            for trail in tree.trails
        ],
        "links": [
            {name: printable(value) for name, value in vars(link).items()}
            | ({"meaning": MEANING[link.fault]} if link.fault else {})
            for link in tree.links
        ],
    }


def print_tree(tree: Tree) -> None:
    """Draw the sessions as a tree, each with its verdict, its consumed results and its faults."""
    # A file or a pipe gets whole lines; on a terminal a long line wraps below its branch.
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else WIDE)
    verdict = tree.integrity
    console.print(Text(f"{verdict.name}  tree of {tree.root_id}", style=STYLES[verdict]))
    links = f"{len(tree.links)} links" if len(tree.links) != 1 else "1 link"
    console.print(f"  {_sessions(tree)}, {links}, {as_decimal(Micros(tree.charged_micros))} charged\n")
    console.print(_drawn(tree))
    console.print()
    if tree.broken:
        console.print(Text(f"first break: {printable(tree.broken)}", style=STYLES[Integrity.BROKEN]), soft_wrap=True)
    else:
        console.print("every chain and every link holds")


def _sessions(tree: Tree) -> str:
    return f"{len(tree.trails)} sessions" if len(tree.trails) != 1 else "1 session"


def _drawn(tree: Tree) -> Drawn:
    nodes: dict[str, Drawn] = {}
    for trail in tree.trails:
        parent = nodes.get(trail.created.parent_session_id)
        label = _label(trail)
        nodes[trail.session_id] = parent.add(label) if parent else Drawn(label)
    root = nodes[tree.root_id]
    for link in tree.links:
        # A valid delegation is the branch itself.
        if link.kind == SUB_AGENT_RESULT or link.fault:
            nodes.get(link.parent_session_id, root).add(_told(link))
    for trail in tree.trails[1:]:
        if trail.created.parent_session_id not in nodes:
            root.add(nodes[trail.session_id])
    return root


def _label(trail: Trail) -> Text:
    found = trail.found
    name = printable(trail.created.agent_type) or "(unregistered)"
    label = Text(f"{found.integrity.name:<10} ", style=STYLES[found.integrity])
    label.append(f"{trail.session_id}  {name}, depth {trail.created.loop_depth}", style="default")
    label.append(
        f"\n{found.windows} windows, {found.events} events, tip {found.chain_tip[:19] or '(none)'}", style="dim"
    )
    for fault in found.faults[:5]:
        where = f" {printable(fault.window_id)}" if fault.window_id else ""
        label.append(f"\n{fault.what} {fault.index}: {fault.reason}{where}", style="red")
    if len(found.faults) > 5:
        label.append(f"\nand {len(found.faults) - 5} more faults", style="red")
    return label


def _told(link: TreeLink) -> Text:
    what = "delegated to" if link.kind == DELEGATED else "consumed"
    where = f" in {printable(link.window_id)}" if link.window_id else ""
    tip = f", tip {printable(link.chain_tip)[:19]}" if link.chain_tip else ""
    verdict = f"✗ {link.fault}" if link.fault else "✓"
    return Text(
        f"{verdict} {what} {printable(link.child_session_id)}{where}{tip}", style="red" if link.fault else "green"
    )
