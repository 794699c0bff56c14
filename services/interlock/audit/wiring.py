"""The audit service, opened from the settings."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.audit.erasure.retention import Retention
from interlock.audit.merkle.checkpoint_key import load_checkpoint_key
from interlock.audit.merkle.checkpoints import Notary
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.genuine import Genuine
from interlock.audit.sealing.seal import Sealer
from interlock.audit.servicer import AuditServicer
from interlock.audit.store.fence import Fence, Fenced
from interlock.audit.store.log import AuditLog, StoreFailed
from interlock.audit.store.opening import database_path, open_log
from interlock.audit.streams.streaming import check_sinks, open_streaming
from interlock.domain.errors import Refused
from interlock.runtime.clock import Clock, system_clock
from interlock.runtime.keys.derivation import load_keyring
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings

CHECK_TIMEOUT_S = 2.0
DEPENDENCY = "audit_store"


async def open_service(settings: Settings, *, clock: Clock = system_clock) -> Service:
    """Open the audit service. Without its database it starts too: it is not ready, refuses calls and recovers (SVC-9).

    Refused only for errors that waiting does not mend: a bad master key, an unusable ``audit_url``, a bad sinks file.
    """
    keyring = await asyncio.to_thread(load_keyring, settings)
    key = await asyncio.to_thread(load_checkpoint_key, settings)
    await asyncio.to_thread(check_sinks, settings)
    genuine = Genuine(keyring)
    audit_log = open_log(settings, clock=clock, vouch=genuine)
    if not settings.audit_url:
        await asyncio.to_thread(_make_folder, database_path(settings).parent)
    fence = Fence()
    appender = Appender(Fenced(audit_log, fence))
    sealer = Sealer(keyring, clock, os.urandom)
    with contextlib.suppress(StoreFailed):
        await appender.submit(lambda writing: writing.touch())
    notary = Notary(settings, audit_log, appender, key, fence, clock, genuine)
    await notary.open()
    streaming = open_streaming(settings, audit_log, appender, sealer)
    servicer = AuditServicer(
        audit_log,
        appender,
        sealer,
        notary=notary,
        streaming=streaming,
        reread_within=settings.audit_reread_windows,
        kept_days=settings.kept_answers_days,
    )
    streaming.start()
    retention = Retention(settings, audit_log, appender, sealer, clock)
    retention.start()
    holds = asyncio.create_task(servicer.holds.watch(), name="audit-holds")

    async def close() -> None:
        holds.cancel()
        await asyncio.gather(holds, return_exceptions=True)
        await retention.close()
        await streaming.close()
        await notary.close()
        await servicer.close()

    return Service(
        name="audit",
        full_names=(audit_pb2.DESCRIPTOR.services_by_name["AuditService"].full_name,),
        servicer=servicer,
        register=audit_pb2_grpc.add_AuditServiceServicer_to_server,
        unready_dependencies=readiness(servicer, appender, audit_log),
        close=close,
    )


def _make_folder(folder: Path) -> None:
    """Make the state folder. If that fails, every attempt to open the database reports it."""
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def readiness(
    servicer: AuditServicer, appender: Appender, audit_log: AuditLog
) -> Callable[[], Awaitable[Mapping[str, str]]]:
    """Return the service's ``unready_dependencies``: whether the log can be read, and whether the last write succeeded."""

    async def unready_dependencies() -> Mapping[str, str]:
        failure: StoreFailed | None = None
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                failure = await appender.probe()
                await servicer.readers.run(audit_log.ping)
        except StoreFailed as failed:
            failure = (
                failure or failed
            )  # the writer knows more: it tells a log that was emptied from one that cannot be read
        except TimeoutError:
            return {DEPENDENCY: f"the audit log does not answer within {CHECK_TIMEOUT_S:g} s"}
        except Refused as refused:
            return {DEPENDENCY: f"{refused.reason}: {refused.message}"}
        if failure:
            return {DEPENDENCY: f"{failure.reason}: {failure.hint}"}
        return servicer.notary.unready_dependencies() if servicer.notary else {}

    return unready_dependencies
