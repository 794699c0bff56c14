"""PostgreSQL connections of the audit log: durability, roles, migrations, time limits, the meaning of failures."""

from __future__ import annotations

import contextlib
import importlib.resources
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import structlog
from psycopg import sql

from interlock.audit.store.log import StoreFailed
from interlock.runtime.clock import Clock, iso8601
from interlock.runtime.settings.values import without_password

log = structlog.get_logger()

SCHEMA = "interlock_audit"
CONNECT_TIMEOUT_S = 3
_MIGRATION_LOCK = 0x494C_4155_0001
_FOLDER = importlib.resources.files("interlock.audit") / "sql" / "postgres"


class Timed(psycopg.Connection[Any]):
    """A connection whose statements end at a deadline, even if the server does not respond."""

    deadline: float | None = None
    server = ""
    """What serves the database: its address and the start of its process."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for the server, at most until the deadline."""
        if self.deadline is not None:
            left = max(self.deadline - time.monotonic(), 0.001)
            timeout = left if timeout is None else min(left, timeout)
        return super().wait(gen, interval, timeout)

    @contextlib.contextmanager
    def within(self, limit_s: float) -> Iterator[None]:
        """Limit all statements of the block together to *limit_s*."""
        self.deadline = time.monotonic() + limit_s
        try:
            yield
        finally:
            self.deadline = None


def connect(url: str, *, limit_s: float, read_only: bool = False) -> Timed:
    """Open a connection to the log's schema, with a time limit on every statement.

    Refused if the server may lose acknowledged writes: ``fsync`` or ``synchronous_commit`` off (AUD-3).
    """
    connection = Timed.connect(
        url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S, application_name="interlock-audit",
        tcp_user_timeout=int(limit_s * 1000), keepalives_idle=5, keepalives_interval=2, keepalives_count=2,
    )  # fmt: skip
    try:
        with connection.within(limit_s):
            connection.execute(_session_settings(limit_s, read_only=read_only))
            _require_durable(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _session_settings(limit_s: float, *, read_only: bool) -> sql.Composed:
    limit_ms = int(limit_s * 1000)
    return sql.SQL(
        "SET search_path = interlock_audit, pg_temp; SET statement_timeout = {limit}; SET lock_timeout = {limit};"
        " SET idle_in_transaction_session_timeout = {idle}; SET default_transaction_isolation = 'read committed';"
        " SET default_transaction_read_only = {read_only}; SET client_encoding = 'UTF8'"
    ).format(limit=limit_ms, idle=2 * limit_ms, read_only=sql.Literal("on" if read_only else "off"))


def _require_durable(connection: Timed) -> None:
    row = connection.execute(
        "SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('server_encoding'),"
        " concat_ws(' ', inet_server_addr(), inet_server_port(), current_database(), pg_postmaster_start_time())"
    ).fetchone()
    assert row is not None
    connection.server = row[3]
    for name, found, wanted in (
        ("fsync", row[0], row[0] == "on"),
        ("synchronous_commit", row[1], row[1] != "off"),
        ("server_encoding", row[2], row[2] == "UTF8"),
    ):
        if not wanted:
            raise StoreFailed(
                "AUDIT_STORE_UNAVAILABLE",
                "the audit log's database may lose acknowledged writes",
                hint=f"the server has {name} = {found}; the audit log is refused on it",
                cause=name,
            )


def migrate(connection: Timed, clock: Clock) -> int:
    """Apply the missing migrations, each in a transaction of its own; return how many. A newer schema stays as it is.

    Processes that start at the same time take turns.
    """
    applied = 0
    for version, name, text in _migrations():
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(SCHEMA)))
            connection.execute(
                "CREATE TABLE IF NOT EXISTS schema_migrations"
                " (version integer NOT NULL PRIMARY KEY, name text NOT NULL, applied_at text NOT NULL)"
            )
            row = connection.execute("SELECT max(version) FROM schema_migrations").fetchone()
            if row and version <= (row[0] or 0):
                continue
            connection.execute(text.encode())
            connection.execute(
                "INSERT INTO schema_migrations (version, name, applied_at) VALUES (%s, %s, %s)",
                (version, name, iso8601(clock())),
            )
        applied += 1
        log.info("audit.schema.migrated", version=version, name=name)
    return applied


