"""The mesh as a child process: ``interlock serve`` on free ports, with its state in the demonstration's own folder."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

# The console script by its entry point, so that it is the Interlock of this very interpreter.
COMMAND = (sys.executable, "-c", "from interlock.cli.main import run; run()")
START_S = 180.0
STOP_S = 20.0
POLL_S = 0.1
LOG_LINES = 20
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
"""The two signals that ask to stop, and the alarm that repeats them."""
AGAIN_S = 0.01
"""Delay until a signal that came at a bad moment is repeated."""


class MeshFailedError(RuntimeError):
    """The mesh did not start, or gave an unusable answer; the text has the end of its log."""


def bare() -> dict[str, str]:
    """Return this process's environment without its INTERLOCK_ settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}


def environment(state_dir: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with the demonstration's settings and no other INTERLOCK_ ones."""
    servers = ("SIDECAR_HTTP", "SIDECAR_GRPC", "OVERSIGHT_HTTP", "DECISION", "METRICS")
    ports = {f"INTERLOCK_{name}_PORT": "0" for name in servers}
    return {**bare(), **ports, "INTERLOCK_PROFILE": "enforce", "INTERLOCK_STATE_DIR": str(state_dir), **settings}


def interrupt_on_stop() -> None:
    """Let SIGTERM and SIGINT raise KeyboardInterrupt in the main thread, but never during an import.

    During an import Python swallows the exception or leaves the import lock taken, and the next import in any thread hangs forever.
    """
    for number in STOPS:
        signal.signal(number, _interrupt)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_code.co_name == "__del__":
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Delay signals until after the block, so that a process that it starts is always known and can be stopped."""
    held: list[int] = []
    before = {number: signal.signal(number, lambda n, _: held.append(n)) for number in STOPS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if held:
        signal.raise_signal(held[0])


class DemoMesh:
    """``interlock serve``, complete or one *part* of it, while the ``with`` block runs."""

    def __init__(self, state_dir: Path, settings: Mapping[str, str], part: str = "") -> None:
        self.env = environment(state_dir, settings)
        self._part = [part] if part else []
        state_dir.mkdir(parents=True, exist_ok=True)
        self._log = state_dir / "serve.log"
        self._process: subprocess.Popen[str] | None = None
        self._ports: Mapping[str, int] = {}
        self._sockets: Mapping[str, str] = {}

    @property
    def base_url(self) -> str:
        """Base URL for an OpenAI client."""
        return f"http://127.0.0.1:{self._ports['sidecar_http']}/v1"

    def address(self, service: str) -> str:
        """Address of a service's gRPC server, such as session's."""
        if service in self._sockets:
            return f"unix:{self._sockets[service]}"
        return f"127.0.0.1:{self._ports[service]}"

    @property
    def grpc_address(self) -> str:
        """Address of the gRPC front."""
        return self.address("sidecar_grpc")

    def __enter__(self) -> Self:
        """Start the process; ``wait_ready`` waits for it."""
        try:
            with self._log.open("wb") as log, _signals_held_back():
                # A separate session: Ctrl-C reaches only this process, which then asks the mesh once to stop.
                self._process = subprocess.Popen(  # noqa: S603 - our own command
                    [*COMMAND, "serve", *self._part],
                    env=self.env,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
        except BaseException:
            self.stop()
            raise
        return self

    def wait_ready(self, progress: Callable[[str], None]) -> float:
        """Wait until the mesh is ready and return the seconds; pass each earlier line to *progress*."""
        begin = time.monotonic()
        while (waited := time.monotonic() - begin) < START_S:
            progress(self._latest())
            line = self._line()
            if line == "":
                break
            if line is not None and (said := json.loads(line))["event"] == "ready" and not said["missing"]:
                self._ports, self._sockets = said["ports"], said["sockets"]
                return waited
        raise self.failed("it did not become ready")

    def wait_for_end(self) -> None:
        """Wait until its process has ended."""
        if self._process is not None:
            self._process.wait()

    def failed(self, why: str) -> MeshFailedError:
        """Return the error for a failed mesh, with the end of its log."""
        return MeshFailedError("\n".join([why, *self._lines()[-LOG_LINES:]]))

    def _line(self) -> str | None:
        """Return the next line of its output; empty at the end, ``None`` when there is none yet."""
        if self._process is None or self._process.stdout is None:
            return ""
        readable, _, _ = select.select([self._process.stdout], [], [], POLL_S)
        return self._process.stdout.readline() if readable else None

    def _latest(self) -> str:
        """Return the latest line for people in its log; the JSON lines are for programs."""
        lines = [line.strip() for line in self._lines() if not line.startswith("{")]
        return lines[-1] if lines else "starting"

    def _lines(self) -> list[str]:
        return self._log.read_text(encoding="utf-8", errors="replace").splitlines()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Stop when the block ends."""
        self.stop()

    def stop(self) -> None:
        """Ask it to stop; kill it if it does not."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run an ``interlock`` command on the state of this mesh and return its result."""
        places = {f"INTERLOCK_{name.upper()}_ADDRESS": self.address(name) for name in ("session", "audit")}
        return subprocess.run(  # noqa: S603 - our own command
            [*COMMAND, *arguments], env={**self.env, **places}, capture_output=True, text=True, timeout=60, check=False
        )
