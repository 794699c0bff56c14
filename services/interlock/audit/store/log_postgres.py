"""The audit log on PostgreSQL: one writing connection, and one reading connection per concurrent reader.

Several audit processes may share a database. Writers take turns by an advisory lock that a transaction holds to its end, so
that positions have no gaps and each transaction sees everything committed before it.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import psycopg

from interlock.audit.store import statements
from interlock.audit.store.database_postgres import CommitLost, Timed, connect, ensure_schema, store_failed
from interlock.audit.store.log import RequestOutcome, StoreFailed, Work
from interlock.audit.store.reading import SqlReader
from interlock.audit.store.vouching import Unlogged, Vouch, nobody
from interlock.audit.store.writing import SqlConnection, SqlWriting
from interlock.runtime import failpoints
from interlock.runtime.clock import Clock, system_clock

WRITE_LIMIT_S = 5.0
"""A transaction that takes longer fails, so that its callers are answered within their own deadlines."""
READ_LIMIT_S = 8.0
_WRITERS = 0x494C_4155_0002
_TASKS = 0x494C_4155
_BEGIN = f"BEGIN; SELECT pg_advisory_xact_lock({_WRITERS})"


class _Lent:
    """psycopg's connection behind the shared ``SqlConnection``."""

    def __init__(self, connection: Timed) -> None:
        self.connection = connection
        self.server = connection.server
        self.size: int | None = None

    def execute(self, statement: str, names: Sequence[Any] = ()) -> Any:
        return self.connection.execute(_with_percents(statement), names or None)

    def executemany(self, statement: str, names: Iterable[Sequence[Any]]) -> Any:
        rows = list(names)
        if len(rows) == 1:
            return self.execute(statement, rows[0])
        with self.connection.cursor() as cursor:
            cursor.executemany(_with_percents(statement), rows)
        return None

    def drop(self, what: str, *names: Any) -> int:
        row = self.execute(f"SELECT {what}({', '.join('?' * len(names))})", names).fetchone()
        return int(row[0])

    def touch(self) -> None:
        # A row without meaning; its commit goes to the disk like any other.
        self.execute(statements.SET_CURSOR, ("", 0))


