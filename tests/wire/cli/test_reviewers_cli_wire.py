"""``interlock oversight reviewers`` against a running policy service."""

from __future__ import annotations

import asyncio
import json

import grpc
import pytest
from typer.testing import CliRunner, Result

from interlock.cli.oversight.commands import app
from interlock.policy.reviewers import key_text
from interlock.policy.wiring import open_service
from interlock.runtime.rpc.interceptor import CallInterceptor
from interlock.runtime.settings.model import Settings
from tests.support.policy import agents

PUBLIC = key_text(agents.private_key(3).public_key().public_bytes_raw())


@pytest.fixture
async def address(tmp_path):
    file = agents.write(tmp_path / "reviewers.yaml", agents.reviewers())
    service = await open_service(Settings(reviewers_file=file, reviewers_by_rpc=True))
    server = grpc.aio.server(interceptors=(CallInterceptor(60),))
    service.register(service.servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)
    await service.close()


async def run(address: str, *arguments: str) -> Result:
    environment = {"INTERLOCK_POLICY_ADDRESS": address}
    return await asyncio.to_thread(CliRunner().invoke, app, ["reviewers", *arguments], env=environment)


@pytest.mark.req("OVR-3")
async def test_reviewers_are_registered_listed_and_removed(address):
    """Beside those of the file, which stay as they are."""
    added = await run(address, "register", "second@company.com", "--public-key", PUBLIC, "--action", "release")
    listed = json.loads((await run(address, "list", "-o", "json")).stdout.splitlines()[-1])["reviewers"]
    removed = await run(address, "remove", "second@company.com")
    again = await run(address, "remove", "second@company.com")
    filed = await run(address, "remove", agents.REVIEWER)

    assert added.exit_code == 0
    assert [(one["reviewer_id"], one["from_file"], one["actions"]) for one in listed] == [
        (agents.REVIEWER, True, ["delegate", "reject", "release"]),
        ("second@company.com", False, ["release"]),
    ]
    assert (removed.exit_code, again.exit_code) == (0, 1)
    assert (filed.exit_code, "REVIEWER_FROM_FILE" in filed.output) == (2, True)
