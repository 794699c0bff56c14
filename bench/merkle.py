"""The Merkle log: examining a bundle offline, proving an entry of a million over gRPC, appending: a part of bench.audit."""

from __future__ import annotations

import asyncio
import itertools
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import grpc

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.audit.merkle.bundles import LocalSource, export
from interlock.audit.merkle.checkpoint_key import load_checkpoint_key
from interlock.audit.merkle.examination import examine_bundle
from interlock.audit.store.log import Writing
from interlock.audit.store.log_sql import SqliteLog
from interlock.audit.store.opening import open_reader
from interlock.audit.wiring import open_service
from interlock.domain.chain.chain import EventRecord
from interlock.domain.merkle.tree import leaf_hash, verify_inclusion
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings

SMALL, LARGE = 60_000, 1_000_000
SESSIONS = 500
AT_ONCE = 10_000
PROOFS = 200
DATA = '{"composite_score":0.14,"risk_level":"LOW","claim_count":47,"grounding_pct":0.93}'


def events(first: int, count: int) -> list[EventRecord]:
    """Return events as they are stored, spread over sessions; their HMACs are no matter here."""
    return [
        EventRecord(
            f"crp_sess_{n % SESSIONS + 1:032x}", n // SESSIONS + 1, f"crp_win_{n:032x}", "DPE_COMPLETED", 2,
            "2026-05-25T10:00:00.000000Z", DATA, 1, f"sha256:{n:064x}",
        )
        for n in range(first, first + count)
    ]  # fmt: skip


def fill(path: Path, size: int) -> float:
    """Append *size* events through the log's own code and return how many a second that were."""
    log = SqliteLog(path)
    started = time.perf_counter()
    for first in range(0, size, AT_ONCE):
        [outcome] = log.commit([partial(_add, first=first)])
        assert outcome.error is None, outcome.error
    took = time.perf_counter() - started
    log.close()
    return size / took


def _add(writing: Writing, first: int) -> None:
    writing.add_events(events(first, AT_ONCE))


def offline(settings: Settings, folder: Path) -> float:
    """Return how many entries of a bundle are examined per second of one core."""
    with closing(open_reader(settings)) as log:
        key = load_checkpoint_key(settings).verifier()
        asyncio.run(export(LocalSource(log, str(key)), folder, reports=False))
    rates = []
    for _ in range(5):
        started = time.process_time()
        found = examine_bundle(folder, key, None)
        rates.append(found.size / (time.process_time() - started))
        assert (found.verdict, found.signed, found.size) == ("VALID", SMALL, SMALL), found.findings[:3]
    return statistics.median(rates)


async def proofs(settings: Settings) -> dict[str, float]:
    """Return p50 and p99 of proving an entry of the log over a real port, in ms."""
    server = RpcServer([await open_service(settings)], settings.model_copy(update={"allow_plaintext": True}), port=0)
    port = await server.start()
    chance, took = random.Random(1), []
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = audit_pb2_grpc.AuditServiceStub(channel)
        for position in itertools.islice(_positions(chance), PROOFS):
            started = time.perf_counter()
            proof = await stub.ProveInclusion(audit_pb2.ProveInclusionRequest(position=position, size=LARGE))
            took.append((time.perf_counter() - started) * 1000)
            assert verify_inclusion(leaf_hash(proof.entry), position, LARGE, proof.hashes, proof.root)
    await server.drain()
    return {"p50": statistics.median(took), "p99": statistics.quantiles(took, n=100)[98]}


def _positions(chance: random.Random) -> Iterator[int]:
    while True:
        yield chance.randrange(LARGE)


async def sign(settings: Settings) -> None:
    """Open and close the service once: it signs what there is."""
    await (await open_service(settings)).close()


def figures(folder: Path) -> dict[str, dict[str, object]]:
    """Return the figures of the Merkle log."""
    small, large = Settings(state_dir=folder / "small"), Settings(state_dir=folder / "large", log_level="error")
    for settings in (small, large):
        settings.state_dir.mkdir()
    fill(small.state_dir / "audit.db", SMALL)
    asyncio.run(sign(small))
    rate = offline(small, folder / "bundle")
    appended = fill(large.state_dir / "audit.db", LARGE)
    proved = asyncio.run(proofs(large))
    return {
        "audit: entries of a bundle examined offline, one core": {
            "value": round(rate), "target": 50_000, "better": "higher", "unit": "1/s",
        },
        "audit: inclusion proved in 10^6 entries over gRPC, p50": {
            "value": round(proved["p50"], 2), "target": 20, "better": "lower", "unit": "ms",
        },
        "audit: inclusion proved in 10^6 entries over gRPC, p99": {"value": round(proved["p99"], 2), "unit": "ms"},
        "audit: entries appended with leaves, 10,000 a commit": {"value": round(appended), "unit": "1/s"},
    }  # fmt: skip
