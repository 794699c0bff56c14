"""The sidecar, wired in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog
from starlette.types import ASGIApp

from interlock.api.decision.v1 import decision_pb2, decision_pb2_grpc
from interlock.api.kernel.v1 import kernel_pb2, kernel_pb2_grpc
from interlock.api.sidecar.v1 import sidecar_pb2, sidecar_pb2_grpc
from interlock.domain.budget import micros
from interlock.domain.errors import unavailable
from interlock.domain.headers import headers
from interlock.runtime.keys.api_keys import ApiKeys, load_api_keys, require_keys
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.runtime.rpc.mesh import DecisionChannel, Mesh
from interlock.runtime.rpc.peers import AuditPeer, Peers
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission.admission import Admission
from interlock.sidecar.admission.agents import CallerAgents
from interlock.sidecar.admission.bindings import Bindings
from interlock.sidecar.admission.delegation import Delegations
from interlock.sidecar.admission.explanation import Explanation
from interlock.sidecar.admission.pods import OwnPod, PodKeys
from interlock.sidecar.admission.policies import Policies
from interlock.sidecar.admission.start_session import SessionStarter
from interlock.sidecar.apis.api import Api
from interlock.sidecar.apis.chat_completions import ChatCompletions
from interlock.sidecar.apis.completions.adapter import Completions
from interlock.sidecar.apis.messages.adapter import Messages
from interlock.sidecar.apis.responses.adapter import Responses
from interlock.sidecar.call.ahead import ReadAhead
from interlock.sidecar.call.binding import binding_reader
from interlock.sidecar.call.prices import prices_from
from interlock.sidecar.call.spending import ModelSpending
from interlock.sidecar.closing import Closing
from interlock.sidecar.fronts.beside.decision_servicer import DecisionFront
from interlock.sidecar.fronts.beside.kernel_servicer import KernelServicer
from interlock.sidecar.fronts.conditional import ConditionalCalls
from interlock.sidecar.fronts.front import Front
from interlock.sidecar.fronts.http import make_app
from interlock.sidecar.fronts.litellm.guardrail import Guardrail
from interlock.sidecar.fronts.release import Releases
from interlock.sidecar.fronts.servicer import SidecarServicer
from interlock.sidecar.fronts.sessions import Sessions
from interlock.sidecar.guard import Guard
from interlock.sidecar.provider.upstream import Upstream
from interlock.sidecar.settlement.effects import SettlementEffects
from interlock.sidecar.settlement.leases import Leases
from interlock.sidecar.settlement.recovery import RecoveringSession, Recovery
from interlock.sidecar.settlement.tool_calls import ToolCalls
from interlock.sidecar.settlement.tool_kernels import ToolKernels
from interlock.sidecar.trail.response_headers import report_uri

log = structlog.get_logger()

FULL_NAMES = (
    sidecar_pb2.DESCRIPTOR.services_by_name["SidecarService"].full_name,
    kernel_pb2.DESCRIPTOR.services_by_name["KernelService"].full_name,
    decision_pb2.DESCRIPTOR.services_by_name["DecisionService"].full_name,
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
    envoy: Service | None = None
    """What Envoy asks, where ``envoy_port`` is set."""


def wired_apis(settings: Settings, audit: AuditPeer) -> tuple[Api, ...]:
    """Return the APIs that the HTTP front governs; *audit* keeps the answers that can be fetched again."""
    return (
        ChatCompletions(settings),
        Responses(settings, audit),
        Completions(settings),
        Messages(settings),
    )


Ready = Callable[[], Awaitable[Mapping[str, str]]]


async def open_sidecar(settings: Settings, mesh: Mesh, readiness: Ready, *, decision: Any = None) -> Sidecar:
    """Open the sidecar over *mesh*. Refused with API_KEYS_REQUIRED, API_KEYS_FILE_INVALID, UPSTREAM_URL_INVALID or PUBLIC_BASE_URL_INVALID.

    *readiness* tells what the process misses, for /readyz. *decision* is the decision service of this process; absent, the one at
    decision_address is asked, and nothing waits for it.
    """
    require_keys(settings)
    base_url = _base_url(settings)
    direct, recovery, peers = _peers(settings, mesh)
    effects = SettlementEffects(peers)
    leases = Leases(peers, effects)
    agents, policies = CallerAgents(settings, peers.policy), Policies(peers.policy, keep_s=settings.agent_cache_s)
    starter, delegations = SessionStarter(settings, peers, policies, recovery), Delegations(peers, recovery)
    reader, keys = binding_reader(settings), await _callers(settings, peers)
    admission = Admission(
        settings, peers, agents, policies, starter, delegations, effects, leases, Explanation(peers, effects, base_url),
        Bindings(peers.session, recovery, reader.sources.ranks, settings.unaware_callers == "observe"),
    )  # fmt: skip
    kernels, closing = _kernels(settings, direct), Closing(settings, peers, effects, leases, recovery, base_url)
    spending, tools = _spending(settings, peers), _tools(settings, kernels, peers)
    ahead = ReadAhead(direct.audit, settings.compared_windows) if mesh.is_remote else None
    guard = Guard(settings, peers, admission, leases, closing, tools=tools, spending=spending, ahead=ahead)
    upstream, sessions = Upstream(settings), Sessions(settings, peers, recovery, agents, starter, delegations)
    front = Front(
        settings=settings,
        keys=keys,
        guard=guard,
        sessions=sessions,
        upstream=upstream,
        releases=Releases(settings, peers, recovery, base_url),
        bindings=reader,
        conditional=ConditionalCalls(sessions),
        kernels=kernels,
        spending=spending,
    )
    apis = wired_apis(settings, direct.audit)
    far, readiness = DecisionChannel(settings), _with_callers(readiness, keys)

    async def close() -> None:
        """End after the calls in flight, including those whose callers have left."""
        await keys.close()
        await recovery.close()
        await guard.drain()
        await effects.drain()
        await kernels.close()
        await upstream.close()
        await far.close()

    service = Service(
        name="sidecar",
        full_names=FULL_NAMES,
        servicer=SidecarServicer(front),
        register=partial(_register, decisions=decision or far.stub),
        unready_dependencies=readiness,
        close=close,
    )
    _warn_unregistered(settings)
    guardrail = Guardrail(front, settings.litellm_key) if settings.litellm_key else None
    opened = Sidecar(service, make_app(front, readiness, base_url, apis, guardrail), close, apis)
    return opened if settings.envoy_port is None else _with_envoy(opened, front, base_url, readiness)


def _warn_unregistered(settings: Settings) -> None:
    """Log that an unregistered AI system is of unknown class (SPEC-002 §12.5)."""
    if not settings.ai_domain:
        log.warning("system.unregistered", hint="CRP-Compliance-EU-AI-Act is UNKNOWN; set INTERLOCK_AI_DOMAIN")


def _with_envoy(opened: Sidecar, front: Front, base_url: str, readiness: Ready) -> Sidecar:
    """Return the sidecar with what Envoy asks."""
    from interlock.sidecar.fronts.envoy.service import behind_envoy, envoy_service  # on use: most have no Envoy

    behind = behind_envoy(front.settings)
    behind_front = replace(front, upstream=behind)
    app = make_app(behind_front, None, base_url, opened.apis)

    async def close() -> None:
        await opened.close()
        await behind.close()

    return replace(opened, envoy=envoy_service(behind_front, app, readiness), close=close)


def _peers(settings: Settings, mesh: Mesh) -> tuple[Peers, Recovery, Peers]:
    """Return the services as they are, what rebuilds what the store lost, and the services with every call rebuilding first."""
    direct = Peers.over(mesh, settings)
    recovery = Recovery(settings, direct.audit, direct.session)
    return direct, recovery, replace(direct, session=RecoveringSession(mesh.session, settings.rpc_timeout_s, recovery))


async def _callers(settings: Settings, peers: Peers) -> ApiKeys:
    """Return what says who calls: the pod that the sidecar is in, or the keys that callers send."""
    if settings.pod_token_file is None:
        return load_api_keys(settings.api_keys_file, passed_on=settings.upstream_api_key is None)
    pod = OwnPod(peers.policy, settings.pod_token_file, settings.pod_uid, settings.pod_identity_cache_s)
    await pod.start()
    return PodKeys(pod)


def _with_callers(readiness: Ready, keys: ApiKeys) -> Ready:
    """Return *readiness* with what is missing to tell who calls."""

    async def ready() -> Mapping[str, str]:
        return {**await readiness(), **keys.unready()}

    return ready


def _spending(settings: Settings, peers: Peers) -> ModelSpending:
    prices = prices_from(settings.prices_file, settings.unknown_model_price)
    return ModelSpending(peers, prices, settings.unbounded_output_tokens)


def _kernels(settings: Settings, peers: Peers) -> Kernels:
    """Return the kernels, with what an earlier process of this folder recorded of them going on to be sealed."""
    made = Kernels(settings, peers, emergencies=True)
    made.resume()
    return made


def _tools(settings: Settings, kernels: Kernels, peers: Peers) -> ToolCalls:
    found = ToolKernels(kernels, peers.session, settings.tool_kernel)
    return ToolCalls(found, micros(settings.refused_action_charge))


def _register(servicer: SidecarServicer, server: Any, *, decisions: Any) -> None:
    """Register the sidecar's service, and those of kernels and of decisions beside it."""
    passed_on: Any = DecisionFront(servicer.front.keys, decisions)
    decision_pb2_grpc.add_DecisionServiceServicer_to_server(passed_on, server)
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
