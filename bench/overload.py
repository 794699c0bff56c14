"""Too much load: `interlock serve` with its defaults and the real models, open loop, over HTTP, and a short call beside a long one.

    python -m bench.overload [--seconds N]

The peak is what eight clients get that call one after the other. Then three times as many calls a second arrive, whether or not
earlier ones have ended. Every answer has other words, so that nothing is answered from memory. Prints JSON, the figures last.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

CLIENTS, FACTOR, PROVIDER_S = 8, 3.0, 0.05
LONG_CLAIMS, LONG_FACTS = 400, 60
_NAMES = ["Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gum", "Hazel", "Ivy", "Juniper", "Kapok", "Larch"]
_KINDS = ["pump", "valve", "boiler", "fan", "sensor", "relay", "motor", "filter"]
_DONE = ("was replaced", "was inspected", "was cleaned", "failed", "was repaired")
_numbers = itertools.count(1)


@dataclass
class Provider:
    """Answers with what the last message of the request asks for, after a while; counts its calls."""

    calls: int = 0
    url: str = ""
    wait_s: float = PROVIDER_S

    async def start(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = next(
                    int(line[15:]) for line in head.decode().split("\r\n") if line.lower().startswith("content-length:")
                )
                asked = json.loads(await reader.readexactly(size))
                self.calls += 1
                await asyncio.sleep(self.wait_s)
                body = json.dumps(_completion(asked["messages"][-1]["content"].split("SAY: ")[1])).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
                    % (len(body), body)
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def _completion(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }  # fmt: skip


def sentences(count: int, seed: int) -> list[str]:
    """Return sentences that no other call has."""
    pick = random.Random(seed).choice
    return [
        f"The {pick(_KINDS)} of unit {pick(_NAMES)} {seed}-{n} {pick(_DONE)} in {2000 + n % 24} by {pick(_NAMES)}son."
        for n in range(count)
    ]


def request(claims: int, facts: int) -> dict[str, Any]:
    """Return a chat request whose answer has so many claims, over so many facts."""
    told = sentences(max(claims, facts), next(_numbers))
    return {
        "model": "m",
        "messages": [{"role": "user", "content": "What was done?\n\nSAY: " + " ".join(told[:claims])}],
        "interlock": {"facts": [{"id": f"f{n}", "content": each} for n, each in enumerate(told[:facts])]},
    }


@dataclass
class Load:
    """What became of the calls of one phase: seconds of each by its end, and the provider's calls."""

    took: dict[str, list[float]] = field(default_factory=lambda: {"released": [], "shed": [], "other": []})
    without_advice: int = 0
    seconds: float = 0.0
    provider_calls: int = 0
    others: set[str] = field(default_factory=set)

    @property
    def rate(self) -> float:
        return len(self.took["released"]) / self.seconds

    def quantile(self, end: str, share: float) -> float:
        found = sorted(self.took[end])
        return found[min(len(found) - 1, int(len(found) * share))] if found else 0.0


class Caller:
    def __init__(self, client: httpx.AsyncClient, key: str = "bench") -> None:
        self.client, self.headers = client, {"authorization": f"Bearer {key}"}

    async def call(self, load: Load, claims: int = 2, facts: int = 3) -> float:
        body = request(claims, facts)
        begun = time.perf_counter()
        answer = await self.client.post("/v1/chat/completions", json=body, headers=self.headers)
        took = time.perf_counter() - begun
        end = {200: "released", 429: "shed", 503: "shed"}.get(answer.status_code, "other")
        load.took[end].append(took)
        load.without_advice += end == "shed" and "retry-after" not in answer.headers
        if end == "other":
            load.others.add(f"{answer.status_code} {answer.text[:120]}")
        return took


async def phase(provider: Provider, run: Callable[[Load], Awaitable[None]]) -> Load:
    load, before, begun = Load(), provider.calls, time.perf_counter()
    await run(load)
    load.seconds, load.provider_calls = time.perf_counter() - begun, provider.calls - before
    return load


async def closed(caller: Caller, load: Load, seconds: float) -> None:
    ends = time.perf_counter() + seconds

    async def client() -> None:
        while time.perf_counter() < ends:
            await caller.call(load)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


async def opened(caller: Caller, load: Load, seconds: float, rate: float) -> None:
    begun, calls = time.perf_counter(), []
    for number in range(int(seconds * rate)):
        await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))
        calls.append(asyncio.ensure_future(caller.call(load)))
    await asyncio.gather(*calls)


async def beside(caller: Caller) -> dict[str, float]:
    """Return the median of short calls alone, before and after, and beside a long one."""
    load = Load()
    alone = [await caller.call(load) for _ in range(15)]
    long = asyncio.ensure_future(caller.call(load, LONG_CLAIMS, LONG_FACTS))
    await asyncio.sleep(1.0)
    short = []
    while not long.done():
        short.append(await caller.call(load))
    alone += [await caller.call(load) for _ in range(15)]
    if load.took["other"]:
        print(load.others, file=sys.stderr)
    return {"alone": statistics.median(alone), "beside": statistics.median(short), "long": await long,
            "refused": float(len(load.took["shed"]) + len(load.took["other"]))}  # fmt: skip