@lru_cache(maxsize=256)
def _with_percents(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


class PostgresReader(SqlReader):
    """Reads the log; cannot write. Threads may share it."""

    def __init__(self, url: str, *, limit_s: float = READ_LIMIT_S) -> None:
        self.url, self._limit_s = url, limit_s
        self._idle: list[Timed] = []

    def leads(self, task: str) -> bool:
        """Return False: a reader runs no background task."""
        del task
        return False

    def close(self) -> None:
        """Close the idle connections; a later call opens again."""
        while self._idle:
            self._idle.pop().close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[SqlConnection]:
        with self._borrowed() as connection:
            yield _Lent(connection)

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[SqlConnection]:
        with self._borrowed() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield _Lent(connection)
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[Timed]:
        """Lend a connection and close it if it failed. A dead idle connection is replaced by a new one."""
        connection: Timed | None = None
        try:
            connection = self._alive() or connect(self.url, limit_s=self._limit_s, read_only=True)
            with connection.within(self._limit_s):
                yield connection
            self._idle.append(connection)
            connection = None
        except (psycopg.Error, OSError) as error:
            raise store_failed(error, self.url) from None
        finally:
            if connection:
                connection.close()

    def _alive(self) -> Timed | None:
        with contextlib.suppress(IndexError):
            while True:
                connection = self._idle.pop()
                if is_alive(connection):
                    return connection
                connection.close()
        return None


def is_alive(connection: Timed) -> bool:
    """Return whether the connection is still up; reading the pending input reveals that the server closed it."""
    if connection.closed:
        return False
    try:
        connection.pgconn.consume_input()
    except psycopg.Error:
        return False
    return True


class PostgresLog(PostgresReader):
    """The service's log: the reader, and ``commit`` for the one writing thread."""

    def __init__(
        self, url: str, *, clock: Clock = system_clock, write_limit_s: float = WRITE_LIMIT_S,
        read_limit_s: float = READ_LIMIT_S, vouch: Vouch = nobody,
    ) -> None:  # fmt: skip
        """*vouch* tells which events without a leaf may get one."""
        super().__init__(url, limit_s=read_limit_s)
        self._unlogged = Unlogged(vouch)
        self._clock, self._write_limit_s = clock, write_limit_s
        self._writer: Timed | None = None
        self._leader: Timed | None = None
        self._led: set[str] = set()
        self._lock = threading.Lock()

    def commit(self, works: Sequence[Work]) -> list[RequestOutcome]:
        """Run *works* in one transaction and return once the server has it on its disk. Raises ``StoreFailed``."""
        try:
            connection = self._writing()
            with connection.within(self._write_limit_s):
                return _transaction(connection, works, self._unlogged)
        except (psycopg.Error, OSError, CommitLost) as error:
            self._close_writer()
            raise store_failed(error, self.url) from None
        except BaseException:
            self._close_writer()
            raise

    def leads(self, task: str) -> bool:
        """Return whether this process runs a task: its connection holds the task's lock."""
        with self._lock:
            try:
                return self._leads(task)
            except (psycopg.Error, OSError, StoreFailed):
                self._close_leader()
                return False

    def close(self) -> None:
        """Close every connection."""
        super().close()
        self._close_writer()
        with self._lock:
            self._close_leader()

    def _leads(self, task: str) -> bool:
        if self._leader is None or not is_alive(self._leader):
            self._close_leader()
            self._leader = connect(self.url, limit_s=self._limit_s)
        with self._leader.within(self._limit_s):
            if task in self._led:
                self._leader.execute("SELECT 1")  # the lock is ours as long as the connection lives
                return True
            number = int.from_bytes(hashlib.sha256(task.encode()).digest()[:4], "big", signed=True)
            row = self._leader.execute("SELECT pg_try_advisory_lock(%s, %s)", (_TASKS, number)).fetchone()
        if row and row[0]:
            self._led.add(task)
        return task in self._led

    def _writing(self) -> Timed:
        if self._writer is not None and not is_alive(self._writer):
            self._close_writer()
        if self._writer is None:
            connection = connect(self.url, limit_s=self._write_limit_s)
            try:
                with connection.within(self._write_limit_s):
                    ensure_schema(connection, self._clock)
            except BaseException:
                connection.close()
                raise
            self._writer = connection
        return self._writer

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _close_leader(self) -> None:
        self._led.clear()
        if self._leader is not None:
            self._leader.close()
            self._leader = None


def _transaction(connection: Timed, works: Iterable[Work], unlogged: Unlogged) -> list[RequestOutcome]:
    connection.execute(_BEGIN)
    try:
        lent = _Lent(connection)
        looked = SqlWriting(lent).adopt_unlogged(unlogged.vouch, after=unlogged.looked)
        connection.execute("SAVEPOINT request")
        outcomes = [_in_savepoint(lent, work) for work in works]
        failpoints.reached_sync("audit.before_commit")
        _commit(connection)
    except BaseException:
        with contextlib.suppress(psycopg.Error):
            if not connection.closed:
                connection.execute("ROLLBACK")
        raise
    unlogged.looked = looked
    failpoints.reached_sync("audit.after_commit")
    return outcomes


def _commit(connection: Timed) -> None:
    """Commit. Raises ``CommitLost`` where the server did not answer; what it answers with an error it did not do."""
    try:
        connection.execute("COMMIT")
    except (psycopg.Error, OSError) as error:
        answered = isinstance(error, psycopg.Error) and error.sqlstate is not None and not connection.closed
        if not answered:
            raise CommitLost from error
        raise


def _in_savepoint(connection: _Lent, work: Work) -> RequestOutcome:
    """Run a work after its savepoint; the next work's savepoint is set in the round trip that releases this one."""
    try:
        outcome = RequestOutcome(work(SqlWriting(connection)))
    except (psycopg.IntegrityError, psycopg.DataError) as error:
        outcome = _undone(connection, error)
    except psycopg.Error:
        raise
    except Exception as error:  # noqa: BLE001 - one request's failure is that request's outcome
        outcome = _undone(connection, error)
    connection.execute("RELEASE SAVEPOINT request; SAVEPOINT request")
    return outcome


def _undone(connection: _Lent, error: Exception) -> RequestOutcome:
    connection.execute("ROLLBACK TO SAVEPOINT request")
    connection.size = None
    return RequestOutcome(error=error)
