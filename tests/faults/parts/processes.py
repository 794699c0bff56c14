"""The parts of a mesh as processes that can be killed, paused, skewed, weakened and started again on their ports."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import libfaketime

from tests.support.paths import ROOT
from tests.support.servers.processes import COMMAND, ON_PORTS, Process, environment

DPE = [sys.executable, "-m", "tests.faults.parts.dpe_child"]
PORT_TRIES, PORT_FREE_S = 10, 1.0
WEAKENED = [sys.executable, "-m", "tests.faults.weakened"]


class Part(Process):
    """One process of the mesh, in a folder of its own, so that two sidecars are two."""

    def __init__(self, folder: Path, name: str, env: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder, name, env)
        self.env["PYTHONPATH"] = f"{ROOT / 'services'}:{ROOT}"
        self.paused = False
        self.told = name == "dpe"
        """Whether the analysis is the one that finds what an answer names."""
        self.weakness = ""
        """Name of the defence that this process runs without."""

    @property
    def command(self) -> list[str]:
        """What is run."""
        if self.name == "dpe" and self.told:
            return DPE
        run = [*WEAKENED, self.weakness] if self.weakness else COMMAND
        return [*run, "serve", str(self.name)]

    def start(self) -> Part:
        """Start it; ``wait`` tells when it serves."""
        import subprocess

        out, err = self.out.open("ab"), self.err.open("ab")
        self._seen = self.out.stat().st_size
        self._child = subprocess.Popen(self.command, env=self.env, stdout=out, stderr=err, cwd=ROOT)
        out.close()
        err.close()
        self.paused = False
        return self

    @property
    def alive(self) -> bool:
        """Whether the process is there, paused or not."""
        return self._child is not None and self._child.poll() is None

    def pause(self) -> None:
        """SIGSTOP: nothing is lost, nothing is done."""
        self.signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """SIGCONT."""
        self.signal(signal.SIGCONT)
        self.paused = False

    async def up(self, **env: str) -> Part:
        """Start it and wait until it serves, with these variables for this life alone."""
        for _ in range(PORT_TRIES):
            self._start_with(env)
            try:
                await asyncio.to_thread(self.wait)
            except AssertionError as error:
                if "PORT_IN_USE" not in str(error):
                    raise
                await asyncio.sleep(PORT_FREE_S)  # while it was dead the kernel lent its port to a connection
            else:
                return self
        raise AssertionError(f"the ports of {self.name} stay taken")

    def _start_with(self, env: Mapping[str, str]) -> None:
        before = {name: self.env.get(name) for name in env}
        self.env.update(env)
        try:
            self.start()
        finally:
            for name, value in before.items():
                self.env.pop(name) if value is None else self.env.update({name: value})

    async def down(self) -> int:
        """SIGTERM, and wait for its end."""
        return await asyncio.to_thread(self.stop)


def skewed(seconds: int) -> dict[str, str]:
    """Return the variables under which a process sees a wall clock that is so far off; its monotonic clock is right."""
    library = Path(libfaketime.__file__).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
    return {
        "LD_PRELOAD": str(library), "FAKETIME": f"{seconds:+d}s", "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DONT_RESET": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1",
    }  # fmt: skip


def part(folder: Path, label: str, name: str, settings: Mapping[str, Any], state: Path) -> Part:
    """Return an unstarted part of the mesh."""
    env = environment(state, {**ON_PORTS, **settings})
    env.setdefault("PATH", os.environ.get("PATH", ""))
    return Part(folder / label, name, env)
