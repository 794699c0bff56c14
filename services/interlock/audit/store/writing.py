"""Writing the audit log inside a transaction of a SQL database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import structlog
from prometheus_client import Counter

from interlock.audit.store import rows, statements
from interlock.audit.store.kept import KeptRow
from interlock.audit.store.log import (
    Chain,
    Checkpoint,
    ContentKey,
    Decided,
    Entry,
    Erased,
    HandedOut,
    HeldRow,
    Since,
)
from interlock.audit.store.stuck import StuckRow
from interlock.audit.store.vouching import Vouch
from interlock.domain.chain.chain import WINDOW_SEALED, EventRecord, WindowRecord
from interlock.domain.chain.prefix import ReadAgain
from interlock.domain.merkle.entry import encode_entry
from interlock.domain.merkle.tree import STORED_LEVELS, TILE_WIDTH, complete_root, leaf_hash

log = structlog.get_logger()

FORGED = Counter(
    "interlock_audit_forged_entries", "Events in the database without a leaf that this deployment did not seal."
)
FORGED_HINT = "events that this deployment did not seal are in the database and get no leaf; run `interlock audit fsck`"

ADOPT_AT_ONCE = 1_000


LAST = 2**63 - 1
"""The highest number that a database keeps."""


class SqlConnection(Protocol):
    """A database connection, as SQLite and psycopg offer it."""

    server: str
    """What serves the database: another value for another file, server, or start of one."""

    size: int | None
    """Size of the log inside this transaction, ``None`` if unknown: kept to spare a query per request."""

    def execute(self, statement: str, names: Sequence[Any] = ()) -> Any:
        """Run a statement and return a cursor over its rows."""

    def executemany(self, statement: str, names: Iterable[Sequence[Any]]) -> Any:
        """Run a statement once for each row of *names*."""

    def drop(self, what: str, *names: Any) -> int:
        """Run the deletion *what* of ``statements.DROPS``; return the number of rows of its last statement."""

    def touch(self) -> None:
        """Write something without meaning."""


def chain(connection: SqlConnection, session_id: str) -> Chain:
    """Return all records of a session, with report hashes taken from the stored bytes."""
    windows = tuple(map(rows.window, connection.execute(statements.WINDOWS, (session_id,))))
    events = tuple(map(rows.event, connection.execute(statements.ALL_EVENTS, (session_id,))))
    return Chain(windows, events, connection.server)


def since(connection: SqlConnection, session_id: str, sequence: int, *, again: tuple[int, int] | None) -> Since:
    """Return a session's records from the event of *sequence* on, and the events of the range *again*."""
    events = _events(connection, session_id, sequence, LAST)
    more = any(event.event_type == WINDOW_SEALED for event in events[1:])
    return Since(
        server=connection.server,
        events=events,
        sealed=_sealed(connection, session_id, sequence + 1, LAST) if more else (),
        windows=rows.number(connection.execute(statements.WINDOW_COUNT, (session_id,)).fetchone()[0]),
        again=_reread(connection, session_id, *again) if again else ReadAgain(),
    )


def _reread(connection: SqlConnection, session_id: str, first: int, last: int) -> ReadAgain:
    values = connection.execute(statements.EVENTS_BETWEEN, (session_id, first, last))
    return ReadAgain(_sealed(connection, session_id, first, last), tuple(map(tuple, values)))


def _events(connection: SqlConnection, session_id: str, first: int, last: int) -> tuple[EventRecord, ...]:
    return tuple(map(rows.event, connection.execute(statements.EVENTS_BETWEEN, (session_id, first, last))))


def _sealed(connection: SqlConnection, session_id: str, first: int, last: int) -> tuple[WindowRecord, ...]:
    return tuple(map(rows.window, connection.execute(statements.SEALED_BETWEEN, (session_id, first, last))))


def content_key(connection: SqlConnection, session_id: str) -> ContentKey | None:
    """Return a session's wrapped data key."""
    row = connection.execute(statements.CONTENT_KEY, (session_id,)).fetchone()
    return (rows.number(row[0]), rows.blob(row[1])) if row else None


def checkpoint(connection: SqlConnection) -> Checkpoint | None:
    """Return the checkpoint that was added last."""
    row = connection.execute(statements.CHECKPOINT).fetchone()
    return (rows.number(row[0]), rows.text(row[1])) if row else None


def held(connection: SqlConnection, window_id: str) -> HeldRow | None:
    """Return a held response."""
    row = connection.execute(statements.HELD, (window_id,)).fetchone()
    return rows.held(row) if row else None


def kept(connection: SqlConnection, window_id: str) -> KeptRow | None:
    """Return a kept answer."""
    row = connection.execute(statements.KEPT, (window_id,)).fetchone()
    return rows.kept(row) if row else None


