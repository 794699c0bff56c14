"""The links between the chains of an agent tree, and the faults of a link (SPEC-012 §8).

Each session has its own chain under its own key. A parent's trail names its children and a child's trail names its parent;
these links make the tree. A trail is read once and reduced to what the links need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock.domain.chain.chain import Integrity, Verification
from interlock.domain.chain.marks import is_erased, is_truncated

SESSION_CREATED = "SESSION_CREATED"
SUB_AGENT_STARTED = "SUB_AGENT_STARTED"
SUB_AGENT_RESULT = "SUB_AGENT_RESULT"
DELEGATED = "DELEGATED"

CHILD_MISSING = "CHILD_MISSING"
CHILD_BROKEN = "CHILD_BROKEN"
CHILD_INCOMPLETE = "CHILD_INCOMPLETE"
NOT_LINKED = "NOT_LINKED"
GRANT_MISMATCH = "GRANT_MISMATCH"
DEPTH_MISMATCH = "DEPTH_MISMATCH"
NOT_DELEGATED = "NOT_DELEGATED"
RESULT_MISMATCH = "RESULT_MISMATCH"
TIP_MISMATCH = "TIP_MISMATCH"
NOT_COVERED = "NOT_COVERED"
NOT_RECORDED = "NOT_RECORDED"
RESULT_NOT_RECORDED = "RESULT_NOT_RECORDED"

MEANING: Mapping[str, str] = {
    CHILD_MISSING: "the audit log has nothing of the child",
    CHILD_BROKEN: "the child's own chain does not verify",
    CHILD_INCOMPLETE: "windows or reports of the child are gone",
    NOT_LINKED: "the child's SESSION_CREATED does not name this parent and this root",
    GRANT_MISMATCH: "the child was created under another grant or as another agent type than the parent recorded",
    DEPTH_MISMATCH: "the child's depth is not its parent's plus one",
    NOT_DELEGATED: "the parent's trail holds a result of a session that it did not start",
    RESULT_MISMATCH: "the child has no window of the recorded id and HMAC",
    TIP_MISMATCH: "the recorded chain tip is not the HMAC of a window of the child, sealed no earlier than the result",
    NOT_COVERED: "the report of the consuming window, and so its HMAC, does not cover the recorded result",
    NOT_RECORDED: "the child names this parent, whose trail does not say that it started the child",
    RESULT_NOT_RECORDED: "the report of this window covers a result that the trail does not record",
}
"""The text of each fault of a link, for people."""

OF_THE_CHILD = frozenset({CHILD_BROKEN, CHILD_INCOMPLETE})
"""Faults of the child's own chain, which names its first fault."""


@dataclass(frozen=True)
class ConsumedResult:
    """A parent's reference to a sub-agent's result: in an event of its trail, or in the report of a window."""

    session_id: str
    window_id: str
    hmac: str
    chain_tip: str


@dataclass(frozen=True)
class SessionOrigin:
    """The place of a session in the tree, from its SESSION_CREATED event; empty and 0 for a root."""

    parent_session_id: str
    root_session_id: str
    agent_type: str
    grant_id: str
    loop_depth: int


@dataclass(frozen=True)
class Started:
    """A child according to its parent's SUB_AGENT_STARTED event."""

    session_id: str
    agent_type: str
    grant_id: str


@dataclass(frozen=True)
class Trail:
    """One session's trail: the result of its verification, and what the links of the tree need.

    ``steps`` are its starts and results (with the consuming window) by sequence. ``seals`` are the place and HMAC of each
    window. ``covered`` are the results in the sealed reports, by window, in order.
    """

    session_id: str
    found: Verification
    created: SessionOrigin
    steps: tuple[tuple[str, Started | ConsumedResult], ...]
    seals: Mapping[str, tuple[int, str]]
    covered: tuple[tuple[str, ConsumedResult], ...]

    @property
    def started(self) -> frozenset[str]:
        """Ids of the sessions that it started."""
        return frozenset(step.session_id for _, step in self.steps if isinstance(step, Started))


