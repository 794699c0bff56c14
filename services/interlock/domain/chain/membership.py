"""Whether the records of a chain are of its session: an HMAC vouches for what it covers, not for where the record is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

FOREIGN = "FOREIGN_SESSION"
"""Reason of a record of another session."""


class _Record(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def session_id(self) -> str: ...

    @property
    def window_id(self) -> str: ...


class _Window(_Record, Protocol):
    @property
    def window_number(self) -> int: ...


class _Event(_Record, Protocol):
    @property
    def sequence(self) -> int: ...


W = TypeVar("W", bound=_Window)
E = TypeVar("E", bound=_Event)
Place = tuple[Literal["event", "window"], int, str, str]
"""The values of a ``Fault``."""


@dataclass(frozen=True)
class OfSession(Generic[W, E]):
    """The records of one session, all under its own id: one whose id alone was edited has no second fault for it."""

    windows: Sequence[W]
    events: Sequence[E]
    foreign: Sequence[Place]
    """Faults of those that were handed in under another session's id."""


def of_session(windows: Sequence[W], events: Sequence[E], session_id: str = "") -> OfSession[W, E]:
    """Return the records as those of *session_id*; without one, of the session that most events name, or most windows."""
    named = [one.session_id for one in events] or [one.session_id for one in windows]
    own = session_id or max(dict.fromkeys(named), key=named.count, default="")
    foreign: list[Place] = [("event", one.sequence, FOREIGN, "") for one in events if one.session_id != own]
    foreign += [("window", one.window_number, FOREIGN, one.window_id) for one in windows if one.session_id != own]
    if foreign:
        windows = [replace(one, session_id=own) for one in windows]
        events = [replace(one, session_id=own) for one in events]
    return OfSession(windows, events, foreign)
