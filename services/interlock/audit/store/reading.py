"""Reading the audit log from a SQL database. Subclasses lend the connections."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from interlock.audit.store import rows, statements, writing
from interlock.audit.store import search as searching
from interlock.audit.store.kept import KeptRow
from interlock.audit.store.log import (
    Chain,
    Checkpoint,
    Contents,
    DeadLetter,
    Entry,
    HeldRow,
    Since,
    StoredReport,
)
from interlock.audit.store.search import LAST, FoundSession, Place, SessionSearch, WouldHaveRow
from interlock.audit.store.stuck import Place as StuckPlace
from interlock.audit.store.stuck import StuckRow
from interlock.audit.store.writing import SqlConnection
from interlock.domain.chain.chain import EventRecord

SESSIONS_AT_ONCE = 5_000
"""Sessions per statement: with millions of them a single statement would exceed its time limit."""


class SqlReader(ABC):
    """Reads the log; cannot write. Several threads may use it at a time."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[SqlConnection]:
        """Lend a connection for one statement. Raises ``StoreFailed``."""

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[SqlConnection]:
        """Lend a connection for several statements that see one state. Raises ``StoreFailed``."""

    def chain(self, session_id: str) -> Chain:
        """Return all records of a session, with report hashes taken from the stored bytes."""
        with self._snapshot() as connection:
            return writing.chain(connection, session_id)

    def since(self, session_id: str, sequence: int, *, again: tuple[int, int] | None = None) -> Since:
        """Return a session's records from the event of *sequence* on, and the events of the range *again*."""
        with self._snapshot() as connection:
            return writing.since(connection, session_id, sequence, again=again)

    def events(self, session_id: str, *, after: int, limit: int) -> list[EventRecord]:
        """Return up to *limit* events whose sequence is above *after*."""
        return [rows.event(row) for row in self._all(statements.EVENTS, session_id, after, limit)]

    def report(self, *, window_id: str = "", trail_id: str = "") -> StoredReport | None:
        """Return a report by its window or trail id."""
        by_window = (statements.REPORT_BY_WINDOW, window_id)
        row = self._one(*by_window) if window_id else self._one(statements.REPORT_BY_TRAIL, trail_id)
        return rows.stored_report(row) if row else None

    def contents(self, session_id: str, window_ids: Sequence[str]) -> Contents:
        """Return the encrypted contents of these windows of a session, and the session's key."""
        with self._snapshot() as connection:
            if not window_ids:
                return Contents(writing.content_key(connection, session_id), {})
            statement, ids = statements.listed(statements.CONTENTS, window_ids)
            found = connection.execute(statement, ids)
            sealed = {rows.text(row[0]): rows.blob(row[1]) for row in found if row[2] == session_id}
            return Contents(writing.content_key(connection, session_id), sealed)

    def naming(self, root_session_id: str) -> list[str]:
        """Return the sessions whose SESSION_CREATED mentions *root_session_id*, anywhere in its data."""
        return sorted({rows.text(row[0]) for row in self._all(statements.NAMING, root_session_id)})

    def find_sessions(self, search: SessionSearch, limit: int, before: Place, looked: int) -> tuple[list[FoundSession], Place | None]:  # fmt: skip
        """Return up to *limit* sessions before a place, the latest first, of at most *looked* ones; and where to go on, if there is more."""
        before = min(before, (search.until or LAST[0], ""))
        with self._snapshot() as connection:
            # To count so many off takes longer than a page, which finds its own end where every session is wanted.
            last = connection.execute(searching.FLOOR, (*before, looked - 1)).fetchone() if search.is_narrow else None
            floor = (rows.text(last[0]), rows.text(last[1])) if last else ("", "")
            statement, names = searching.sessions_statement(search, limit + 1, before, max(floor, (search.since, "")))
            found = [
                FoundSession(
                    rows.text(row[0]), rows.text(row[1]), rows.text(row[2]), tuple(searching.outcomes(row[3:]))
                )
                for row in connection.execute(statement, names).fetchall()
            ]
        if len(found) > limit:
            return found[:limit], (found[limit - 1].created_at, found[limit - 1].session_id)
        return found, floor if floor[0] > search.since else None

    def would_haves(self, reason: str, since: str, limit: int, before: tuple[str, str, int]) -> list[WouldHaveRow]:
        """Return up to *limit* of them with this text, the latest first, before a place (time, session, sequence)."""
        found = self._all(searching.WOULD_HAVES, since, *before, reason, limit)
        return [
            WouldHaveRow(
                rows.text(row[0]), rows.number(row[1]), rows.text(row[2]), rows.text(row[3]), rows.text(row[4])
            )
            for row in found
        ]

    def counted_would_haves(self, since: str, most: int) -> tuple[Mapping[tuple[str, str], int], str]:
        """Return how often each action and reason occurs in the last *most*, and the time of the first that was counted if there are more."""
        found = self._all(searching.COUNTED, since, most + 1)
        data = [json.loads(rows.text(row[0])) for row in found[:most]]
        counts = Counter((str(one.get("action", "")), str(one.get("reason", ""))) for one in data)
        return counts, rows.text(found[most - 1][1]) if len(found) > most else ""

    def opened_last(self, kind: str, mentioning: tuple[str, str], limit: int, before: tuple[str, str]) -> list[tuple[str, str, str]]:  # fmt: skip
        """Return id, time and data of the first records of a type whose data hold both texts, the latest first."""
        found = self._all(statements.OPENED_LAST[kind], *mentioning, *before, limit)
        return [(rows.text(row[0]), rows.text(row[1]), rows.text(row[2])) for row in found]

    def cycles(self, experiment_id: str, before: int, limit: int) -> list[EventRecord]:
        """Return the events of cycles before one, the latest first; 0: from the last one on. They are numbered 1, 2, 3 in their order."""
        if not before:
            return list(map(rows.event, self._all(statements.LAST_CYCLES, experiment_id, limit)))
        first = max(0, before - 1 - limit)
        found = self._all(statements.CYCLES_FROM, experiment_id, before - 1 - first, first)
        return [rows.event(row) for row in reversed(found)]

    def charged_to(self, caller_id: str, since: str) -> list[str]:
        """Return the sessions with windows that cost something, were sealed from *since* on and mention this caller."""
        return sorted(rows.text(row[0]) for row in self._all(statements.CHARGED_TO, since, caller_id))

    def log_size(self) -> int:
        """Return how many entries the Merkle log has."""
        return rows.number(self._one(statements.LOG_SIZE)[0])

    def entries(self, start: int, end: int) -> list[Entry]:
        """Return entries by position, from *start* up to, and without, *end*."""
        return [rows.entry(row) for row in self._all(statements.ENTRIES, start, end)]

    def leaf_hashes(self, start: int, end: int) -> list[bytes]:
        """Return leaf hashes; fewer where the log ends before."""
        return [rows.blob(row[0]) for row in self._all(statements.LEAF_HASHES, start, end)]

    def nodes(self, level: int, start: int, end: int) -> list[bytes]:
        """Return stored hashes of complete subtrees of ``2**level`` leaves; *level* is 8 or 16."""
        return [rows.blob(row[0]) for row in self._all(statements.NODES, level, start, end)]

    def positions(self, session_id: str) -> dict[int, int]:
        """Return the position of each of a session's events by sequence, of truncated ones too."""
        return {rows.number(row[0]): rows.number(row[1]) for row in self._all(statements.POSITIONS, session_id)}

    def sessions(self) -> list[str]:
        """Return every session of which there is a leaf, an event or a window, by name."""
        return [rows.text(row[0]) for row in self._all(statements.SESSIONS)]

    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint that was added last."""
        with self._reading() as connection:
            return writing.checkpoint(connection)

    def checkpoints(self) -> list[Checkpoint]:
        """Return all checkpoints in the order in which they were added."""
        return [(rows.number(row[0]), rows.text(row[1])) for row in self._all(statements.CHECKPOINTS)]

    def held(self, window_id: str) -> HeldRow | None:
        """Return a held response."""
        with self._reading() as connection:
            return writing.held(connection, window_id)

    def held_list(self, status: str | None, session_id: str, after: str, limit: int, now: str) -> list[HeldRow]:
        """Return up to *limit* held responses after the window *after*, oldest first, without their bytes."""
        wanted = status or ""
        names = (session_id, session_id, wanted, now, now, wanted, after, after, limit)
        return [rows.held(row) for row in self._all(statements.HELD_LIST, *names)]

    def held_pending(self, now: str) -> int:
        """Return how many held responses wait for a decision."""
        return rows.number(self._one(statements.HELD_PENDING, now, now)[0])

    def expired_unmarked(self, now: str, limit: int) -> list[HeldRow]:
        """Return responses that are no longer pending or approved at *now* but still have their bytes."""
        return [rows.held(row) for row in self._all(statements.EXPIRED_UNMARKED, now, now, limit)]

    def kept(self, window_id: str) -> KeptRow | None:
        """Return a kept answer, expired or not."""
        with self._reading() as connection:
            return writing.kept(connection, window_id)

    def stuck(self, after: StuckPlace, limit: int) -> list[StuckRow]:
        """Return up to *limit* compensations that wait for a person, the oldest first, after a place."""
        return [rows.stuck(row) for row in self._all(statements.STUCK, *after, limit)]

    def cursor(self, sink: str) -> int:
        """Return the position that a receiver is sent next; 0 at first."""
        row = self._one(statements.CURSOR, sink)
        return rows.number(row[0]) if row else 0

    def dead_letters(self, sink: str) -> list[DeadLetter]:
        """Return the entries that a receiver refused, in order."""
        return [rows.dead_letter(row) for row in self._all(statements.DEAD_LETTERS, sink)]

    def session_ids(self, before: str, limit: int, *, after: str = "", erasable: bool) -> list[str]:
        """Return up to *limit* sessions above *after*, by name, whose last event is older than *before*."""
        statement = statements.ERASABLE if erasable else statements.TRUNCATABLE
        found: list[str] = []
        while True:
            page = self._all(statement, after, before, SESSIONS_AT_ONCE)
            found += [rows.text(session_id) for session_id, due in page if due]
            if len(found) >= limit or len(page) < SESSIONS_AT_ONCE:
                return found[:limit]
            after = rows.text(page[-1][0])

    def key_versions(self) -> set[int]:
        """Return the versions of the master key that events, windows and data keys name."""
        return {rows.number(row[0]) for row in self._all(statements.KEY_VERSIONS)}

    @abstractmethod
    def close(self) -> None:
        """Close the idle connections; a later call opens again."""

    def ping(self) -> None:
        """Read something. Raises ``StoreFailed``."""
        self._one("SELECT max(version) FROM schema_migrations")

    def _all(self, statement: str, *names: Any) -> Sequence[Any]:
        with self._reading() as connection:
            found: Sequence[Any] = connection.execute(statement, names).fetchall()
            return found

    def _one(self, statement: str, *names: Any) -> Any:
        with self._reading() as connection:
            return connection.execute(statement, names).fetchone()
