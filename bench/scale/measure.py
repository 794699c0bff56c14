"""What one governed call takes of each part, with one process of each and with several.

Small: one sidecar, session, policy and audit service, one Valkey, one PostgreSQL. Wide: two sidecars, two session services, two audit services on
one PostgreSQL, a Cluster of three Valkeys. A dpe that answers at once stands in for the models, which are measured by themselves. CPU is counted by
the kernel for each process, so that other work on the machine changes it little; what a call waits for is not measured here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc

from bench.dpe_service import requests
from bench.scale.parts import Parts, places, used
from bench.sidecar import WINDOWS, Agent
from interlock.api.dpe.v1 import dpe_pb2_grpc
from tests.support.servers.postgres import OWNER, Postgres
from tests.support.servers.valkey_cluster import cluster
from tests.support.valkey import Valkey

AGENTS, WARM_S, SECONDS = 16, 3.0, 8.0
ANSWERS_WARM, ANSWERS = 4, 16
"""Together no more than there are: an answer that comes again is answered from memory."""


@contextlib.contextmanager
def stores(folder: Path, primaries: int) -> Iterator[list[Valkey]]:
    (folder / "valkey").mkdir()
    if primaries > 1:
        with cluster(folder / "valkey", primaries) as servers:
            yield servers
    else:
        with Valkey(folder / "valkey") as one:
            yield [one]


def shape(wide: bool) -> dict[str, float]:
    """Return what a governed call takes of each kind of process, milliseconds of CPU, and what it leaves behind, bytes."""
    several = 2 if wide else 1
    with (
        tempfile.TemporaryDirectory() as scratch,
        Postgres() as postgres,
        stores(Path(scratch), 3 if wide else 1) as valkeys,
    ):
        database = postgres.database()
        parts = Parts(Path(scratch), redis_url=valkeys[0].url, audit_url=postgres.url(database, OWNER), log_level="error",
                      max_windows=60, max_dag_nodes=60, remediation="full", max_roots_per_minute=100_000)  # fmt: skip
        try:
            policy, dpe = parts.start("policy"), parts.start("stand-in")
            audits = [parts.start("audit") for _ in range(several)]
            sessions = [parts.start("session") for _ in range(several)]
            ports = []
            for audit, session in zip(audits, sessions, strict=True):
                beside = places(policy=[policy], dpe=[dpe], audit=[audit], session=[session])
                ports.append(parts.start("sidecar", **beside).ports["sidecar_grpc"])
            return asyncio.run(_loaded(ports, parts, valkeys, postgres, database))
        finally:
            parts.stop()


async def _loaded(
    ports: list[int], parts: Parts, valkeys: list[Valkey], postgres: Postgres, database: str
) -> dict[str, float]:  # fmt: skip
    agents = [Agent(ports[number % len(ports)]) for number in range(AGENTS)]
    await _calls(agents, WARM_S)
    pids = parts.pids()
    pids["valkey"] = [one.process.pid for one in valkeys if one.process]
    pids["postgres"] = [one.pid for one in postgres.processes()]
    before, writer = {kind: used(each) for kind, each in pids.items()}, parts.writer()
    primaries = [used([one]) for one in pids["valkey"]]
    size, memory, began = _size(postgres, database), _memory(valkeys), time.perf_counter()
    calls = await _calls(agents, SECONDS)
    found = {f"{kind}_cpu_ms": (used(each) - before[kind]) / calls for kind, each in pids.items()}
    shares = [used([one]) - then for one, then in zip(pids["valkey"], primaries, strict=True)]
    appends, cpu_s, wall_s = (now - then for now, then in zip(parts.writer(), writer, strict=True))
    return {
        **found, "least_primary_over_mean": min(shares) * len(shares) / sum(shares), "calls_per_s": calls / (time.perf_counter() - began),
        "writer_cpu_ms": cpu_s * 1000 / calls, "writer_wall_ms": wall_s * 1000 / calls, "appends": appends / calls,
        "log_bytes": (_size(postgres, database) - size) / calls, "store_bytes": (_memory(valkeys) - memory) / calls * WINDOWS,
    }  # fmt: skip


async def _calls(agents: list[Agent], seconds: float) -> int:
    """Let all agents call one after the other for a time; return how many calls were answered."""
    end = time.perf_counter() + seconds

    async def one(agent: Agent) -> int:
        count = 0
        while time.perf_counter() < end:
            await agent.call()
            count += 1
        return count

    return sum(await asyncio.gather(*map(one, agents)))


def _size(postgres: Postgres, database: str) -> int:
    with postgres.admin() as admin:
        row = admin.execute("SELECT pg_database_size(%s)", (database,)).fetchone()
    return int(row[0]) if row else 0


def _memory(valkeys: list[Valkey]) -> int:
    total = 0
    for one in valkeys:
        with one.client() as client:
            total += client.info("memory")["used_memory"]
    return total


def models() -> dict[str, float]:
    """Return what the bundled models take for one answer, in a dpe of its own."""
    asked = requests()
    with tempfile.TemporaryDirectory() as scratch:
        parts = Parts(Path(scratch), log_level="error")
        try:
            dpe = parts.start("dpe")
            with grpc.insecure_channel(f"127.0.0.1:{dpe.ports['dpe']}") as channel:
                stub = dpe_pb2_grpc.DpeServiceStub(channel)
                for number in range(ANSWERS_WARM):
                    stub.Analyze(asked[number % len(asked)], timeout=120)
                before, chosen = used([dpe.pid]), [asked[(ANSWERS_WARM + n) % len(asked)] for n in range(ANSWERS)]
                for one in chosen:
                    stub.Analyze(one, timeout=120)
                cpu = (used([dpe.pid]) - before) / ANSWERS
        finally:
            parts.stop()
    words = sum(len(one.outputs[0].text.split()) for one in chosen) / ANSWERS
    return {"dpe_cpu_ms": cpu, "answer_words": words}


def inputs(known: dict[str, float] | None = None) -> dict[str, Any]:
    """Measure everything; about a minute and a half. *known*: of the models, measured earlier; absent, they are measured too."""
    small, wide = shape(wide=False), shape(wide=True)
    return {
        "cores": os.cpu_count(), "load": os.getloadavg()[0], "small": small, "wide": wide, "models": known or models(),
    }  # fmt: skip
