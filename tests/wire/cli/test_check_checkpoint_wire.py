"""`interlock check` and the page of health on the last checkpoint: none, current, late, of another key, and no service (AUD-6, OBS-4)."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from interlock.cli.probing.probes_checkpoint import checkpoint
from interlock.runtime.clock import system_clock
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.rpc.server import RpcServer
from tests.support.audit.auditors import audited, settings_of
from tests.support.servers.ports import free_port

pytestmark = [pytest.mark.req("OBS-4", "AUD-6")]


@asynccontextmanager
async def served(folder):
    """A real audit service on a port, and the settings that find it there."""
    settings = settings_of(folder, allow_plaintext=True, drain_s=0.1)
    async with audited(settings) as audit:
        server = RpcServer([audit.service], settings, port=0)
        port = await server.start()
        try:
            yield audit, settings.model_copy(update={"audit_address": f"127.0.0.1:{port}"})
        finally:
            await server.drain()


async def found(settings, later_s: int = 0) -> ProbeFinding:
    [finding] = [one async for one in checkpoint(settings, lambda: system_clock() + later_s * 1_000_000)]
    return finding


async def test_a_checkpoint_that_keeps_up_is_fine_and_one_that_does_not_is_told(tmp_path):
    """Current: it says how much it covers. New entries are no fault at once; long after the last signature they are."""
    async with served(tmp_path) as (audit, settings):
        await audit.record()
        await audit.notary.round()
        current = await found(settings)
        await audit.seal()
        soon, late = await found(settings, 10), await found(settings, 6 * 3_600 + 60)

    assert current.status is ProbeStatus.OK
    assert "it covers all " in current.detail
    assert (soon.status, "it covers " in soon.detail) == (ProbeStatus.OK, True)
    assert late.status is ProbeStatus.WARN
    assert "entries are in none" in late.detail
    assert "the anchor or the disk" in late.hint


async def test_without_a_service_nothing_is_claimed(tmp_path):
    """Neither good nor bad: it is not known."""
    settings = settings_of(tmp_path, allow_plaintext=True, audit_address=f"127.0.0.1:{free_port()}")

    assert (await found(settings)).status is ProbeStatus.SKIP
