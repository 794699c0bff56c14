"""How fast a mesh of processes is back after a fault, and what it does under too much load.

    python -m bench.faults [--only NAME] [--sessions 10000] [--soak MINUTES]

restart: each service killed with SIGKILL and started again, until an answer is released; the slowest of them, models loaded.
rolling: each service restarted in turn under load; calls that failed although their client tried again on UNAVAILABLE.
overload: three times the calls that the mesh can serve, open loop; released answers per second over its peak, and memory.
failover: the primary Valkey killed behind three sentinels. Seconds from the kill (a) to the first answer that is released;
    (b) until the new primary holds every session as verified against the audit log, when one of them was asked for: the others
    are swept; (c) until each of them was asked for again.
soak: calls of which a tenth is hung up on, for so many minutes; the slope of the memory of each process. Off without --soak.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging as stdlib_logging
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.api.sidecar.v1.sidecar_pb2_grpc import SidecarServiceStub
from interlock.domain.ids import SessionId
from interlock.runtime import logging
from interlock.session.store.redis import key_of
from tests.faults import faults as do
from tests.faults.parts.cluster import Cluster, Shape, running
from tests.faults.workload import Agent, History
from tests.support.valkey import Valkey

CALM = (
    ("request_timeout_s", 20), ("rpc_timeout_s", 5), ("upstream_timeout_s", 10), ("dpe_timeout_s", 10), ("drain_s", 5),
)  # fmt: skip
CALLERS = 8
WIDE = 64
ROUNDS = 3
SWEPT_S = 180
"""Seconds after which sessions count as left out by the sweep."""
LOOKED_AT = 250
"""Sessions whose state is looked at in the store at a time."""
PATIENCE = 240
"""Tries of a client, a quarter of a second apart: a minute."""
BODY = {"model": "m", "messages": [{"role": "user", "content": "Say: LOW"}]}

Figures = dict[str, dict[str, Any]]


def figure(value: float, target: float, better: str, unit: str) -> dict[str, Any]:
    return {"value": round(value, 3), "target": target, "better": better, "unit": unit}


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def asked(cluster: Cluster, front: int = 0, timeout_s: float = 30) -> httpx.Response | None:
    """Ask for the first answer of a new session; ``None`` when the front does not answer."""
    try:
        headers = {"authorization": "Bearer bench"}
        return await cluster.fronts[front].post("/v1/chat/completions", json=BODY, headers=headers, timeout=timeout_s)
    except httpx.HTTPError:
        return None


async def until_released(cluster: Cluster, begun: float) -> float:
    """Return the seconds from *begun* to an answer that is released."""
    while True:
        response = await asked(cluster)
        if response is not None and response.status_code == 200:
            return time.monotonic() - begun
        await asyncio.sleep(0.02)


async def restart(folder: Path, _options: Any) -> Figures:
    """Kill each service and start it again, three times."""
    took: dict[str, list[float]] = {}
    async with running(folder, Shape(sidecars=1, models=True, settings=CALM)) as cluster:
        await until_released(cluster, time.monotonic())
        for _ in range(3):
            for label in cluster.parts:
                await do.kill(label)(cluster)
                begun = time.monotonic()
                await cluster.parts[label].up()
                took.setdefault(label, []).append(await until_released(cluster, begun))
    for label, seconds in took.items():
        tell(f"restart {label}: {[round(one, 2) for one in seconds]} s")
    slowest = max(statistics.median(seconds) for seconds in took.values())
    return {"faults: restart of a service to serving, the slowest": figure(slowest, 5, "lower", "s")}


async def rolling(folder: Path, _options: Any) -> Figures:
    """Restart everything in turn under load, with clients that try again as they are told to."""
    failed: list[str] = []
    done = retried = 0
    over = asyncio.Event()

    async def caller(cluster: Cluster, number: int) -> None:
        nonlocal done, retried
        while not over.is_set():
            for attempt in range(PATIENCE):
                response = await asked(cluster, (number + attempt) % 2)
                if response is not None and response.status_code == 200:
                    done += 1
                    break
                # A front that is being replaced refuses connections; a service behind it is UNAVAILABLE.
                if response is not None and response.status_code != 503:
                    failed.append(f"{response.status_code} {response.json().get('reason')}")
                    break
                retried += 1
                await asyncio.sleep(0.25)
            else:
                failed.append("gave up")

    async with running(folder, Shape(sidecars=2, settings=CALM)) as cluster:
        callers = [asyncio.create_task(caller(cluster, n)) for n in range(CALLERS)]
        await asyncio.sleep(1)
        for label in list(cluster.parts):
            await do.restart(label)(cluster)
            await asyncio.sleep(0.5)
        over.set()
        await asyncio.gather(*callers)
    tell(f"rolling restart: {done} answers, {retried} tried again, failed {failed[:5]}")
    return {"faults: rolling restart under load, failed calls": figure(len(failed), 0, "lower", "calls")}


async def overload(folder: Path, _options: Any) -> Figures:
    """Find the peak by a closed loop, then send three times as much at fixed times, whatever comes back; three times over."""
    settings = (*CALM, ("max_in_flight", 32))
    kept, slower = [], []
    async with running(folder, Shape(sidecars=1, settings=settings)) as cluster:
        wire = Wire(cluster.sidecars()[0].ports["sidecar_http"])
        await _closed(wire, 16, 2)
        before = _memory(cluster)
        for _ in range(ROUNDS):
            peak, alone = await _closed(wire, 16, 6)
            goodput, slow, ended = await _open(wire, 3 * peak, 10)
            kept.append(goodput / peak)
            slower.append(slow / alone)
            tell(
                f"overload: peak {peak:.0f}/s, at 3x {goodput:.0f}/s, {ended}, p99 {alone * 1000:.0f} -> {slow * 1000:.0f} ms"
            )
        after = _memory(cluster)
        wire.close()
    grown = max(after[label] - before[label] for label in after)
    return {
        "faults: released at 3x load over the peak": figure(statistics.median(kept), 0.8, "higher", "ratio"),
        "faults: p99 of the admitted at 3x over p99 at the peak": figure(
            statistics.median(slower), 2, "lower", "ratio"
        ),
        "faults: memory of the largest growth at 3x": figure(grown, 128, "lower", "MiB"),
    }


class Wire:
    """A client that costs next to nothing, so that what is measured is the mesh: kept connections, one request, no parsing."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        body = json.dumps(BODY)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer bench\r\n"
        more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        self._request = (head + more).encode()

    async def ask(self) -> int:
        """Return the status of one call; 0 when the connection broke."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if self._idle:
                reader, writer = self._idle.pop()
            else:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(self._request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            await reader.readexactly(int(length[1]) if length else 0)
            if b"connection: close" in head.lower():
                writer.close()
            else:
                self._idle.append((reader, writer))
            return int(head[9:12])
        return 0

    def close(self) -> None:
        """Close what is idle."""
        for _, writer in self._idle:
            writer.close()


async def _closed(wire: Wire, callers: int, seconds: float) -> tuple[float, float]:
    """Return answers per second and their p99 of so many callers who each ask again when they are answered."""
    took: list[float] = []
    end = time.monotonic() + seconds

    async def caller() -> None:
        while (begun := time.monotonic()) < end:
            if await wire.ask() == 200:
                took.append(time.monotonic() - begun)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return len(took) / seconds, _p99(took)


async def _open(wire: Wire, rate: float, seconds: float) -> tuple[float, float, dict[int, int]]:
    """Send at a fixed rate; return answers per second, their p99 and how many ended how."""
    took: list[float] = []
    ended: Counter[int] = Counter()

    async def one() -> None:
        begun = time.monotonic()
        status = await wire.ask()
        ended[status] += 1
        if status == 200:
            took.append(time.monotonic() - begun)

    begun, sent = time.monotonic(), []
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
        sent.append(asyncio.create_task(one()))
    await asyncio.gather(*sent)
    return len(took) / (time.monotonic() - begun), _p99(took), dict(ended)


def _p99(took: list[float]) -> float:
    return sorted(took)[int(len(took) * 0.99)] if took else float("nan")


def _memory(cluster: Cluster) -> dict[str, float]:
    return {label: psutil.Process(one.child.pid).memory_info().rss / 2**20 for label, one in cluster.parts.items()}


async def failover(folder: Path, options: Any) -> Figures:
    """Kill the primary behind three sentinels, ask one session again, wait until all are verified, and ask each of them."""
    count = options.sessions
    async with running(folder, Shape(sidecars=1, store="sentinel", settings=CALM)) as cluster:
        address = f"127.0.0.1:{cluster.sidecars()[0].ports['sidecar_grpc']}"
        async with grpc.aio.insecure_channel(address) as channel:
            stub, key = SidecarServiceStub(channel), (("authorization", "Bearer bench"),)
            begun = time.monotonic()
            started = await _each(count, lambda _: stub.StartSession(sidecar_pb2.StartSessionRequest(), metadata=key))
            tell(f"failover: {count} sessions made in {time.monotonic() - begun:.0f} s")
            before = await asyncio.to_thread(
                _epochs, cluster.store.primary, [one.session.session_id for one in started]
            )
            begun = time.monotonic()
            await do.kill_primary()(cluster)
            served = await until_released(cluster, begun)
            await _each(1, lambda n: _touched(stub, key, started[n].session_token))
            verified = await _until_verified(cluster, before, begun)
            await _each(count, lambda n: _touched(stub, key, started[n].session_token))
            asked_again = time.monotonic() - begun
    tell(
        f"failover: {cluster.notes}, first answer after {served:.1f} s, {count} sessions verified after {verified:.1f} s, "
        f"each asked again after {asked_again:.1f} s; load {os.getloadavg()[0]:.1f}"
    )
    return {
        "faults: Valkey failover to the first answer": figure(served, 15, "lower", "s"),
        f"faults: Valkey failover with {count} sessions rebuilt": figure(verified, 15, "lower", "s"),
        f"faults: Valkey failover with {count} sessions asked again": figure(asked_again, 15, "lower", "s"),
    }


def _epochs(server: Valkey, sessions: Iterable[str]) -> dict[str, bytes | None]:
    """Return the server that each session was last verified under; ``None`` for one that is not there."""
    names = list(sessions)
    with server.client() as client, client.pipeline(transaction=False) as asked:
        for name in names:
            asked.hget(key_of(SessionId(name), SessionId(name)), "epoch")
        return dict(zip(names, asked.execute(), strict=True))


async def _until_verified(cluster: Cluster, before: Mapping[str, bytes | None], begun: float) -> float:
    """Return the seconds from *begun* until the new primary holds every session as verified under another server."""
    missing = list(before)
    while missing:
        # Not all of them each time: asking is work too, for the new primary and for this machine.
        now = await asyncio.to_thread(_epochs, cluster.store.replica, missing[:LOOKED_AT])
        waiting = [name for name, epoch in now.items() if epoch in {None, b"", before[name]}]
        missing = waiting + missing[LOOKED_AT:]
        took = time.monotonic() - begun
        if took > SWEPT_S:
            tell(f"failover: {len(missing)} sessions were not verified by the sweep")
            break
        await asyncio.sleep(0.1 if waiting else 0)
    return took


async def _touched(stub: Any, key: Any, token: str) -> None:
    """Look at a session: a call that needs its state and nothing else."""
    await stub.GetSession(sidecar_pb2.GetSessionRequest(session_token=token), metadata=key)


async def _each(count: int, work: Callable[[int], Awaitable[Any]]) -> list[Any]:
    """Do *work* for each number, so many at a time, again and again until it is done."""
    found: list[Any] = [None] * count
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            while True:
                try:
                    found[number] = await work(number)
                    break
                except grpc.aio.AioRpcError as error:
                    if error.code() is not grpc.StatusCode.UNAVAILABLE:
                        raise
                    await asyncio.sleep(0.1)

    await asyncio.gather(*(worker() for _ in range(WIDE)))
    return found


async def soak(folder: Path, options: Any) -> Figures:
    """Go on for a long time, hang up on a tenth of the calls, and look at the memory every few seconds."""
    end, seen = time.monotonic() + options.soak * 60, []
    history = History()
    async with running(folder, Shape(sidecars=1, models=True, settings=CALM)) as cluster:

        async def caller(number: int) -> None:
            rng = random.Random(number)
            while time.monotonic() < end:
                agent = Agent(cluster, history, f"s{number}", rng)
                for _ in range(10):
                    await agent.chat("LOW", leave_after_s=rng.uniform(0.001, 0.05) if rng.random() < 0.1 else None)
                history.agents.clear()
                history.calls.clear()
                history.secrets.clear()
                cluster.provider.received.clear()

        callers = [asyncio.create_task(caller(n)) for n in range(4)]
        begun = time.monotonic()
        while time.monotonic() < end:
            await asyncio.sleep(5)
            seen.append((time.monotonic() - begun, _memory(cluster)))
        await asyncio.gather(*callers)
    slopes = {label: _slope(seen, label) for label in seen[0][1]}
    tell(f"soak: MiB a minute { ({label: round(slope, 2) for label, slope in slopes.items()}) }")
    return {f"faults: memory slope over {options.soak:g} minutes": figure(max(slopes.values()), 1, "lower", "MiB/min")}


def _slope(seen: list[tuple[float, dict[str, float]]], label: str) -> float:
    """Return the growth a minute by least squares, the first third left out: caches fill."""
    kept = seen[len(seen) // 3 :]
    at = [seconds / 60 for seconds, _ in kept]
    return statistics.linear_regression(at, [memory[label] for _, memory in kept]).slope


MEASURES = {"restart": restart, "rolling": rolling, "overload": overload, "failover": failover}


async def measured(options: Any) -> Figures:
    found: Figures = {}
    wanted = {**MEASURES, **({"soak": soak} if options.soak else {})}
    for name, measure in wanted.items():
        if options.only in name:
            with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder:
                found |= await measure(Path(folder), options)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only what has this in its name")
    parser.add_argument("--sessions", type=int, default=10_000, help="sessions to rebuild after a failover")
    parser.add_argument("--soak", type=float, default=0, help="minutes of soak; 0: none")
    options = parser.parse_args()
    logging.configure("error")
    stdlib_logging.getLogger("uvicorn.error").setLevel(
        "CRITICAL"
    )  # of the provider: whoever hangs up hangs up on it too
    print(json.dumps(asyncio.run(measured(options))))


if __name__ == "__main__":
    main()
