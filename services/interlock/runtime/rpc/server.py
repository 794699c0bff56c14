"""A gRPC server: calls, health, reflection, limits, and a shutdown that loses no call (SVC-4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from interlock.domain.errors import unavailable
from interlock.runtime.rpc.callers import Gate
from interlock.runtime.rpc.health import HealthFront, Readiness
from interlock.runtime.rpc.interceptor import CallInterceptor
from interlock.runtime.rpc.places import address
from interlock.runtime.rpc.service import Service
from interlock.runtime.rpc.sockets import OwnedSocket
from interlock.runtime.settings.access import is_open
from interlock.runtime.settings.model import Settings
from interlock.runtime.tls.fronts import open_front_tls
from interlock.runtime.tls.mutual import CONNECTION_AGE_MS, open_tls, require_private

REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"
MAX_METADATA_BYTES = 16_384
MAX_CONCURRENT_STREAMS = 1024

FRONTS = frozenset({"sidecar", "decision"})
"""Services that agents call. Agents present an API key, and no certificate of the mesh."""


def options(settings: Settings, largest_request: int) -> list[tuple[str, int]]:
    """Return the channel arguments of a server."""
    return [
        ("grpc.max_receive_message_length", largest_request),
        ("grpc.max_send_message_length", settings.max_message_bytes),
        # The soft limit drops some calls above it, the absolute limit all: equal limits make the answer deterministic.
        ("grpc.max_metadata_size", MAX_METADATA_BYTES),
        ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
        ("grpc.max_concurrent_streams", MAX_CONCURRENT_STREAMS),
        # Dead peers are found within 40 s, and pings of Interlock's clients (mesh.py) do not count as abuse.
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.http2.ping_timeout_ms", 10_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
        # With SO_REUSEPORT, a second process would share the port silently.
        ("grpc.so_reuseport", 0),
    ]


def _longer(settings: Settings) -> dict[str, float]:
    """Return the methods that may last for longer than a call: an answer that leaves in parts, while its provider sends."""
    return {
        "interlock.api.sidecar.v1.SidecarService/DispatchStream": settings.request_timeout_s + settings.stream_timeout_s
    }


class _ByName:
    """A server that finds methods by their name with each call.

    The generated code registers each method too. grpc.aio then keeps one waiting task for each method, and every call walks
    over all of them.
    """

    def __init__(self, server: grpc.aio.Server) -> None:
        self.add_generic_rpc_handlers = server.add_generic_rpc_handlers

    def add_registered_method_handlers(self, _service: str, _handlers: Mapping[str, Any]) -> None:
        """Leave the methods to the generic handlers, which have all of them."""


class RpcServer:
    """Serves one or more services until it is drained, on one port or on a Unix socket that only its owner may open."""

    def __init__(
        self,
        services: Sequence[Service],
        settings: Settings,
        *,
        port: int = 0,
        socket: Path | None = None,
        largest_request: int | None = None,
    ) -> None:
        """Prepare the server. With a *socket* there is no port and no certificate: who may open the file may call."""
        self.services, self.port, self.target = tuple(services), port, ""
        self.readiness = Readiness(self.services)
        self._settings, self._socket = settings, socket
        self._owned: OwnedSocket | None = None
        self._health = HealthFront(self.services, self.readiness)
        self._front = any(service.name in FRONTS for service in self.services)
        self._credentials, gate = self._identification()
        self._server = grpc.aio.server(
            interceptors=(CallInterceptor(settings.request_timeout_s, gate, _longer(settings)),),
            options=[
                *options(settings, largest_request or settings.max_message_bytes),
                *([("grpc.max_connection_age_ms", CONNECTION_AGE_MS)] if self._credentials else []),
            ],
        )

    async def start(self) -> int:
        """Bind, serve, and return the port; 0 with a socket. Refused with PORT_IN_USE if the place is taken."""
        by_name = _ByName(self._server)
        for service in self.services:
            service.register(service.servicer, by_name)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, by_name)
        if self._reflects():
            _add_reflection([name for service in self.services for name in service.full_names], by_name)
        self.port = self._bound() if self._socket is None else self._bound_to(self._socket)
        await self._health.start()
        await self._server.start()
        return self.port

    def _identification(self) -> tuple[grpc.ServerCredentials | None, Gate | None]:
        if self._socket is not None:
            return None, None
        return self._front_credentials() if self._front else self._mesh_credentials()

    def _reflects(self) -> bool:
        """Return whether this server describes itself. A port of the mesh with certificates does: it knows its callers."""
        known = self._socket is not None or (self._credentials is not None and not self._front)
        return is_open(self._settings.reflection_access, self._settings.host, known=known)

    def _mesh_credentials(self) -> tuple[grpc.ServerCredentials | None, Gate | None]:
        tls = open_tls(self._settings)
        if tls is None:
            return None, None
        tls.require(service.identity or service.name for service in self.services)
        return tls.server_credentials(), Gate(tls.trust_domain)

    def _front_credentials(self) -> tuple[grpc.ServerCredentials | None, Gate | None]:
        tls = open_front_tls(self._settings)
        return (tls.server_credentials() if tls else None), None

    def _bound(self) -> int:
        require_private(self._settings, front=self._front)
        wanted = address(self._settings.host, self.port)
        try:
            if self._credentials is None:
                port = self._server.add_insecure_port(wanted)
            else:
                port = self._server.add_secure_port(wanted, self._credentials)
        except RuntimeError:
            port = 0
        if port == 0:
            raise port_in_use(wanted, ", ".join(service.name for service in self.services))
        self.target = address(self._settings.host, port)
        return port

    def _bound_to(self, path: Path) -> int:
        self._owned = OwnedSocket(path)
        with self._owned.binding() as self.target:
            self._server.add_insecure_port(self.target)
        return 0

    async def leave(self) -> None:
        """Report NOT_SERVING for good, so that clients send no more calls."""
        await self._health.leave()

    async def drain(self) -> None:
        """Refuse new calls and let the ones in flight finish within ``drain_s``. The rest is cancelled."""
        await self.leave()
        await self._server.stop(self._settings.drain_s)
        if self._owned:
            self._owned.release()


def port_in_use(wanted: str, name: str) -> Exception:
    """Return the refusal of a port that another process uses, or that may not be bound."""
    return unavailable(
        "PORT_IN_USE",
        f"{name} cannot listen on {wanted}",
        retry_after_ms=0,
        hint="another process uses this port, or it may not be bound; choose another port, or 0 for any free one",
    )


class _Reflection:
    """Describes the services. What that takes, nearly 3 MiB, is imported when somebody asks first."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    async def ServerReflectionInfo(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - gRPC's name
        """Answer what is asked of the services."""
        from grpc_reflection.v1alpha import reflection

        servicer = reflection.aio.ReflectionServicer(self._names)
        async for answer in servicer.ServerReflectionInfo(requests, context):
            yield answer


def _add_reflection(names: list[str], server: _ByName) -> None:
    """Serve reflection under both names: newer clients try v1 first, and its messages equal v1alpha's byte for byte."""
    itself = reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"].full_name
    servicer = _Reflection([*names, health.SERVICE_NAME, itself])
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, server)
    handler: Any = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(REFLECTION_V1, {"ServerReflectionInfo": handler}),)
    )
