"""Names, facts and order that all pictures of a window DAG share (SPEC-004 Appendix A)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros, as_decimal

COMPLETED, HALTED, HELD, FAILED = "COMPLETED", "HALTED", "HELD", "FAILED"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Drawn:
    """A window in a picture: its short name, such as 2a, and its words."""

    window: session_pb2.Window
    name: str
    parents: tuple[str, ...]
    """Ids of the parents that are also drawn."""

    @property
    def status(self) -> str:
        """COMPLETED, HALTED, HELD or FAILED. Any other status is drawn as a failure."""
        return self.window.status if self.window.status in {COMPLETED, HALTED, HELD, FAILED} else FAILED

    @property
    def facts(self) -> list[str]:
        """The facts that Appendix A shows for a window, in its order. A failed window has no quality, risk or charge."""
        found = ["root"] if not self.window.parent_ids else []
        found.append(self.window.pattern or "LINEAR")
        if self.status != FAILED:
            found += [f"Quality={self.window.quality_tier or '-'}", f"Risk={risk_word(self.window)}"]
            found.append(f"Budget={as_decimal(Micros(self.window.safety_budget_micros))}")
        return found


def risk_word(window: session_pb2.Window) -> str:
    """Return the risk as a word."""
    return _word(common_pb2.RiskLevel, window.risk_level, "RISK_LEVEL_")


def breaker_word(session: session_pb2.Session) -> str:
    """Return the breaker's state as a word."""
    return _word(common_pb2.BreakerState, session.breaker, "BREAKER_STATE_")


def status_word(session: session_pb2.Session) -> str:
    """Return the session's status as a word."""
    return _word(session_pb2.SessionStatus, session.status, "SESSION_STATUS_")


def transfer_words(edge: session_pb2.Edge) -> str:
    """Return the transfer along an edge, in words; empty when the mesh transferred nothing."""
    if edge.transfer_type == session_pb2.TRANSFER_TYPE_UNSPECIFIED:
        return ""
    words = _word(session_pb2.TransferType, edge.transfer_type, "TRANSFER_TYPE_")
    return f"{words}, {edge.transferred_tokens} tokens" if edge.transferred_tokens else words


def _word(names: Any, number: int, prefix: str) -> str:
    return names.Name(number).removeprefix(prefix) if number in names.values() else str(number)


def title_lines(session: session_pb2.Session) -> list[str]:
    """Return the title lines of a session's frame: beside the lowest budget of its paths stands what all of them cost (F-16)."""
    budget, charged = as_decimal(Micros(session.safety_budget_micros)), as_decimal(Micros(session.charged_micros))
    return [
        session.session_id,
        f"{session.agent.agent_type or 'agent'}, depth {session.loop_depth}, {status_word(session)}",
        f"Budget={budget}, Charged={charged}, {breaker_word(session)}",
    ]


def drawn(session: session_pb2.Session) -> list[Drawn]:
    """Return a session's windows in order, with names: siblings get letters, and a path keeps its letter (2a, then 3a)."""
    windows = sorted(session.windows, key=lambda one: (one.window_number, one.timestamp, one.window_id))
    ids = {window.window_id for window in windows}
    taken: set[str] = set()
    suffixes: dict[str, str] = {}
    found = []
    for window in windows:
        suffix = next(one for one in _suffixes(window, suffixes) if f"{window.window_number}{one}" not in taken)
        suffixes[window.window_id] = suffix
        taken.add(name := f"{window.window_number}{suffix}")
        found.append(Drawn(window, name, tuple(parent for parent in window.parent_ids if parent in ids)))
    return found


def _suffixes(window: session_pb2.Window, known: Mapping[str, str]) -> Iterator[str]:
    if window.pattern in {"FAN_OUT", "BRANCH"}:
        yield from letters()
    elif len(window.parent_ids) == 1:
        yield known.get(window.parent_ids[0], "")
    else:
        yield ""
    yield from letters()


def letters() -> Iterator[str]:
    """Yield the letters a to z, then aa, ab and so on."""
    for length in count(1):
        yield from _words(length)


def _words(length: int) -> Iterator[str]:
    if length == 0:
        yield ""
        return
    for head in _words(length - 1):
        for letter in _LETTERS:
            yield head + letter


def delegations(sessions: Sequence[session_pb2.Session]) -> Iterable[tuple[int, int]]:
    """Yield the positions of parent and child for every session whose parent is also drawn."""
    places = {session.session_id: place for place, session in enumerate(sessions)}
    for place, session in enumerate(sessions):
        parent = places.get(session.parent_session_id)
        if parent is not None and parent != place:
            yield parent, place