def read_origin(data: Mapping[str, Any]) -> SessionOrigin:
    """Return the place in the tree from the data of a SESSION_CREATED event. Invalid values are empty."""
    depth = data.get("loop_depth", 0)
    return SessionOrigin(
        parent_session_id=_text(data, "parent_session_id"),
        root_session_id=_text(data, "root_session_id"),
        agent_type=_text(data, "agent_type"),
        grant_id=_text(data, "grant_id"),
        loop_depth=depth if type(depth) is int else -1,
    )


def read_started(data: Mapping[str, Any]) -> Started:
    """Return the child from the data of a SUB_AGENT_STARTED event."""
    return Started(_text(data, "session_id"), _text(data, "agent_type"), _text(data, "grant_id"))


def read_result(data: Mapping[str, Any], *, prefix: str = "") -> ConsumedResult:
    """Return the result that a SUB_AGENT_RESULT event (with its *prefix*) or an entry of a report's linked_results names."""
    return ConsumedResult(
        session_id=_text(data, f"{prefix}session_id"),
        window_id=_text(data, f"{prefix}window_id"),
        hmac=_text(data, f"{prefix}hmac"),
        chain_tip=_text(data, f"{prefix}chain_tip"),
    )


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else "\ufffd"


def delegation_fault(parent: Trail, started: Started, child: Trail | None, *, root_id: str) -> str:
    """Return the fault of a delegation; empty when it verifies."""
    if child is None:
        return CHILD_MISSING
    if is_truncated(child.found.marks):
        return _own_fault(child)  # its origin was removed with its first event; the parent's record remains
    if fault := _kinship_fault(parent, child, root_id):
        return fault
    if (child.created.grant_id, child.created.agent_type) != (started.grant_id, started.agent_type):
        return GRANT_MISMATCH
    return _own_fault(child)


def result_fault(parent: Trail, window_id: str, result: ConsumedResult, child: Trail | None, *, root_id: str) -> str:
    """Return the fault of a consumed result; empty when it verifies (SPEC-012 §8.2, steps 3 to 5)."""
    if child is None:
        return CHILD_MISSING
    if is_truncated(child.found.marks):
        return _own_fault(child)
    fault = _kinship_fault(parent, child, root_id)
    if not fault and result.session_id not in parent.started:
        fault = NOT_DELEGATED
    fault = fault or _own_fault(child) or _value_fault(result, child)
    covered = (window_id, result) in parent.covered or is_erased(parent.found.marks)
    return fault or ("" if covered else NOT_COVERED)


def _value_fault(result: ConsumedResult, child: Trail) -> str:
    place, hmac = child.seals.get(result.window_id, (0, ""))
    if not hmac or hmac != result.hmac:
        return RESULT_MISMATCH
    # The child may have continued since: its tip at that time is one of its windows, no older than the consumed one.
    held = any(tip == result.chain_tip and at >= place for at, tip in child.seals.values())
    return "" if held else TIP_MISMATCH


def unrecorded(trail: Trail) -> tuple[tuple[str, ConsumedResult], ...]:
    """Return the results that sealed reports cover without an event that records them, with their windows."""
    recorded = {(window_id, step) for window_id, step in trail.steps if isinstance(step, ConsumedResult)}
    return tuple(one for one in trail.covered if one not in recorded)


def _kinship_fault(parent: Trail, child: Trail, root_id: str) -> str:
    if (child.created.parent_session_id, child.created.root_session_id) != (parent.session_id, root_id):
        return NOT_LINKED
    return "" if child.created.loop_depth == parent.created.loop_depth + 1 else DEPTH_MISMATCH


def _own_fault(child: Trail) -> str:
    return {Integrity.BROKEN: CHILD_BROKEN, Integrity.PARTIAL: CHILD_INCOMPLETE}.get(child.found.integrity, "")
