"""`interlock serve` as a process of its own, with its defaults, for benches that speak to it over the wire."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

FREE = ("SIDECAR_HTTP", "SIDECAR_GRPC", "OVERSIGHT", "OVERSIGHT_HTTP")


@asynccontextmanager
async def serving(folder: Path, **settings: str) -> AsyncIterator[tuple[int, Mapping[str, int]]]:
    """Serve the whole mesh over *folder* on free ports; yields its process id and its ports by name. *settings*: by name, in capitals."""
    ports = {f"{name}_PORT": "0" for name in FREE}
    given = {f"INTERLOCK_{name}": value for name, value in {**ports, "STATE_DIR": str(folder), **settings}.items()}
    command = [sys.executable, "-m", "interlock.cli.main", "serve", "-o", "json"]
    with (folder / "log").open("wb") as log:
        child = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **given}, stdout=subprocess.PIPE, stderr=log
        )
    try:
        assert child.stdout
        yield child.pid, json.loads(await child.stdout.readline())["ports"]
    finally:
        child.terminate()
        await child.wait()
