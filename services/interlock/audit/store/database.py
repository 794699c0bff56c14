"""SQLite connections of the audit log: durability, migrations, and what their failures mean."""

from __future__ import annotations

import contextlib
import importlib.resources
import os
import sqlite3
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import structlog

from interlock.audit.store.log import StoreFailed
from interlock.runtime.clock import Clock, iso8601

log = structlog.get_logger()

READ_TIMEOUT_S = 5.0
"""Readers hardly ever wait: only while a writer recovers its log."""

_MIGRATIONS = importlib.resources.files("interlock.audit") / "sql" / "sqlite"
_BOOTSTRAP = (
    "CREATE TABLE IF NOT EXISTS schema_migrations"
    " (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"
)


def open_writer(path: Path, *, create: bool, clock: Clock, busy_timeout_s: float) -> sqlite3.Connection:
    """Open the one connection that writes, on the newest schema that this code knows.

    WAL with synchronous FULL: a commit returns after the log file is on the disk (AUD-3). What is deleted is overwritten. *busy_timeout_s* is how long a
    transaction waits for another process's.
    """
    if create:
        # Before SQLite makes it with the process's mask: reports hold what users asked and models said.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = _connect(path, "rw", busy_timeout_s)
    try:
        _use_wal(connection, busy_timeout_s)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA secure_delete = ON")
        _migrate(connection, clock)
        _sync_folder(path.parent)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a connection that cannot write, beside a running service or on a file at rest, even on a read-only medium."""
    connection = _connect(path, "ro", READ_TIMEOUT_S)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if not path.is_file() or _has_log(path):
            raise
        # Reading a WAL database needs a -shm file beside it, unless nobody can be writing.
        return _connect(path, "ro&immutable=1", READ_TIMEOUT_S)
    except BaseException:
        connection.close()
        raise
    return connection


def _has_log(path: Path) -> bool:
    wal = path.with_name(path.name + "-wal")
    return wal.exists() and wal.stat().st_size > 0


def _use_wal(connection: sqlite3.Connection, limit_s: float) -> None:
    """Switch to WAL; of two processes that do so at once SQLite fails one without waiting, so wait here."""
    for attempts_left in reversed(range(max(1, int(limit_s / 0.05)))):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or not attempts_left:
                raise
            time.sleep(0.05)
        else:
            return


def forget(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    """Empty the write-ahead log, which holds pages as they were: what was erased is then in none of the log's files.

    A reader in the middle of something holds it up; then the next time, or closing, does it. What was committed stays so.
    """
    connection.execute("PRAGMA busy_timeout = 250")
    with contextlib.suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {int(busy_timeout_s * 1000)}")


def _connect(path: Path, mode: str, timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=timeout_s,
        check_same_thread=False,
    )
    # What an attacker wrote need not be UTF-8; it must come out as something that does not verify.
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection


def _migrate(connection: sqlite3.Connection, clock: Clock) -> None:
    """Apply what is missing, each migration in a transaction of its own; a newer schema is left as it is."""
    connection.execute(_BOOTSTRAP)
    for version, name, text in _migrations():
        connection.execute("BEGIN IMMEDIATE")
        try:
            row = connection.execute("SELECT max(version) FROM schema_migrations").fetchone()
            if version > (row[0] or 0):
                for statement in _statements(text):
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, ?)",
                    (version, name, iso8601(clock())),
                )
                log.info("audit.schema.migrated", version=version, name=name)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _migrations() -> Iterator[tuple[int, str, str]]:
    for file in sorted(_MIGRATIONS.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            yield int(file.name.split("_", 1)[0]), file.name, file.read_text(encoding="utf-8")


def _statements(text: str) -> Iterator[str]:
    """Cut a script into statements; ``executescript`` would end our transaction first."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file durable too; SQLite does so for its log, not for the database."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store_failed(error: sqlite3.Error | OSError, path: Path) -> StoreFailed:
    """Return what a failure of the database means to callers, with a hint for the operator."""
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StoreFailed(
                "AUDIT_STORE_FULL",
                "the audit log has no room left",
                hint=f"free space where {path} is; nothing that was acknowledged is lost",
                cause=name,
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreFailed(
                "AUDIT_STORE_CORRUPT",
                "the audit log's file is damaged",
                hint=f"keep {path} as evidence and restore it from a backup",
                cause=name,
            )
    return StoreFailed(
        "AUDIT_STORE_UNAVAILABLE",
        "the audit log cannot be used now",
        hint=f"check that {path} exists and can be written ({name})",
        cause=name,
    )
