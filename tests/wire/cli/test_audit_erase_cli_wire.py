"""``interlock audit erase`` against running services: a reviewer's approval, verified by policy, obeyed by audit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
import yaml
from typer.testing import CliRunner, Result

from interlock.audit.wiring import open_service as open_audit
from interlock.cli.audit import commands
from interlock.cli.oversight import commands as oversight
from interlock.policy.wiring import open_service as open_policy
from interlock.runtime.rpc.interceptor import CallInterceptor
from interlock.runtime.settings.model import Settings
from tests.support.audit.audit import MASTER, session_id, window

pytestmark = pytest.mark.req("AUD-5", "OVR-2")
REVIEWER = "reviewer@company.com"


@pytest_asyncio.fixture
async def environment(tmp_path: Path) -> AsyncIterator[Mapping[str, str]]:
    """Policy with one reviewer and audit with one session, at their addresses."""
    made = await run(oversight.app, {}, "keygen", REVIEWER, "--out", str(tmp_path / "key"))
    named = yaml.safe_load(made.stdout)
    named["reviewers"][REVIEWER]["actions"] = ["erase"]
    (tmp_path / "reviewers.yaml").write_text(yaml.safe_dump(named))
    settings = Settings(state_dir=tmp_path, master_key=MASTER.hex(), reviewers_file=tmp_path / "reviewers.yaml")
    services = [await open_policy(settings), await open_audit(settings)]
    await services[1].servicer.Append(window(1, content="Said."), None)
    servers, addresses = [], {}
    for service in services:
        servers.append(grpc.aio.server(interceptors=(CallInterceptor(60),)))
        service.register(service.servicer, servers[-1])
        port = servers[-1].add_insecure_port("127.0.0.1:0")
        addresses[f"INTERLOCK_{service.name.upper()}_ADDRESS"] = f"127.0.0.1:{port}"
        await servers[-1].start()
    yield {**addresses, "INTERLOCK_STATE_DIR": str(tmp_path), "INTERLOCK_MASTER_KEY": MASTER.hex()}
    for server, service in zip(servers, services, strict=True):
        await server.stop(None)
        await service.close()


async def run(app: object, environment: Mapping[str, str], *arguments: str) -> Result:
    """Call a command as a user does, beside the services' own loop."""
    return await asyncio.to_thread(CliRunner().invoke, app, list(arguments), env=dict(environment))


async def approve(environment: Mapping[str, str], session: int = 1) -> str:
    key = f"{environment['INTERLOCK_STATE_DIR']}/key"
    made = await run(oversight.app, {}, "approve-erasure", session_id(session), "--key", key, "-o", "json")
    assert made.exit_code == 0, made.output
    return next(value for value in json.loads(made.stdout).values() if str(value).startswith("approved:"))


async def test_a_session_is_erased_on_a_reviewers_approval(environment):
    """The chain names the reviewer; asked again, nothing more is done; verifying exits with 0 and says TRUNCATED."""
    token = await approve(environment)
    first = await run(commands.app, environment, "erase", session_id(), "--approval", token, "-o", "json")
    again = await run(commands.app, environment, "erase", session_id(), "--approval", token)
    checked = await run(commands.app, environment, "verify", session_id())

    assert (first.exit_code, json.loads(first.stdout.splitlines()[-1])) == (
        0, {"session_id": session_id(), "erased": True, "reviewer_id": REVIEWER},
    )  # fmt: skip
    assert again.stdout.splitlines()[-1] == f"was erased already: {session_id()}"
    assert checked.exit_code == 0
    assert checked.stdout.startswith(f"TRUNCATED  {session_id()}")
    assert f'"reviewer_id":"{REVIEWER}"' in checked.stdout


async def test_an_approval_for_another_session_erases_nothing(environment):
    """Refused by policy before audit is asked; what was said is still there."""
    token = await approve(environment, session=2)
    refused = await run(commands.app, environment, "erase", session_id(), "--approval", token)
    forged = await run(commands.app, environment, "erase", session_id(), "--approval", token[:-2] + "AA")
    checked = await run(commands.app, environment, "verify", session_id())

    assert (refused.exit_code, forged.exit_code) == (2, 2)
    assert "APPROVAL_MISMATCH" in refused.stderr
    assert checked.stdout.startswith("UNVERIFIED")
