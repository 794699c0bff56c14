"""Opening the audit log that the settings name: a SQLite file or a PostgreSQL database (AUD-2)."""

from __future__ import annotations

from pathlib import Path

from interlock.audit.store.log import AuditLog
from interlock.audit.store.log_sql import SqliteLog, SqliteReader
from interlock.audit.store.reading import SqlReader
from interlock.audit.store.vouching import Vouch, nobody
from interlock.domain.errors import Refused, invalid, not_found, unavailable
from interlock.runtime.clock import Clock, system_clock
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.values import without_password


def is_postgres(settings: Settings) -> bool:
    """Return whether the audit log is on PostgreSQL."""
    return settings.audit_url.startswith(("postgresql://", "postgres://"))


def place(settings: Settings) -> str:
    """Return the location of the audit log, without a password."""
    return without_password(settings.audit_url) if is_postgres(settings) else str(database_path(settings))


def database_path(settings: Settings) -> Path:
    """Return the file of the audit log: the one in ``audit_url``, or audit.db in ``state_dir``."""
    if not settings.audit_url:
        return settings.state_dir / "audit.db"
    name = settings.audit_url.removeprefix("sqlite:///")
    if name == settings.audit_url or not name or name.startswith(":") or "?" in name:
        raise invalid("AUDIT_URL_INVALID", "audit_url is sqlite:/// and the path of a file, or postgresql://")
    return Path(name)


def open_log(settings: Settings, *, clock: Clock = system_clock, vouch: Vouch = nobody) -> AuditLog:
    """Return the log for the service. Its database is opened at the first use. *vouch*: see ``SqliteLog``."""
    if not is_postgres(settings):
        return SqliteLog(database_path(settings), clock=clock, vouch=vouch)
    _require_driver()
    from interlock.audit.store.log_postgres import PostgresLog

    return PostgresLog(settings.audit_url, clock=clock, vouch=vouch)


def open_reader(settings: Settings) -> SqlReader:
    """Return a reader for other processes; the service may run or not. Refused with AUDIT_LOG_NOT_FOUND."""
    if is_postgres(settings):
        _require_driver()
        from interlock.audit.store.log_postgres import PostgresReader

        return PostgresReader(settings.audit_url)
    path = database_path(settings)
    if not path.is_file():
        raise not_found(
            "AUDIT_LOG_NOT_FOUND",
            f"there is no audit log at {path}",
            hint="set INTERLOCK_AUDIT_URL or INTERLOCK_STATE_DIR to its location",
        )
    return SqliteReader(path)


def _require_driver() -> None:
    try:
        import psycopg  # noqa: F401 - only whether it is there
    except ImportError:
        raise _no_driver() from None


def _no_driver() -> Refused:
    return unavailable(
        "POSTGRES_DRIVER_MISSING",
        "psycopg is not installed",
        retry_after_ms=0,
        hint="pip install 'interlock[postgres]'",
    )
