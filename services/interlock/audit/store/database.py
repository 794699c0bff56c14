"""SQLite connections of the audit log: durability, migrations, and the meaning of failures."""

from __future__ import annotations

import contextlib
import importlib.resources
import os
import sqlite3
import time
from collections.abc import Iterator
from operator import methodcaller
from pathlib import Path

import structlog

from interlock.audit.store.log import StoreFailed
from interlock.runtime.clock import Clock, iso8601

log = structlog.get_logger()

READ_TIMEOUT_S = 5.0
"""Readers wait only while a writer recovers its write-ahead log."""

_MIGRATIONS = importlib.resources.files("interlock.audit") / "sql" / "sqlite"
_BOOTSTRAP = (
    "CREATE TABLE IF NOT EXISTS schema_migrations"
    " (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"
)


def open_writer(path: Path, *, create: bool, clock: Clock, busy_timeout_s: float) -> sqlite3.Connection:
    """Open the writing connection and migrate to the newest schema that this code knows.

    WAL with synchronous FULL: a commit returns once the log file is on the disk (AUD-3). Deleted data is overwritten.
    *busy_timeout_s* is how long a transaction waits for one of another process. Refused with AUDIT_LOG_EMPTIED.
    """
    if path.exists() or create:
        _require_not_emptied(path)
    if create:
        # Before SQLite creates it with the process's umask: reports quote users and models.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = _connect(path, "rw", busy_timeout_s)
    try:
        _use_wal(connection, busy_timeout_s)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA secure_delete = ON")
        # What undoes one request of a transaction goes into memory: otherwise each transaction opens and deletes a file for it.
        connection.execute("PRAGMA temp_store = MEMORY")
        _migrate(connection, clock)
        _mark(path)
        _sync_folder(path.parent)
    except BaseException:
        connection.close()
        raise
    return connection


def _marker(path: Path) -> Path:
    """Return the file that says that there is a log at *path*: without it an emptied one would look like a new one."""
    return path.with_name(f"{path.name}.began")


def _mark(path: Path) -> None:
    with contextlib.suppress(OSError):  # such as in a folder that is not ours to write to
        os.close(os.open(_marker(path), os.O_WRONLY | os.O_CREAT, 0o600))


def _require_not_emptied(path: Path) -> None:
    """Refuse with AUDIT_LOG_EMPTIED a log that held records and is gone: a new one in its place would hide that."""
    if not _marker(path).exists() or (path.exists() and path.stat().st_size):
        return
    raise StoreFailed(
        "AUDIT_LOG_EMPTIED",
        "the audit log held records and is empty or gone now",
        hint=f"restore {path} from a backup; to begin a new log in spite of what is lost, remove {_marker(path).name} beside it",
        cause="EMPTIED",
    )


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a connection that cannot write; the service may run or not, and the medium may be read-only."""
    connection = _connect(path, "ro", READ_TIMEOUT_S)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        if not path.is_file() or _has_log(path):
            raise
        # Reading a WAL database needs a -shm file next to it, unless no process can be writing.
        return _connect(path, "ro&immutable=1", READ_TIMEOUT_S)
    except BaseException:
        connection.close()
        raise
    return connection


def _has_log(path: Path) -> bool:
    wal = path.with_name(path.name + "-wal")
    return wal.exists() and wal.stat().st_size > 0


def _use_wal(connection: sqlite3.Connection, limit_s: float) -> None:
    """Switch to WAL. If two processes do so at once, SQLite fails one without waiting, so wait here."""
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
    """Empty the write-ahead log, which still holds old pages: no file of the log then contains the erased data.

    A reader with an open transaction prevents that; the next erasure, or closing, repeats it. Commits are not affected.
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
    # An attacker may write other bytes than UTF-8; they must be read as a text that does not verify.
    # methodcaller and not str with arguments: half of the time to read a row went into those.
    connection.text_factory = methodcaller("decode", "utf-8", "surrogateescape")
    return connection


def _migrate(connection: sqlite3.Connection, clock: Clock) -> None:
    """Apply the missing migrations, each in a transaction of its own; a newer schema is left as it is."""
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
    """Split a script into statements; ``executescript`` would commit the open transaction first."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file durable; SQLite does that for its write-ahead log, not for the database."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store_failed(error: sqlite3.Error | OSError, path: Path) -> StoreFailed:
    """Return the refusal for a failure of the database, with a hint for the operator."""
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StoreFailed(
                "AUDIT_STORE_FULL",
                "the audit log has no space left",
                hint=f"free space where {path} is; every acknowledged write is safe",
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
        "the audit log is unavailable",
        hint=f"check that {path} exists and can be written ({name})",
        cause=name,
    )
