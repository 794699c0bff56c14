"""A sidecar over real services on ports, with a proxy before each of them that may bend its answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx

from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings
from tests.support.policy import agents
from tests.support.profiles import ENFORCING
from tests.support.servers.bending import BendingProxy, bending
from tests.support.sidecar.sidecar import NO_COOKIES, DpeDouble, _served


@dataclass
class Lying:
    """A real servicer whose answers a test may change before they leave it: they belong to their call, and are wrong."""

    inner: Any
    lies: dict[str, Callable[[Any], None]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)

        async def answered(request: Any, context: Any) -> Any:
            made = await method(request, context)
            answer = type(made)()
            answer.CopyFrom(made)
            self.lies.get(name, lambda _answer: None)(answer)
            return answer

        return method if name in {"Export", "ListEntries"} else answered


def a_service(name: str, servicer: Any) -> Service:
    """A service around a servicer of a test."""

    async def unready_dependencies() -> Mapping[str, str]:
        return {}

    async def close() -> None:
        return None

    module = import_module(f"interlock.api.{name}.v1.{name}_pb2_grpc")
    full_names = (f"interlock.api.{name}.v1.{name.capitalize()}Service",)
    register = getattr(module, f"add_{name.capitalize()}ServiceServicer_to_server")
    return Service(name, full_names, servicer, register, unready_dependencies, close)


@dataclass
class Bent:
    """The sidecar, and what stands between it and its services."""

    client: httpx.AsyncClient
    proxies: dict[str, BendingProxy]
    servicers: dict[str, Lying]
    services: dict[str, Any]
    provider: Any = None

    def heal(self) -> None:
        """Let every answer through as it is."""
        for proxy in self.proxies.values():
            proxy.bends.clear()
            proxy.bent.clear()
        for servicer in self.servicers.values():
            servicer.lies.clear()


@asynccontextmanager
async def bent_sidecar(folder: Path, upstream: str, **overrides: Any) -> AsyncIterator[Bent]:
    """Serve a sidecar whose every call to a service crosses the network and a proxy."""
    given = {
        **ENFORCING, "reviewers_file": agents.write(folder / "reviewers.yaml", agents.reviewers()),
        "state_dir": folder / "state", "redis_url": "memory://", "upstream_base_url": upstream, "allow_plaintext": True,
        "sidecar_grpc_port": 0, "sidecar_http_port": 0, "drain_s": 2, "request_timeout_s": 5, **overrides,
    }  # fmt: skip
    settings = Settings(**given)
    async with AsyncExitStack() as ends:
        services, servicers, proxies = {"dpe": a_service("dpe", DpeDouble())}, {}, {}
        for name in ("session", "policy", "audit"):
            services[name] = await import_module(f"interlock.{name}.wiring").open_service(settings)
            ends.push_async_callback(services[name].close)
        for name, service in services.items():
            servicers[name] = Lying(service.servicer)
            server = RpcServer([a_service(name, servicers[name])], settings, port=0)
            port = await server.start()
            ends.push_async_callback(server.drain)
            proxies[name] = await ends.enter_async_context(bending(f"127.0.0.1:{port}"))
        places = {f"{name}_address": f"127.0.0.1:{proxy.port}" for name, proxy in proxies.items()}
        settings = Settings(**{**given, **places})
        mesh = Mesh.remote(settings)
        ends.push_async_callback(mesh.close)
        _, http, *_ = await ends.enter_async_context(_served(settings, mesh, {}))
        client = await ends.enter_async_context(
            httpx.AsyncClient(base_url=http, trust_env=False, timeout=30, cookies=NO_COOKIES)
        )
        yield Bent(client, proxies, servicers, services)
