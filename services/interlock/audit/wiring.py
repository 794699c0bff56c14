"""The audit service, opened from the settings."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.audit.appender import Appender
from interlock.audit.log import StoreFailed
from interlock.audit.log_sql import SqliteLog
from interlock.audit.seal import Sealer
from interlock.audit.servicer import AuditServicer
from interlock.domain.errors import Refused, invalid
from interlock.runtime.clock import Clock, system_clock
from interlock.runtime.config import Settings
from interlock.runtime.keys import load_keyring
from interlock.runtime.service import Service

CHECK_TIMEOUT_S = 2.0
DEPENDENCY = "audit_store"


async def open_service(settings: Settings, *, clock: Clock = system_clock) -> Service:
    """Open the audit service. It starts without its database too: not ready, refusing, and back by itself (SVC-9).

    Refused only for what no waiting mends: a bad master key or an unusable ``audit_url``.
    """
    keyring = await asyncio.to_thread(load_keyring, settings)
    path = database_path(settings)
    if not settings.audit_url:
        await asyncio.to_thread(_make_folder, path.parent)
    audit_log = SqliteLog(path, clock=clock)
    appender = Appender(audit_log)
    servicer = AuditServicer(audit_log, appender, Sealer(keyring, clock, os.urandom))
    with contextlib.suppress(StoreFailed):
        await appender.submit(lambda writing: writing.touch())
    return Service(
        name="audit",
        full_name=audit_pb2.DESCRIPTOR.services_by_name["AuditService"].full_name,
        servicer=servicer,
        register=audit_pb2_grpc.add_AuditServiceServicer_to_server,
        missing=readiness(servicer, appender, audit_log),
        close=servicer.close,
    )


def database_path(settings: Settings) -> Path:
    """Return the file of the audit log: that of ``audit_url``, or audit.db below ``state_dir``."""
    if not settings.audit_url:
        return settings.state_dir / "audit.db"
    name = settings.audit_url.removeprefix("sqlite:///")
    if not name or name.startswith(":") or "?" in name:
        raise invalid("AUDIT_URL_INVALID", "audit_url is sqlite:/// and the path of a file")
    return Path(name)


def _make_folder(folder: Path) -> None:
    """Make the state folder; if that fails, opening the database says so, as often as it is tried."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def readiness(
    servicer: AuditServicer, appender: Appender, audit_log: SqliteLog
) -> Callable[[], Awaitable[Mapping[str, str]]]:
    """Return the service's ``missing``: can the log be read, and did writing work when it was last tried?"""

    async def missing() -> Mapping[str, str]:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                failure = await appender.probe()
                await servicer.read(audit_log.ping)
        except StoreFailed as failed:
            failure = failed
        except TimeoutError:
            return {DEPENDENCY: f"the audit log does not answer within {CHECK_TIMEOUT_S:g} s"}
        except Refused as refused:
            return {DEPENDENCY: f"{refused.reason}: {refused.message}"}
        return {DEPENDENCY: f"{failure.reason}: {failure.hint}"} if failure else {}

    return missing
