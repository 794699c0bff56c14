"""The console beside governed calls: pages of a long list, the first paint in Chromium, how soon a call is shown, and many open pages.

    python -m bench.console [--sessions N] [--viewers N]

`interlock serve` runs with its defaults over SQLite and the embedded Valkey. Calls are each in a
session of their own; their answer is the same, so that its report is remembered and the path is what is measured. A viewer holds the events
of a page and reads the list again whenever it is told of a change, as the page's script does.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil

from bench.overload import Provider
from bench.serving import serving
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.api.sidecar.v1.sidecar_pb2_grpc import SidecarServiceStub
from interlock.oversight import link as console_link
from interlock.runtime.settings.model import Settings
from tests.support.servers.browser import browsing

ROUNDS, CALLS, SHOWN, PAINTS, PAGES = 6, 60, 12, 7, 15
_NEXT = re.compile(r'href="(/sessions\?[^"]*before=[^"]+)"')
_numbers = itertools.count()


@dataclass
class World:
    """A running mesh, with a client of its front and one that is signed in to its console."""

    agent: httpx.AsyncClient
    console: httpx.AsyncClient
    process: psutil.Process
    link: str

    async def call(self) -> float:
        """Make one governed call in a session of its own; returns how long it took, seconds."""
        asked = f"Question {next(_numbers)}: what was done?\n\nSAY: The pump was replaced."
        began = time.perf_counter()
        answer = await self.agent.post(
            "/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": asked}]}
        )
        answer.raise_for_status()
        self.agent.cookies.clear()  # the next call begins a session of its own
        return time.perf_counter() - began


async def page(client: httpx.AsyncClient, path: str) -> tuple[float, str]:
    """Read a page; returns how long it took, milliseconds, and the page."""
    began = time.perf_counter()
    answer = await client.get(path)
    answer.raise_for_status()
    return (time.perf_counter() - began) * 1000, answer.text


async def listed(world: World) -> dict[str, float]:
    """Return the median and the worst time of a page, of pages one after the other, and of a search."""
    times, path = [], "/sessions"
    for _ in range(PAGES):
        took, text = await page(world.console, path)
        times.append(took)
        further = _NEXT.search(text)
        if further is None:
            break
        path = further[1].replace("&amp;", "&")
    searched = [(await page(world.console, "/sessions?outcome=halted&risk=HIGH"))[0] for _ in range(5)]
    return {"page": statistics.median(times), "worst": max(times), "search": statistics.median(searched)}


async def painted(world: World) -> tuple[float, list[float]]:
    """Return the median first contentful paint of the list in Chromium, and after how long a call was on the open page, milliseconds."""
    async with browsing(viewport={"width": 1280, "height": 800}) as tab:
        await tab.goto(world.link)
        await tab.wait_for_url("**/sessions")
        paints = []
        for _ in range(PAINTS):
            await tab.reload()
            entry = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
            await tab.wait_for_function(f"() => {entry} > 0")
            paints.append(await tab.evaluate(f"() => {entry}"))
        await tab.wait_for_selector("#live:not([hidden])")
        shown = []
        for _ in range(SHOWN):
            await asyncio.sleep(1.3)
            before = await tab.evaluate("() => document.getElementById('fresh').innerText")
            await world.call()
            began = time.perf_counter()
            await tab.wait_for_function(
                "(before) => document.getElementById('fresh').innerText !== before", arg=before, polling=20
            )
            shown.append((time.perf_counter() - began) * 1000)
        return statistics.median(paints), sorted(shown)


async def viewer(client: httpx.AsyncClient) -> None:
    """Hold the events of a page and read the list again when told, once a second at most, as the page's script does."""
    async with client.stream("GET", "/events") as events:
        last = 0.0
        async for line in events.aiter_lines():
            if line == "event: changed" and time.monotonic() - last >= 1.0:
                last = time.monotonic()
                await client.get("/sessions", headers={"x-interlock-part": "fresh"})


@asynccontextmanager
async def viewers(world: World, count: int) -> AsyncIterator[None]:
    """Keep so many pages open."""
    tasks = [asyncio.create_task(viewer(world.console)) for _ in range(count)]
    await asyncio.sleep(1.5)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def beside(world: World, count: int) -> tuple[float, float]:
    """Return how much longer a call takes at p50 and how much more CPU time the process uses a call, with so many pages open."""
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for number in range(ROUNDS):
        for watched in (False, True) if number % 2 else (True, False):
            async with viewers(world, count) if watched else contextlib.nullcontext():
                cpu = sum(world.process.cpu_times()[:2])
                took = [await world.call() for _ in range(CALLS)]
                found[watched].append((statistics.median(took), (sum(world.process.cpu_times()[:2]) - cpu) / CALLS))
    alone, seen = ([statistics.median(each) for each in zip(*found[watched], strict=True)] for watched in (False, True))
    return seen[0] / alone[0], seen[1] / alone[1]


async def filled(world: World, port: int, sessions: int) -> None:
    """Have so many sessions: some with a call, the others begun and no more."""
    for _ in range(CALLS):
        await world.call()
    left = itertools.count(CALLS)

    async def agent(stub: SidecarServiceStub) -> None:
        while next(left) < sessions:
            await stub.StartSession(sidecar_pb2.StartSessionRequest())

    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        await asyncio.gather(*(agent(SidecarServiceStub(channel)) for _ in range(16)))


async def run(sessions: int, count: int) -> dict[str, Any]:
    provider = Provider(wait_s=0.0)
    await provider.start()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with serving(folder, UPSTREAM_BASE_URL=provider.url) as (pid, ports):
            many = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            origin = f"http://127.0.0.1:{ports['oversight_http']}"
            async with (
                httpx.AsyncClient(base_url=f"http://127.0.0.1:{ports['sidecar_http']}", timeout=60) as agent,
                httpx.AsyncClient(base_url=origin, timeout=60, limits=many, follow_redirects=True) as console,
            ):
                link = console_link.read(Settings(state_dir=folder))
                world = World(agent, console, psutil.Process(pid), link.url("bench"))
                form = {"viewer": "bench", "secret": link.secret}
                (await console.post("/sign-in", data=form, headers={"origin": origin})).raise_for_status()
                await filled(world, ports["sidecar_grpc"], sessions)
                pages = await listed(world)
                paint, shown = await painted(world)
                slower, dearer = await beside(world, count)
    return {
        f"console: a page of {sessions} sessions": (pages["page"], 100.0, "lower", "ms"),
        "console: the slowest of the first pages": (pages["worst"], None, "", "ms"),
        "console: a search over them": (pages["search"], None, "", "ms"),
        "console: first contentful paint, Chromium": (paint, 300.0, "lower", "ms"),
        "console: a call is shown after, p50": (statistics.median(shown), 500.0, "lower", "ms"),
        "console: a call is shown after, worst": (shown[-1], None, "", "ms"),
        f"console: a call beside {count} viewers, p50 over none": (slower, 1.05, "lower", "ratio"),
        f"console: CPU time a call beside {count} viewers over none": (dearer, None, "", "ratio"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--viewers", type=int, default=100)
    given = parser.parse_args()
    figures = asyncio.run(run(given.sessions, given.viewers))
    names = ("value", "target", "better", "unit")
    print(json.dumps({figure: dict(zip(names, row, strict=True)) for figure, row in figures.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
