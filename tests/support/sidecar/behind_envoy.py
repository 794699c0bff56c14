"""A sidecar, and a real Envoy that asks it, in front of a provider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai

from tests.support.servers.envoy import Change, RunningEnvoy
from tests.support.sidecar.sidecar import RunningSidecar, running_sidecar

QUESTION: Any = [{"role": "user", "content": "What is it?"}]
STRICT = {"crp-safety-policy": "halt-on HIGH"}
"""A caller's own policy, under which an answer that says CRITICAL is halted."""


@dataclass(frozen=True)
class BehindEnvoy:
    """The two, and the provider's port."""

    sidecar: RunningSidecar
    envoy: RunningEnvoy

    def openai(self, base: str = "", **more: Any) -> openai.AsyncOpenAI:
        """The vendor's client, at Envoy or at *base*."""
        return openai.AsyncOpenAI(base_url=f"{base or self.envoy.url}/v1", api_key="sk-client", max_retries=0, **more)


def port_of(upstream: str) -> int:
    """The port in a base URL."""
    return int(upstream.split(":")[2].split("/", maxsplit=1)[0])


@asynccontextmanager
async def behind_envoy(
    folder: Path,
    upstream: str,
    *,
    change: Change | None = None,
    config: str = "models",
    asked: int = 0,
    **settings: Any,
) -> AsyncIterator[BehindEnvoy]:
    """Start both. The sidecar knows of no provider but through Envoy. *asked*: a port that Envoy asks instead of the sidecar."""
    more = {"envoy_port": 0, "allow_plaintext": True, **settings}
    async with running_sidecar(folder, **more) as sidecar:
        port = asked or sidecar.envoy
        with RunningEnvoy(folder, config, interlock=port, upstream=port_of(upstream), change=change) as envoy:
            yield BehindEnvoy(sidecar, envoy)
