"""``interlock mcp --upstream`` over streamable HTTP: official client and server of both eras, a real kernel (KRN-10)."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from contextlib import asynccontextmanager

import httpx
import pytest
import typer
from mcp import Client, types

from interlock.cli.main import app
from tests.support.kernels import UNIT
from tests.support.mcp_proxies import CLI, TOOLS, command, done, environment, shop, text_of
from tests.support.paths import ROOT
from tests.support.sidecar.sidecar import running_sidecar


@pytest.fixture
async def sidecar(tmp_path, redis_url):
    async with running_sidecar(tmp_path / "mesh", redis_url=redis_url) as running:
        yield running


@asynccontextmanager
async def process(line, env, **pipes):
    """A process that is ended, and waited for, at the end."""
    running = await asyncio.create_subprocess_exec(*line, env=env, cwd=ROOT, **pipes)
    try:
        yield running
    finally:
        if running.returncode is None:
            running.terminate()
        await running.wait()


@asynccontextmanager
async def proxied(tmp_path, sidecar):
    """A tool server over HTTP and the proxy before it; the proxy's URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    upstream = f"http://127.0.0.1:{port}/mcp"
    async with process([*TOOLS, str(port)], environment(tmp_path), stderr=subprocess.DEVNULL):
        line = command(tmp_path, sidecar.http, "--upstream", upstream, "--listen", "127.0.0.1:0")
        async with process(line, environment(tmp_path), stderr=subprocess.PIPE) as proxy:
            said = (await proxy.stderr.readline()).decode()
            assert said.startswith("tools are called at "), said
            async with asyncio.timeout(20):
                while True:
                    try:
                        socket.create_connection(("127.0.0.1", port), 1).close()
                        break
                    except OSError:
                        await asyncio.sleep(0.05)
            yield said.split()[-1]


@pytest.mark.req("KRN-10")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_calls_over_http_need_a_permit_in_either_era(sidecar, tmp_path, mode):
    """Handshake or one envelope per request: what is permitted is done, what is not is a tool error; the rest passes."""
    kernel = await shop(sidecar)
    progress = []

    async def heard(done_so_far, total, message):
        progress.append(message)

    async with proxied(tmp_path, sidecar) as url, Client(url, mode=mode) as agent:
        assert "pay" in {one.name for one in (await agent.list_tools()).tools}
        assert text_of(await agent.call_tool("pay", {"amount": 60, "to": "ann"})) == "paid 60.0 to ann"
        refused = await agent.call_tool("pay", {"amount": 60, "to": "bob"})
        assert refused.is_error
        assert "and 40 is left" in text_of(refused)
        assert (await agent.call_tool("fail", {})).is_error
        assert text_of(await agent.call_tool("slow", {"seconds": 0.1}, progress_callback=heard)) == "at last"
        assert (await agent.read_resource("note://today")).contents[0].text == "closed on Mondays"
        assert (await agent.get_prompt("greet", {"name": "Ann"})).messages[0].content.text == "Greet Ann."
        told = await agent.call_tool("quote", {"city": "Rome"})
        assert told.structured_content == {"price": 99.5, "cost": 0.25}
    assert progress == ["half"]
    assert done(tmp_path) == ["pay 60.0 ann", "fail", "slow begun", "slow done", "quote Rome"]
    assert await kernel.spent() == 70 * UNIT + UNIT // 4


@pytest.mark.long
@pytest.mark.req("KRN-10")
async def test_a_person_is_asked_through_the_proxy(sidecar, tmp_path):
    """The server's question goes to the agent and the answer back, within the call."""
    await shop(sidecar)

    async def person(_context, request):
        return types.ElicitResult(action="accept", content={"sure": True})

    async with proxied(tmp_path, sidecar) as url, Client(url, mode="legacy", elicitation_callback=person) as agent:
        assert "accept" in text_of(await agent.call_tool("ask", {}))


