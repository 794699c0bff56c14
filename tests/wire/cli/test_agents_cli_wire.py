"""``interlock agents`` against a running policy service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from typer.testing import CliRunner, Result

from interlock.cli.agents import app
from interlock.policy.wiring import open_service
from interlock.runtime.rpc.interceptor import CallInterceptor
from interlock.runtime.settings.model import Settings
from tests.support.policy.agents import SPECIFICATION, digest, write


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "agents.yaml", SPECIFICATION)


@pytest.fixture
async def address(file: Path) -> AsyncIterator[str]:
    service = await open_service(Settings(agents_file=file))
    server = grpc.aio.server(interceptors=(CallInterceptor(60),))
    service.register(service.servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)
    await service.close()


async def run(address: str, *arguments: str) -> Result:
    """Call the command as a user does, beside the service's own loop."""
    environment = {"INTERLOCK_POLICY_ADDRESS": address}
    return await asyncio.to_thread(CliRunner().invoke, app, list(arguments), env=environment)


@pytest.mark.req("AGT-1")
async def test_agents_are_listed_added_and_removed_in_the_service(address, file):
    """What is added is in force at once, and in the file."""
    added = await run(
        address, "add", "specialist_tax", "--api-key", f"sha256:{digest('tax')}", "--max-delegations", "0"
    )
    listed = json.loads((await run(address, "list", "-o", "json")).stdout.splitlines()[-1])
    removed = await run(address, "remove", "specialist_tax")
    again = await run(address, "remove", "specialist_tax")

    assert (added.exit_code, added.stdout.splitlines()[-1]) == (0, "specialist_tax added")
    assert listed["agents"]["specialist_tax"] == {"api_key": f"sha256:{digest('tax')}", "max_delegations": 0}
    assert listed["agents"]["orchestrator"]["safety_policy"] == "halt-on CRITICAL; require-grounding 0.80"
    assert listed["fault"] is None
    assert (removed.exit_code, again.exit_code) == (0, 1)
    assert "specialist_tax" not in file.read_text()


@pytest.mark.req("AGT-1")
async def test_a_file_that_is_not_in_force_is_told(address, file):
    """With exit 1, beside the agents that are."""
    file.write_text("agents: 7")
    while (result := await run(address, "list")).exit_code == 0:
        await asyncio.sleep(0.1)

    assert result.exit_code == 1
    assert "orchestrator" in result.stdout
    assert "not in force: AGENTS_INVALID: agents: expected a mapping" in result.stdout


async def test_a_refusal_of_the_service_is_printed(address):
    """Its reason and message; exit 2."""
    result = await run(address, "add", "x", "--api-key", f"sha256:{digest('crp_gw_prod_orch_1')}")

    assert result.exit_code == 2
    assert "AGENT_KEY_TAKEN" in result.stderr
