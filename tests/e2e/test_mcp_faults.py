"""``interlock mcp`` where something is broken: the server, the agent, the kernel, the proxy itself (KRN-10)."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys

import pytest

from tests.support.kernels import UNIT
from tests.support.mcp_proxies import (
    CLI,
    TOOLS,
    command,
    connected,
    done,
    environment,
    shop,
    text_of,
)
from tests.support.paths import ROOT
from tests.support.sidecar.sidecar import another_sidecar, running_sidecar

HOSTILE = (sys.executable, "-m", "tests.support.mcp_hostile")
FREE = """
kernel: shop
timeout_s: 1.5
tools:
  - {tool: "*", action: any, costs: {usd: 10}}
"""


@pytest.fixture
async def sidecar(tmp_path, redis_url):
    async with running_sidecar(tmp_path / "mesh", redis_url=redis_url) as running:
        yield running


class Raw:
    """A proxy that is spoken to line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def say(self, line: str | dict) -> None:
        text = line if isinstance(line, str) else json.dumps({"jsonrpc": "2.0", **line})
        self.process.stdin.write(text.encode() + b"\n")
        await self.process.stdin.drain()

    async def hear(self) -> dict:
        return json.loads(await self.process.stdout.readline())

    async def call(self, number, tool: str, **arguments) -> None:
        await self.say({"id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})


async def started(tmp_path, sidecar, *options, server=HOSTILE, mapping=FREE) -> Raw:
    line = [
        *command(tmp_path, sidecar if isinstance(sidecar, str) else sidecar.http, *options, mapping=mapping),
        "--",
        *server,
    ]
    env = environment(tmp_path)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "limit": 1 << 24}
    return Raw(await asyncio.create_subprocess_exec(*line, env=env, cwd=ROOT, **pipes))


async def ended(raw: Raw) -> int:
    raw.process.stdin.close()
    return await raw.process.wait()


async def did(tmp_path, what: str) -> None:
    """Wait until the server has done something."""
    async with asyncio.timeout(10):
        while what not in done(tmp_path):
            await asyncio.sleep(0.02)


def reason_of(message: dict) -> str:
    return message["result"]["_meta"]["interlock/reason"]


@pytest.mark.req("KRN-10")
async def test_a_server_that_breaks_the_rules_harms_nobody(sidecar, tmp_path):
    """What it does not answer is charged and said so; a second answer, garbage and what is too long do not reach the agent."""
    kernel = await shop(sidecar)
    proxy = await started(tmp_path, sidecar, "--max-bytes", "200000")
    await proxy.call(1, "twice")
    assert (await proxy.hear())["result"]["content"][0]["text"] == "twice first"
    await proxy.call(2, "garbage")
    assert (await proxy.hear())["result"]["content"][0]["text"] == "garbage first"
    await proxy.call("3", "huge")
    assert reason_of(heard := await proxy.hear()) == "MCP_MESSAGE_TOO_LARGE"
    assert heard["id"] == "3"
    await proxy.call(4, "hang")
    late = await proxy.hear()
    assert (late["id"], reason_of(late), late["result"]["isError"]) == (4, "MCP_TIMEOUT", True)
    assert "charged as if it had" in late["result"]["content"][0]["text"]
    assert await ended(proxy) == 0
    assert done(tmp_path) == ["twice", "garbage", "huge", "hang"]
    assert await kernel.spent() == 40 * UNIT
    kinds = [one["type"] for one in await kernel.trace()]
    assert (kinds.count("KERNEL_PERMITTED"), kinds.count("KERNEL_CONFIRMED")) == (4, 2), (
        "what is unknown stays a permit"
    )


@pytest.mark.req("KRN-10", "KRN-13")
async def test_what_an_agent_says_wrongly_is_refused_and_reaches_no_server(sidecar, tmp_path):
    """Garbage, batches, calls without an id, ids in use and calls in disguise: an error each, and the connection goes on."""
    kernel = await shop(sidecar)
    proxy = await started(tmp_path, sidecar, "--max-bytes", "200000")
    call = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"x"}}'
    for line in (
        "garbage",
        f"[{call}]",
        call.replace("9", "1.5"),
        call.replace("9", "null"),
        '{"jsonrpc":"2.0","id":1,"method":7}',
    ):
        await proxy.say(line)
        assert (await proxy.hear())["error"]["data"] == {"reason": "MCP_MESSAGE_INVALID"}, line
    await proxy.say("x" * 300_000)
    assert (await proxy.hear())["error"]["data"] == {"reason": "MCP_MESSAGE_TOO_LARGE"}
    await proxy.say(call.replace('"id":9,', ""))
    await proxy.say({"id": 5, "method": "tools/call", "params": {"name": ["x"]}})
    assert reason_of(await proxy.hear()) == "MCP_CALL_INVALID"
    assert done(tmp_path) == []
    await proxy.call(6, "hang")
    await proxy.call(6, "plain")
    assert (await proxy.hear())["error"]["data"] == {"reason": "MCP_ID_IN_USE"}
    # Of a key that stands twice, server and proxy read the same one.
    await proxy.say('{"jsonrpc":"2.0","id":7,"method":"tools/call","method":"vendor/x","params":{"k":1}}')
    assert (await proxy.hear())["result"]["echo"] == {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "vendor/x",
        "params": {"k": 1},
    }
    await did(tmp_path, "hang")
    await proxy.say({"method": "notifications/cancelled", "params": {"requestId": 6}})
    assert await ended(proxy) == 0
    assert done(tmp_path) == ["hang"]
    assert await kernel.spent() == 10 * UNIT


