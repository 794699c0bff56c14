"""The processes of a mesh that is measured: started one by one, each with ports of its own, and what the kernel counts of them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.length import cpu_ns
from bench.scale.audit import read
from tests.support.servers.processes import ON_PORTS, environment

NANOSECONDS = Path("/proc/self/schedstat")


@dataclass
class Part:
    """A process: its id, and where it listens: the ports by their names, or the only one."""

    kind: str
    pid: int
    ports: dict[str, int]


class Parts:
    """The processes of one shape."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder, self.settings = folder, settings
        self.all: list[Part] = []
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, kind: str, **more: Any) -> Part:
        """Start a process of a kind and wait until it serves. *more*: settings of its own, by their names in lower case."""
        number = len(self.all)
        env = environment(self.folder / "state", {**ON_PORTS, **self.settings, **more})
        log = (self.folder / f"{kind}{number}.log").open("wb")
        command = [sys.executable, "-m", *self._command(kind, number)]
        child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log)
        self._children.append(child)
        assert child.stdout
        line = child.stdout.readline()
        if not line:
            raise SystemExit(f"{kind} did not start:\n{Path(log.name).read_text()[-2000:]}")
        told = json.loads(line)
        self.all.append(Part(kind, child.pid, told.get("ports") or {"only": told["port"]}))
        return self.all[-1]

    def _command(self, kind: str, number: int) -> list[str]:
        own = {
            "audit": ["bench.scale.audit", str(self.times(number))], "sidecar": ["bench.scale.sidecar"],
            "stand-in": ["bench.sidecar", "dpe"], "provider": ["bench.scale.provider"],
        }  # fmt: skip
        return own.get(kind, ["interlock.cli.main", "serve", kind])

    def times(self, number: int) -> Path:
        return self.folder / f"times{number}"

    def writer(self) -> tuple[float, float, float]:
        """Return what all audit services told of their writers."""
        told = [read(self.times(number)) for number, one in enumerate(self.all) if one.kind == "audit"]
        return tuple(map(sum, zip(*told, strict=True)))  # type: ignore[return-value]

    def pids(self) -> dict[str, list[int]]:
        """Return the process ids of each kind."""
        return {kind: [one.pid for one in self.all if one.kind == kind] for kind in {one.kind for one in self.all}}

    def stop(self) -> None:
        for child in self._children:
            child.kill()
            child.wait()


def places(**beside: Sequence[Part]) -> dict[str, str]:
    """Return a sidecar's addresses: of each service, every process that it asks in turn."""
    return {
        f"{name}_address": "ipv4:"
        + ",".join(f"127.0.0.1:{one.ports.get(name) or one.ports['only']}" for one in several)
        for name, several in beside.items()
    }


def used(pids: Sequence[int]) -> float:
    """Return milliseconds of CPU of processes; one whose thread ended meanwhile is asked again.

    Hundredths of a second where the kernel counts no nanoseconds.
    """
    if not NANOSECONDS.exists():
        return 1000 * float(sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids))
    while True:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return cpu_ns([*pids]) / 1e6
