"""The mesh for tests: inside this process, and as processes, behind one face."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from interlock.runtime.rpc.health import Readiness
from interlock.runtime.rpc.mesh import NAMES, Mesh
from interlock.runtime.settings.model import Settings
from tests.support.profiles import ENFORCING
from tests.support.servers.processes import Processes

TOPOLOGIES = ("local", "remote")


@dataclass(frozen=True)
class LocalMesh:
    """Four opened services in this process, and the mesh over them."""

    settings: Settings
    services: Mapping[str, Any]
    mesh: Mesh
    readiness: Readiness


@asynccontextmanager
async def local_mesh(tmp_path: Path, settings_overrides: Mapping[str, Any] | None = None) -> AsyncIterator[LocalMesh]:
    """Open session, policy, dpe and audit in this process, on memory:// sessions unless the overrides say otherwise."""
    overrides = {
        **ENFORCING, "state_dir": tmp_path / "state", "redis_url": "memory://", **(settings_overrides or {}),
    }  # fmt: skip
    settings = Settings(**overrides)
    async with AsyncExitStack() as ends:
        services = {}
        for name in NAMES:
            services[name] = await import_module(f"interlock.{name}.wiring").open_service(settings)
            ends.push_async_callback(services[name].close)
        yield LocalMesh(settings, services, Mesh.local(**services), Readiness(list(services.values())))


@dataclass(frozen=True)
class Front:
    """Where the sidecar of a running mesh is, and the processes behind it."""

    topology: str
    http: str
    grpc: str
    processes: Processes


def start_front(topology: str, folder: Path, settings: Mapping[str, Any] | None = None) -> Front:
    """Start the mesh in a topology: local is one process, remote is four services and a sidecar.

    The caller ends it: ``with front.processes: …``.
    """
    processes = Processes(folder, settings)
    try:
        sidecar = processes.mesh() if topology == "local" else processes.separate()
    except BaseException:
        processes.__exit__()
        raise
    ports = sidecar.ports
    return Front(topology, f"http://127.0.0.1:{ports['sidecar_http']}", f"127.0.0.1:{ports['sidecar_grpc']}", processes)
