"""What Envoy asks, as one gRPC service of the sidecar on a port of its own: an agent that reached it could bring answers of its own."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp

from interlock.api.envoy import (
    ext_authz_pb2,
    ext_authz_pb2_grpc,
    ext_proc_pb2,
    ext_proc_pb2_grpc,
    rls_pb2,
    rls_pb2_grpc,
)
from interlock.runtime.http.outcomes import Outcomes
from interlock.runtime.rpc.service import Service, UnreadyDependencies
from interlock.runtime.settings.model import Settings
from interlock.sidecar.fronts.envoy.authorization import Authorizer
from interlock.sidecar.fronts.envoy.processing import Processor
from interlock.sidecar.fronts.envoy.provider import BEHIND, ThroughEnvoy
from interlock.sidecar.fronts.envoy.rate_limits import RateLimiter
from interlock.sidecar.fronts.envoy.rate_mapping import load_limits
from interlock.sidecar.fronts.front import Front
from interlock.sidecar.provider.upstream import Upstream

FULL_NAMES = (
    ext_proc_pb2.DESCRIPTOR.services_by_name["ExternalProcessor"].full_name,
    ext_authz_pb2.DESCRIPTOR.services_by_name["Authorization"].full_name,
    rls_pb2.DESCRIPTOR.services_by_name["RateLimitService"].full_name,
)


LARGEST_PIECE = 4 * 1024 * 1024
"""Bytes of a message from Envoy at most: a piece of a body is no larger than the buffer of a connection (deploy/envoy has 1 MiB)."""


def behind_envoy(settings: Settings) -> Upstream:
    """Return the provider behind Envoy."""
    return Upstream(settings, assumed_url=BEHIND, through=ThroughEnvoy)


def envoy_service(front: Front, app: ASGIApp, readiness: UnreadyDependencies) -> Service:
    """Return the service of a *front* whose provider is behind Envoy; *app* answers its requests. Refused with RATE_LIMITS_INVALID."""
    settings = front.settings
    processor = Processor(Outcomes(app), limit=settings.max_body_bytes)
    limits = load_limits(settings.rate_limits_file) if settings.rate_limits_file else None
    servicers = (processor, Authorizer(front), RateLimiter(front.kernels, limits))
    return Service("envoy", FULL_NAMES, servicers, _register, readiness, _nothing_to_close, identity="sidecar")


def _register(servicers: tuple[Processor, Authorizer, RateLimiter], server: Any) -> None:
    processor, authorizer, limiter = servicers
    ext_proc_pb2_grpc.add_ExternalProcessorServicer_to_server(processor, server)
    ext_authz_pb2_grpc.add_AuthorizationServicer_to_server(authorizer, server)
    rls_pb2_grpc.add_RateLimitServiceServicer_to_server(limiter, server)


async def _nothing_to_close() -> None:
    """The sidecar closes what it opened."""