@pytest.mark.req("KRN-10", "KRN-13")
async def test_what_is_wrong_over_http_is_refused_and_reaches_no_server(sidecar, tmp_path):
    """Web pages, other paths, batches, compressed and oversized bodies, and headers that say something else than the message."""
    await shop(sidecar)
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "pay", "arguments": {"amount": 1, "to": "ann"}},
    }
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    cases = [
        ({"headers": {"origin": "https://evil.example"}, "json": call}, 403, "MCP_ORIGIN_REFUSED"),
        ({"headers": {"host": "evil.example"}, "json": call}, 403, "MCP_ORIGIN_REFUSED"),
        ({"url": "/other", "json": call}, 404, "MCP_PATH_UNKNOWN"),
        ({"json": [call]}, 400, "MCP_MESSAGE_INVALID"),
        ({"json": {**call, "id": None}}, 400, "MCP_MESSAGE_INVALID"),
        ({"json": {name: value for name, value in call.items() if name != "id"}}, 400, "MCP_MESSAGE_INVALID"),
        ({"headers": {"content-encoding": "gzip"}, "json": call}, 400, "MCP_MESSAGE_INVALID"),
        ({"headers": {"mcp-method": "tools/call"}, "json": listing}, 400, "MCP_MESSAGE_INVALID"),
        ({"headers": {"mcp-name": "quote"}, "json": call}, 400, "MCP_MESSAGE_INVALID"),
        ({"content": b"x" * (5 << 20)}, 413, "MCP_MESSAGE_TOO_LARGE"),
    ]
    async with proxied(tmp_path, sidecar) as url, httpx.AsyncClient(trust_env=False) as client:
        for sent, status, reason in cases:
            sent = {"url": url, **sent}
            if sent["url"].startswith("/"):
                sent["url"] = url.removesuffix("/mcp") + sent["url"]
            told = await client.post(**sent)
            assert (told.status_code, told.json()["error"]["data"]["reason"]) == (status, reason), sent
    assert done(tmp_path) == []


@pytest.mark.req("KRN-10")
async def test_a_server_that_is_not_there_costs_nothing(sidecar, tmp_path):
    """A call that cannot reach the server is taken back, and says so."""
    kernel = await shop(sidecar)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        upstream = f"http://127.0.0.1:{closed.getsockname()[1]}/mcp"
        line = command(tmp_path, sidecar.http, "--upstream", upstream, "--listen", "127.0.0.1:0")
        async with (
            process(line, environment(tmp_path), stderr=subprocess.PIPE) as proxy,
            httpx.AsyncClient(trust_env=False) as client,
        ):
            url = (await proxy.stderr.readline()).decode().split()[-1]
            call = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "pay", "arguments": {"amount": 1, "to": "ann"}},
            }
            told = (await client.post(url, json=call)).json()
    assert told["result"]["_meta"] == {"interlock/reason": "MCP_SERVER_UNAVAILABLE"}
    assert await kernel.spent() == 0


UNSTARTED = [
    (["--upstream", "http://127.0.0.1:1/mcp", "--listen", "0.0.0.0:7090"], "MCP_LISTEN_INVALID"),
    (["--upstream", "ftp://127.0.0.1/mcp"], "MCP_UPSTREAM_INVALID"),
    (["--kernel", "none", "--", "true"], "KERNEL_NOT_FOUND"),
    (["--kernel", "shop/trace", "--", "true"], "KERNEL_NAME_INVALID"),
    (["--kernel", "..", "--", "true"], "KERNEL_NAME_INVALID"),
    (["--kernel", "a\nb?c", "--", "true"], "KERNEL_NAME_INVALID"),
    (["--trust", "all", "--", "true"], "MCP_TRUST_INVALID"),
    ([], "MCP_SERVER_UNNAMED"),
    (["--", "/does/not/exist"], "MCP_SERVER_NOT_STARTED"),
]


@pytest.mark.req("KRN-10", "KRN-13")
async def test_a_proxy_that_cannot_hold_what_it_promises_does_not_start(sidecar, tmp_path, capsys):
    """Exit 2 with one reason: an open address, no kernel, no server."""
    await shop(sidecar)
    for options, reason in UNSTARTED:
        arguments = command(tmp_path, sidecar.http, "--pins", str(tmp_path / "pins.json"), *options)[len(CLI) :]

        def call(line: list[str] = arguments) -> int:
            try:
                return app(line, prog_name="interlock", standalone_mode=False) or 0
            except typer.Exit as ended:
                return ended.exit_code

        assert await asyncio.to_thread(call) == 2, options
        assert capsys.readouterr().err.startswith(f"error: {reason}: "), options