def grant(connection: Timed, role: str) -> None:
    """Grant the service's role the rights it needs and revoke all others."""
    text = (_FOLDER / "grants.sql").read_text(encoding="utf-8")
    with connection.transaction():
        connection.execute(sql.SQL(text).format(role=sql.Identifier(role)))


def ensure_schema(connection: Timed, clock: Clock) -> None:
    """Bring the schema up to date if this role owns it; refuse an older schema that belongs to another role."""
    newest = max(version for version, _, _ in _migrations())
    found = connection.execute(
        "SELECT n.nspowner = (SELECT oid FROM pg_roles WHERE rolname = current_user) FROM pg_namespace AS n"
        " WHERE n.nspname = %s", (SCHEMA,),
    ).fetchone()  # fmt: skip
    if found is not None and not found[0]:
        row = connection.execute("SELECT max(version) FROM schema_migrations").fetchone()
        if row and (row[0] or 0) >= newest:
            return
        raise _not_migrated("the schema is older than this version")
    try:
        migrate(connection, clock)
    except psycopg.errors.InsufficientPrivilege:
        raise _not_migrated("there is no schema, and this role may not create one") from None


def _not_migrated(why: str) -> StoreFailed:
    return StoreFailed(
        "AUDIT_STORE_UNAVAILABLE",
        "the audit log's database is not prepared",
        hint=f"{why}: run interlock audit migrate --owner-url postgresql://OWNER@HOST/DATABASE",
        cause="schema",
    )


def _migrations() -> Iterator[tuple[int, str, str]]:
    for file in sorted(_FOLDER.iterdir(), key=lambda file: file.name):
        number = file.name.split("_", 1)[0]
        if file.name.endswith(".sql") and number.isdecimal():
            yield int(number), file.name, file.read_text(encoding="utf-8")


class CommitLost(Exception):  # noqa: N818 - an outcome that nobody knows, not an error of the server
    """The connection was lost while the server committed: the transaction may be kept."""


def store_failed(error: psycopg.Error | OSError | CommitLost, url: str) -> StoreFailed:
    """Return the refusal for a failure of the database, with a hint for the operator that contains no password."""
    if isinstance(error, CommitLost):
        return StoreFailed(
            "AUDIT_STORE_UNAVAILABLE",
            "the audit log is unavailable",
            hint=f"check {without_password(url)}: it was lost during a commit, which may have been done",
            cause="CommitLost",
            in_doubt=True,
        )
    code = getattr(error, "sqlstate", None) or ""
    name, where = code or type(error).__name__.lstrip("_"), without_password(url)
    if code == "53100":
        return StoreFailed(
            "AUDIT_STORE_FULL",
            "the audit log has no space left",
            hint=f"free space on the server of {where}; every acknowledged write is safe",
            cause=name,
        )
    if code in {"XX001", "XX002"}:
        return StoreFailed(
            "AUDIT_STORE_CORRUPT",
            "the audit log's database is damaged",
            hint=f"keep the data of {where} as evidence and restore it from a backup",
            cause=name,
        )
    hints = {
        "42501": "its role may not do that: run interlock audit migrate --owner-url",
        "42P01": "its tables are missing, or not for this role: run interlock audit migrate --owner-url",
        "53300": "the server has no connection left",
        "28P01": "the server refuses the password",
        "28000": "the server refuses the role",
        "3D000": "there is no such database",
        "25006": "the server takes no writes: is it a standby?",
    }
    return StoreFailed(
        "AUDIT_STORE_UNAVAILABLE",
        "the audit log is unavailable",
        hint=f"check {where}: {hints.get(code, 'does the server answer?')} ({name})",
        cause=name,
    )
