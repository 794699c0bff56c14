"""The audit log on SQLite: one writing connection, as many reading ones as there are readers at a time."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from interlock.audit.database import open_reader, open_writer, store_failed
from interlock.audit.log import Chain, ContentKey, Contents, Outcome, StoredReport, Work
from interlock.domain.chain import EventRecord, WindowRecord, content_hash
from interlock.runtime.clock import Clock, system_clock

_EVENT = "session_id, sequence, window_id, event_type, severity, timestamp, data_json, key_version, hmac"
_WINDOW = (
    "w.session_id, w.window_id, w.window_number, w.parent_ids, w.response_hash, w.report_hash, w.risk_level,"
    " w.charge_micros, w.status, w.settle_json, w.trail_id, w.request_hash, w.timestamp, w.key_version, w.hmac,"
    " w.content_hash"
)
_WITH_REPORT = f"SELECT {_WINDOW}, r.body FROM windows AS w LEFT JOIN reports AS r ON r.window_id = w.window_id"  # noqa: S608 - constant columns

_HEAD = "SELECT sequence, hmac FROM events WHERE session_id = ? ORDER BY sequence DESC LIMIT 1"
_EVENTS = f"SELECT {_EVENT} FROM events WHERE session_id = ? AND sequence > ? ORDER BY sequence LIMIT ?"  # noqa: S608 - constant columns
_ALL_EVENTS = f"SELECT {_EVENT} FROM events WHERE session_id = ? ORDER BY sequence"  # noqa: S608 - constant columns
# The event type stands in the text, or the index of that type would not be used; a file of an older schema has none.
_NAMING = "SELECT session_id FROM events WHERE event_type = 'SESSION_CREATED' AND instr(data_json, ?) > 0"
_HOLDS = "SELECT 1 FROM events WHERE session_id = ? AND event_type = ? LIMIT 1"
_SEAL = f"SELECT {_WINDOW}, NULL FROM windows AS w"  # noqa: S608 - constant columns
_SEAL_BY_ID = f"{_SEAL} WHERE w.window_id = ?"
# Ids have one shape, so that a list of them holds one exactly where its text does. A child's number is above its parent's.
_CONTINUED = "SELECT 1 FROM windows WHERE session_id = ? AND window_number > ? AND instr(parent_ids, ?) > 0 LIMIT 1"
_REPORT_BY_WINDOW = f"{_WITH_REPORT} WHERE w.window_id = ?"
_REPORT_BY_TRAIL = f"{_WITH_REPORT} WHERE w.trail_id = ?"
_WINDOWS = f"{_WITH_REPORT} WHERE w.session_id = ? ORDER BY w.window_number, w.window_id"
_ROOT = "SELECT window_id FROM windows WHERE session_id = ? ORDER BY window_number, window_id LIMIT 1"
_ADD_EVENT = f"INSERT INTO events ({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constant columns
_ADD_WINDOW = (
    "INSERT INTO windows (session_id, window_id, window_number, parent_ids, response_hash, report_hash, risk_level,"
    " charge_micros, status, settle_json, trail_id, request_hash, timestamp, key_version, hmac, content_hash)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ADD_REPORT = "INSERT INTO reports (window_id, body) VALUES (?, ?)"
_CONTENT_KEY = "SELECT key_version, wrapped FROM content_keys WHERE session_id = ?"
_CONTENTS = "SELECT window_id, sealed FROM contents WHERE session_id = ?"
_ADD_CONTENT_KEY = "INSERT INTO content_keys (session_id, key_version, wrapped) VALUES (?, ?, ?)"
_ADD_CONTENT = "INSERT INTO contents (window_id, session_id, sealed) VALUES (?, ?, ?)"
_DROP_CONTENT = "DELETE FROM contents WHERE session_id = ? AND window_id = ?"

_NOT_A_TEXT = "\ufffd"
"""Stands for a stored value of the wrong type: nothing that was sealed equals it."""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _NOT_A_TEXT


def _number(value: Any) -> int:
    return value if isinstance(value, int) else -1


def _event(row: Sequence[Any]) -> EventRecord:
    return EventRecord(
        _text(row[0]), _number(row[1]), _text(row[2]), _text(row[3]), _number(row[4]), _text(row[5]), _text(row[6]),
        _number(row[7]), _text(row[8]),
    )  # fmt: skip


def _window(row: Sequence[Any]) -> WindowRecord:
    return WindowRecord(
        session_id=_text(row[0]),
        window_id=_text(row[1]),
        window_number=_number(row[2]),
        parent_ids=_ids(row[3]),
        response_hash=_text(row[4]),
        report_hash=_text(row[5]),
        risk_level=_number(row[6]),
        charge_micros=_number(row[7]),
        status=_text(row[8]),
        settle_json=_text(row[9]),
        trail_id=_text(row[10]),
        request_hash=_text(row[11]),
        timestamp=_text(row[12]),
        key_version=_number(row[13]),
        hmac=_text(row[14]),
        content_hash=_text(row[15]),
        stored_report_hash=_report_hash(row[16]),
    )


def _report_hash(body: Any) -> str:
    if body is None:
        return ""
    return content_hash(body) if isinstance(body, bytes) else _NOT_A_TEXT


def _ids(text: Any) -> tuple[str, ...]:
    try:
        found = json.loads(_text(text))
    except (ValueError, RecursionError):
        found = None
    return tuple(map(_text, found)) if isinstance(found, list) else (_NOT_A_TEXT,)


def _chain(connection: sqlite3.Connection, session_id: str) -> Chain:
    windows = tuple(map(_window, connection.execute(_WINDOWS, (session_id,))))
    return Chain(windows, tuple(map(_event, connection.execute(_ALL_EVENTS, (session_id,)))))


def _content_key(connection: sqlite3.Connection, session_id: str) -> ContentKey | None:
    row = connection.execute(_CONTENT_KEY, (session_id,)).fetchone()
    return (_number(row[0]), _bytes(row[1])) if row else None


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b""


class _Writing:
    """A transaction on the writing connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def head(self, session_id: str) -> tuple[int, str]:
        row = self._connection.execute(_HEAD, (session_id,)).fetchone()
        return (row[0], row[1]) if row else (0, "")

    def window(self, window_id: str) -> WindowRecord | None:
        return self._one(_SEAL_BY_ID, window_id)

    def is_continued(self, parent: WindowRecord) -> bool:
        names = (parent.session_id, parent.window_number, parent.window_id)
        return self._connection.execute(_CONTINUED, names).fetchone() is not None

    def root_id(self, session_id: str) -> str:
        row = self._connection.execute(_ROOT, (session_id,)).fetchone()
        return str(row[0]) if row else ""

    def holds(self, session_id: str, event_type: str) -> bool:
        return self._connection.execute(_HOLDS, (session_id, event_type)).fetchone() is not None

    def chain(self, session_id: str) -> Chain:
        return _chain(self._connection, session_id)

    def add_events(self, events: Sequence[EventRecord]) -> None:
        self._connection.executemany(_ADD_EVENT, map(_event_row, events))

    def add_window(self, window: WindowRecord, report: bytes) -> None:
        self._connection.execute(_ADD_WINDOW, _window_row(window))
        self._connection.execute(_ADD_REPORT, (window.window_id, report))

    def content_key(self, session_id: str) -> ContentKey | None:
        return _content_key(self._connection, session_id)

    def add_content_key(self, session_id: str, version: int, wrapped: bytes) -> None:
        self._connection.execute(_ADD_CONTENT_KEY, (session_id, version, wrapped))

    def add_content(self, session_id: str, window_id: str, sealed: bytes) -> None:
        self._connection.execute(_ADD_CONTENT, (window_id, session_id, sealed))

    def drop_content(self, session_id: str, window_id: str) -> bool:
        return self._connection.execute(_DROP_CONTENT, (session_id, window_id)).rowcount > 0

    def touch(self) -> None:
        # The value stays, but the page goes through the log and to the disk like any other.
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        self._connection.execute(f"PRAGMA user_version = {int(version)}")

    def _one(self, statement: str, name: str) -> WindowRecord | None:
        row = self._connection.execute(statement, (name,)).fetchone()
        return _window(row) if row else None


