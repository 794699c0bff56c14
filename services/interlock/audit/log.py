"""The port of the audit log, and its in-memory twin.

A log is written by one thread, in transactions of many requests, and read by any thread. It keeps what it is given; what
may be written is decided in ``seal.py``, inside the transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from interlock.domain.chain import EventRecord, WindowRecord, content_hash
from interlock.domain.errors import Kind, Refused


class StoreFailed(Refused):
    """The log cannot be read or written now; nothing of the transaction was kept (SVC-9)."""

    def __init__(self, reason: str, message: str, *, hint: str, cause: str) -> None:
        super().__init__(Kind.UNAVAILABLE, reason, message, metadata={"cause": cause}, retry_after_ms=1000)
        self.hint = hint
        """What the operator may do; it may name a path, so it goes to logs and readiness, not to callers."""


@dataclass(frozen=True)
class Chain:
    """One session's records in one consistent view, ordered by number and sequence."""

    windows: tuple[WindowRecord, ...]
    events: tuple[EventRecord, ...]

    @property
    def head(self) -> tuple[int, str]:
        """Return sequence and HMAC of the last event; (0, "") before the first."""
        return (self.events[-1].sequence, self.events[-1].hmac) if self.events else (0, "")


ContentKey = tuple[int, bytes]
"""Version of the master key, and the data key wrapped under it."""


@dataclass(frozen=True)
class Contents:
    """What is kept of a session's contents, encrypted, by window id."""

    key: ContentKey | None
    sealed: Mapping[str, bytes]


@dataclass(frozen=True)
class StoredReport:
    """A report with the seal that vouches for it."""

    window: WindowRecord
    body: bytes


class Writing(Protocol):
    """What a request may do inside a transaction; it sees what earlier requests of the same transaction wrote."""

    def head(self, session_id: str) -> tuple[int, str]:
        """Return sequence and HMAC of a session's last event; (0, "") before the first."""

    def window(self, window_id: str) -> WindowRecord | None:
        """Return a window of any session; its report is not read."""

    def is_continued(self, parent: WindowRecord) -> bool:
        """Return whether a window of the same session has *parent* among its parents."""

    def root_id(self, session_id: str) -> str:
        """Return the id of a session's first window; empty before it."""

    def holds(self, session_id: str, event_type: str) -> bool:
        """Return whether a session has an event of that type."""

    def chain(self, session_id: str) -> Chain:
        """Return all records of a session."""

    def add_events(self, events: Sequence[EventRecord]) -> None:
        """Add events; their sequences follow the head's."""

    def add_window(self, window: WindowRecord, report: bytes) -> None:
        """Add a window and its report."""

    def content_key(self, session_id: str) -> ContentKey | None:
        """Return a session's wrapped data key."""

    def add_content_key(self, session_id: str, version: int, wrapped: bytes) -> None:
        """Add a session's data key, wrapped under the master key of that version; once."""

    def add_content(self, session_id: str, window_id: str, sealed: bytes) -> None:
        """Add a window's encrypted content; once."""

    def drop_content(self, session_id: str, window_id: str) -> bool:
        """Delete a window's content, and return whether there was one."""

    def touch(self) -> None:
        """Make the transaction write something that means nothing, so that its commit shows whether writing works."""


Work = Callable[[Writing], Any]


@dataclass(frozen=True)
class Outcome:
    """What became of one request of a transaction: its value, or why it alone was undone."""

    value: Any = None
    error: Exception | None = None


class AuditLog(Protocol):
    """A durable, append-only log."""

    def commit(self, works: Sequence[Work]) -> list[Outcome]:
        """Run *works* in one transaction and return after it is durable.

        A work that raises is undone alone. Raises ``StoreFailed`` when nothing at all was kept.
        """

    def chain(self, session_id: str) -> Chain:
        """Return all records of a session, with report hashes taken from the stored bytes."""

    def events(self, session_id: str, *, after: int, limit: int) -> list[EventRecord]:
        """Return up to *limit* events whose sequence is above *after*."""

    def report(self, *, window_id: str = "", trail_id: str = "") -> StoredReport | None:
        """Return a report by its window or trail id."""

    def contents(self, session_id: str) -> Contents:
        """Return a session's encrypted contents."""

    def naming(self, root_session_id: str) -> list[str]:
        """Return the sessions whose SESSION_CREATED mentions *root_session_id*, anywhere in its data."""

    def ping(self) -> None:
        """Read something. Raises ``StoreFailed``."""

    def close(self) -> None:
        """Let go of everything; a later call opens again."""


