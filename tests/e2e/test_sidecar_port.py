"""The command line finds the sidecar of this machine on the port that its settings name (KRN-10)."""

from __future__ import annotations

import asyncio

import pytest
from typer.testing import CliRunner

from interlock.cli.kernel import app
from interlock.cli.kernel_calls import sidecar_url
from tests.support.mcp_proxies import TOOLS, command, connected, environment, shop
from tests.support.sidecar.sidecar import running_sidecar

pytestmark = pytest.mark.req("KRN-10")
PORT = "INTERLOCK_SIDECAR_HTTP_PORT"


async def test_kernel_and_mcp_go_to_the_port_of_the_settings(tmp_path, monkeypatch):
    """Neither --url nor --sidecar nor OPENAI_BASE_URL is given: both reach the sidecar, which is on no port of the defaults."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    async with running_sidecar(tmp_path) as sidecar:
        await shop(sidecar)
        port = sidecar.http.rpartition(":")[2]
        env = {PORT: port, "NO_COLOR": "1", "OPENAI_API_KEY": ""}
        shown = await asyncio.to_thread(CliRunner().invoke, app, ["describe", "shop"], env=env)
        line = [part for part in command(tmp_path, "") if part not in {"--sidecar", ""}]
        async with connected([*line, "--", *TOOLS], environment(tmp_path, **{PORT: port})) as agent:
            told = await agent.call_tool("pay", {"to": "ann", "amount": 3})
    assert (shown.exit_code, "shop" in shown.output) == (0, True), shown.output
    assert not told.is_error, told


@pytest.mark.parametrize(
    ("given", "env", "found"),
    [
        ("", {}, "http://127.0.0.1:7070/v1"),
        ("", {PORT: "7999"}, "http://127.0.0.1:7999/v1"),
        ("", {PORT: "7999", "INTERLOCK_HOST": "::1"}, "http://[::1]:7999/v1"),
        ("", {PORT: "7999", "OPENAI_BASE_URL": "http://elsewhere/v1"}, ""),
        ("", {PORT: "0"}, ""),
        ("http://named/v1", {PORT: "7999"}, "http://named/v1"),
    ],
)
def test_what_is_said_nearer_counts(monkeypatch, given, env, found):
    """An option before OPENAI_BASE_URL, that before the settings; any free port cannot be known."""
    for name in ("OPENAI_BASE_URL", PORT, "INTERLOCK_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    assert sidecar_url(given) == found
