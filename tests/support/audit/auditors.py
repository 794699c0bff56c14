"""A real audit service with an anchor, what an auditor gets of it, and the ways to tamper with that."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.audit.merkle.bundles import LocalSource, export, lines_in
from interlock.audit.merkle.checkpoint_key import load_checkpoint_key
from interlock.audit.merkle.checkpoints import Notary
from interlock.audit.merkle.examination import examine_bundle, heads_in
from interlock.audit.merkle.folder import LogFolder
from interlock.audit.store.opening import open_reader
from interlock.audit.wiring import open_service
from interlock.domain.merkle.bundle import Examined, Head
from interlock.domain.merkle.note import VerifierKey
from interlock.domain.merkle.tiles import ENTRIES, Line
from interlock.runtime.rpc.channel import LocalChannel
from interlock.runtime.settings.model import Settings
from tests.support.audit.audit import event, session_id, window

SEALED = 3
"""Entries of one sealed window of ``tests.support.audit.audit.window``."""


def settings_of(folder: Path, **fields: Any) -> Settings:
    """Return settings of an audit service below *folder*, with an anchor in it."""
    (folder / "anchor").mkdir(parents=True, exist_ok=True)
    asked: dict[str, Any] = {
        "state_dir": folder / "state", "audit_anchor": folder / "anchor", "checkpoint_entries": 1_000_000,
        "checkpoint_s": 3600,
    }  # fmt: skip
    return Settings(**{**asked, **fields})


class Audited:
    """A running audit service, called as the mesh calls it in one process."""

    def __init__(self, service: Any) -> None:
        self.service = service
        self.servicer = service.servicer
        self.notary: Notary = service.servicer.notary
        self.stub = audit_pb2_grpc.AuditServiceStub(LocalChannel(AuditService=service.servicer))
        self._tips: dict[int, list[str]] = {}

    async def seal(self, *, session: int = 1) -> audit_pb2.AppendResponse:
        """Seal a session's next window: three entries."""
        tips = self._tips.setdefault(session, [""])
        answer = await self.stub.Append(window(len(tips), tips[-1], session=session))
        if not answer.HasField("refusal"):
            tips.append(answer.hmac)
        return answer

    async def record(self, session: int = 1) -> audit_pb2.RecordResponse:
        """Record one event."""
        request = audit_pb2.RecordRequest(session_id=session_id(session), events=[event()])
        return await self.stub.Record(request)


@contextlib.asynccontextmanager
async def audited(settings: Settings) -> AsyncIterator[Audited]:
    """Run the audit service of *settings*."""
    service = await open_service(settings)
    try:
        yield Audited(service)
    finally:
        await service.close()


@dataclass(frozen=True)
class Evidence:
    """What an auditor has: a bundle, an anchor, a public key; and beside it what the operator has."""

    settings: Settings
    bundle: Path
    anchor: Path
    key: VerifierKey

    def examine(self, *, anchored: bool = True) -> Examined:
        """Examine it as `interlock audit verify --offline` does."""
        return examine_bundle(self.bundle, self.key, self.anchor if anchored else None)

    def copy(self, folder: Path) -> Evidence:
        """Return a copy to tamper with."""
        shutil.copytree(self.bundle, folder / "bundle")
        shutil.copytree(self.anchor, folder / "anchor")
        return Evidence(self.settings, folder / "bundle", folder / "anchor", self.key)

    @property
    def lines(self) -> list[bytes]:
        """The lines of the entries."""
        return (self.bundle / ENTRIES).read_bytes().splitlines()

    def rewrite(self, lines: Sequence[bytes]) -> None:
        """Put other entries into the bundle."""
        (self.bundle / ENTRIES).write_bytes(b"".join(line + b"\n" for line in lines))

    def parts(self, *, anchored: bool = True) -> tuple[list[Line], list[bytes], list[Head]]:
        """Return entries, known hashes and signed heads, to examine them in memory many times."""
        with (self.bundle / ENTRIES).open("rb") as file:
            lines = list(lines_in(file))
        heads = [*heads_in(LogFolder(self.bundle), self.key, _unexpected, anchored=False)]
        if anchored:
            heads += heads_in(LogFolder(self.anchor), self.key, _unexpected, anchored=True)
        return lines, list(LogFolder(self.bundle).leaves(1, len(lines))), heads


def _unexpected(finding: object) -> None:
    raise AssertionError(finding)


def write_bundle(settings: Settings, out: Path) -> None:
    """Export the log at rest."""
    with closing(open_reader(settings)) as log:
        asyncio.run(export(LocalSource(log, str(load_checkpoint_key(settings).verifier())), out, reports=False))


def build_evidence(folder: Path, *, windows: int = 66, sessions: int = 3, per_checkpoint: int = 7) -> Evidence:
    """Run a real service over a log of ``3 * windows + 2`` entries, sign and publish on the way, and export it."""
    settings = settings_of(folder)

    async def work() -> None:
        async with audited(settings) as audit:
            for number in range(windows):
                await audit.seal(session=1 + number % sessions)
                if number % per_checkpoint == per_checkpoint - 1:
                    await audit.notary.round()
            await audit.record(1)
            await audit.record(2)

    asyncio.run(work())
    write_bundle(settings, folder / "bundle")
    assert settings.audit_anchor is not None
    return Evidence(settings, folder / "bundle", settings.audit_anchor, load_checkpoint_key(settings).verifier())


def edits(line: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the line of an entry with each field edited, field by field."""
    from dataclasses import fields, replace

    from interlock.domain.merkle.entry import decode_entry, encode_entry

    stored = decode_entry(line)
    for field in fields(stored):
        value = getattr(stored, field.name)
        yield (
            field.name,
            encode_entry(replace(stored, **{field.name: value + 1 if isinstance(value, int) else value + "x"})),
        )
