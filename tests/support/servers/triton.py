"""A real tritonserver for tests, out of the wheel: one for the whole run, and own ones to break."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from interlock.cli.local.tritonserver import TritonServer
from interlock.dpe.inference.models import ModelManifest, manifest
from interlock.dpe.inference.serving import ServingProfile, lay_out, served
from interlock.dpe.inference.triton import TritonInference
from tests.support.servers.ports import free_port

THREADS = 2


@cache
def address() -> str:
    """HOST:PORT of a server of the bundled models that every test of this run shares; it ends with the run."""
    folder = Path(tempfile.mkdtemp(prefix="interlock-triton-"))
    server = server_of(folder, served())
    owner = os.getpid()
    found = server.start()

    def end() -> None:
        if os.getpid() == owner:
            server.stop()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return found


def server_of(folder: Path, models: list[ModelManifest]) -> TritonServer:
    """Return an unstarted server of *models* below *folder*."""
    lay_out(folder / "repository", models, ServingProfile.CPU, threads=THREADS, link=True)
    return TritonServer(folder / "repository", folder, port=free_port())


@contextmanager
def running(folder: Path, models: list[ModelManifest] | None = None) -> Iterator[TritonServer]:
    """Give a server of one's own that may be killed and started again on its port."""
    server = server_of(folder, served() if models is None else models)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def client(url: str, *, nli: ModelManifest | None = None, timeout_s: float = 30.0, **fields: object) -> TritonInference:
    """Return the port over *url*, for the bundled models unless told otherwise."""
    return TritonInference(
        nli=nli or manifest("nli"), embed=manifest("embed"), ner=manifest("ner"), url=url, timeout_s=timeout_s, **fields
    )