async def neighbours(quiet: Caller, loud: Caller, seconds: float, rate: float) -> tuple[Load, Load]:
    """Return what becomes of one caller's calls, one after the other: alone, before and after, and while another floods (A-38)."""
    alone, beside, flooding = Load(), Load(), Load()

    async def calls(load: Load, lasts_s: float) -> None:
        ends = time.perf_counter() + lasts_s
        while time.perf_counter() < ends:
            refused = len(load.took["shed"])
            await quiet.call(load)
            await asyncio.sleep(0.2 * (len(load.took["shed"]) - refused))

    await calls(alone, seconds / 2)
    flood = asyncio.ensure_future(opened(loud, flooding, seconds + 2, rate))
    await asyncio.sleep(2)
    await calls(beside, seconds)
    await flood
    await asyncio.sleep(2)
    await calls(alone, seconds / 2)
    print(json.dumps({"the flood": {end: len(took) for end, took in flooding.took.items()}}))
    return alone, beside


async def measure(
    base_url: str, provider: Provider, seconds: float
) -> tuple[Load, Load, tuple[Load, Load], dict[str, float]]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
    async with httpx.AsyncClient(base_url=base_url, timeout=120, limits=limits) as client:
        caller = Caller(client)
        await phase(provider, lambda load: closed(caller, load, 4))
        peak = await phase(provider, lambda load: closed(caller, load, seconds))
        over = await phase(provider, lambda load: opened(caller, load, seconds, FACTOR * peak.rate))
        again = await phase(provider, lambda load: closed(caller, load, seconds))
        await asyncio.sleep(2)
        print(json.dumps({"peak": peak.rate, "peak after": again.rate, "others": sorted(over.others | again.others)}))
        for end, took in again.took.items():
            peak.took[end] += took
        peak.seconds += again.seconds
        quiet = Caller(client, "quiet")
        return peak, over, await neighbours(quiet, caller, seconds, FACTOR * peak.rate), await beside(caller)


async def run(seconds: float) -> dict[str, tuple[float, float | None, str, str]]:
    provider = Provider()
    await provider.start()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ, "INTERLOCK_STATE_DIR": folder, "INTERLOCK_UPSTREAM_BASE_URL": provider.url,
            "INTERLOCK_SIDECAR_HTTP_PORT": "0", "INTERLOCK_SIDECAR_GRPC_PORT": "0", "INTERLOCK_OVERSIGHT_PORT": "0",
        }  # fmt: skip
        command = [sys.executable, "-m", "interlock.cli.main", "serve", "-o", "json"]
        with open(os.path.join(folder, "log"), "wb") as log:  # noqa: PTH123, PTH118 - before anything is measured
            child = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.PIPE, stderr=log)
            try:
                assert child.stdout
                line = await child.stdout.readline()
                if not line:
                    raise SystemExit(open(log.name).read()[-2000:])  # noqa: PTH123, SIM115 - it ends here
                port = json.loads(line)["ports"]["sidecar_http"]
                peak, over, (alone, noisy), fair = await measure(f"http://127.0.0.1:{port}", provider, seconds)
            finally:
                child.terminate()
                await child.wait()
    released = len(over.took["released"])
    return {
        "overload: peak, eight clients": (peak.rate, None, "", "/s"),
        "overload: p99 at the peak": (peak.quantile("released", 0.99), None, "", "s"),
        "overload: calls that came": (FACTOR * peak.rate, None, "", "/s"),
        "overload: released over the peak": (over.rate / peak.rate, 0.85, "higher", "ratio"),
        "overload: p99 of the released over the peak's": (
            over.quantile("released", 0.99) / peak.quantile("released", 0.99), 2.0, "lower", "ratio"),
        "overload: provider calls per released answer": (over.provider_calls / max(1, released), 1.05, "lower", "ratio"),
        "overload: shed, p50": (over.quantile("shed", 0.5) * 1000, 50.0, "lower", "ms"),
        "overload: shed, p99": (over.quantile("shed", 0.99) * 1000, None, "", "ms"),
        "overload: shed without Retry-After": (float(over.without_advice), 0.0, "lower", ""),
        "overload: ended otherwise": (float(len(over.took["other"])), 0.0, "lower", ""),
        "overload: another caller's call alone, p99": (alone.quantile("released", 0.99), None, "", "s"),
        "overload: another caller's call beside the flood, p99 over alone": (
            noisy.quantile("released", 0.99) / alone.quantile("released", 0.99), 2.0, "lower", "ratio"),
        "overload: another caller's call beside the flood, p50 over alone": (
            noisy.quantile("released", 0.5) / alone.quantile("released", 0.5), None, "", "ratio"),
        "overload: another caller's calls refused beside the flood": (
            float(len(noisy.took["shed"]) + len(noisy.took["other"])), 0.0, "lower", ""),
        "overload: short call alone, p50": (fair["alone"], None, "", "s"),
        "overload: short call beside 400 claims, p50 over alone": (fair["beside"] / fair["alone"], 3.0, "lower", "ratio"),
        "overload: answer of 400 claims beside short calls": (fair["long"], None, "", "s"),
        "overload: refused beside or of 400 claims": (fair["refused"], 0.0, "lower", ""),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each phase")
    figures = asyncio.run(run(parser.parse_args().seconds))
    names = ("value", "target", "better", "unit")
    print(json.dumps({figure: dict(zip(names, row, strict=True)) for figure, row in figures.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
