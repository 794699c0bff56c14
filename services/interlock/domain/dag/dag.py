"""The window DAG: its nodes, edges, five invariants and limits (SPEC-004 §3, §11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from interlock.domain.budget import Micros
from interlock.domain.ids import ContinuationId, WindowId
from interlock.domain.risk.risk import RiskLevel

LINEAR, FAN_OUT, FAN_IN, BRANCH = "LINEAR", "FAN_OUT", "FAN_IN", "BRANCH"
PATTERNS = (LINEAR, FAN_OUT, FAN_IN, BRANCH)
STRATEGIES = ("push", "pull", "reflexive", "agentic", "hierarchical", "batch", "streaming", "fan-out", "fan-in")
TIERS = ("S", "A", "B", "C", "D")
STATUSES = ("COMPLETED", "HALTED", "HELD")
COMPLETED, FAILED = "COMPLETED", "FAILED"
TRANSFERS = ("UNSPECIFIED", "FULL_CONTEXT", "SUMMARY", "FACTS_ONLY", "RESULT_ONLY")


@dataclass(frozen=True)
class Limits:
    """The limits of a session's DAG (SPEC-004 §11)."""

    max_windows: int
    max_dag_nodes: int
    max_fan_out: int = 10


@dataclass(frozen=True)
class Edge:
    """What a window received from one of its parents (SPEC-004 §3.2). ``summary_hash`` is empty without a summary."""

    source_id: WindowId
    transfer_type: str
    transferred_tokens: int
    summary_hash: str


@dataclass(frozen=True)
class Seal:
    """What the audit log sealed for a window, and what its dispatch used.

    A FAILED window was never sealed: its texts are empty and its risk is ``None``.
    """

    risk_level: RiskLevel | None
    hmac: str
    timestamp: str
    response_hash: str
    envelope_etag: str
    quality_tier: str
    strategy: str
    token_count: int
    status: str


NO_SEAL = Seal(None, "", "", "", "", "", "", 0, FAILED)
"""The seal of a FAILED node."""


@dataclass(frozen=True)
class Node:
    """One window of a session (SPEC-004 §3.1). ``safety_budget`` is the budget on its path after this window."""

    window_id: WindowId
    window_number: int
    parent_ids: tuple[WindowId, ...]
    continuation_id: ContinuationId | None
    pattern: str
    safety_budget: Micros
    charge: Micros
    seal: Seal
    edges: tuple[Edge, ...] = ()
    failure: str = ""
    """The reason why it was never sealed; empty for every other window."""

    @property
    def failed(self) -> bool:
        """Whether the window failed: it has neither seal nor charge."""
        return self.seal.status == FAILED


def children(nodes: Sequence[Node]) -> Mapping[WindowId, tuple[WindowId, ...]]:
    """Return the ids of each window's children, in order."""
    found: dict[WindowId, tuple[WindowId, ...]] = {node.window_id: () for node in nodes}
    for node in nodes:
        for parent in node.parent_ids:
            found[parent] = (*found.get(parent, ()), node.window_id)
    return found


def chain_tips(nodes: Sequence[Node]) -> Mapping[WindowId, str]:
    """Return the chain tip of each window's path after it (SPEC-004 §3.1).

    It is the window's own HMAC. One without a seal added nothing: it leaves its parent's tip, and of several parents none.
    """
    tips: dict[WindowId, str] = {}
    for node in sorted(nodes, key=lambda node: node.window_number):
        before = tips.get(node.parent_ids[0], "") if len(node.parent_ids) == 1 else ""
        tips[node.window_id] = node.seal.hmac or before
    return tips


def leaves(nodes: Sequence[Node]) -> tuple[WindowId, ...]:
    """Return the sealed windows without a sealed child, in order."""
    continued = {parent for node in nodes if not node.failed for parent in node.parent_ids}
    return tuple(node.window_id for node in nodes if not node.failed and node.window_id not in continued)


def violations(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return each violated invariant of SPEC-004 §3.3 as ``NAME: window``; empty when all hold."""
    by_id = {node.window_id: node for node in nodes}
    return (
        *(f"DUPLICATE_ID: {node.window_id}" for node in nodes if by_id[node.window_id] is not node),
        *_cycles(nodes),
        *_roots(nodes),
        *_unreachable(nodes),
        *_unchained(nodes, by_id),
        *_misnumbered(nodes, by_id),
    )


def _cycles(nodes: Sequence[Node]) -> Iterable[str]:
    try:
        TopologicalSorter({node.window_id: node.parent_ids for node in nodes}).prepare()
    except CycleError as error:
        yield f"CYCLE: {error.args[1][0]}"


def _roots(nodes: Sequence[Node]) -> Iterable[str]:
    roots = [node for node in nodes if not node.parent_ids]
    if nodes and not roots:
        yield f"NO_ROOT: {nodes[0].window_id}"
    yield from (f"SECOND_ROOT: {node.window_id}" for node in roots[1:])
    yield from (f"ROOT_NUMBER: {node.window_id}" for node in roots if node.window_number != 1)


def _unreachable(nodes: Sequence[Node]) -> Iterable[str]:
    below = children(nodes)
    reached: set[WindowId] = set()
    waiting = [node.window_id for node in nodes if not node.parent_ids][:1]
    while waiting:
        current = waiting.pop()
        if current not in reached:
            reached.add(current)
            waiting.extend(below.get(current, ()))
    yield from (f"UNREACHABLE: {node.window_id}" for node in nodes if node.window_id not in reached)


def _unchained(nodes: Sequence[Node], by_id: Mapping[WindowId, Node]) -> Iterable[str]:
    """Yield windows without their own seal. The audit log verifies that a seal covers its parents' seals.

    A FAILED window has no seal, and no window may be chained to it.
    """
    for node in nodes:
        above = [by_id[parent] for parent in node.parent_ids if parent in by_id]
        seals = {parent.seal.hmac for parent in above} | {""}
        if any(parent.failed for parent in above) or (not node.failed and node.seal.hmac in seals):
            yield f"NOT_CHAINED: {node.window_id}"


def _misnumbered(nodes: Sequence[Node], by_id: Mapping[WindowId, Node]) -> Iterable[str]:
    """Yield windows whose number is not one above their highest parent's. Siblings of a fan-out share a number."""
    for node in nodes:
        numbers = [by_id[parent].window_number for parent in node.parent_ids if parent in by_id]
        if node.parent_ids and node.window_number != max(numbers, default=-1) + 1:
            yield f"NUMBERING: {node.window_id}"


def lineage_text(window_ids: Iterable[str]) -> str:
    """Return ``CRP-Provenance-Window-Lineage`` of a linear path, from the root (SPEC-002 §6.9, SPEC-004 §4.2).

    ``domain/dag/lineage.py`` writes it with brackets where windows ran in parallel.
    """
    return " -> ".join(window_ids)
