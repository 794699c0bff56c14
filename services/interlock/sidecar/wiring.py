"""The sidecar, wired in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from starlette.types import ASGIApp

from interlock.api.kernel.v1 import kernel_pb2, kernel_pb2_grpc
from interlock.api.sidecar.v1 import sidecar_pb2, sidecar_pb2_grpc
from interlock.domain.errors import unavailable
from interlock.domain.headers import headers
from interlock.runtime.keys.api_keys import load_api_keys, require_keys
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.peers import AuditPeer, Peers
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission.admission import Admission
from interlock.sidecar.admission.agents import CallerAgents
from interlock.sidecar.admission.bindings import Bindings
from interlock.sidecar.admission.delegation import Delegations
from interlock.sidecar.admission.explanation import Explanation
from interlock.sidecar.admission.policies import Policies
from interlock.sidecar.admission.start_session import SessionStarter
from interlock.sidecar.apis.api import Api
from interlock.sidecar.apis.chat_completions import ChatCompletions
from interlock.sidecar.apis.completions.adapter import Completions
from interlock.sidecar.apis.messages.adapter import Messages
from interlock.sidecar.apis.responses.adapter import Responses
from interlock.sidecar.call.binding import binding_reader
from interlock.sidecar.closing import Closing
from interlock.sidecar.fronts.conditional import ConditionalCalls
from interlock.sidecar.fronts.front import Front
from interlock.sidecar.fronts.http import make_app
from interlock.sidecar.fronts.kernel_servicer import KernelServicer
from interlock.sidecar.fronts.release import Releases
from interlock.sidecar.fronts.servicer import SidecarServicer
from interlock.sidecar.fronts.sessions import Sessions
from interlock.sidecar.guard import Guard
from interlock.sidecar.provider.upstream import Upstream
from interlock.sidecar.settlement.effects import SettlementEffects
from interlock.sidecar.settlement.kernels import Kernels
from interlock.sidecar.settlement.leases import Leases
from interlock.sidecar.settlement.recovery import RecoveringSession, Recovery
from interlock.sidecar.settlement.tool_calls import ToolCalls
from interlock.sidecar.trail.response_headers import report_uri

log = structlog.get_logger()

FULL_NAMES = (
    sidecar_pb2.DESCRIPTOR.services_by_name["SidecarService"].full_name,
    kernel_pb2.DESCRIPTOR.services_by_name["KernelService"].full_name,
)
"""What ``_register`` registers."""


@dataclass(frozen=True)
class Sidecar:
    """The opened sidecar: its gRPC service, its HTTP front, how to end it."""

    service: Service
    http_app: ASGIApp
    close: Callable[[], Awaitable[None]]
    apis: tuple[Api, ...]
    """The APIs that its HTTP front governs."""


def wired_apis(settings: Settings, audit: AuditPeer) -> tuple[Api, ...]:
    """Return the APIs that the HTTP front governs; *audit* keeps the answers that can be fetched again."""
    return (
        ChatCompletions(settings),
        Responses(settings, audit),
        Completions(settings),
        Messages(settings),
    )


async def open_sidecar(
    settings: Settings,
    mesh: Mesh,
    readiness: Callable[[], Awaitable[Mapping[str, str]]],
) -> Sidecar:
    """Open the sidecar over *mesh*. Refused with API_KEYS_REQUIRED, API_KEYS_FILE_INVALID, UPSTREAM_URL_INVALID or PUBLIC_BASE_URL_INVALID.

    *readiness* tells what the process misses, for /readyz.
    """
    require_keys(settings)
    base_url = _base_url(settings)
    direct = Peers.over(mesh, settings)
    recovery = Recovery(settings, direct.audit, direct.session)
    # Every call to the session service from here on rebuilds what the store lost.
    peers = replace(direct, session=RecoveringSession(mesh.session, settings.rpc_timeout_s, recovery))
    effects = SettlementEffects(peers)
    leases = Leases(peers, effects)
    agents, policies = CallerAgents(settings, peers.policy), Policies(peers.policy)
    starter, delegations = SessionStarter(settings, peers, policies, recovery), Delegations(peers, recovery)
    reader = binding_reader(settings)
    admission = Admission(
        settings, peers, agents, policies, starter, delegations, effects, leases, Explanation(peers, effects, base_url),
        Bindings(peers.session, recovery, reader.sources.ranks, settings.unaware_callers == "observe"),
    )  # fmt: skip
    kernels, closing = Kernels(settings, direct), Closing(settings, peers, effects, leases, recovery, base_url)
    guard = Guard(settings, peers, admission, leases, closing, tools=ToolCalls(kernels, settings.tool_kernel))
    upstream = Upstream(settings)
    sessions = Sessions(settings, peers, recovery, agents, starter, delegations)
    front = Front(
        settings=settings,
        keys=load_api_keys(settings.api_keys_file, passed_on=settings.upstream_api_key is None),
        guard=guard,
        sessions=sessions,
        upstream=upstream,
        releases=Releases(settings, peers, recovery, base_url),
        bindings=reader,
        conditional=ConditionalCalls(sessions),
        kernels=kernels,
    )
    apis = wired_apis(settings, direct.audit)

    async def close() -> None:
        """End after the calls in flight, including those whose callers have left."""
        await recovery.close()
        await guard.drain()
        await effects.drain()
        await upstream.close()

    service = Service(
        name="sidecar",
        full_names=FULL_NAMES,
        servicer=SidecarServicer(front),
        register=_register,
        unready_dependencies=readiness,
        close=close,
    )
    if not settings.ai_domain:
        # SPEC-002 §12.5: an unregistered AI system is of unknown class; the log says so.
        log.warning("system.unregistered", hint="CRP-Compliance-EU-AI-Act is UNKNOWN; set INTERLOCK_AI_DOMAIN")
    return Sidecar(service, make_app(front, readiness, base_url, apis), close, apis)


def _register(servicer: SidecarServicer, server: Any) -> None:
    """Register the sidecar's service, and that of kernels beside it."""
    sidecar_pb2_grpc.add_SidecarServiceServicer_to_server(servicer, server)
    kernel_pb2_grpc.add_KernelServiceServicer_to_server(
        KernelServicer(servicer.front.keys, servicer.front.kernels), server
    )


def _base_url(settings: Settings) -> str:
    """Return the base of the URIs in our headers; one that no header could carry would go missing without a word."""
    base_url = settings.public_base_url.rstrip("/") or f"http://{settings.host}:{settings.sidecar_http_port}"
    example = report_uri(base_url, "crp_win_" + "0" * 32)
    if not headers.admissible({"CRP-Provenance-Report-URI": example}):
        raise unavailable("PUBLIC_BASE_URL_INVALID", "public_base_url must be http(s)://host/path", retry_after_ms=0)
    return base_url
