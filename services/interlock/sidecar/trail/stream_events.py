"""What the audit trail says of an answer that is released in parts: its hold, each part, its end (docs/adr/0030).

A part is on record before it leaves. Its running hash is over all text that was released so far, so that the chain tells to the byte
what a client got, and no text is in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.chain.audit_events import STREAM_BEGUN, STREAM_ENDED, STREAM_PART
from interlock.domain.dag.dag import BRANCH, LINEAR
from interlock.domain.risk.risk import RiskLevel
from interlock.sidecar.trail.events import INFO, WARN, event
from interlock.sidecar.trail.response_headers import word

BEGUN, PART, ENDED = STREAM_BEGUN, STREAM_PART, STREAM_ENDED
COMPLETE, CUT, BROKEN, CALLER_LEFT, LOST = "COMPLETE", "CUT", "BROKEN", "CALLER_LEFT", "LOST"
"""How the stream of a window ends."""


class RunningHash:
    """SHA-256 over all text that was released."""

    def __init__(self, digest: hashlib._Hash | None = None, characters: int = 0, parts: int = 0) -> None:
        self._digest = hashlib.sha256() if digest is None else digest
        self.characters, self.parts = characters, parts

    def add(self, text: str) -> None:
        """Count one more part."""
        self._digest.update(text.encode("utf-8", "surrogatepass"))
        self.characters += len(text)
        self.parts += 1

    def copy(self) -> RunningHash:
        """Return the same, which counts by itself from here on."""
        return RunningHash(self._digest.copy(), self.characters, self.parts)

    @property
    def value(self) -> str:
        """The hash, as hashes are written everywhere."""
        return "sha256:" + self._digest.hexdigest()


def begun(opened: session_pb2.OpenedWindow, *, hold: int, ceiling: int, until_ms: int) -> audit_pb2.NewEvent:
    """A window holds *hold* millionths: with this a window whose sidecar dies can be closed and charged."""
    caller = opened.caller_budget
    return event(
        BEGUN, INFO, window_number=opened.window_number, parent_ids=sorted(opened.parent_ids),
        parent_hmacs=sorted(opened.parent_hmacs), hold_micros=hold, ceiling_micros=ceiling, until_ms=until_ms,
        key_version=opened.key_version, caller_id=caller.caller_id or None, caller_period=caller.period or None,
    )  # fmt: skip


def part(running: RunningHash, report: dpe_pb2.Report) -> audit_pb2.NewEvent:
    """The latest part of *running* is about to leave, judged with what came before it."""
    return event(
        PART, INFO, part=running.parts, characters=running.characters, running_hash=running.value,
        risk_level=word(common_pb2.RiskLevel, report.risk_level),
    )  # fmt: skip


def ended(running: RunningHash, ending: str) -> audit_pb2.NewEvent:
    """The stream ended; it is sealed with its window."""
    severity = INFO if ending == COMPLETE else WARN
    return event(
        ENDED, severity, parts=running.parts, characters=running.characters, running_hash=running.value, ending=ending
    )


def given_up() -> audit_pb2.NewEvent:
    """The window held budget for parts and is given up: none of them was on record, and none is put there from now on."""
    return ended(RunningHash(), LOST)


def began(window_id: str, data: Mapping[str, Any]) -> session_pb2.StreamBegan:
    """Return what the session service is told of a begun stream, to hold again what it holds."""
    return session_pb2.StreamBegan(
        window_id=window_id, parent_ids=data["parent_ids"], hold_micros=data["hold_micros"], until_ms=data["until_ms"],
        caller_period=data.get("caller_period", 0),
    )  # fmt: skip


def lost(
    session_id: str,
    root: str,
    window_id: str,
    begun_data: Mapping[str, Any],
    last: Mapping[str, Any],
    *,
    spent: Mapping[str, Any],
    beside: bool = False,
) -> audit_pb2.AppendRequest:
    """Return the seal of a window whose sidecar died while it released parts: at the hold, the worst that it may have cost.

    *beside*: another window was sealed in its place, since the store was set back. It is a branch from the parents that *begun_data*
    names then.
    *last* are the data of its latest part on record, *spent* those of the latest reservation for its model calls; empty: there is none.
    """
    charge, released = begun_data["hold_micros"], last.get("running_hash") or RunningHash().value
    pattern = BRANCH if beside else LINEAR
    commit = session_pb2.CommitWindowRequest(
        session_id=session_id, root_session_id=root, window_id=window_id, parent_ids=begun_data["parent_ids"],
        window_number=begun_data["window_number"], risk_level=common_pb2.RiskLevel.ValueType(RiskLevel.CRITICAL.value),
        charge_micros=charge, ceiling_micros=begun_data["ceiling_micros"], response_hash=released, quality_tier="D",
        strategy="push", status="HALTED", pattern=pattern, key_version=begun_data["key_version"],
        caller_id=begun_data.get("caller_id", ""), caller_period=begun_data.get("caller_period", 0),
        spent_tokens=spent.get("tokens", 0), spent_usd_micros=spent.get("usd_micros", 0),
    )  # fmt: skip
    told = {"parts": last.get("part", 0), "characters": last.get("characters", 0), "running_hash": released}
    return audit_pb2.AppendRequest(
        session_id=session_id, window_id=window_id, window_number=commit.window_number, parent_ids=commit.parent_ids,
        parent_hmacs=begun_data["parent_hmacs"], response_hash=released, risk_level=commit.risk_level, charge_micros=charge,
        report=dpe_pb2.Report(risk_level=commit.risk_level, composite_score=1.0), status="HALTED", settlement=commit,
        pattern=pattern, events=[event(ENDED, WARN, **told, ending=LOST)],
    )  # fmt: skip
