"""Group commit and verification of the audit log, on a real SQLite file: python -m bench.audit

Durable events per second with 64 concurrent writers beside one writer, interleaved; how long a seal takes from request to
durable answer; what reading and verifying the whole chain before each seal costs at windows 2 and 50; and the Merkle log
(bench.merkle): examining a bundle offline, and proving an entry of a million.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from bench import merkle
from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.audit import requests
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.seal import Sealer
from interlock.audit.sealing.verify import require_valid_chain
from interlock.audit.servicer import AuditServicer
from interlock.audit.store.log_sql import SqliteLog
from interlock.runtime.clock import system_clock
from interlock.runtime.keys.derivation import Keyring

ROUNDS = 9
ALONE = 40
WRITERS = 64
EACH = 25
CLAIMS = 30
EVENTS = 8
KEYRING = Keyring({1: bytes(range(32))})


def session(number: int) -> str:
    return f"crp_sess_{number:032x}"


def window(number: int, of: int = 0) -> str:
    return f"crp_win_{of:016x}{number:016x}"


def a_record(number: int) -> audit_pb2.RecordRequest:
    data = '{"response_hash":"sha256:' + "a" * 64 + '","tokens_used":105816,"latency_ms":2341}'
    noted = audit_pb2.NewEvent(event_type="DISPATCH_COMPLETED", severity="SEVERITY_INFO", data_json=data)
    return audit_pb2.RecordRequest(session_id=session(number), events=[noted])


def a_report() -> dpe_pb2.Report:
    found = dpe_pb2.Report(claims_total=CLAIMS, composite_score=0.5, risk_level="RISK_LEVEL_LOW")
    for number in range(CLAIMS):
        claim = found.claims.add(
            claim_id=f"c{number}", text="The contract ends on 12 March 2027. " * 3, specificity=0.5
        )
        claim.entities.add(text="12 March 2027", label="DATE", start=21, end=34)
    return found


def a_seal(number: int, parent: str, *, of: int = 0) -> audit_pb2.AppendRequest:
    return audit_pb2.AppendRequest(
        session_id=session(of),
        window_id=window(number, of),
        window_number=number,
        parent_ids=[window(number - 1, of)] if number > 1 else [],
        parent_hmacs=[parent] if number > 1 else [],
        response_hash="sha256:" + "b" * 64,
        report=a_report(),
        events=[a_record(0).events[0]] * EVENTS,
        risk_level="RISK_LEVEL_LOW",
        status="COMPLETED",
    )


async def rate(record: Callable[[int], Awaitable[None]], writers: int, each: int) -> float:
    async def write(number: int) -> None:
        for _ in range(each):
            await record(number)

    started = time.perf_counter()
    await asyncio.gather(*(write(number) for number in range(writers)))
    return writers * each / (time.perf_counter() - started)


async def group_commit(servicer: AuditServicer) -> dict[str, float]:
    """Return events per second for one and for 64 writers, medians of interleaved rounds."""
    numbers = itertools.count(1_000)
    batches = [next(numbers) for _ in range(WRITERS)]

    async def record(number: int) -> None:
        answer = await servicer.Record(a_record(batches[number]), None)
        assert answer.sequence, answer.refusal

    await rate(record, WRITERS, 2)
    alone, together = [], []
    for _ in range(ROUNDS):
        alone.append(await rate(record, 1, ALONE))
        together.append(await rate(record, WRITERS, EACH))
    return {"alone": statistics.median(alone), "together": statistics.median(together)}


async def seals(servicer: AuditServicer) -> float:
    """Return the p50 of sealing windows 2 to 5, verification and commit included, ms."""
    took = []
    for of in range(20_000, 20_000 + 12):
        parent = ""
        for number in range(1, 6):
            request = a_seal(number, parent, of=of)
            started = time.perf_counter()
            answer = await servicer.Append(request, None)
            took.append((time.perf_counter() - started) * 1000)
            assert answer.hmac, answer.refusal
            parent = answer.hmac
    return statistics.median(took)


def chain_of(log: SqliteLog, sealer: Sealer, windows: int) -> str:
    parent = ""
    for number in range(1, windows + 1):
        draft = requests.draft(a_seal(number, parent, of=30_000 + windows))
        head = log.chain(draft.session_id).head
        [outcome] = log.commit([partial(sealer.seal, draft=draft, verified=head)])
        parent = outcome.value.window.hmac
    return session(30_000 + windows)


def median_ms(work: Callable[[], object], rounds: int = 25) -> float:
    """Return the median CPU time of this thread: it reads from the page cache, and other jobs do not count."""
    took = []
    for _ in range(rounds):
        started = time.thread_time()
        work()
        took.append((time.thread_time() - started) * 1000)
    return statistics.median(took)


def check(log: SqliteLog, name: str) -> None:
    require_valid_chain(log.chain(name), name, KEYRING)


def verifying(folder: Path) -> dict[str, float]:
    """Return what reading and verifying a whole chain takes at windows 2 and 50, ms."""
    log, figures = SqliteLog(folder / "verify.db"), {}
    log.commit([])
    sealer = Sealer(KEYRING, system_clock, os.urandom)
    for windows in (2, 50):
        name = chain_of(log, sealer, windows)
        figures[f"verify {windows}"] = median_ms(partial(check, log, name))
        figures[f"events {windows}"] = len(log.chain(name).events)
    log.close()
    return figures


async def measure(folder: Path) -> dict[str, dict[str, object]]:
    log = SqliteLog(folder / "audit.db")
    servicer = AuditServicer(log, Appender(log), Sealer(KEYRING, system_clock, os.urandom))
    commits = await group_commit(servicer)
    seal_ms = await seals(servicer)
    await servicer.close()
    checks = await asyncio.to_thread(verifying, folder)
    return {
        "audit: durable events/s, 64 writers over 1": {
            "value": round(commits["together"] / commits["alone"], 1), "target": 10, "better": "higher", "unit": "x",
        },
        "audit: durable events/s, 64 writers": {"value": round(commits["together"]), "unit": "1/s"},
        "audit: durable events/s, 1 writer": {"value": round(commits["alone"]), "unit": "1/s"},
        "audit: seal of one window, verified and durable, p50": {"value": round(seal_ms, 2), "unit": "ms"},
        "audit: whole chain verified at window 2, CPU": {"value": round(checks["verify 2"], 2), "unit": "ms"},
        "audit: whole chain verified at window 50, CPU": {"value": round(checks["verify 50"], 2), "unit": "ms"},
        "audit: window 50 over window 2, per window": {
            "value": round(checks["verify 50"] / 50 / (checks["verify 2"] / 2), 2), "unit": "x",
        },
        "audit: events verified per second of CPU": {
            "value": round(checks["events 50"] / checks["verify 50"] * 1000), "target": 50_000, "better": "higher",
            "unit": "1/s",
        },
    }  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({**asyncio.run(measure(Path(folder))), **merkle.figures(Path(folder))}))


if __name__ == "__main__":
    main()
