"""From end to end: the real openai client waits, a reviewer approves on the command line, the retry gets the answer (OVR-4)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import openai
import pytest
import pytest_asyncio
import yaml
from typer.testing import CliRunner

from interlock.api.audit.v1 import audit_pb2
from interlock.cli.oversight.commands import app
from interlock.policy.reviewers import key_text
from tests.support.policy import agents
from tests.support.servers.processes import Processes, environment, run
from tests.support.sidecar.oversight import HOLDS, reviewed_world
from tests.support.sidecar.sidecar import token_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("OVR-4", "OVR-5")]

SAID = "The HIGH road is open."
QUESTION = [{"role": "user", "content": "Is the road open?"}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    async with reviewed_world(tmp_path_factory.mktemp("e2e"), reviewers_by_rpc=True) as running:
        running.provider.answers(SAID)
        yield running


@pytest.fixture
def key_file(tmp_path) -> Path:
    path = tmp_path / "reviewer.key"
    private = key_text(agents.private_key().private_bytes_raw())
    path.write_text(yaml.safe_dump({"reviewer": agents.REVIEWER, "private_key": private}))
    path.chmod(0o600)
    return path


async def command(world, *arguments: str) -> tuple[int, str]:
    """Call ``interlock oversight`` as a person does, beside the services' own loop."""
    env = {"INTERLOCK_OVERSIGHT_ADDRESS": world.oversight.grpc, "NO_COLOR": "1"}
    result = await asyncio.to_thread(CliRunner().invoke, app, list(arguments), env=env)
    return result.exit_code, result.output


def last(output: str) -> str:
    """What the command printed: the services of this process log before it."""
    return output.strip().splitlines()[-1]


async def test_held_approved_on_the_command_line_and_released_to_the_openai_client(world, key_file):
    """Once, with the headers of the held response; the chain verifies and holds the approval."""
    async with openai.AsyncOpenAI(base_url=f"{world.sidecar.http}/v1", api_key="sk-client") as client:
        with pytest.raises(openai.APIStatusError) as refused:
            await client.chat.completions.create(model="m", messages=QUESTION, extra_headers=HOLDS)
        held = refused.value.response
        window_id, session_token = held.json()["metadata"]["window_id"], token_of(held)
        listed = await command(world, "list", "--key", str(key_file))
        shown = await command(world, "show", window_id, "--key", str(key_file))
        code, out = await command(world, "approve", window_id, "--key", str(key_file), "--reason", "SOURCES_CHECKED")
        again = await command(world, "reject", window_id, "--key", str(key_file), "--reason", "UNCLEAR")
        headers = {"CRP-Session-Token": session_token, "CRP-Oversight-Token": last(out)}
        raw = await client.chat.completions.with_raw_response.create(
            model="m", messages=QUESTION, extra_headers=headers
        )
    session_id = held.headers["crp-context-session-id"]
    events = await world.sidecar.events(session_id)
    found = await world.sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=session_id))

    assert (listed[0], window_id in listed[1]) == (0, True)
    assert SAID in shown[1]
    assert (code, last(out).startswith("approved:sha256:")) == (0, True)
    assert (again[0], "HELD_NOT_PENDING" in again[1]) == (2, True)
    assert raw.parse().choices[0].message.content == SAID
    assert raw.headers["crp-provenance-hmac"] == held.headers["crp-provenance-hmac"]
    assert raw.headers["crp-safety-oversight-mode"] == "human-review"
    assert [event.event_type for event in events][-2:] == ["OVERSIGHT_APPROVED", "RESPONSE_RELEASED"]
    assert json.loads(events[-1].data_json)["reviewer_id"] == agents.REVIEWER
    assert not found.faults


async def test_rejected_on_the_command_line(world, key_file):
    """The client that polls is told so, with the reason."""
    held = await world.sidecar.chat(headers=HOLDS)
    window_id = held.json()["metadata"]["window_id"]
    wrong = await command(world, "reject", window_id, "--key", str(key_file), "--reason", "BECAUSE")
    code, out = await command(
        world, "reject", window_id, "--key", str(key_file), "--reason", "INACCURATE", "-o", "json"
    )
    sent = {"crp-session-token": token_of(held)}
    told = (await world.sidecar.client.get(held.json()["metadata"]["held_uri"], headers=sent)).json()

    assert (wrong[0], "INVALID_REASON" in wrong[1]) == (2, True)
    assert (code, json.loads(last(out))["status"]) == (0, "REJECTED")
    assert (told["status"], told["reason"], told["oversight_token"]) == ("REJECTED", "INACCURATE", None)


async def test_another_response_than_the_one_that_was_read_is_not_approved(world, key_file):
    """--response-hash pins what the reviewer saw; a key that others can read signs nothing."""
    held = await world.sidecar.chat(headers=HOLDS)
    window_id = held.json()["metadata"]["window_id"]
    other = ("--response-hash", "sha256:" + "0" * 64, "--reason", "ACCURATE")
    moved = await command(world, "approve", window_id, "--key", str(key_file), *other)
    key_file.chmod(0o644)
    open_key = await command(world, "approve", window_id, "--key", str(key_file), "--reason", "ACCURATE")

    assert (moved[0], "RESPONSE_HASH_MISMATCH" in moved[1]) == (2, True)
    assert (open_key[0], "KEY_FILE_OPEN" in open_key[1]) == (2, True)


@pytest.mark.long
@pytest.mark.models
@pytest.mark.timeout(240)
async def test_the_service_serves_in_the_mesh_and_by_itself(tmp_path):
    """`interlock serve` and `interlock serve oversight` both let a reviewer in; the ready line names the ports."""
    env = environment(tmp_path)
    made = run("oversight", "keygen", "reviewer@company.com", "--out", str(tmp_path / "key"), env=env)
    (tmp_path / "reviewers.yaml").write_text(made.stdout)
    with Processes(tmp_path, {"reviewers_file": tmp_path / "reviewers.yaml"}) as processes:
        mesh = processes.mesh()
        addresses = {f"{name}_address": mesh.address(name) for name in ("session", "policy", "dpe", "audit")}
        alone = processes.process("oversight", **addresses).start().wait()
        for served in (mesh, alone):
            env = environment(tmp_path, {"oversight_address": served.address("oversight")})
            listed = run("oversight", "list", "--key", str(tmp_path / "key"), env=env)
            page = httpx.get(
                f"http://127.0.0.1:{served.ports['oversight_http']}/sign-in", trust_env=False, timeout=10
            ).text
            assert (listed.returncode, listed.stdout.strip()) == (0, "nothing is held"), listed.stderr
            assert "With your key file" in page
