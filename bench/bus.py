"""Signals per second through the decision service's bus, beside a plain XADD/XREADGROUP loop on the same Valkey.

    python -m bench.bus

Ours is the whole way over gRPC: a hundred agents emit in batches by their tickets, the service checks every signal (declaration, source,
clock, confidence, payload by its schema), the store keeps it fairly, and one subscriber reads all of them in order. The loop puts the same
JSON in pipelines of the same size with XADD and reads it with XREADGROUP and XACK, and checks nothing; the other loop sends one XADD at a
time. Rounds are interleaved; the ratio is the median of the ratios of its rounds. Nothing counts unless every signal arrived, in order.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import grpc
import redis.asyncio
import uvloop

from interlock.api.decision.v1 import decision_pb2
from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from tests.support.decision_service import BusClient, DecisionClient, emits
from tests.support.decisions import TRAINER
from tests.support.servers.processes import Process, environment
from tests.support.valkey import Valkey

ROUNDS, AGENTS, BATCH, EACH = 3, 100, 100, 2
SIGNALS = AGENTS * BATCH * EACH
TARGET, TARGET_PER_S = 0.3, 10_000.0
JSON = json.dumps({"trial": 1, "value": 0.5, "more": "x" * 120})


async def ours(stub: DecisionServiceStub, name: str) -> tuple[float, int]:
    """Return signals per second, and how many never came."""
    search = DecisionClient(stub, experiment=name)
    await search.open(bus_signals=2 * SIGNALS)
    await search.register(*({**TRAINER, "name": f"agent{number}"} for number in range(AGENTS)))
    bus = BusClient(search)
    requests = [_request(search, agent, part) for part in range(EACH) for agent in range(AGENTS)]
    begin = time.perf_counter()
    reading = asyncio.create_task(bus.until(SIGNALS))
    for at in range(0, len(requests), 8):
        answers = await asyncio.gather(*(stub.Emit(one) for one in requests[at : at + 8]))
        assert not any(one.reason for answer in answers for one in answer.signals)
    found = await reading
    took = time.perf_counter() - begin
    numbers = [one.sequence for one in found.signals]
    assert numbers == sorted(numbers)
    assert not found.HasField("gap")
    return SIGNALS / took, SIGNALS - len(set(numbers))


def _request(search: DecisionClient, agent: int, part: int) -> decision_pb2.EmitRequest:
    now, name = time.time(), f"agent{agent}"
    told = [
        emits("trial_completed", name, {"trial": part * BATCH + number, "value": 0.5}, now) for number in range(BATCH)
    ]
    return decision_pb2.EmitRequest(ticket=search.tickets[name], signals=told)


async def plain(url: str, name: str, batch: int, count: int) -> float:
    """Return signals per second of the loop."""
    client = redis.asyncio.from_url(url)
    await client.xgroup_create(name, "g", id="0", mkstream=True)
    begin = time.perf_counter()
    reading = asyncio.create_task(_read(url, name, count))
    for _ in range(0, count, batch):
        pipeline = client.pipeline(transaction=False)
        for _ in range(batch):
            pipeline.xadd(name, {"k": "trial_completed", "b": JSON})
        await pipeline.execute()
    await reading
    took = time.perf_counter() - begin
    await client.aclose()
    return count / took


async def _read(url: str, name: str, count: int) -> None:
    client, seen = redis.asyncio.from_url(url), 0
    while seen < count:
        for _, rows in await client.xreadgroup("g", "c", {name: ">"}, count=500, block=1000):
            seen += len(rows)
            await client.xack(name, "g", *(at for at, _ in rows))
    await client.aclose()


async def measured(url: str, port: int) -> dict[str, dict[str, object]]:
    """Return the figures."""
    rates: list[tuple[float, float, float]] = []
    lost = 0
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = DecisionServiceStub(channel)
        for number in range(ROUNDS):
            rate, missing = await ours(stub, f"bench{number}")
            lost += missing
            loop, single = (
                await plain(url, f"p{number}", BATCH, SIGNALS),
                await plain(url, f"s{number}", 1, SIGNALS // 10),
            )
            rates.append((rate, loop, single))
            print(f"bus {rate:,.0f}/s, loop in batches {loop:,.0f}/s, one by one {single:,.0f}/s", file=sys.stderr)

    def median(values: Sequence[float]) -> float:
        return float(statistics.median(values))

    return {
        "bus: signals per second, 100 agents, checked": _figure(median([one[0] for one in rates]), TARGET_PER_S, "1/s"),
        "bus: of XADD/XREADGROUP in batches of 100": _figure(median([a / b for a, b, _ in rates]), TARGET, "x"),
        "bus: of XADD/XREADGROUP one by one": _figure(median([a / c for a, _, c in rates]), TARGET, "x"),
        f"bus: signals lost of {ROUNDS * SIGNALS:,}": {"value": lost, "target": 0, "better": "lower", "unit": ""},
    }


def _figure(value: float, target: float, unit: str) -> dict[str, object]:
    return {"value": value, "target": target, "better": "higher", "unit": unit}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, Valkey(Path(folder), "--appendfsync", "everysec") as valkey:
        env = environment(Path(folder) / "state", {"redis_url": valkey.url, "log_level": "error"})
        processes = [Process(Path(folder), name, env) for name in ("audit", "decision")]
        try:
            for one in processes:
                one.start().wait()
            figures = uvloop.run(measured(valkey.url, processes[1].ports["decision"]))
        finally:
            for one in processes:
                one.stop()
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