def _event_row(event: EventRecord) -> tuple[Any, ...]:
    return (
        event.session_id, event.sequence, event.window_id, event.event_type, event.severity, event.timestamp,
        event.data_json, event.key_version, event.hmac,
    )  # fmt: skip


def _window_row(window: WindowRecord) -> tuple[Any, ...]:
    return (
        window.session_id, window.window_id, window.window_number, json.dumps(window.parent_ids), window.response_hash,
        window.report_hash, window.risk_level, window.charge_micros, window.status, window.settle_json, window.trail_id,
        window.request_hash, window.timestamp, window.key_version, window.hmac, window.content_hash,
    )  # fmt: skip


class SqliteReader:
    """Reads the log; cannot write. Several threads may use it at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: list[tuple[tuple[int, int], sqlite3.Connection]] = []

    def chain(self, session_id: str) -> Chain:
        """Return all records of a session, with report hashes taken from the stored bytes."""
        with self._reading() as connection:
            connection.execute("BEGIN")
            try:
                return _chain(connection, session_id)
            finally:
                connection.execute("ROLLBACK")

    def events(self, session_id: str, *, after: int, limit: int) -> list[EventRecord]:
        """Return up to *limit* events whose sequence is above *after*."""
        with self._reading() as connection:
            return [_event(row) for row in connection.execute(_EVENTS, (session_id, after, limit))]

    def report(self, *, window_id: str = "", trail_id: str = "") -> StoredReport | None:
        """Return a report by its window or trail id."""
        statement, name = (_REPORT_BY_WINDOW, window_id) if window_id else (_REPORT_BY_TRAIL, trail_id)
        with self._reading() as connection:
            row = connection.execute(statement, (name,)).fetchone()
        return StoredReport(_window(row), row[16] if isinstance(row[16], bytes) else b"") if row else None

    def contents(self, session_id: str) -> Contents:
        """Return a session's encrypted contents."""
        with self._reading() as connection:
            sealed = {_text(row[0]): _bytes(row[1]) for row in connection.execute(_CONTENTS, (session_id,))}
            return Contents(_content_key(connection, session_id), sealed)

    def naming(self, root_session_id: str) -> list[str]:
        """Return the sessions whose SESSION_CREATED mentions *root_session_id*, anywhere in its data."""
        with self._reading() as connection:
            return sorted({_text(row[0]) for row in connection.execute(_NAMING, (root_session_id,))})

    def ping(self) -> None:
        """Read something. Raises ``StoreFailed``."""
        with self._reading() as connection:
            connection.execute("SELECT max(version) FROM schema_migrations").fetchone()

    def close(self) -> None:
        """Close the idle connections; a later call opens again."""
        while self._idle:
            self._idle.pop()[1].close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection; one that failed, or whose file is no longer the one of that name, is closed."""
        connection: sqlite3.Connection | None = None
        try:
            identity = _identity(self.path)
            connection = self._borrowed(identity)
            yield connection
            self._idle.append((identity, connection))
            connection = None
        except (sqlite3.Error, OSError) as error:
            raise store_failed(error, self.path) from None
        finally:
            if connection:
                connection.close()

    def _borrowed(self, identity: tuple[int, int]) -> sqlite3.Connection:
        with contextlib.suppress(IndexError):
            while True:
                opened_on, connection = self._idle.pop()
                if opened_on == identity:
                    return connection
                connection.close()
        return open_reader(self.path)


def _identity(path: Path) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116 - one call, once per transaction
    return found.st_dev, found.st_ino


class SqliteLog(SqliteReader):
    """The log of the service: what the reader can, and ``commit`` for the one writing thread."""

    def __init__(self, path: Path, *, clock: Clock = system_clock, busy_timeout_s: float = 5.0) -> None:
        super().__init__(path)
        self._clock, self._busy_timeout_s = clock, busy_timeout_s
        self._writer: sqlite3.Connection | None = None
        self._opened_on: tuple[int, int] | None = None

    def commit(self, works: Sequence[Work]) -> list[Outcome]:
        """Run *works* in one transaction and return after it is on the disk. Raises ``StoreFailed``."""
        try:
            outcomes = _transaction(self._writing(), works)
            self._check_file()
        except (sqlite3.Error, OSError) as error:
            self._close_writer()
            raise store_failed(error, self.path) from None
        except BaseException:
            self._close_writer()
            raise
        return outcomes

    def close(self) -> None:
        """Close every connection."""
        super().close()
        self._close_writer()

    def _writing(self) -> sqlite3.Connection:
        """Return the open connection, or open it.

        Only a first opening may make the file: one that vanishes later held records, and an empty successor would hide it.
        """
        if self._writer is None:
            self._writer = open_writer(
                self.path, create=self._opened_on is None, clock=self._clock, busy_timeout_s=self._busy_timeout_s
            )
            self._opened_on = _identity(self.path)
        return self._writer

    def _check_file(self) -> None:
        """Refuse what was written to a file that no longer has its name: it would be lost with this process."""
        if _identity(self.path) != self._opened_on:
            raise FileNotFoundError(self.path)

    def _close_writer(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(sqlite3.Error):
                self._writer.close()
            self._writer = None


def _transaction(connection: sqlite3.Connection, works: Iterable[Work]) -> list[Outcome]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        outcomes = [_in_savepoint(connection, work) for work in works]
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise
    return outcomes


def _in_savepoint(connection: sqlite3.Connection, work: Work) -> Outcome:
    connection.execute("SAVEPOINT request")
    try:
        outcome = Outcome(work(_Writing(connection)))
    except sqlite3.IntegrityError as error:
        outcome = _undone(connection, error)
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001 - one request's failure is that request's outcome
        outcome = _undone(connection, error)
    connection.execute("RELEASE request")
    return outcome


def _undone(connection: sqlite3.Connection, error: Exception) -> Outcome:
    connection.execute("ROLLBACK TO request")
    return Outcome(error=error)
