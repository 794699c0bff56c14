"""What a call through Envoy and ``ext_proc`` adds, beside what the HTTP front adds: the same sidecar, the same provider, one run.

    python -m bench.envoy

`interlock serve` runs with its defaults and the real models; calls are one after the other, each in a session of its own, with one question
and one answer. The provider asked directly, through the HTTP front, and through the real Envoy that asks the sidecar have their turns in
interleaved rounds. Times are medians of the rounds' p50.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx

from bench.serving import serving
from tests.support.servers.envoy import RunningEnvoy
from tests.support.servers.ports import free_port
from tests.support.servers.provider import Provider, RunningProvider

ROUNDS, CALLS, WARM = 10, 40, 20


async def rounds(urls: dict[str, str]) -> dict[str, float]:
    """Return the median of each way's p50, milliseconds."""
    found: dict[str, list[float]] = {name: [] for name in urls}
    async with httpx.AsyncClient(timeout=60) as client:
        for number in range(ROUNDS + 1):
            for name in sorted(urls, reverse=number % 2 == 0):
                took = []
                for _ in range(CALLS if number else WARM):
                    body = {"model": "m", "messages": [{"role": "user", "content": "What was done?"}]}
                    began = time.perf_counter()
                    answer = await client.post(
                        f"{urls[name]}/v1/chat/completions", json=body, headers={"authorization": "Bearer k"}
                    )
                    answer.raise_for_status()
                    took.append((time.perf_counter() - began) * 1000)
                    client.cookies.clear()
                if number:
                    found[name].append(statistics.median(took))
    return {name: statistics.median(each) for name, each in found.items()}


async def run(upstream: str) -> dict[str, tuple[float, float | None, str, str]]:
    port = free_port()
    asked = int(upstream.split(":")[2].split("/", maxsplit=1)[0])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = {"UPSTREAM_BASE_URL": upstream, "ENVOY_PORT": str(port), "ALLOW_PLAINTEXT": "true"}
        async with serving(folder, **given) as (_, ports):
            with RunningEnvoy(folder, "models", interlock=port, upstream=asked) as envoy:
                http = f"http://127.0.0.1:{ports['sidecar_http']}"
                took = await rounds({"direct": upstream.removesuffix("/v1"), "http": http, "envoy": envoy.url})
    front_ms, envoy_ms = took["http"] - took["direct"], took["envoy"] - took["direct"]
    return {
        "envoy: the provider asked directly": (took["direct"], None, "", "ms"),
        "envoy: the HTTP front adds": (front_ms, None, "", "ms"),
        "envoy: Envoy with ext_proc adds": (envoy_ms, None, "", "ms"),
        "envoy: ext_proc over the HTTP front, what they add": (envoy_ms / front_ms, 1.5, "lower", "ratio"),
    }


def main() -> int:
    provider = Provider()
    provider.answers("The pump was replaced.")
    with RunningProvider(provider) as upstream:
        figures = asyncio.run(run(upstream.base_url))
    names = ("value", "target", "better", "unit")
    print(json.dumps({figure: dict(zip(names, row, strict=True)) for figure, row in figures.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
