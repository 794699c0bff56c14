"""The state of a session according to its audit chain. No store may claim a higher budget (I1; docs/adr/0012).

A key that is rolled back on a running server looks like a younger session. The token reveals this, except for changes outside
its path: the cost of the sessions below, and windows of other branches. The chain records these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from interlock.domain.budget import FULL, Micros, micros
from interlock.domain.chain.audit_events import STREAM_BEGUN
from interlock.domain.chain.chain import WINDOW_FAILED, WINDOW_SEALED, EventRecord
from interlock.domain.chain.provenance import SUB_AGENT_STARTED
from interlock.domain.errors import Refused

CASCADED = "SAFETY_BUDGET_CASCADED"
TERMINATED, BY_CLIENT, BY_ADMIN = "SESSION_TERMINATED", "CLIENT", "ADMIN"


@dataclass(frozen=True)
class ChainState:
    """The lowest budget that sessions below left, the number of sealed windows, and the number of started sessions.

    *ended*: its client or an admin ended it. *streams_until_ms*: when the first of the streams that have no end on record has to have one,
    in ms since the epoch; 0 without such a stream.
    """

    budget: Micros
    sealed: int
    started: int = 0
    ended: bool = False
    streams_until_ms: int = 0

    @classmethod
    def from_events(cls, events: Iterable[EventRecord], *, excluding: str = "") -> Self:
        """Return the state that the events of one session's chain show. The window *excluding* is left out."""
        budget, sealed, started, over, streams = FULL, 0, set[str](), False, OpenStreams()
        for event in events:
            streams.note(event)
            if event.event_type == CASCADED:
                budget = min(budget, cascaded_budget(event.data_json))
            elif event.event_type == WINDOW_SEALED and event.window_id != excluding:
                sealed += 1
            elif event.event_type == SUB_AGENT_STARTED:
                started.add(started_session(event.data_json))
            over = over or ended_by_client(event.event_type, event.data_json)
        return cls(budget, sealed, len(started - {""}), over, streams.until_ms(excluding=excluding))


class OpenStreams:
    """The windows of which parts may have left and that are not sealed."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}

    def note(self, event: EventRecord) -> None:
        """Take the next event of a session."""
        if event.event_type == STREAM_BEGUN:
            self._until[event.window_id] = _until_ms(event.data_json)
        elif event.event_type in {WINDOW_SEALED, WINDOW_FAILED}:
            self._until.pop(event.window_id, None)

    def until_ms(self, *, excluding: str = "") -> int:
        """Return when the first of them, without the window *excluding*, has to be closed; 0 without one."""
        return min((until for window, until in self._until.items() if window != excluding), default=0)


WHOLE = ChainState(FULL, 0)
"""The state of a session without records."""


def started_session(data_json: str) -> str:
    """Return the session that the data of a SUB_AGENT_STARTED event name; empty without one."""
    try:
        named = json.loads(data_json)["session_id"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return ""
    return named if isinstance(named, str) else ""


def ended_by_client(event_type: str, data_json: str) -> bool:
    """Tell whether an event says that a session's client, or an admin in its place, ended it."""
    if event_type != TERMINATED:
        return False
    try:
        return json.loads(data_json)["reason"] in (BY_CLIENT, BY_ADMIN)
    except (ValueError, RecursionError, LookupError, TypeError):
        return False


def cascaded_budget(data_json: str) -> Micros:
    """Return the budget in the data of a SAFETY_BUDGET_CASCADED event; the full budget without a valid one."""
    try:
        after = json.loads(data_json)["after"]
        told = micros(after) if isinstance(after, str) else FULL
    except (ValueError, RecursionError, LookupError, TypeError, ArithmeticError, Refused):
        return FULL
    return told if 0 <= told <= FULL else FULL


def _until_ms(data_json: str) -> int:
    try:
        until = json.loads(data_json)["until_ms"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return 1
    return until if type(until) is int and until > 0 else 1
