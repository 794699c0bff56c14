"""Kernels whose store, session service or audit service goes down and comes back: real processes, each really stopped and started."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.kernels import definition, done
from tests.support.servers.processes import Process, Processes
from tests.support.valkey import Valkey

WAIT_S = 30.0


@dataclass
class OutageMesh:
    """A store, the session and audit services and sidecars with a spool each."""

    valkey: Valkey
    session: Process
    audit: Process
    sidecars: list[Process]
    folder: Path

    def down(self, part: str) -> None:
        """Kill a part."""
        self.valkey.kill() if part == "store" else getattr(self, part).kill()

    def up(self, part: str) -> None:
        """Start it again on its state."""
        self.valkey.start() if part == "store" else getattr(self, part).restart()

    def spool(self, number: int = 0) -> Path:
        """The folder in which a sidecar records."""
        return self.folder / f"emergencies{number}"

    def team(self, number: int = 0, *, name: str = "team", key: str = "", token: str = "") -> OutageTeam:
        """A caller's kernel through one of the sidecars."""
        return OutageTeam(f"http://127.0.0.1:{self.sidecars[number].ports['sidecar_http']}", name, key, token)


@dataclass
class OutageTeam:
    """Calls to a kernel, one after the other."""

    url: str
    name: str
    key: str = ""
    token: str = ""

    def post(self, ask: str, **body: Any) -> httpx.Response:
        return self._send("POST", f"/{ask}", json=body)

    def open(self, **more: Any) -> dict[str, Any]:
        return done(self.post("open", definition=definition(**more)))

    def stop(self, key: str = "stop", **more: Any) -> dict[str, Any]:
        """Do the emergency action ``leave`` and stop; return the verdict."""
        return done(self.post("emergency", action="leave", stop=True, key=key, **more))["verdict"]

    def describe(self) -> dict[str, Any]:
        return done(self._send("GET", ""))

    def trace(self) -> list[dict[str, Any]]:
        """The sealed records."""
        return done(self._send("GET", "/trace"))["records"]

    def emergencies(self) -> list[dict[str, Any]]:
        """The data of its sealed emergency actions, in order."""
        return [json.loads(one["data_json"]) for one in self.trace() if one["type"] == "KERNEL_EMERGENCY"]

    def sealed(self, count: int = 1) -> list[dict[str, Any]]:
        """Wait, without a call of the kernel itself, until so many emergency actions are sealed; return their data."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(AssertionError, httpx.HTTPError):
                if len(found := self.emergencies()) >= count:
                    return found
            time.sleep(0.1)
        raise AssertionError(f"{count} emergency actions were not sealed")

    def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {
            **({"authorization": f"Bearer {self.key}"} if self.key else {}),
            **({"crp-session-token": self.token} if self.token else {}),
        }
        with httpx.Client(base_url=self.url, trust_env=False, timeout=60) as client:
            return client.request(method, f"/crp/v3/kernel/{self.name}{path}", headers=headers, **more)


@contextlib.contextmanager
def outage_mesh(folder: Path, *, sidecars: int = 1, **settings: Any) -> Iterator[OutageMesh]:
    """Serve the parts of a mesh that kernels need, a process each."""
    (folder / "valkey").mkdir()
    given = {"emergency_reach_s": 1, "rpc_timeout_s": 5, **settings}
    with Valkey(folder / "valkey") as valkey, Processes(folder, {"redis_url": valkey.url, **given}) as processes:
        session, audit = (processes.process(name).start() for name in ("session", "audit"))
        places = {f"{name}_address": "127.0.0.1:9" for name in ("policy", "dpe")}
        places |= {f"{one.name}_address": f"127.0.0.1:{one.wait().ports[str(one.name)]}" for one in (session, audit)}
        mesh = OutageMesh(valkey, session, audit, [], folder)
        for number in range(sidecars):
            own = {"emergency_dir": mesh.spool(number), **places}
            mesh.sidecars.append(processes.process("sidecar", label=f"sidecar{number}", **own).start())
        for one in mesh.sidecars:
            one.wait()
        yield mesh


def reason(response: httpx.Response) -> str:
    """The reason of a refusal."""
    return str(response.json()["reason"])
