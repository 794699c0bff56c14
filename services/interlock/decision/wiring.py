"""Open the decision service from its settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import resources

from interlock.api.decision.v1 import decision_pb2, decision_pb2_grpc
from interlock.decision.agents.desks import Desks
from interlock.decision.agents.tickets import Tickets
from interlock.decision.bus.signal_bus import SignalBus
from interlock.decision.bus.streams import MemoryStreams, SignalStreams
from interlock.decision.bus.streams_redis import RedisStreams
from interlock.decision.chain import ExperimentChains
from interlock.decision.experiments import Experiments
from interlock.decision.reservations import Reservations
from interlock.decision.servicer import DecisionServicer
from interlock.decision.store.states import ExperimentStates, MemoryStates
from interlock.decision.store.states_redis import RedisStates
from interlock.domain.errors import invalid, unavailable
from interlock.runtime.clock import Clock, system_clock
from interlock.runtime.keys.api_keys import load_api_keys, require_keys
from interlock.runtime.keys.derivation import load_keyring
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings

PROFILES = ("ml", "oncall")


@dataclass(frozen=True)
class OpenedDecision:
    """The opened service."""

    service: Service
    leave: Callable[[], None]
    """Ends the streams of idle agents, before the process drains."""


def open_decision(
    settings: Settings,
    mesh: Mesh,
    readiness: Callable[[], Awaitable[Mapping[str, str]]],
    *,
    clock: Clock = system_clock,
) -> OpenedDecision:
    """Open the service over *mesh*. It needs the audit service; without the session service kernels have no figures.

    Refused with API_KEYS_REQUIRED, API_KEYS_FILE_INVALID, REDIS_URL_MISSING or DECISION_STORE_URL_INVALID.
    """
    require_keys(settings)
    states, desks = open_states(settings), Desks()
    chains = ExperimentChains(mesh.audit, settings.rpc_timeout_s)
    bus = SignalBus(open_streams(settings), clock)
    kernels = Kernels(settings, Peers.over(mesh, settings), emergencies=True)
    experiments = Experiments(
        states, chains, desks, bus, Reservations(kernels), clock, settings.request_timeout_s
    )  # fmt: skip

    def leave() -> None:
        desks.leave()
        bus.leave()

    async def close() -> None:
        await bus.close()
        await kernels.close()
        await states.close()

    async def unready_dependencies() -> Mapping[str, str]:
        found = await readiness()
        needed = {
            name: hint for name, hint in found.items() if name.partition("/")[0] not in {"session", "policy", "dpe"}
        }
        return {**needed, **await states.unready_dependencies()}

    service = Service(
        name="decision",
        full_names=(decision_pb2.DESCRIPTOR.services_by_name["DecisionService"].full_name,),
        servicer=DecisionServicer(
            load_api_keys(settings.api_keys_file), Tickets(load_keyring(settings)), desks, experiments, bus, _profiles()
        ),
        register=decision_pb2_grpc.add_DecisionServiceServicer_to_server,
        unready_dependencies=unready_dependencies,
        close=close,
    )
    return OpenedDecision(service, leave)


def open_states(settings: Settings) -> ExperimentStates:
    """Return the store that the settings name. Nothing is connected yet."""
    if not settings.redis_url:
        raise unavailable("REDIS_URL_MISSING", "redis_url is not set and no embedded Valkey runs", retry_after_ms=0)
    if settings.redis_url.startswith("memory://"):
        return MemoryStates()
    return RedisStates(settings.redis_url, timeout_s=settings.rpc_timeout_s)


def open_streams(settings: Settings) -> SignalStreams:
    """Return the store of signals that the settings name. Nothing is connected yet."""
    if settings.redis_url.startswith("memory://"):
        return MemoryStreams()
    return RedisStreams(settings.redis_url, timeout_s=settings.rpc_timeout_s)


def profile_text(name: str) -> str:
    """Return the definition of a bundled profile. Refused with DECISION_PROFILE_UNKNOWN."""
    if name not in PROFILES:
        raise invalid("DECISION_PROFILE_UNKNOWN", f"bundled profiles are {', '.join(PROFILES)}; or give a definition")
    return (resources.files("interlock.decision") / "profiles" / f"{name}.json").read_text(encoding="utf-8")


def _profiles() -> Mapping[str, str]:
    return {name: profile_text(name) for name in PROFILES}
