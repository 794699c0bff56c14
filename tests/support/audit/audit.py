"""A real audit service for tests: requests to send, a service over any log, and children that can be killed."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.audit import requests
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.prefixes import Prefixes
from interlock.audit.sealing.seal import Sealer
from interlock.audit.sealing.verify import examine, key_of
from interlock.audit.servicer import AuditServicer
from interlock.audit.store.log import AuditLog
from interlock.audit.store.log_sql import SqliteLog
from interlock.audit.streams.streaming import Streaming
from interlock.audit.wiring import readiness
from interlock.domain.chain import audit_events
from interlock.domain.chain.chain import KeyOf
from interlock.runtime.keys.derivation import Keyring
from interlock.runtime.rpc.channel import LocalChannel

MASTER = bytes(range(32))
KEYRING = Keyring({1: MASTER})
START = 1_779_703_200_000_000  # 2026-05-25T10:00:00Z


def session_id(number: int = 1) -> str:
    return f"crp_sess_{number:032x}"


def window_id(number: int, session: int = 1) -> str:
    return f"crp_win_{session:016x}{number:016x}"


def hash_of(number: int) -> str:
    return f"sha256:{number:064x}"


def keys(session: str, keyring: Keyring = KEYRING) -> KeyOf:
    return key_of(keyring, session)


class Ticking:
    """A clock that advances by one millisecond at each look."""

    def __init__(self, start: int = START) -> None:
        self._ticks = itertools.count(start, 1000)

    def __call__(self) -> int:
        return next(self._ticks)


def event(event_type: str = "DPE_COMPLETED", data: str = '{"a":1}', **fields: Any) -> audit_pb2.NewEvent:
    """An event; required fields that *data* leaves out are filled in."""
    known = audit_events.TYPES.get(event_type)
    if known and not known.own and data.endswith("}"):
        missing = {field: "x" for field in known.fields if f'"{field}"' not in data}
        more = json.dumps(missing, separators=(",", ":"))[1:]
        data = data[:-1] + ("," if missing and data != "{}" else "") + more if missing else data
    fields.setdefault("severity", audit_events.SEVERITIES.index(known.severities[0]) + 1 if known else 2)
    return audit_pb2.NewEvent(event_type=event_type, data_json=data, **fields)


def report(claims: int = 2) -> dpe_pb2.Report:
    found = dpe_pb2.Report(claims_total=claims, composite_score=0.5, grounding_pct=0.25, risk_level=3)
    for number in range(claims):
        found.claims.add(claim_id=f"c{number}", text=f"Claim {number} – 50 %", specificity=0.5, entailment=0.125)
    return found


def window(number: int, parent: str = "", *, session: int = 1, **fields: Any) -> audit_pb2.AppendRequest:
    """Return a request that seals window *number* after the one whose HMAC is *parent*."""
    asked: dict[str, Any] = {
        "session_id": session_id(session),
        "window_id": window_id(number, session),
        "window_number": number,
        "parent_ids": [window_id(number - 1, session)] if number > 1 else [],
        "parent_hmacs": [parent] if number > 1 else [],
        "response_hash": hash_of(number),
        "report": report(),
        "events": [event("DISPATCH_COMPLETED"), event("DPE_COMPLETED", '{"risk_level":"HIGH"}')],
        "risk_level": common_pb2.RISK_LEVEL_HIGH,
        "charge_micros": 150_000,
        "status": "COMPLETED",
        "settle_json": '{"policy_text":"","token_count":7}',
    }
    return audit_pb2.AppendRequest(**{**asked, **fields})


class Service:
    """The servicer over a log, called as the mesh calls it in one process."""

    def __init__(
        self, log: AuditLog, *, keyring: Keyring = KEYRING, clock: Any = None,
        stream: Callable[[AuditLog, Appender, Sealer], Streaming] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.log, self.keyring = log, keyring
        self.appender = Appender(log, **options)
        self.sealer = Sealer(keyring, clock or Ticking(), os.urandom)
        self.streaming = stream(log, self.appender, self.sealer) if stream else None
        self.servicer = AuditServicer(log, self.appender, self.sealer, streaming=self.streaming)
        self.stub = audit_pb2_grpc.AuditServiceStub(LocalChannel(AuditService=self.servicer))

    async def unready_dependencies(self) -> Mapping[str, str]:
        """Return what the service's readiness says."""
        return await readiness(self.servicer, self.appender, self.log)()

    async def seal(self, count: int, *, session: int = 1, **fields: Any) -> list[audit_pb2.AppendResponse]:
        """Seal windows 1 to *count* and return the answers."""
        answers: list[audit_pb2.AppendResponse] = []
        for number in range(1, count + 1):
            parent = answers[-1].hmac if answers else ""
            answers.append(await self.stub.Append(window(number, parent, session=session, **fields)))
            assert not answers[-1].HasField("refusal"), answers[-1].refusal
        return answers

    async def record(self, *events: audit_pb2.NewEvent, session: int = 1, window: str = "") -> audit_pb2.RecordResponse:
        request = audit_pb2.RecordRequest(session_id=session_id(session), window_id=window, events=events or [event()])
        return await self.stub.Record(request)


