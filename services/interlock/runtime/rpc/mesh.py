"""The four services as their callers see them, in this process or on the network (design.md, The picture)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceStub
from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.api.dpe.v1.dpe_pb2_grpc import DpeServiceStub
from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from interlock.api.session.v1.session_pb2_grpc import SessionServiceStub
from interlock.runtime.rpc.channel import LocalChannel, TracedChannel
from interlock.runtime.rpc.echo_channel import EchoChannel
from interlock.runtime.rpc.health import MISSING_KEY
from interlock.runtime.rpc.places import address_to_call, is_socket
from interlock.runtime.rpc.rotating import RotatingChannel
from interlock.runtime.rpc.service import Close, UnreadyDependencies
from interlock.runtime.settings.model import Settings
from interlock.runtime.tls.mutual import Tls, open_tls

if TYPE_CHECKING:
    from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceAsyncStub
    from interlock.api.dpe.v1.dpe_pb2_grpc import DpeServiceAsyncStub
    from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub
    from interlock.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub

NAMES = ("session", "policy", "dpe", "audit")
HEALTH_TIMEOUT_S = 1.5

_OPTIONS = (
    # A peer that is back is found within one second; a dead peer is noticed within fifteen.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),  # of gRPC's own pings, for which a keepalive would wait a minute
    ("grpc.http2.max_pings_without_data", 0),  # or the third one on a quiet channel waits too
    ("grpc.keepalive_permit_without_calls", 1),
    # Calls between services never leave the mesh, whatever proxy the environment names.
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


@dataclass(frozen=True)
class Mesh:
    """One stub per service. Local and remote stubs are called in the same way (``runtime.rpc.client.call_service``)."""

    session: SessionServiceAsyncStub
    policy: PolicyServiceAsyncStub
    dpe: DpeServiceAsyncStub
    audit: AuditServiceAsyncStub
    unready_dependencies: UnreadyDependencies
    """Names each service that cannot be used now."""
    close: Close
    is_remote: bool
    """Whether its services are other processes: what does not wait for one another is then asked side by side."""

    @classmethod
    def local(cls, *, session: Any, policy: Any, dpe: Any, audit: Any) -> Self:
        """Return a mesh inside this process, over services (``runtime.rpc.service.Service``) or bare servicers."""
        parts = {"session": session, "policy": policy, "dpe": dpe, "audit": audit}
        servicers = {name: getattr(part, "servicer", part) for name, part in parts.items()}
        channel = LocalChannel(**{f"{name.capitalize()}Service": servicer for name, servicer in servicers.items()})

        async def unready_dependencies() -> Mapping[str, str]:
            asked = [part.unready_dependencies() for part in parts.values() if hasattr(part, "unready_dependencies")]
            return {name: hint for answer in await asyncio.gather(*asked) for name, hint in answer.items()}

        return cls._over(dict.fromkeys(NAMES, channel), unready_dependencies, close=_nothing, is_remote=False)

    @classmethod
    def remote(cls, settings: Settings) -> Self:
        """Return a mesh over gRPC at the addresses of the settings. It connects at the first call."""
        addresses = {name: address_to_call(settings, name) for name in NAMES}
        size = ("grpc.max_receive_message_length", "grpc.max_send_message_length")
        options = [*_OPTIONS, *((name, settings.max_message_bytes) for name in size)]
        tls = open_tls(settings)
        channels = {name: _channel(tls, name, addresses[name], options, settings) for name in NAMES}

        async def unready_dependencies() -> Mapping[str, str]:
            found = await asyncio.gather(*(_unhealthy(name, channels[name], addresses[name]) for name in NAMES))
            return {name: hint for answer in found for name, hint in answer.items()}

        async def close() -> None:
            await asyncio.gather(*(channel.close() for channel in channels.values()))

        accept = settings.answers_without_echo == "accept"
        traced = {name: TracedChannel(EchoChannel(one, accept_without=accept)) for name, one in channels.items()}
        return cls._over(traced, unready_dependencies, close=close, is_remote=True)

    @classmethod
    def _over(
        cls, channels: Mapping[str, Any], unready_dependencies: UnreadyDependencies, *, close: Close, is_remote: bool
    ) -> Self:
        return cls(
            session=SessionServiceStub(channels["session"]),
            policy=PolicyServiceStub(channels["policy"]),
            dpe=DpeServiceStub(channels["dpe"]),
            audit=AuditServiceStub(channels["audit"]),
            unready_dependencies=unready_dependencies,
            close=close,
            is_remote=is_remote,
        )


def _channel(tls: Tls | None, name: str, where: str, options: Sequence[tuple[str, Any]], settings: Settings) -> Any:
    if tls is None or is_socket(where):
        return grpc.aio.insecure_channel(where, options=options)
    return RotatingChannel(tls, name, where, options, drain_s=settings.request_timeout_s)


class DecisionChannel:
    """The decision service at ``decision_address``, for sidecars. Nobody waits for it: it is no part of readiness.

    It is a front. Where this process has certificates of the mesh, that front's certificate has to be of the member ``decision``.
    """

    def __init__(self, settings: Settings) -> None:
        self._channel: Any = None
        self.stub: Any = None
        if where := settings.decision_address:
            options = [*_OPTIONS, ("grpc.max_receive_message_length", settings.max_message_bytes)]
            self._channel = _channel(open_tls(settings), "decision", where, options, settings)
            traced: Any = TracedChannel(self._channel)
            self.stub = DecisionServiceStub(traced)

    async def close(self) -> None:
        """Close the connection."""
        if self._channel is not None:
            await self._channel.close()


async def _nothing() -> None:
    """Close nothing: the process that opened the local services closes them."""


class Peer(Enum):
    """The result of a service's health check."""

    READY = "ready"
    NOT_READY = "not ready"
    FOREIGN = "something else"
    SILENT = "silent"


