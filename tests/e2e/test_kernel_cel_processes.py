"""T3 of conditions in CEL over several processes and kill -9: two session services, two sidecars, four agents, one Valkey (KRN-3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from interlock.client.kernel import KernelCalls
from tests.e2e.test_kernel_kills import RICH, killed, lines, started
from tests.support import kernel_verifier
from tests.support.kernels import UNIT, definition
from tests.support.servers.processes import Processes
from tests.support.valkey import Valkey

pytestmark = pytest.mark.req("KRN-2", "KRN-3")
MOST = 4
CONDITIONS = [
    {"name": "few", "cel": f"active <= {MOST}.0 && active >= 0"},
    {"name": "slow", "cel": "active <= before.active + 1.0 || action == ''"},
    {"name": "sent", "cel": "log.all(one, one == 'sent') && left.mails >= 0.0"},
    {"name": "watched", "cel": "active < 2", "enforcement": "ENFORCEMENT_MONITORING"},
]


def active_after(trace: Sequence[Mapping[str, Any]]) -> list[int]:
    """The variable after each record that changed it, as the chain has it."""
    told = (dict(json.loads(one["data_json"])["changes"] or {}).get("v:active") for one in trace)
    return [int(one[2:] or 0) for one in told if one]


async def test_a_condition_holds_over_two_session_services_that_are_killed(tmp_path):
    """Session services die before and after a step, the store dies and comes back; each record of the chain keeps the conditions."""
    (tmp_path / "valkey").mkdir()
    with Valkey(tmp_path / "valkey") as valkey, Processes(tmp_path, {"redis_url": valkey.url}) as processes:
        audit = processes.process("audit").start()
        sessions = [processes.process("session", label=f"session{n}").start() for n in (0, 1)]
        nowhere = {f"{name}_address": "127.0.0.1:9" for name in ("policy", "dpe")}
        at = {"audit_address": f"127.0.0.1:{audit.wait().ports['audit']}"}
        sidecars = [
            processes.process(
                "sidecar", label=f"sidecar{n}", **nowhere, **at, session_address=f"127.0.0.1:{one.wait().ports['session']}"
            ).start()
            for n, one in enumerate(sessions)
        ]  # fmt: skip
        urls = [f"http://127.0.0.1:{one.wait().ports['sidecar_http']}" for one in sidecars]
        calls = KernelCalls(urls[0], retries=12)
        await asyncio.to_thread(
            calls.post, "team", "open", {"definition": definition(resources=RICH, invariants=CONDITIONS)}
        )
        agents = [started("team", urls[n % 2], 30) for n in range(4)]
        while len(await asyncio.to_thread(calls.trace, "team")) < 12:
            await asyncio.sleep(0.02)
        for one, point in zip(sessions, ("before", "after"), strict=True):
            await asyncio.to_thread(killed, one, f"kernel.{point}_step:kill@3")
        valkey.kill()
        valkey.start()
        told = [one for agent in agents for one in await asyncio.to_thread(lines, agent)]
        trace: list[dict] = []
        while page := await asyncio.to_thread(calls.trace, "team", int(trace[-1]["sequence"]) if trace else 0):
            trace += page
        counted = kernel_verifier.verify(trace, await asyncio.to_thread(calls.describe, "team"), told)
        calls.close()
    values = active_after(trace)
    assert max(values) == MOST * UNIT, "the bound was reached"
    assert min(values) >= 0
    rejected = [json.loads(one["data_json"]) for one in trace if one["type"] == "KERNEL_REJECTED"]
    assert any(check[0] == "invariant:few" and check[1] == "0" for one in rejected for check in one["checks"])
    assert counted["answers"] >= 60, counted
