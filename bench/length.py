"""What a governed call costs in window 2, 50 and 200 of one session: CPU and wall, without models.

    python -m bench.length

The mesh of ``bench.sidecar`` in one process. The lengths take turns in one run. Window 2 is the second and third of fresh
sessions; the others are 16 windows in a row around that length, so that the parts of the chain that are read again in turn are
all there. CPU is that of the mesh and of Valkey, whose scripts run for the call, in nanoseconds as the kernel counts it.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.sidecar import Agent, Children
from tests.support.valkey import Valkey

ROUNDS = 10
SPANS = {2: (8, 1, 2), 50: (1, 42, 16), 200: (1, 192, 16)}
"""By length: sessions of a round, windows before what is measured, and windows that are measured of each."""
ROOM = {"INTERLOCK_MAX_WINDOWS": "240", "INTERLOCK_MAX_DAG_NODES": "800"}


@dataclass
class Measured:
    """Milliseconds of each call, and of CPU per call in each round."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


class Conversation:
    """One session, continued window after window."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.token, self.window = agent, "", 0

    async def call(self) -> None:
        self.token = (await self.agent.check(self.token)).outcome.session_token
        self.window += 1

    async def reach(self, window: int) -> None:
        while self.window < window:
            await self.call()


def cpu_ns(processes: list[int]) -> int:
    """Return the time that all threads of *processes* have been on a CPU; /proc counts it in nanoseconds."""
    found = 0
    for pid in processes:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += int((thread / "schedstat").read_text().split()[0])
    return found


async def measure(port: int, processes: list[int]) -> dict[int, Measured]:
    agent = Agent(port)
    for _ in range(2):
        await Conversation(agent).reach(20)  # warm
    found = {length: Measured() for length in SPANS}
    for _ in range(ROUNDS):
        for length, (sessions, before, count) in SPANS.items():
            used = 0
            for _ in range(sessions):
                session = Conversation(agent)
                await session.reach(before)
                begun = cpu_ns(processes)
                for _ in range(count):
                    start = time.perf_counter()
                    await session.call()
                    found[length].wall.append((time.perf_counter() - start) * 1e3)
                used += cpu_ns(processes) - begun
            found[length].cpu.append(used / (sessions * count) / 1e6)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "valkey").mkdir()
        with Valkey(folder / "valkey") as valkey:
            children = Children(folder, valkey.url)
            try:
                port = children.start(["bench.sidecar", "mesh"], "mesh", **ROOM)["port"]
                assert valkey.process is not None
                processes = [children.processes[0].pid, valkey.process.pid]
                found = asyncio.run(measure(port, processes))
                memory = psutil.Process(processes[0]).memory_info().rss
            except Exception:
                print((folder / "mesh.log").read_text()[-3000:], file=sys.stderr)
                raise
            finally:
                children.stop()
    figures: dict[str, tuple[float, float | None, str, str]] = {}
    cpu = {length: statistics.median(one.cpu) for length, one in found.items()}
    wall = {length: statistics.median(one.wall) for length, one in found.items()}
    for length in SPANS:
        figures[f"length: CPU of a call in window {length}"] = (cpu[length], None, "", "ms")
        figures[f"length: p50 of a call in window {length}"] = (wall[length], None, "", "ms")
    for length, target in ((50, None), (200, 1.2)):
        better = "lower" if target else ""
        figures[f"length: CPU, window {length} over window 2"] = (cpu[length] / cpu[2], target, better, "ratio")
        figures[f"length: p50, window {length} over window 2"] = (wall[length] / wall[2], target, better, "ratio")
    figures["length: memory of the mesh"] = (memory / 2**20, None, "", "MiB")
    names = ("value", "target", "better", "unit")
    print(json.dumps({figure: dict(zip(names, row, strict=True)) for figure, row in figures.items()}))


if __name__ == "__main__":
    main()