async def peer(name: str, channel: Any) -> tuple[Peer, dict[str, str]]:
    """Check the health of the service *name*. Return its state and its unready dependencies, dependency → hint, if it names them."""
    request = health_pb2.HealthCheckRequest(service=f"interlock.api.{name}.v1.{name.capitalize()}Service")
    call = health_pb2_grpc.HealthStub(channel).Check(request, timeout=HEALTH_TIMEOUT_S)
    try:
        answer = await call
        if answer.status == health_pb2.HealthCheckResponse.SERVING:
            return Peer.READY, {}
        return Peer.NOT_READY, _named(await call.trailing_metadata())
    except grpc.aio.AioRpcError as error:
        known = error.code() in {grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED}
        return (Peer.FOREIGN if known else Peer.SILENT), {}


def _named(metadata: Any) -> dict[str, str]:
    for key, value in metadata or ():
        if key == MISSING_KEY:
            with contextlib.suppress(ValueError, AttributeError):
                return {str(dependency): str(hint) for dependency, hint in json.loads(value).items()}
    return {}


async def _unhealthy(name: str, channel: Any, where: str) -> dict[str, str]:
    state, unready = await peer(name, channel)
    if state is Peer.READY:
        return {}
    if unready:
        return {f"{name}/{dependency}": hint for dependency, hint in unready.items()}
    return {name: hint_for(state, name, where)}


def hint_for(state: Peer, name: str, where: str) -> str:
    """Return a hint for an operator about a service that cannot be used."""
    setting = f"INTERLOCK_{name.upper()}_ADDRESS"
    if state is Peer.FOREIGN:
        return f"what listens on {where} is not the {name} service; correct {setting}"
    if state is Peer.NOT_READY:
        return f"the {name} service on {where} is starting or ending"
    return f"nothing answers on {where}: start it with `interlock serve {name}`, or set its address in {setting}"
