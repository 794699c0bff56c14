"""The in-memory twin of the audit log: the same promises, less durability."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from interlock.audit.store.log import (
    Chain,
    Checkpoint,
    ContentKey,
    Contents,
    DeadLetter,
    Decided,
    Entry,
    Erased,
    HandedOut,
    HeldRow,
    RequestOutcome,
    StoredReport,
    Work,
)
from interlock.domain.chain.chain import EventRecord, WindowRecord, content_hash
from interlock.domain.chain.marks import CONTENT_ERASED, TRUNCATED
from interlock.domain.merkle.entries import LOG_SESSION
from interlock.domain.merkle.entry import encode_entry
from interlock.domain.merkle.tree import TILE_WIDTH, complete_root, leaf_hash
from interlock.runtime import failpoints

T = TypeVar("T")


@dataclass
class _State:
    events: dict[str, list[EventRecord]] = field(default_factory=dict)
    windows: dict[str, WindowRecord] = field(default_factory=dict)
    reports: dict[str, bytes] = field(default_factory=dict)
    keys: dict[str, ContentKey] = field(default_factory=dict)
    contents: dict[tuple[str, str], bytes] = field(default_factory=dict)
    leaves: list[tuple[str, int, bytes]] = field(default_factory=list)
    nodes: dict[int, list[bytes]] = field(default_factory=lambda: {8: [], 16: []})
    checkpoints: list[Checkpoint] = field(default_factory=list)
    held: dict[str, HeldRow] = field(default_factory=dict)
    cursors: dict[str, int] = field(default_factory=dict)
    dead_letters: dict[tuple[str, int], DeadLetter] = field(default_factory=dict)

    def copy(self) -> _State:
        events = {key: list(of) for key, of in self.events.items()}
        nodes = {level: list(of) for level, of in self.nodes.items()}
        return _State(
            events, dict(self.windows), dict(self.reports), dict(self.keys), dict(self.contents), list(self.leaves),
            nodes, list(self.checkpoints), dict(self.held), dict(self.cursors), dict(self.dead_letters),
        )  # fmt: skip

    def of_session(self, session_id: str) -> list[WindowRecord]:
        mine = [w for w in self.windows.values() if w.session_id == session_id]
        return sorted(mine, key=lambda w: (w.window_number, w.window_id))

    def chain(self, session_id: str) -> Chain:
        windows = (replace(w, stored_report_hash=self._report_hash(w.window_id)) for w in self.of_session(session_id))
        return Chain(tuple(windows), tuple(self.events.get(session_id, ())))

    def entry(self, position: int) -> Entry:
        session_id, sequence, leaf = self.leaves[position]
        event = next((e for e in self.events.get(session_id, ()) if e.sequence == sequence), None)
        return Entry(position, event, leaf)

    def positions(self, session_id: str) -> dict[int, int]:
        return {sequence: at for at, (session, sequence, _) in enumerate(self.leaves) if session == session_id}

    def holds(self, session_id: str, *event_types: str, after: int = 0) -> bool:
        return any(e.event_type in event_types and e.sequence > after for e in self.events.get(session_id, ()))

    def _report_hash(self, window_id: str) -> str:
        return content_hash(self.reports[window_id]) if window_id in self.reports else ""


class _MemoryWriting:
    """Works on a copy; the log takes it over when the request has gone through."""

    def __init__(self, state: _State) -> None:
        self.state = state

    def head(self, session_id: str) -> tuple[int, str]:
        return self.state.chain(session_id).head

    def window(self, window_id: str) -> WindowRecord | None:
        found = self.state.windows.get(window_id)
        return found and replace(found, stored_report_hash="")

    def is_continued(self, parent: WindowRecord) -> bool:
        return any(parent.window_id in w.parent_ids for w in self.state.of_session(parent.session_id))

    def root_id(self, session_id: str) -> str:
        return next((w.window_id for w in self.state.of_session(session_id)), "")

    def holds(self, session_id: str, event_type: str) -> bool:
        return self.state.holds(session_id, event_type)

    def has_event(self, session_id: str, window_id: str, event_type: str, data_json: str) -> bool:
        wanted = (window_id, event_type, data_json)
        return any((e.window_id, e.event_type, e.data_json) == wanted for e in self.state.events.get(session_id, ()))

    def chain(self, session_id: str) -> Chain:
        return self.state.chain(session_id)

    def add_events(self, events: Sequence[EventRecord]) -> None:
        for event in events:
            own = self.state.events.setdefault(event.session_id, [])
            if event.sequence != (own[-1].sequence if own else 0) + 1:
                raise ValueError("events follow one another without gaps")
            own.append(event)
            self._add_leaf(event)

    def _add_leaf(self, event: EventRecord) -> None:
        state = self.state
        state.leaves.append((event.session_id, event.sequence, leaf_hash(encode_entry(event))))
        if len(state.leaves) % TILE_WIDTH == 0:
            state.nodes[8].append(complete_root([leaf for _, _, leaf in state.leaves[-TILE_WIDTH:]]))
        if len(state.leaves) % TILE_WIDTH**2 == 0:
            state.nodes[16].append(complete_root(state.nodes[8][-TILE_WIDTH:]))

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

    def has_content(self, session_id: str, window_id: str) -> bool:
        return (session_id, window_id) in self.state.contents

    def drop_content(self, session_id: str, window_id: str) -> bool:
        return self.state.contents.pop((session_id, window_id), None) is not None

    def log_size(self) -> int:
        return len(self.state.leaves)

    def leaf_hashes(self, start: int, end: int) -> list[bytes]:
        return [leaf for _, _, leaf in self.state.leaves[start:end]]

    def nodes(self, level: int, start: int, end: int) -> list[bytes]:
        return self.state.nodes[level][start:end]

    def adopt_unlogged(self) -> int:
        return 0

    def add_checkpoint(self, size: int, note: str) -> None:
        self.state.checkpoints.append((size, note))

    def checkpoint(self) -> Checkpoint | None:
        return self.state.checkpoints[-1] if self.state.checkpoints else None

    def add_held(self, window_id: str, session_id: str, sealed: bytes, *, expires_at: str, policy_hash: str) -> None:
        window = self.state.windows.get(window_id)
        if window is None or window.session_id != session_id or window_id in self.state.held:
            raise ValueError("a held response is written once, with its window")
        self.state.held[window_id] = HeldRow(window_id, session_id, sealed, window.timestamp, expires_at, policy_hash)

    def held(self, window_id: str) -> HeldRow | None:
        return self.state.held.get(window_id)

    def add_decision(
        self, window_id: str, *, approved: bool, reviewer_id: str, approval_id: str, token: str, decided_at: str,
        expires_at: str,
    ) -> None:  # fmt: skip
        held = self.state.held
        if held[window_id].approved is not None or any(row.approval_id == approval_id for row in held.values()):
            raise Decided
        held[window_id] = replace(
            held[window_id], approved=approved, reviewer_id=reviewer_id, approval_id=approval_id, token=token,
            decided_at=decided_at, decision_expires_at=expires_at,
        )  # fmt: skip

    def add_handout(self, window_id: str, at: str) -> None:
        if self.state.held[window_id].handed_out_at:
            raise HandedOut
        self.state.held[window_id] = replace(self.state.held[window_id], handed_out_at=at)

    def drop_held(self, window_id: str) -> bool:
        row = self.state.held.get(window_id)
        if row is None or not row.sealed:
            return False
        self.state.held[window_id] = replace(row, sealed=b"")
        return True

    def destroy_key(self, session_id: str) -> Erased:
        if not self.state.holds(session_id, CONTENT_ERASED):
            raise ValueError("a data key goes with a CONTENT_ERASED event")
        return self._erased(session_id)

    def _erased(self, session_id: str) -> Erased:
        state = self.state
        contents = [key for key in state.contents if key[0] == session_id]
        reports = [w.window_id for w in state.of_session(session_id) if w.window_id in state.reports]
        for key in contents:
            del state.contents[key]
        for window_id in reports:
            del state.reports[window_id]
        held = sum(self.drop_held(row.window_id) for row in list(state.held.values()) if row.session_id == session_id)
        return Erased(int(state.keys.pop(session_id, None) is not None), len(contents), len(reports), held)

    def truncate(self, session_id: str, up_to_sequence: int) -> int:
        state = self.state
        if not state.holds(session_id, TRUNCATED, after=up_to_sequence):
            raise ValueError("a session is truncated after its TRUNCATED event")
        self._erased(session_id)
        state.windows = {id_: w for id_, w in state.windows.items() if w.session_id != session_id}
        state.held = {id_: row for id_, row in state.held.items() if row.session_id != session_id}
        own = state.events[session_id]
        state.events[session_id] = [event for event in own if event.sequence > up_to_sequence]
        return len(own) - len(state.events[session_id])

    def positions(self, session_id: str) -> dict[int, int]:
        return self.state.positions(session_id)

    def set_cursor(self, sink: str, position: int) -> None:
        self.state.cursors[sink] = position

    def add_dead_letter(self, sink: str, first: int, last: int, reason: str, at: str) -> None:
        self.state.dead_letters[sink, first] = DeadLetter(sink, first, last, reason, at)

    def drop_dead_letter(self, sink: str, first: int) -> bool:
        return self.state.dead_letters.pop((sink, first), None) is not None

    def touch(self) -> None:
        pass


class MemoryLog:
    """The twin: the same promises, less durability."""

    def __init__(self) -> None:
        self._state, self._lock = _State(), threading.RLock()

    def commit(self, works: Sequence[Work]) -> list[RequestOutcome]:
        with self._lock:
            before = self._state
            try:
                outcomes = [self._one(work) for work in works]
                failpoints.reached_sync("audit.before_commit")
            except BaseException:
                self._state = before
                raise
            failpoints.reached_sync("audit.after_commit")
            return outcomes

    def _one(self, work: Work) -> RequestOutcome:
        writing = _MemoryWriting(self._state.copy())
        try:
            value = work(writing)
        except Exception as error:  # noqa: BLE001 - one request's failure is that request's outcome
            return RequestOutcome(error=error)
        self._state = writing.state
        return RequestOutcome(value)

    def chain(self, session_id: str) -> Chain:
        return self._read(lambda state: state.chain(session_id))

    def events(self, session_id: str, *, after: int, limit: int) -> list[EventRecord]:
        return [e for e in self.chain(session_id).events if e.sequence > after][:limit]

    def report(self, *, window_id: str = "", trail_id: str = "") -> StoredReport | None:
        with self._lock:
            found = [w for w in self._state.windows.values() if window_id == w.window_id or trail_id == w.trail_id]
            if not found:
                return None
            body = self._state.reports.get(found[0].window_id, b"")
            return StoredReport(found[0], body, self._state.keys.get(found[0].session_id))

    def contents(self, session_id: str) -> Contents:
        with self._lock:
            mine = {window: held for (session, window), held in self._state.contents.items() if session == session_id}
            return Contents(self._state.keys.get(session_id), mine)

    def naming(self, root_session_id: str) -> list[str]:
        with self._lock:
            created = [e for of in self._state.events.values() for e in of if e.event_type == "SESSION_CREATED"]
            return sorted({e.session_id for e in created if root_session_id in e.data_json})

    def log_size(self) -> int:
        return self._read(lambda state: len(state.leaves))

    def entries(self, start: int, end: int) -> list[Entry]:
        return self._read(lambda state: [state.entry(at) for at in range(start, min(end, len(state.leaves)))])

    def leaf_hashes(self, start: int, end: int) -> list[bytes]:
        return self._read(lambda state: [leaf for _, _, leaf in state.leaves[start:end]])

    def nodes(self, level: int, start: int, end: int) -> list[bytes]:
        return self._read(lambda state: state.nodes[level][start:end])

    def positions(self, session_id: str) -> dict[int, int]:
        return self._read(lambda state: state.positions(session_id))

    def checkpoint(self) -> Checkpoint | None:
        return next(reversed(self.checkpoints()), None)

    def checkpoints(self) -> list[Checkpoint]:
        return self._read(lambda state: list(state.checkpoints))

    def held(self, window_id: str) -> HeldRow | None:
        return self._read(lambda state: state.held.get(window_id))

    def held_list(self, status: str | None, session_id: str, after: str, limit: int, now: str) -> list[HeldRow]:
        with self._lock:
            rows = sorted(self._state.held.values(), key=lambda row: (row.held_at, row.window_id))
        start = next((at for at, row in enumerate(rows, 1) if row.window_id == after), len(rows) if after else 0)
        wanted = [
            row for row in rows[start:] if session_id in {"", row.session_id} and status in {None, row.status(now)}
        ]
        return [replace(row, sealed=b"") for row in wanted[:limit]]

    def expired_unmarked(self, now: str, limit: int) -> list[HeldRow]:
        with self._lock:
            found = [
                replace(row, sealed=b"")
                for row in self._state.held.values()
                if row.sealed and row.status(now) not in {"PENDING", "APPROVED"}
            ]
        return sorted(found, key=lambda row: (row.expires_at, row.window_id))[:limit]

    def cursor(self, sink: str) -> int:
        return self._read(lambda state: state.cursors.get(sink, 0))

    def dead_letters(self, sink: str) -> list[DeadLetter]:
        return self._read(lambda state: [one for key, one in sorted(state.dead_letters.items()) if key[0] == sink])

    def session_ids(self, before: str, limit: int, *, after: str = "", erasable: bool) -> list[str]:
        marks = (TRUNCATED, CONTENT_ERASED) if erasable else (TRUNCATED,)
        with self._lock:
            state = self._state
            old = (id_ for id_, events in state.events.items() if events and events[-1].timestamp < before)
            mine = (id_ for id_ in old if id_ > after and id_ != LOG_SESSION and not state.holds(id_, *marks))
            return sorted(mine)[:limit]

    def key_versions(self) -> set[int]:
        with self._lock:
            state = self._state
            events = {event.key_version for of in state.events.values() for event in of}
            return events | {w.key_version for w in state.windows.values()} | {key[0] for key in state.keys.values()}

    def leads(self, task: str) -> bool:
        del task
        return True

    def ping(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _read(self, look: Callable[[_State], T]) -> T:
        with self._lock:
            return look(self._state)
