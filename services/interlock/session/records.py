"""How a session is written in its Redis hash. The Lua scripts read the plain fields; the JSON is for us alone.

terms JSON · policy, policy_hash · status, budget · tip, tip_number, tip_hmac, tip_budget, nodes · lease, lease_until, unsettled ·
max_windows, max_nodes · n:<index> window and tier · w:<window> record, JSON · r:<window> outcome · c:<continuation> window
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from interlock.domain.breaker import BreakerState
from interlock.domain.budget import Micros
from interlock.domain.dag import LINEAR, Limits, Node, Seal
from interlock.domain.ids import ContinuationId, SessionId, WindowId
from interlock.domain.risk import RiskLevel
from interlock.domain.session import (
    Committed,
    CommitWindow,
    Lease,
    Opened,
    Outcome,
    PolicyText,
    SessionState,
    Status,
    Terms,
)

NONE = "-"
"""How an absent continuation is spelled among words that are parted by spaces."""


def terms_to_json(terms: Terms) -> str:
    """Return the terms of a session as stored."""
    return orjson.dumps(terms).decode()


def terms_from_json(data: bytes) -> Terms:
    """Return the terms of a session from what is stored."""
    found: dict[str, Any] = orjson.loads(data)
    return Terms(
        session_id=SessionId(found["session_id"]),
        root_session_id=SessionId(found["root_session_id"]),
        scope=found["scope"],
        strategy=found["strategy"],
        nonce=found["nonce"],
        key_version=found["key_version"],
        loop_depth=found["loop_depth"],
        limits=Limits(**found["limits"]),
        created_us=found["created_us"],
    )


def record_to_json(ask: CommitWindow) -> str:
    """Return what a window keeps besides its outcome."""
    return orjson.dumps({"number": ask.window_number, "parents": ask.parent_ids, "seal": ask.seal}).decode()


def outcome_from_text(data: bytes) -> Outcome:
    """Return the outcome of a commit; ``commit.lua`` writes it."""
    index, path, session, before, status, charge, hmac, continuation = data.decode().split(" ")
    return Outcome(
        index=int(index),
        path_budget=Micros(int(path)),
        session_budget=Micros(int(session)),
        before=BreakerState(int(before)),
        status=Status(int(status)),
        charge=Micros(int(charge)),
        hmac=hmac,
        continuation_id=None if continuation == NONE else ContinuationId(continuation),
    )


def history_from(entries: Sequence[bytes]) -> tuple[tuple[WindowId, ...], tuple[str, ...]]:
    """Return window ids and quality tiers from ``n:`` entries."""
    pairs = [entry.decode().split(" ") for entry in entries]
    return tuple(WindowId(window) for window, _ in pairs), tuple(tier for _, tier in pairs)


def opened_from(reply: Sequence[Any]) -> Opened:
    """Return the lease in a reply of ``open.lua``."""
    terms, text, digest, parent, number, hmac, path, budget, unsettled, entries = reply
    lineage, history = history_from(entries)
    return Opened(
        terms=terms_from_json(terms),
        policy=PolicyText(text.decode(), digest.decode()),
        parent_id=WindowId(parent.decode()) if parent else None,
        parent_number=number,
        parent_hmac=hmac.decode(),
        path_budget=Micros(path),
        session_budget=Micros(budget),
        unsettled=WindowId(unsettled.decode()) if unsettled else None,
        lineage=lineage,
        quality_history=history,
    )


def committed_from(reply: Sequence[Any]) -> Committed:
    """Return the answer in a reply of ``commit.lua``."""
    duplicate, terms, policy_hash, outcome, entries = reply
    lineage, history = history_from(entries)
    return Committed(
        terms=terms_from_json(terms),
        policy_hash=policy_hash.decode(),
        outcome=outcome_from_text(outcome),
        duplicate=bool(duplicate),
        lineage=lineage,
        quality_history=history,
    )


def state_from(fields: Mapping[str, bytes]) -> SessionState:
    """Return the state of a session from all fields of its hash."""
    windows, _ = history_from([fields[f"n:{index}"] for index in range(1, int(fields["nodes"]) + 1)])
    outcomes = tuple(outcome_from_text(fields[f"r:{window}"]) for window in windows)
    pairs = zip(windows, outcomes, strict=True)
    lease, unsettled = fields["lease"].decode(), fields["unsettled"].decode()
    return SessionState(
        terms=terms_from_json(fields["terms"]),
        policy=PolicyText(fields["policy"].decode(), fields["policy_hash"].decode()),
        status=Status(int(fields["status"])),
        budget=Micros(int(fields["budget"])),
        nodes=tuple(_node(window, outcome, fields[f"w:{window}"]) for window, outcome in pairs),
        outcomes=outcomes,
        lease=Lease(WindowId(lease), int(fields["lease_until"])) if lease else None,
        unsettled=tuple(WindowId(window) for window in unsettled.split(",") if window),
    )


def _node(window: WindowId, outcome: Outcome, record: bytes) -> Node:
    found: dict[str, Any] = orjson.loads(record)
    seal = found["seal"]
    return Node(
        window_id=window,
        window_number=found["number"],
        parent_ids=tuple(WindowId(parent) for parent in found["parents"]),
        continuation_id=outcome.continuation_id,
        pattern=LINEAR,
        safety_budget=outcome.path_budget,
        charge=outcome.charge,
        seal=Seal(**{**seal, "risk_level": RiskLevel(seal["risk_level"])}),
    )
