"""Streaming for tests: a real audit service, real sinks files, real receivers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from standardwebhooks.webhooks import Webhook

from interlock.audit.store.log import AuditLog
from interlock.audit.streams.streaming import Streaming, open_streaming
from interlock.runtime.clock import system_clock
from interlock.runtime.settings.model import Settings
from tests.support.audit.audit import Service, serving
from tests.support.servers.webhooks import Posted, Receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD1kHqvRjVVVE="
QUICK = {"secret": SECRET, "retry_first_s": 0.05, "retry_most_s": 0.1, "timeout_s": 5}


@dataclass
class Streamed:
    """An audit service whose log is streamed."""

    service: Service
    streaming: Streaming
    file: Path

    def sinks(self, **sinks: Mapping[str, Any]) -> None:
        write_sinks(self.file, **sinks)


def write_sinks(file: Path, **sinks: Mapping[str, Any]) -> None:
    """Write a sinks file, whole or not at all. An underscore in a name stands for a hyphen."""
    named = {name.replace("_", "-"): {**QUICK, **fields} for name, fields in sinks.items()}
    fresh = file.with_suffix(".new")
    fresh.write_text(yaml.safe_dump({"sinks": named}))
    fresh.rename(file)


@contextlib.asynccontextmanager
async def streamed(
    folder: Path, *receivers: Receiver, log: AuditLog | None = None, settings: Mapping[str, Any] | None = None,
    **sinks: Mapping[str, Any],
) -> AsyncIterator[Streamed]:  # fmt: skip
    """Serve an audit log and stream it to *sinks*; *receivers* may be reached although they are on loopback."""
    file = folder / "sinks.yaml"
    write_sinks(file, **sinks)
    allow = ",".join(receiver.origin for receiver in receivers)
    known = Settings(state_dir=folder, sinks_file=file, egress_allow=allow, **(settings or {}))
    async with serving(log, clock=system_clock, stream=partial(open_streaming, known)) as service:
        streaming = service.streaming
        assert streaming is not None
        streaming.start()
        try:
            yield Streamed(service, streaming, file)
        finally:
            await streaming.close()


def url(receiver: Receiver, path: str = "/in") -> str:
    return f"http://{receiver.origin}{path}"


def verified(posted: Posted, secret: str = SECRET) -> Any:
    """The JSON of a message whose signature the library of Standard Webhooks accepts."""
    return Webhook(secret).verify(posted.body.decode(), dict(posted.headers))


def events_of(receiver: Receiver) -> list[Any]:
    """Every CloudEvent that came, in order, repeated ones once."""
    seen: dict[str, Any] = {}
    for posted in receiver.received:
        for event in json.loads(posted.body):
            seen.setdefault(event["id"], event)
    return list(seen.values())