@dataclass
class _State:
    events: dict[str, list[EventRecord]] = field(default_factory=dict)
    windows: dict[str, WindowRecord] = field(default_factory=dict)
    reports: dict[str, bytes] = field(default_factory=dict)
    keys: dict[str, ContentKey] = field(default_factory=dict)
    contents: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def copy(self) -> _State:
        events = {key: list(of) for key, of in self.events.items()}
        return _State(events, dict(self.windows), dict(self.reports), dict(self.keys), dict(self.contents))

    def of_session(self, session_id: str) -> list[WindowRecord]:
        mine = [w for w in self.windows.values() if w.session_id == session_id]
        return sorted(mine, key=lambda w: (w.window_number, w.window_id))


class _MemoryWriting:
    """Works on a copy; the log takes it over when the request has gone through."""

    def __init__(self, state: _State) -> None:
        self.state = state

    def head(self, session_id: str) -> tuple[int, str]:
        return self.chain(session_id).head

    def window(self, window_id: str) -> WindowRecord | None:
        found = self.state.windows.get(window_id)
        return found and replace(found, stored_report_hash="")

    def is_continued(self, parent: WindowRecord) -> bool:
        return any(parent.window_id in w.parent_ids for w in self.state.of_session(parent.session_id))

    def root_id(self, session_id: str) -> str:
        return next((w.window_id for w in self.state.of_session(session_id)), "")

    def holds(self, session_id: str, event_type: str) -> bool:
        return any(e.event_type == event_type for e in self.state.events.get(session_id, ()))

    def chain(self, session_id: str) -> Chain:
        windows = (
            replace(w, stored_report_hash=content_hash(self.state.reports[w.window_id]))
            for w in self.state.of_session(session_id)
        )
        return Chain(tuple(windows), tuple(self.state.events.get(session_id, ())))

    def add_events(self, events: Sequence[EventRecord]) -> None:
        for event in events:
            own = self.state.events.setdefault(event.session_id, [])
            if event.sequence != len(own) + 1:
                raise ValueError("events follow one another without gaps")
            own.append(event)

    def add_window(self, window: WindowRecord, report: bytes) -> None:
        trails = {w.trail_id for w in self.state.windows.values()}
        if window.window_id in self.state.windows or window.trail_id in trails:
            raise ValueError("the audit log is append-only")
        self.state.windows[window.window_id] = window
        self.state.reports[window.window_id] = report

    def content_key(self, session_id: str) -> ContentKey | None:
        return self.state.keys.get(session_id)

    def add_content_key(self, session_id: str, version: int, wrapped: bytes) -> None:
        if self.state.keys.setdefault(session_id, (version, wrapped)) != (version, wrapped):
            raise ValueError("a data key is written once")

    def add_content(self, session_id: str, window_id: str, sealed: bytes) -> None:
        if window_id not in self.state.windows or (session_id, window_id) in self.state.contents:
            raise ValueError("a content is written once, with its window")
        self.state.contents[session_id, window_id] = sealed

    def drop_content(self, session_id: str, window_id: str) -> bool:
        return self.state.contents.pop((session_id, window_id), None) is not None

    def touch(self) -> None:
        pass


class MemoryLog:
    """The twin: the same promises, less durability."""

    def __init__(self) -> None:
        self._state, self._lock = _State(), threading.RLock()

    def commit(self, works: Sequence[Work]) -> list[Outcome]:
        with self._lock:
            return [self._one(work) for work in works]

    def _one(self, work: Work) -> Outcome:
        writing = _MemoryWriting(self._state.copy())
        try:
            value = work(writing)
        except Exception as error:  # noqa: BLE001 - one request's failure is that request's outcome
            return Outcome(error=error)
        self._state = writing.state
        return Outcome(value)

    def chain(self, session_id: str) -> Chain:
        with self._lock:
            return _MemoryWriting(self._state).chain(session_id)

    def events(self, session_id: str, *, after: int, limit: int) -> list[EventRecord]:
        return [e for e in self.chain(session_id).events if e.sequence > after][:limit]

    def report(self, *, window_id: str = "", trail_id: str = "") -> StoredReport | None:
        with self._lock:
            found = [w for w in self._state.windows.values() if window_id == w.window_id or trail_id == w.trail_id]
            return StoredReport(found[0], self._state.reports[found[0].window_id]) if found else None

    def contents(self, session_id: str) -> Contents:
        with self._lock:
            mine = {window: held for (session, window), held in self._state.contents.items() if session == session_id}
            return Contents(self._state.keys.get(session_id), mine)

    def naming(self, root_session_id: str) -> list[str]:
        with self._lock:
            created = [e for of in self._state.events.values() for e in of if e.event_type == "SESSION_CREATED"]
            return sorted({e.session_id for e in created if root_session_id in e.data_json})

    def ping(self) -> None:
        pass

    def close(self) -> None:
        pass