@pytest.mark.req("KRN-10")
async def test_a_server_that_dies_is_said_and_its_call_counts(sidecar, tmp_path):
    """Nobody knows what it did before it died: the call stays charged, and the proxy ends with 1."""
    kernel = await shop(sidecar)
    proxy = await started(tmp_path, sidecar, server=TOOLS)
    await proxy.say({"id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}})  # fmt: skip
    await proxy.hear()
    await proxy.say({"method": "notifications/initialized"})
    await proxy.call(1, "die")
    assert reason_of(await proxy.hear()) == "MCP_SERVER_GONE"
    assert await proxy.process.wait() == 1
    assert await kernel.spent() == 10 * UNIT


@pytest.mark.req("KRN-10", "KRN-13")
async def test_no_call_passes_while_the_kernel_is_down(sidecar, tmp_path):
    """It fails closed with one reason; all that is no call goes on."""
    kernel = await shop(sidecar)
    async with another_sidecar(sidecar) as url:
        proxy = await started(tmp_path, url)
        await proxy.call(1, "plain")
        assert (await proxy.hear())["result"]["content"][0]["text"] == "plain first"
    await proxy.call(2, "plain")
    assert reason_of(await proxy.hear()) == "MCP_KERNEL_UNAVAILABLE"
    await proxy.say({"id": 3, "method": "ping"})
    assert (await proxy.hear())["id"] == 3
    await ended(proxy)
    assert done(tmp_path) == ["plain"]
    assert await kernel.spent() == 10 * UNIT


@pytest.mark.req("KRN-10")
async def test_a_proxy_that_is_killed_in_the_middle_of_a_call_leaves_it_charged(sidecar, tmp_path):
    """kill -9: the permit is taken as done, and what is left is what another agent can spend, no more."""
    kernel = await shop(sidecar)
    proxy = await started(tmp_path, sidecar)
    await proxy.call(1, "hang")
    await did(tmp_path, "hang")
    proxy.process.send_signal(signal.SIGKILL)
    await proxy.process.wait()
    assert await kernel.spent() == 10 * UNIT
    async with connected([*command(tmp_path, sidecar.http), "--", *TOOLS], environment(tmp_path)) as agent:
        assert "90 is left" in text_of(await agent.call_tool("pay", {"amount": 91, "to": "ann"}))
    kinds = [one["type"] for one in await kernel.trace()]
    assert "KERNEL_CONFIRMED" not in kinds
    assert "KERNEL_ABORTED" not in kinds
    code, said = await ran(tmp_path, sidecar, "permits", "shop", "-o", "json")
    [taken] = json.loads(said)
    assert (code, taken["action"], taken["reserved"]) == (1, "any", "10 usd")
    assert (await ran(tmp_path, sidecar, "settle-permit", "shop", taken["permit"], "--undone"))[0] == 0
    assert await ran(tmp_path, sidecar, "permits", "shop") == (0, "every permit is settled\n")
    assert (await ran(tmp_path, sidecar, "settle-permit", "shop", taken["permit"]))[0] == 2
    assert await kernel.spent() == 0


async def ran(tmp_path, sidecar, *arguments) -> tuple[int, str]:
    """Ask the kernel by the command line, as a person does."""
    line = [*CLI, "kernel", *arguments, "--url", sidecar.http]
    process = await asyncio.create_subprocess_exec(*line, env=environment(tmp_path), cwd=ROOT, stdout=subprocess.PIPE)
    out, _ = await process.communicate()
    return process.returncode, out.decode()
