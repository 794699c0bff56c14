"""Probes of parts that a deployment may have: Triton, a trace collector, and code that can be verified."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
from collections.abc import AsyncIterator, Iterator
from functools import partial
from urllib.parse import urlsplit

from interlock.domain.errors import Refused
from interlock.runtime import integrity
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.settings.model import Settings

CONNECT_LIMIT_S = 2.0
TRITON_LIMIT_S = 3.0
DEFAULT_OTLP_PORT = 4317


def code(settings: Settings) -> Iterator[ProbeFinding]:
    """Check whether the code that runs here is what was shipped. CODE_CHANGED is raised."""
    line = partial(ProbeFinding, "code", "interlock")
    found = integrity.verify()
    if found.ok:
        yield line(ProbeStatus.OK, f"{found.files} files are as shipped")
    elif settings.require_verified_code:
        yield line(ProbeStatus.FAIL, found.why, "install the wheel, or unset INTERLOCK_REQUIRE_VERIFIED_CODE")
    else:
        yield line(ProbeStatus.WARN, found.why, "install the wheel where changed code must not start")


async def triton(settings: Settings) -> AsyncIterator[ProbeFinding]:
    """Check Triton, where it is to run the models: reachable, and serving each pinned model."""
    if not settings.triton_url:
        yield ProbeFinding("triton", "server", ProbeStatus.SKIP, "the models run in the dpe process")
        return
    if importlib.util.find_spec("tritonclient") is None:
        hint = "pip install 'interlock[triton]' on the host of the dpe service"
        yield ProbeFinding("triton", "server", ProbeStatus.FAIL, "the triton extra is not installed", hint)
        return
    models = importlib.import_module("interlock.dpe.inference.models")
    inference = importlib.import_module("interlock.dpe.inference.triton").TritonInference(
        nli=models.manifest("nli", settings.nli_model_dir),
        embed=models.manifest("embed", settings.embed_model_dir),
        ner=models.manifest("ner", settings.ner_model_dir),
        url=settings.triton_url,
        timeout_s=min(settings.triton_timeout_s, TRITON_LIMIT_S),
        ca_file=settings.triton_ca_file,
    )
    try:
        async with asyncio.timeout(TRITON_LIMIT_S):
            await inference.check()
        yield ProbeFinding("triton", "server", ProbeStatus.OK, f"{settings.triton_url} serves the pinned models")
    except Refused as refused:
        hint = "start it, or correct INTERLOCK_TRITON_URL; no answer is analysed without it"
        detail = f"{settings.triton_url}: {refused.message}"
        yield ProbeFinding("triton", "server", ProbeStatus.FAIL, detail, refused.metadata.get("hint") or hint)
    finally:
        with contextlib.suppress(Exception):
            await asyncio.to_thread(inference.close)


async def traces(settings: Settings) -> AsyncIterator[ProbeFinding]:
    """Check the OTLP endpoint: its exporter is installed, and something listens. Calls do not depend on it, so it only warns."""
    line = partial(ProbeFinding, "traces", "otlp")
    if not settings.otlp_endpoint:
        yield line(ProbeStatus.SKIP, "INTERLOCK_OTLP_ENDPOINT is not set: traces stay in process")
        return
    if importlib.util.find_spec("opentelemetry.exporter.otlp.proto.grpc") is None:
        hint = "pip install 'interlock[otlp]', or unset INTERLOCK_OTLP_ENDPOINT; no process starts without it"
        yield line(ProbeStatus.FAIL, "the exporter is not installed", hint)
        return
    place = urlsplit(settings.otlp_endpoint)
    where = f"{place.hostname}:{place.port or DEFAULT_OTLP_PORT}"
    try:
        async with asyncio.timeout(CONNECT_LIMIT_S):
            _, writer = await asyncio.open_connection(place.hostname, place.port or DEFAULT_OTLP_PORT)
        writer.close()
        yield line(ProbeStatus.OK, f"{where} accepts connections")
    except (OSError, TimeoutError) as error:
        hint = "start the collector, or correct INTERLOCK_OTLP_ENDPOINT; calls go on, their traces are lost"
        yield line(ProbeStatus.WARN, f"{where}: {type(error).__name__}", hint)
