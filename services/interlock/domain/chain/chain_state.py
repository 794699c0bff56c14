"""What a session's audit chain says of it at any moment, pure: no store may say more (I1; docs/adr/0012).

A key that is set back on a server that goes on running looks like a session that is merely younger. The token shows it, except for
what happened beside its path: what sessions below cost this one, and windows of other branches. Those are on record here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from interlock.domain.budget import FULL, Micros, micros
from interlock.domain.chain.chain import WINDOW_SEALED, EventRecord
from interlock.domain.chain.provenance import SUB_AGENT_STARTED
from interlock.domain.errors import Refused

CASCADED = "SAFETY_BUDGET_CASCADED"


@dataclass(frozen=True)
class ChainState:
    """The lowest budget that sessions below left, how many windows were sealed, and how many sessions it started."""

    budget: Micros
    sealed: int
    started: int = 0

    @classmethod
    def from_events(cls, events: Iterable[EventRecord], *, excluding: str = "") -> Self:
        """Return the state that the events of one session's chain show. The window *excluding* is left out."""
        budget, sealed, started = FULL, 0, set[str]()
        for event in events:
            if event.event_type == CASCADED:
                budget = min(budget, cascaded_budget(event.data_json))
            elif event.event_type == WINDOW_SEALED and event.window_id != excluding:
                sealed += 1
            elif event.event_type == SUB_AGENT_STARTED:
                started.add(_started_session(event.data_json))
        return cls(budget, sealed, len(started - {""}))


WHOLE = ChainState(FULL, 0)
"""Of a session about which nothing is on record."""


def _started_session(data_json: str) -> str:
    """Return the session that a SUB_AGENT_STARTED names; empty for one that names none."""
    try:
        named = json.loads(data_json)["session_id"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return ""
    return named if isinstance(named, str) else ""


def cascaded_budget(data_json: str) -> Micros:
    """Return the budget that a SAFETY_BUDGET_CASCADED tells; all of it for one that tells none."""
    try:
        after = json.loads(data_json)["after"]
        told = micros(after) if isinstance(after, str) else FULL
    except (ValueError, RecursionError, LookupError, TypeError, ArithmeticError, Refused):
        return FULL
    return told if 0 <= told <= FULL else FULL
