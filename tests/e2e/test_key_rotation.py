"""Master keys that are rotated under live load over several processes, with the real ``openai`` client (TOK-4)."""

from __future__ import annotations

import asyncio
import json

import httpx
import openai
import pytest

from tests.support.servers.processes import environment, run
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.session.session_client import payload
from tests.support.sidecar.pairs import two_pairs
from tests.support.sidecar.sidecar import NO_COOKIES, token_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(180), pytest.mark.req("TOK-4")]

MESSAGES = [{"role": "user", "content": "Say: LOW"}]


@pytest.fixture
def upstream():
    with RunningProvider(Provider()) as running:
        yield running.base_url


@pytest.fixture
def keys(tmp_path):
    """Settings with a file of master keys whose one version is 1."""
    path = tmp_path / "master.keys"
    settings = {"master_keys_file": path, "max_windows": 10_000, "max_dag_nodes": 10_000}
    assert run("keys", "new", env=environment(tmp_path / "state", settings)).returncode == 0
    return settings


def interlock(tmp_path, settings, *arguments: str):
    done = run(*arguments, "-o", "json", env=environment(tmp_path / "state", settings))
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


async def ask(clients, number: int, token: str | None = None):
    headers = {"CRP-Session-Token": token} if token else {}
    return await clients[number % 2].chat.completions.with_raw_response.create(
        model="m", messages=MESSAGES, extra_headers=headers
    )


async def test_a_rotation_fails_no_call_and_old_sessions_go_on_and_verify(tmp_path, upstream, redis_url, keys):
    """Sessions hop between two instances while keys are rotated three times: no call fails, each goes on under its version."""
    async with two_pairs(tmp_path, upstream, redis_url, keys) as pairs:
        clients = [
            openai.AsyncOpenAI(
                base_url=f"{http}/v1", api_key="sk-agent", max_retries=0,
                http_client=httpx.AsyncClient(cookies=NO_COOKIES, trust_env=False),
            )
            for http in pairs.http
        ]  # fmt: skip
        old = await ask(clients, 0)
        stop, tokens = asyncio.Event(), {"old": token_of(old)}

        async def talking() -> int:
            number = 0
            while not stop.is_set():
                number += 1
                tokens["old"] = token_of(await ask(clients, number, tokens["old"]))
                fresh = await ask(clients, number)
                # Begun by one instance, gone on with at the other at once, which may not know the version yet.
                await ask(clients, number + 1, token_of(fresh))
                tokens["new"] = token_of(fresh)
                await asyncio.sleep(0.1)
            return number

        load = asyncio.create_task(talking())
        for after in ("2", "0", "0"):
            await asyncio.sleep(1)
            await asyncio.to_thread(interlock, tmp_path, keys, "keys", "rotate", "--after", after)
        await asyncio.sleep(4)
        stop.set()
        rounds = await load
        for client in clients:
            await client.close()

    assert rounds > 10
    assert payload(tokens["old"])["kv"] == 1
    assert payload(tokens["new"])["kv"] == 4
    for token in tokens.values():
        assert interlock(tmp_path, keys, "audit", "verify", payload(token)["sid"])["integrity"] == "VALID"
    assert interlock(tmp_path, keys, "keys", "check")["ok"] is True


async def test_a_version_that_audit_data_need_is_not_dropped_in_silence(tmp_path, upstream, redis_url, keys):
    """Dropping is refused; taken out by force, verification says KEY_UNKNOWN and check says which version is missing."""
    env = environment(tmp_path / "state", keys)
    async with two_pairs(tmp_path, upstream, redis_url, keys) as pairs:
        client = openai.AsyncOpenAI(base_url=f"{pairs.http[0]}/v1", api_key="sk-agent", max_retries=0)
        session = payload(token_of(await ask([client, client], 0)))["sid"]
        await client.close()
    interlock(tmp_path, keys, "keys", "rotate", "--after", "0")
    refused = run("keys", "drop", "1", env=env)
    forced = run("keys", "drop", "1", "--lose-audit-data", env=env)
    verified = run("audit", "verify", session, "-o", "json", env=env)
    checked = run("keys", "check", "-o", "json", env=env)

    assert (refused.returncode, "MASTER_KEY_NEEDED" in refused.stderr) == (2, True)
    assert forced.returncode == 0
    assert "KEY_UNKNOWN" in verified.stdout
    assert (checked.returncode, json.loads(checked.stdout)["missing"]) == (1, [1])
    assert keys["master_keys_file"].stat().st_mode & 0o777 == 0o600
