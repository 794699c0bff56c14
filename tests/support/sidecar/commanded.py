"""A sidecar whose services the command line reaches: real services in this process, on ports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock.runtime.rpc.server import RpcServer
from tests.support.servers.processes import environment, run_here
from tests.support.sidecar.sidecar import RunningSidecar, running_sidecar
from tests.support.sidecar.windows import Answering

RISKS = {"a": "LOW", "b": "MEDIUM", "c": "HIGH", "d": "CRITICAL"}
"""Question → risk that the dpe of the tests finds in its answer."""


def answering() -> Answering:
    """Return a provider whose answer to each question names its risk."""
    made = Answering()
    made.by_question = {question: f"The answer is {risk}." for question, risk in RISKS.items()}
    return made


@asynccontextmanager
async def commanded(
    tmp_path: Path, upstream: str, services: Sequence[str] = ("audit",), **settings: Any
) -> AsyncIterator[tuple[RunningSidecar, dict[str, str]]]:
    """Serve a sidecar, and its *services* on ports; give it with the environment of a command line that finds them."""
    async with running_sidecar(tmp_path, upstream=upstream, **settings) as sidecar:
        served = sidecar.settings.model_copy(update={"allow_plaintext": True})
        servers = {name: RpcServer([sidecar.services[name]], served, port=0) for name in services}
        places = {f"{name}_address": f"127.0.0.1:{await server.start()}" for name, server in servers.items()}
        try:
            yield sidecar, environment(tmp_path / "state", places)
        finally:
            for server in servers.values():
                await server.drain()


async def command(env: dict[str, str], *arguments: str) -> Any:
    """Run a command beside the services, as a user does, and return how it ended."""
    return await asyncio.to_thread(run_here, *arguments, env=env)