class SqlWriting:
    """A transaction on the writing connection."""

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection

    def head(self, session_id: str) -> tuple[int, str]:
        row = self._one(statements.HEAD, session_id)
        return (row[0], row[1]) if row else (0, "")

    def window(self, window_id: str) -> WindowRecord | None:
        row = self._one(statements.SEAL_BY_ID, window_id)
        return rows.window(row) if row else None

    def is_continued(self, parent: WindowRecord) -> bool:
        return self._any(statements.CONTINUED, parent.session_id, parent.window_number, parent.window_id)

    def root_id(self, session_id: str) -> str:
        row = self._one(statements.ROOT, session_id)
        return str(row[0]) if row else ""

    def holds(self, session_id: str, event_type: str) -> bool:
        return self._any(statements.HOLDS, session_id, event_type)

    def has_event(self, session_id: str, window_id: str, event_type: str, data_json: str | None = None) -> bool:
        if data_json is None:
            return self._any(statements.HAS_EVENT_OF, session_id, window_id, event_type)
        return self._any(statements.HAS_EVENT, session_id, window_id, event_type, data_json)

    def chain(self, session_id: str) -> Chain:
        return chain(self._connection, session_id)

    def since(self, session_id: str, sequence: int, *, again: tuple[int, int] | None = None) -> Since:
        return since(self._connection, session_id, sequence, again=again)

    def add_events(self, events: Sequence[EventRecord]) -> None:
        """Add events, each after its leaf: an event without a leaf counts as written by an older version."""
        self._add_leaves(events)
        self._connection.executemany(statements.ADD_EVENT, map(rows.event_row, events))

    def add_window(self, window: WindowRecord, report: bytes) -> None:
        self._connection.execute(statements.ADD_WINDOW, rows.window_row(window))
        self._connection.execute(statements.ADD_REPORT, (window.window_id, report))

    def content_key(self, session_id: str) -> ContentKey | None:
        return content_key(self._connection, session_id)

    def add_content_key(self, session_id: str, version: int, wrapped: bytes) -> None:
        self._connection.execute(statements.ADD_CONTENT_KEY, (session_id, version, wrapped))

    def add_content(self, session_id: str, window_id: str, sealed: bytes) -> None:
        self._connection.execute(statements.ADD_CONTENT, (window_id, session_id, sealed))

    def has_content(self, session_id: str, window_id: str) -> bool:
        return self._any(statements.HAS_CONTENT, session_id, window_id)

    def drop_content(self, session_id: str, window_id: str) -> bool:
        return self._connection.drop("drop_content", session_id, window_id) > 0

    def log_size(self) -> int:
        if self._connection.size is None:
            self._connection.size = int(self._one(statements.LOG_SIZE)[0])
        return self._connection.size

    def leaf_hashes(self, start: int, end: int) -> list[bytes]:
        return [rows.blob(row[0]) for row in self._connection.execute(statements.LEAF_HASHES, (start, end))]

    def nodes(self, level: int, start: int, end: int) -> list[bytes]:
        return [rows.blob(row[0]) for row in self._connection.execute(statements.NODES, (level, start, end))]

    def positions(self, session_id: str) -> dict[int, int]:
        return {row[0]: row[1] for row in self._connection.execute(statements.POSITIONS, (session_id,))}

    def adopt_unlogged(self, vouch: Vouch, *, after: int = 0) -> int:
        if not self._any(statements.ANY_UNLOGGED, 0):
            return 0  # the numbers of the rows that are gone may be used again
        while self._any(statements.ANY_UNLOGGED, after):
            found = self._connection.execute(statements.UNLOGGED, (after, ADOPT_AT_ONCE)).fetchall()
            if not found:
                break  # the rows left have no event, or a leaf; they stay
            events = [rows.event(row) for row in found]
            good = [vouch(event, self._before(event)) for event in events]
            self._add_leaves([event for event, kept in zip(events, good, strict=True) if kept])
            self._connection.drop("drop_unlogged")
            refused = [rows.number(row[9]) for row, kept in zip(found, good, strict=True) if not kept]
            if refused:
                log.critical("audit.entries.forged", count=len(refused), hint=FORGED_HINT)
                FORGED.inc(len(refused))
                after = refused[-1]
        return after

    def _before(self, event: EventRecord) -> str:
        return self.hmac_at(event.session_id, event.sequence - 1) if event.sequence > 1 else ""

    def entries(self, start: int, end: int) -> list[Entry]:
        return [rows.entry(row) for row in self._connection.execute(statements.ENTRIES, (start, end))]

    def named_by_leaf(self, position: int) -> tuple[str, int]:
        row = self._one(statements.LEAF_NAMES, position)
        return (rows.text(row[0]), rows.number(row[1])) if row else ("", 0)

    def hmac_at(self, session_id: str, sequence: int) -> str:
        row = self._one(statements.HMAC_AT, session_id, sequence)
        return rows.text(row[0]) if row else ""

    def add_checkpoint(self, size: int, note: str) -> None:
        self._connection.execute(statements.ADD_CHECKPOINT, (size, note))

    def checkpoint(self) -> Checkpoint | None:
        return checkpoint(self._connection)

    def add_held(self, window_id: str, session_id: str, sealed: bytes, *, expires_at: str, policy_hash: str) -> None:
        names = (expires_at, policy_hash, window_id, session_id)
        if self._connection.execute(statements.ADD_HELD, names).rowcount != 1:
            raise ValueError("a held response is written with its window")
        self._connection.execute(statements.ADD_HELD_CONTENT, (window_id, session_id, sealed))

    def held(self, window_id: str) -> HeldRow | None:
        return held(self._connection, window_id)

    def add_decision(
        self, window_id: str, *, approved: bool, reviewer_id: str, approval_id: str, token: str, decided_at: str,
        expires_at: str,
    ) -> None:  # fmt: skip
        if self._any(
            statements.DECIDED, window_id, approval_id
        ):  # writers take turns: no other decision can come in between
            raise Decided
        names = (window_id, int(approved), reviewer_id, approval_id, token, decided_at, expires_at)
        self._connection.execute(statements.ADD_DECISION, names)

    def add_handout(self, window_id: str, at: str) -> None:
        if self._any(statements.HANDED_OUT, window_id):
            raise HandedOut
        self._connection.execute(statements.ADD_HANDOUT, (window_id, at))

    def drop_held(self, window_id: str) -> bool:
        return self._connection.drop("drop_held", window_id) > 0

    def add_kept(self, row: KeptRow) -> None:
        names = (row.window_id, row.session_id, row.scope, row.previous_id, row.sealed, row.expires_at)
        self._connection.execute(statements.ADD_KEPT, names)

    def kept(self, window_id: str) -> KeptRow | None:
        return kept(self._connection, window_id)

    def drop_kept(self, window_id: str) -> bool:
        return self._connection.drop("drop_kept", window_id) > 0

    def drop_expired_kept(self, now: str) -> int:
        return self._connection.drop("drop_expired_kept", now)

    def set_stuck(self, row: StuckRow) -> None:
        names = (row.kernel_id, row.execution, row.job, row.stuck_ms, row.left_json)
        self._connection.execute(statements.SET_STUCK, names)

    def drop_stuck(self, kernel_id: str, execution: str) -> None:
        self._connection.execute(statements.DROP_STUCK, (kernel_id, execution))

    def destroy_key(self, session_id: str) -> Erased:
        self._connection.drop("drop_all_kept", session_id)
        return Erased(
            keys=self._connection.drop("destroy_key", session_id),
            contents=self._connection.drop("drop_contents", session_id),
            reports=self._connection.drop("drop_reports", session_id),
            held=self._connection.drop("drop_all_held", session_id),
        )

    def truncate(self, session_id: str, up_to_sequence: int) -> int:
        self.destroy_key(session_id)
        self._connection.drop("drop_windows", session_id)
        self._connection.execute(statements.DROP_ALL_STUCK, (session_id,))
        return self._connection.drop("drop_events", session_id, up_to_sequence)

    def set_cursor(self, sink: str, position: int) -> None:
        self._connection.execute(statements.SET_CURSOR, (sink, position))

    def add_dead_letter(self, sink: str, first: int, last: int, reason: str, at: str) -> None:
        self._connection.execute(statements.ADD_DEAD_LETTER, (sink, first, last, reason, at))

    def drop_dead_letter(self, sink: str, first: int) -> bool:
        return bool(self._connection.execute(statements.DROP_DEAD_LETTER, (sink, first)).rowcount > 0)

    def touch(self) -> None:
        self._connection.touch()

    def _add_leaves(self, events: Sequence[EventRecord]) -> None:
        size = self.log_size()
        self._connection.executemany(
            statements.ADD_LEAF,
            [
                (position, event.session_id, event.sequence, leaf_hash(encode_entry(event)))
                for position, event in enumerate(events, size)
            ],
        )
        self._connection.size = size + len(events)
        self._add_nodes(size, size + len(events))

    def _add_nodes(self, before: int, now: int) -> None:
        """Store the subtrees that became complete between two sizes: first of leaves, then of subtrees."""
        width = TILE_WIDTH
        for level in STORED_LEVELS:
            for number in range(before // width, now // width):
                start, end = number * TILE_WIDTH, (number + 1) * TILE_WIDTH
                below = self.leaf_hashes(start, end) if level == STORED_LEVELS[0] else self.nodes(level - 8, start, end)
                self._connection.execute(statements.ADD_NODE, (level, number, complete_root(below)))
            width *= TILE_WIDTH

    def _one(self, statement: str, *names: Any) -> Any:
        return self._connection.execute(statement, names).fetchone()

    def _any(self, statement: str, *names: Any) -> bool:
        return self._connection.execute(statement, names).fetchone() is not None