@contextlib.contextmanager
def temporary_log() -> Iterator[SqliteLog]:
    """An empty SQLite log in a folder of its own, removed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        log = SqliteLog(Path(folder) / "audit.db")
        log.commit([])
        try:
            yield log
        finally:
            log.close()


@contextlib.asynccontextmanager
async def serving(log: AuditLog | None = None, **options: Any) -> AsyncIterator[Service]:
    """Serve *log*; without one, an empty SQLite log that is removed at the end."""
    with contextlib.nullcontext(log) if log else temporary_log() as served:
        service = Service(served, **options)
        try:
            yield service
        finally:
            await service.servicer.close()


def copies(database: Path, folder: Path) -> Iterator[Path]:
    """Return ever new copies of a database at rest."""
    content = database.read_bytes()
    for number in itertools.count():
        copy = folder / f"copy{number}.db"
        copy.write_bytes(content)
        yield copy


def build(
    log: AuditLog, windows: int, *, notes: int = 2, session: int = 1, keyring: Keyring = KEYRING, claims: int = 0
) -> list[str]:
    """Seal *windows* windows of *notes* events and a seal each, straight into *log*; return the window HMACs.

    With *claims* each window's report has that many more claims than the one before.
    """
    sealer, prefixes, tips = Sealer(keyring, Ticking(), os.urandom), Prefixes(keyring), [""]
    log.commit([])  # makes the file
    for number in range(1, windows + 1):
        events = [event("DISPATCH_COMPLETED", f'{{"n":{n},"window":{number}}}') for n in range(notes)]
        asked = window(number, tips[-1], session=session, events=events, report=report(2 + claims * number))
        draft = requests.draft(asked)
        found = prefixes.verified(log, draft.session_id)
        recheck = partial(prefixes.recheck, session_id=draft.session_id)
        [outcome] = log.commit([partial(sealer.seal, draft=draft, verified=found, recheck=recheck)])
        assert outcome.error is None, outcome.error
        tips.append(outcome.value.window.hmac)
    return tips[1:]


def verify_message(log: AuditLog, session: str, keyring: Keyring = KEYRING) -> tuple[str, list[str]]:
    """Return the verdict on a session's chain, and the reasons of its faults."""
    found = examine(log.chain(session), session, keyring)
    return found.integrity.name, [fault.reason for fault in found.faults]


class Attacker:
    """Someone who has the file but no key: drops the triggers and writes what they like."""

    def __init__(self, database: Path) -> None:
        self.connection = sqlite3.connect(database, isolation_level=None)
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.execute("PRAGMA busy_timeout = 5000")
        for (name,) in self.connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            self.connection.execute(f"DROP TRIGGER {name}")

    def __call__(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement, values)

    def __enter__(self) -> Attacker:
        self.connection.execute("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.execute("COMMIT")
        self.connection.close()
