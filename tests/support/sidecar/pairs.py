"""Two sidecars, each with a session service of its own, over one policy, one audit log and one Valkey, as processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.servers.processes import Process, Processes
from tests.support.sidecar.world import CALM, ToldDpe, _dpe_service


@dataclass
class Pairs:
    """Where the two sidecars are, and the processes by name."""

    http: list[str]
    grpc: list[str]
    processes: Processes
    by_name: dict[str, Process]
    dpe: ToldDpe


@asynccontextmanager
async def two_pairs(
    folder: Path, upstream: str, redis_url: str, settings: Mapping[str, Any], own: Mapping[str, Mapping[str, str]] = {}
) -> AsyncIterator[Pairs]:
    """Start them all. *own* is the environment of one process by its name: session-0, session-1, sidecar-0, audit …"""
    async with AsyncExitStack() as ends:
        double = _dpe_service()
        dpe = RpcServer([double], Settings(allow_plaintext=True), port=0)
        shared = {**CALM, "upstream_base_url": upstream, "redis_url": redis_url, **settings}
        shared["dpe_address"] = f"127.0.0.1:{await dpe.start()}"
        ends.push_async_callback(dpe.drain)
        processes = ends.enter_context(Processes(folder, shared))
        by_name: dict[str, Process] = {}

        def begun(kind: str, name: str, **more: Any) -> Process:
            made = processes.process(kind, label=name, **more)
            made.env.update(own.get(name, {}))
            by_name[name] = made.start()
            return made

        for kind, name in (
            ("policy", "policy"),
            ("audit", "audit"),
            ("session", "session-0"),
            ("session", "session-1"),
        ):
            begun(kind, name)
        found = {f"{one}_address": f"127.0.0.1:{by_name[one].wait().ports[one]}" for one in ("policy", "audit")}
        for number in range(2):
            port = by_name[f"session-{number}"].wait().ports["session"]
            begun("sidecar", f"sidecar-{number}", **found, session_address=f"127.0.0.1:{port}")
        ports = [by_name[f"sidecar-{number}"].wait().ports for number in range(2)]
        yield Pairs(
            [f"http://127.0.0.1:{port['sidecar_http']}" for port in ports],
            [f"127.0.0.1:{port['sidecar_grpc']}" for port in ports],
            processes, by_name, double.servicer,
        )  # fmt: skip
