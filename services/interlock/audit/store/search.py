"""Sessions by when they began and what became of them, and what would have been done: a part of the log's port, and its statements.

A search looks at a bounded number of sessions; each is told by look-ups in indexes, whatever its number of events (OBS-5).
"""

# ruff: noqa: S608 - the texts are constants of this module
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from interlock.audit.store import statements

Place = tuple[str, str]
"""Where a page goes on: time and session."""
LAST: Place = ("9999", "")
"""A place after everything."""

RUNNING, ENDED, HALTED, HELD, RELEASED = "RUNNING", "ENDED", "HALTED", "HELD", "RELEASED"


@dataclass(frozen=True)
class SessionSearch:
    """Which sessions are wanted. Empty values narrow nothing."""

    now: str
    """The time at which what is held counts as held."""
    mentioning: Sequence[str] = ()
    """Texts that the data of their first events hold."""
    since: str = ""
    until: str = ""
    outcome: str = ""
    last_risk: int = 0
    """Number of a risk level."""

    @property
    def is_narrow(self) -> bool:
        """Whether sessions have to be looked at that are not wanted: others are counted off by their time alone."""
        return bool(self.mentioning or self.outcome or self.last_risk)


class FoundSession(NamedTuple):
    """A session, when it began, the data of its first event, and all that became of it."""

    session_id: str
    created_at: str
    data_json: str
    outcomes: tuple[str, ...]


class WouldHaveRow(NamedTuple):
    """A WOULD_HAVE event."""

    session_id: str
    sequence: int
    window_id: str
    at: str
    data_json: str


class SearchReading(Protocol):
    """What any thread may read of them."""

    def find_sessions(self, search: SessionSearch, limit: int, before: Place, looked: int) -> tuple[list[FoundSession], Place | None]:  # fmt: skip
        """Return up to *limit* sessions before a place, the latest first, of at most *looked* ones; and where to go on, if there is more."""

    def would_haves(self, reason: str, since: str, limit: int, before: tuple[str, str, int]) -> list[WouldHaveRow]:
        """Return up to *limit* of them with this text, the latest first, before a place (time, session, sequence)."""

    def counted_would_haves(self, since: str, most: int) -> tuple[Mapping[tuple[str, str], int], str]:
        """Return how often each action and reason occurs in the last *most*, and the time of the first that was counted if there are more."""


_BEGAN = "FROM events AS e WHERE e.event_type = 'SESSION_CREATED' AND (e.timestamp, e.session_id) < (?, ?)"
FLOOR = f"SELECT e.timestamp, e.session_id {_BEGAN} ORDER BY e.timestamp DESC, e.session_id DESC LIMIT 1 OFFSET ?"
"""The last session that a search looks at."""

_ENDED = (
    "EXISTS (SELECT 1 FROM events AS t WHERE t.event_type = 'SESSION_TERMINATED' AND t.session_id = e.session_id{})"
)
_USED_UP = _ENDED.format(""" AND instr(t.data_json, '"reason":"SAFETY_BUDGET_DEPLETED"') > 0""")
_HALTED = (
    f"(EXISTS (SELECT 1 FROM windows AS w WHERE w.status = 'HALTED' AND w.session_id = e.session_id) OR {_USED_UP})"
)
_RELEASED = (
    "EXISTS (SELECT 1 FROM held AS h JOIN handouts AS o ON o.window_id = h.window_id WHERE h.session_id = e.session_id)"
)
_HELD = f"EXISTS (SELECT 1{statements.HELD_FROM} WHERE h.session_id = e.session_id AND {statements.STATUS} IN ('PENDING', 'APPROVED'))"
_CONDITIONS = {
    RUNNING: f"NOT {_ENDED.format('')}", ENDED: _ENDED.format(""), HALTED: _HALTED, HELD: _HELD, RELEASED: _RELEASED,
}  # fmt: skip
"""Outcome → its condition. That of HELD asks for the time twice."""
_LAST_RISK = (
    "(SELECT w.risk_level FROM windows AS w WHERE w.session_id = e.session_id"
    " ORDER BY w.window_number DESC, w.window_id DESC LIMIT 1)"
)
_FLAGS = ", ".join(_CONDITIONS.values())


def sessions_statement(search: SessionSearch, limit: int, before: Place, floor: Place) -> tuple[str, list[Any]]:
    """Return the statement of a search between two places, and its values."""
    text = f"SELECT e.session_id, e.timestamp, e.data_json, {_FLAGS} {_BEGAN} AND (e.timestamp, e.session_id) >= (?, ?)"
    names: list[Any] = [search.now, search.now, *before, *floor]
    for part in search.mentioning:
        text += " AND instr(e.data_json, ?) > 0"
        names.append(part)
    if search.outcome:
        text += f" AND {_CONDITIONS[search.outcome]}"
        names += [search.now, search.now] if search.outcome == HELD else []
    if search.last_risk:
        text += f" AND {_LAST_RISK} = ?"
        names.append(search.last_risk)
    return f"{text} ORDER BY e.timestamp DESC, e.session_id DESC LIMIT ?", [*names, limit]


def outcomes(flags: Sequence[Any]) -> Iterator[str]:
    """Yield the outcomes whose columns are set, in the order of the statement."""
    return (name for name, flag in zip(_CONDITIONS, flags, strict=True) if flag)


_WOULD = "FROM events WHERE event_type = 'WOULD_HAVE' AND timestamp >= ?"
WOULD_HAVES = (
    f"SELECT session_id, sequence, window_id, timestamp, data_json {_WOULD}"
    " AND (timestamp, session_id, sequence) < (?, ?, ?) AND instr(data_json, ?) > 0"
    " ORDER BY timestamp DESC, session_id DESC, sequence DESC LIMIT ?"
)
COUNTED = f"SELECT data_json, timestamp {_WOULD} ORDER BY timestamp DESC, session_id DESC, sequence DESC LIMIT ?"
