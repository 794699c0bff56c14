"""Proxies of tests: the command line as a process, the official client before it, a real kernel behind it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support.kernels import UNIT, KernelClient
from tests.support.paths import ROOT

MAPPING = """
kernel: shop
timeout_s: 20
tools:
  - tool: pay
    costs: {usd: {argument: amount}}
    effects: [{variable: paid, mode: increment, argument: amount}]
    arguments: {to: {one_of: [ann, bob]}}
  - tool: quote
    costs: {usd: {result: cost, most: 2}}
  - tool: fail
    costs: {usd: 5}
  - tool: slow
    costs: {usd: 10}
    timeout_s: 8
  - tool: die
    costs: {usd: 10}
  - tool: "a*"
  - tool: environment
"""
DEFINITION: Mapping[str, Any] = {
    "resources": [{"name": "usd", "limit_micros": 100 * UNIT}],
    "variables": [{"name": "paid", "type": "VARIABLE_TYPE_NUMBER", "initial": {"number_micros": 0}}],
    "invariants": [{"name": "modest", "expression": "paid <= 90", "suggestion": "pay less"}],
    "actions": [],
    "open_registry": True,
}
TOOLS = (sys.executable, "-m", "tests.support.mcp_tools")
CLI = (sys.executable, "-c", "from interlock.cli.main import run; run()")


async def shop(sidecar: Any, **more: Any) -> KernelClient:
    """Open the kernel of the shop."""
    kernel = KernelClient(sidecar.client, "shop")
    await kernel.open(**{**DEFINITION, **more})
    return kernel


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """The environment of a proxy in a folder."""
    paths = f"{ROOT / 'services'}{os.pathsep}{ROOT}"
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "PYTHONPATH": paths, "MCP_DONE": str(tmp_path / "done"), "INTERLOCK_STATE_DIR": str(tmp_path / "proxy"),
        "OPENAI_API_KEY": "", **more,
    }  # fmt: skip


def command(tmp_path: Path, url: str, *options: str, mapping: str = MAPPING) -> list[str]:
    """The proxy's command line up to the tool server."""
    path = tmp_path / "tools.yaml"
    path.write_text(mapping)
    return [*CLI, "mcp", "--map", str(path), "--sidecar", url, *options]


def done(tmp_path: Path) -> list[str]:
    """What the tool server really did."""
    path = tmp_path / "done"
    return path.read_text().splitlines() if path.exists() else []


@asynccontextmanager
async def connected(line: list[str], env: Mapping[str, str], **client: Any) -> AsyncIterator[ClientSession]:
    """A session of the official client with a command over stdio."""
    async with AsyncExitStack() as ends:
        parameters = StdioServerParameters(command=line[0], args=line[1:], env=dict(env), cwd=ROOT)
        streams = await ends.enter_async_context(stdio_client(parameters))
        session = await ends.enter_async_context(ClientSession(*streams, **client))
        await session.initialize()
        yield session


def text_of(result: Any) -> str:
    """The text of a tool's result."""
    return " ".join(one.text for one in result.content)
