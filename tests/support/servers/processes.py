"""Real ``interlock serve`` processes: start, wait for the ready line, read ports, kill -9, start again on the same state."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

from structlog.testing import capture_logs
from typer.testing import CliRunner

from interlock.cli.main import app
from tests.support.profiles import ENFORCING
from tests.support.servers.ports import free_ports

COMMAND = [sys.executable, "-m", "interlock.cli.main"]
START_S = 90.0
STOP_S = 20.0

# A child of a test hears nothing of the developer's own INTERLOCK_ settings, and speaks plainly.
_BARE = {name: value for name, value in os.environ.items() if not name.startswith(("INTERLOCK_", "OTEL_"))}

ANY_PORT = {
    f"INTERLOCK_{name}_PORT": "0" for name in ("SIDECAR_HTTP", "SIDECAR_GRPC", "OVERSIGHT_HTTP", "DECISION", "METRICS")
}

ON_PORTS: Mapping[str, Any] = {
    "allow_plaintext": "true",
    **{f"{name}_port": 0 for name in ("session", "policy", "dpe", "audit", "oversight")},
}
"""Settings of services that are processes of their own: on ports that a test finds and puts something before."""


def environment(state_dir: Path, settings: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return the environment of a child: any free ports, its own state, and *settings* by their names in lower case."""
    chosen = {**ENFORCING, **(settings or {})}
    named = {f"INTERLOCK_{name.upper()}": str(value) for name, value in chosen.items()}
    plain = {"NO_COLOR": "1", "OTEL_BSP_SCHEDULE_DELAY": "200"}
    return {**_BARE, **ANY_PORT, **plain, "INTERLOCK_STATE_DIR": str(state_dir), **named}


def run(
    *arguments: str, env: Mapping[str, str], timeout_s: float = 60, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run an ``interlock`` command to its end."""
    command = [*COMMAND, *arguments]
    return subprocess.run(command, env=dict(env), capture_output=True, text=True, timeout=timeout_s, cwd=cwd)


def run_here(*arguments: str, env: Mapping[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run an ``interlock`` command to its end inside this process: what it says is the same, and takes no second to start.

    Not where a clock, a signal, an exit or what is imported matters.
    """
    heard = dict.fromkeys(name for name in os.environ if name.startswith(("INTERLOCK_", "OTEL_")))
    with contextlib.chdir(cwd or Path.cwd()), capture_logs():
        # --config sets a variable for the process that the command is; named here, it is taken back behind it.
        done = CliRunner().invoke(app, list(arguments), env={"INTERLOCK_CONFIG_FILE": None, **heard, **env})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(list(arguments), done.exit_code, done.stdout, done.stderr)


class Process:
    """One ``interlock serve`` child. What it printed is in ``stdout`` and ``stderr`` files of its own."""

    def __init__(
        self, folder: Path, name: str | None, env: Mapping[str, str], *, label: str = "", cwd: Path | None = None
    ) -> None:
        self.name, self.env, self.ports, self.sockets, self.cwd = name, dict(env), {}, {}, cwd
        label = label or name or "mesh"
        self.out, self.err = folder / f"{label}.out", folder / f"{label}.err"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> Process:
        """Start it. ``wait`` tells when it serves.

        A port that it may choose is chosen here, from those that no outgoing connection gets: it is to find it free again when it
        is started anew.
        """
        chosen = [name for name, port in self.env.items() if port == "0" and self._listens_on(name)]
        self.env.update(zip(chosen, map(str, free_ports(len(chosen))), strict=True))
        out, err = self.out.open("ab"), self.err.open("ab")
        self._seen = self.out.stat().st_size
        arguments = ["serve", *([self.name] if self.name else [])]
        self._child = subprocess.Popen([*COMMAND, *arguments], env=self.env, stdout=out, stderr=err, cwd=self.cwd)
        out.close()
        err.close()
        return self

    def _listens_on(self, variable: str) -> bool:
        """Tell whether a port is one that it serves on; that of its metrics is left open."""
        mine = f"INTERLOCK_{self.name.upper()}_" if self.name else "INTERLOCK_"
        return variable.startswith(mine) and variable.endswith("_PORT") and variable != "INTERLOCK_METRICS_PORT"

    def wait(self) -> Process:
        """Wait for the ready line and read the ports from it. From then on it keeps its ports over a restart.

        That of its metrics leads nowhere else: it is any free one each time, since others may have taken it meanwhile.
        """
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            for line in self.out.read_bytes()[self._seen :].splitlines():
                self.ready = json.loads(line)
                self.ports, self.sockets = self.ready["ports"], self.ready.get("sockets", {})
                kept = {name: port for name, port in self.ports.items() if name != "metrics"}
                self.env.update({f"INTERLOCK_{name.upper()}_PORT": str(port) for name, port in kept.items()})
                return self
            if self.child.poll() is not None:
                raise AssertionError(
                    f"serve {self.name or ''} ended with {self.child.returncode}\n{self.log()[-4000:]}"
                )
            time.sleep(0.05)
        raise AssertionError(f"serve {self.name or ''} is not ready after {START_S} s\n{self.log()[-4000:]}")

    def address(self, name: str) -> str:
        """Return the gRPC target of one of its services."""
        return f"unix:{self.sockets[name]}" if name in self.sockets else f"127.0.0.1:{self.ports[name]}"

    @property
    def child(self) -> subprocess.Popen[bytes]:
        assert self._child, "not started"
        return self._child

    def log(self) -> str:
        """Everything on standard error so far."""
        return self.err.read_text(errors="replace")

    def everything(self) -> str:
        """Everything on both outputs so far."""
        return self.out.read_text(errors="replace") + self.log()

    def kill(self) -> None:
        """kill -9, as a machine dies."""
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, such as SIGSTOP and SIGCONT."""
        self.child.send_signal(number)

    def stop(self) -> int:
        """SIGTERM; return the exit code. One that does not end is killed and fails the test."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGCONT)
            self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"serve {self.name or ''} did not end on SIGTERM\n{self.log()[-4000:]}") from None

    def restart(self) -> Process:
        """Start it again on the same state and ports."""
        return self.start().wait()


class Processes:
    """The processes of one test below one folder; all of them end with it."""

    def __init__(self, folder: Path, settings: Mapping[str, Any] | None = None) -> None:
        self.folder, self.settings = folder, dict(settings or {})
        self.all: dict[str, Process] = {}

    def process(self, name: str | None = None, *, label: str = "", **settings: Any) -> Process:
        """Return a new, unstarted process of one service, or of the whole mesh; of several of one service each has a label."""
        places = ON_PORTS if name else {}
        env = environment(self.folder / "state", {**places, **self.settings, **settings})
        made = self.all[label or name or "mesh"] = Process(self.folder, name, env, label=label)
        return made

    def mesh(self, **settings: Any) -> Process:
        """Start the whole mesh in one process and wait for it."""
        return self.process(None, **settings).start().wait()

    def separate(self, **settings: Any) -> Process:
        """Start four services and a sidecar, one process each, and return the sidecar once all of them serve."""
        services = [self.process(name, **settings).start() for name in ("session", "policy", "dpe", "audit")]
        addresses = {
            f"{service.name}_address": f"127.0.0.1:{service.wait().ports[str(service.name)]}" for service in services
        }
        return self.process("sidecar", **settings, **addresses).start().wait()

    def everything(self) -> str:
        """Everything that any of them printed."""
        return "".join(process.everything() for process in self.all.values())

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        started = [process for process in self.all.values() if process._child]
        # Together: each waits for its own calls in flight.
        threads = [Thread(target=process.stop) for process in started]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
