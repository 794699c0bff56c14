"""The proxy as a process: it opens what it needs, serves, and settles what is left at its end."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import uvicorn

from interlock.client.kernel.calls import KernelCalls
from interlock.domain.errors import invalid, unavailable
from interlock.mcp.front import CONNECT_S, HttpProxy
from interlock.mcp.gate import CallGate, joined
from interlock.mcp.mapping import ToolMapping
from interlock.mcp.pins import Pins
from interlock.mcp.screen import Screen
from interlock.mcp.stdio import StdioProxy

OURS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")
"""Variables that the tool server does not get: with them it could act as the agent."""


@dataclass(frozen=True)
class ProxyPlan:
    """What one proxy is to do."""

    kernel: str
    mapping: ToolMapping
    pins: Pins = field(repr=False)
    child: str = ""
    sidecar: str = ""
    most_bytes: int = 4 << 20
    kernel_timeout_s: float = 10.0


def pins_path(given: Path | None, server: Sequence[str]) -> Path:
    """Return the file of pins of a server: the one given, else one in the state folder that is named after the server."""
    if given is not None:
        return given
    folder = Path(os.environ.get("INTERLOCK_STATE_DIR", ".interlock"))
    return folder / "mcp" / f"{hashlib.sha256(json.dumps(list(server)).encode()).hexdigest()[:16]}.json"


def environment_of(passed: Sequence[str]) -> Mapping[str, str]:
    """Return the environment of a tool server: ours, without the agent's keys and Interlock's settings but those in *passed*."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in passed or not (name in OURS or name.startswith("INTERLOCK_"))
    }


async def serve_stdio(plan: ProxyPlan, command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Serve one agent on standard input and output; return the exit code. Refused where kernel or server are not there."""
    calls = _calls(plan)
    try:
        joined(calls, plan.kernel)
        return await StdioProxy(_screen(plan, calls), most=plan.most_bytes).run(command, environment)
    finally:
        calls.close()


async def serve_http(plan: ProxyPlan, upstream: str, listen: str) -> None:
    """Serve agents over HTTP on *listen*, a loopback address, until a signal ends it."""
    _check_upstream(upstream)
    listener = _listener(listen)
    calls = _calls(plan)
    try:
        joined(calls, plan.kernel)
        screen = _screen(plan, calls)
        timeout = httpx.Timeout(None, connect=CONNECT_S)
        # No connection is used twice: one that an idle server closes just then looks like a call that was perhaps done, and is charged.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=False, follow_redirects=False) as client:
            app = HttpProxy(screen, upstream, client, most=plan.most_bytes)
            config = uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                ws="none",
                lifespan="off",
                timeout_graceful_shutdown=5,
            )
            host, port = listener.getsockname()[:2]
            where = f"http://{f'[{host}]' if ':' in host else host}:{port}{urlsplit(upstream).path or '/'}"
            os.write(2, f"tools are called at {where}\n".encode())
            await uvicorn.Server(config).serve(sockets=[listener])
            await screen.settled()
    finally:
        calls.close()
        listener.close()


def _screen(plan: ProxyPlan, calls: KernelCalls) -> Screen:
    return Screen(CallGate(calls, plan.kernel, child=plan.child), plan.mapping, plan.pins)


def _calls(plan: ProxyPlan) -> KernelCalls:
    return KernelCalls(plan.sidecar, timeout_s=plan.kernel_timeout_s, retries=2)


def _check_upstream(upstream: str) -> None:
    parts = urlsplit(upstream)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise invalid(
            "MCP_UPSTREAM_INVALID", "the tool server is named as http:// or https:// and its path, without a query"
        )


def _listener(listen: str) -> socket.socket:
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    if host not in {"127.0.0.1", "localhost", "::1"} or not port.isdecimal() or int(port) > 65_535:
        # Whoever reaches the port calls tools with this process's key.
        raise invalid(
            "MCP_LISTEN_INVALID",
            "it listens on a loopback address, as 127.0.0.1:7090; each agent has its own beside it",
        )
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(128)
    except OSError:
        listener.close()
        raise unavailable("PORT_IN_USE", f"{listen} cannot be listened on") from None
    return listener
