"""The audit log on SQLite: one writing connection, and one reading connection per concurrent reader."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from interlock.audit.store import statements
from interlock.audit.store.database import forget, open_reader, open_writer, store_failed
from interlock.audit.store.log import RequestOutcome, Work
from interlock.audit.store.reading import SqlReader
from interlock.audit.store.vouching import Unlogged, Vouch, nobody
from interlock.audit.store.writing import SqlConnection, SqlWriting
from interlock.runtime import failpoints
from interlock.runtime.clock import Clock, system_clock


class _Lent:
    """SQLite's connection behind the shared ``SqlConnection``."""

    def __init__(self, connection: sqlite3.Connection, identity: tuple[int, int] | None) -> None:
        self.connection = connection
        self.server = f"file {identity}"
        self.size: int | None = None
        self.erased = False
        self.execute, self.executemany = connection.execute, connection.executemany

    def drop(self, what: str, *names: Any) -> int:
        self.erased |= what in {"destroy_key", "drop_events"}
        for statement in statements.DROPS[what]:
            dropped = self.connection.execute(statement, names).rowcount
        return dropped

    def touch(self) -> None:
        # The value stays the same, but its page goes through the write-ahead log to the disk like any other.
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        self.connection.execute(f"PRAGMA user_version = {int(version)}")


class SqliteReader(SqlReader):
    """Reads the log; cannot write. Threads may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: list[tuple[tuple[int, int], sqlite3.Connection]] = []

    def leads(self, task: str) -> bool:
        """Return True: a file has one serving process."""
        del task
        return True

    def close(self) -> None:
        """Close the idle connections; a later call opens again."""
        while self._idle:
            self._idle.pop()[1].close()

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[SqlConnection]:
        with self._reading() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[SqlConnection]:
        """Lend a connection. It is closed if it failed, or if another file has taken the name of its own."""
        connection: sqlite3.Connection | None = None
        try:
            identity = _identity(self.path)
            connection = self._borrowed(identity)
            yield _Lent(connection, identity)
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
    """The service's log: the reader, and ``commit`` for the one writing thread."""

    def __init__(
        self, path: Path, *, clock: Clock = system_clock, busy_timeout_s: float = 5.0, vouch: Vouch = nobody
    ) -> None:
        """*vouch* tells which events without a leaf may get one."""
        super().__init__(path)
        self._unlogged = Unlogged(vouch)
        self._clock, self._busy_timeout_s = clock, busy_timeout_s
        self._writer: sqlite3.Connection | None = None
        self._opened_on: tuple[int, int] | None = None

    def commit(self, works: Sequence[Work]) -> list[RequestOutcome]:
        """Run *works* in one transaction and return after it is on the disk. Raises ``StoreFailed``."""
        try:
            connection = self._writing()
            lent = _Lent(connection, self._opened_on)
            outcomes = _transaction(lent, works, self._unlogged)
            self._check_file()
            if lent.erased:
                forget(connection, self._busy_timeout_s)
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

        Only the first opening may create the file: one that vanishes later held records, and an empty new one would hide that.
        """
        if self._writer is None:
            self._writer = open_writer(
                self.path, create=self._opened_on is None, clock=self._clock, busy_timeout_s=self._busy_timeout_s
            )
            self._opened_on = _identity(self.path)
        return self._writer

    def _check_file(self) -> None:
        """Refuse a transaction in a file that lost its name: the writes would be lost with this process."""
        if _identity(self.path) != self._opened_on:
            raise FileNotFoundError(self.path)

    def _close_writer(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(sqlite3.Error):
                self._writer.close()
            self._writer = None


def _transaction(lent: _Lent, works: Iterable[Work], unlogged: Unlogged) -> list[RequestOutcome]:
    connection = lent.connection
    connection.execute("BEGIN IMMEDIATE")
    try:
        looked = SqlWriting(lent).adopt_unlogged(unlogged.vouch, after=unlogged.looked)
        outcomes = [_in_savepoint(lent, work) for work in works]
        failpoints.reached_sync("audit.before_commit")
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise
    unlogged.looked = looked
    failpoints.reached_sync("audit.after_commit")
    return outcomes


def _in_savepoint(connection: SqlConnection, work: Work) -> RequestOutcome:
    connection.execute("SAVEPOINT request")
    try:
        outcome = RequestOutcome(work(SqlWriting(connection)))
    except sqlite3.IntegrityError as error:
        outcome = _undone(connection, error)
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001 - one request's failure is that request's outcome
        outcome = _undone(connection, error)
    connection.execute("RELEASE request")
    return outcome


def _undone(connection: SqlConnection, error: Exception) -> RequestOutcome:
    connection.execute("ROLLBACK TO request")
    connection.size = None
    return RequestOutcome(error=error)
