"""What the MCP proxy adds to a call of a tool, beside the same call without it: python -m bench.mcp

The official client calls one tool of a real server over stdio, directly and through ``interlock mcp``; rounds are interleaved. The kernel
is a real one on a real Valkey, with a durable append before each permit; the permit alone is measured beside it, over the same HTTP.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from interlock.runtime import logging
from tests.support.kernels import UNIT
from tests.support.mcp_proxies import TOOLS, command, connected, environment, shop
from tests.support.sidecar.sidecar import running_sidecar
from tests.support.valkey import Valkey

ROUNDS, CALLS, WARM = 5, 30, 10
TARGET_MS = 3.0


async def timed(call: Callable[[], Awaitable[object]], count: int) -> list[float]:
    """Return how long each call took, milliseconds."""
    taken = []
    for _ in range(count):
        begun = time.perf_counter()
        await call()
        taken.append((time.perf_counter() - begun) * 1000)
    return taken


async def main() -> None:
    logging.configure("error")  # the mesh is in this process, and standard output is for the figures
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "valkey").mkdir()
        async with AsyncExitStack() as ends:
            valkey = ends.enter_context(Valkey(folder / "valkey"))
            sidecar = await ends.enter_async_context(running_sidecar(folder / "mesh", redis_url=valkey.url))
            kernel = await shop(sidecar, resources=[{"name": "usd", "limit_micros": 10**9 * UNIT}], invariants=[])
            env = environment(folder)
            plain = await ends.enter_async_context(connected([*TOOLS], env))
            line = [*command(folder, sidecar.http), "--", *TOOLS]
            proxied = await ends.enter_async_context(connected(line, env))
            arguments = {"amount": 1, "to": "ann"}

            async def permit() -> None:
                await kernel.post("permit", action="alone", key=uuid.uuid4().hex)

            await kernel.open(
                resources=[{"name": "usd", "limit_micros": 10**9 * UNIT}], invariants=[], actions=[{"id": "alone"}]
            )
            ways = {
                "plain": lambda: plain.call_tool("pay", arguments),
                "proxied": lambda: proxied.call_tool("pay", arguments),
                "permit": permit,
            }
            for call in ways.values():
                await timed(call, WARM)
            rounds = [
                {way: statistics.median(await timed(call, CALLS)) for way, call in ways.items()} for _ in range(ROUNDS)
            ]
    median = {way: statistics.median(one[way] for one in rounds) for way in ways}
    added = statistics.median(one["proxied"] - one["plain"] for one in rounds)
    print(json.dumps({
        "mcp: proxy adds to a call, p50": {"value": added, "target": TARGET_MS, "better": "lower", "unit": "ms"},
        "mcp: the call without the proxy, p50": {"value": median["plain"], "target": None, "better": "", "unit": "ms"},
        "mcp: a permit alone, p50": {"value": median["permit"], "target": None, "better": "", "unit": "ms"},
    }))  # fmt: skip


if __name__ == "__main__":
    asyncio.run(main())
