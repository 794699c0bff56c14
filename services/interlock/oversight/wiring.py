"""The oversight service, wired in one place."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from starlette.applications import Starlette

from interlock.api.oversight.v1 import oversight_pb2, oversight_pb2_grpc
from interlock.domain.errors import unavailable
from interlock.domain.policy.roles import Role
from interlock.oversight.changes import Changes
from interlock.oversight.compensations import StuckCases
from interlock.oversight.console import Console
from interlock.oversight.experiments import ExperimentReader
from interlock.oversight.health.look import Health
from interlock.oversight.inbox.reader import Inbox
from interlock.oversight.kernels import KernelList
from interlock.oversight.link import ConsoleLink
from interlock.oversight.oidc.opening import open_oidc
from interlock.oversight.page import make_app
from interlock.oversight.reader import LiveReader
from interlock.oversight.servicer import OversightServicer
from interlock.oversight.site import Site, origins_of
from interlock.oversight.stops import Stops
from interlock.oversight.views import Views
from interlock.runtime.clock import Clock, system_clock
from interlock.runtime.pictures.recent import RECENT
from interlock.runtime.rpc.health import Look
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.loading import EffectiveSetting, in_force
from interlock.runtime.settings.model import Settings


@dataclass(frozen=True)
class OpenedOversight:
    """The opened service: its gRPC servicer and its page."""

    service: Service
    http_app: Starlette
    link: ConsoleLink
    """The operator's link to the console."""


def open_oversight(
    settings: Settings,
    mesh: Mesh,
    readiness: Callable[[], Awaitable[Mapping[str, str]]],
    parts: Look,
    *,
    http_port: int,
    loaded: Sequence[EffectiveSetting] = (),
    clock: Clock = system_clock,
) -> OpenedOversight:
    """Open the service over *mesh*; its page listens on *http_port*. *loaded*: the settings as they were read, each with its origin.
    *parts* looks at every part of the mesh, for the page of health.

    Refused with OVERSIGHT_URL_INVALID for a base URL with a path: the page owns every path of its host; and like ``open_oidc``.
    """
    base = settings.oversight_base_url.rstrip("/")
    if base.count("/") > 2:
        message = "oversight_base_url is https://host or https://host:port, without a path"
        raise unavailable("OVERSIGHT_URL_INVALID", message, retry_after_ms=0)
    secure = settings.front_cert_file is not None or base.startswith("https://")
    peers = Peers.over(mesh, settings)
    views = Views(clock, os.urandom, life_s=settings.oversight_view_s)
    ways, oidc = frozenset(settings.sign_in_ways.split(",")), open_oidc(settings, clock)
    console = Console(peers, views, Role(settings.console_link_role), ways, oidc)
    kernels = Kernels(settings, peers)
    stuck = StuckCases(peers, kernels, views)
    live = LiveReader(peers, settings.rpc_timeout_s)
    changes = Changes(live.log_size)
    stops, health = Stops(console, kernels), Health(parts)
    site = Site(
        console=console, inbox=Inbox(console), live=live, changes=changes, stuck=stuck, stops=stops, kernels=KernelList(peers, kernels), experiments=ExperimentReader(peers), health=health,
        settings=in_force(settings, loaded), recent=RECENT, origins=origins_of(settings, http_port, secure=secure), secure=secure,
    )  # fmt: skip

    async def close() -> None:
        await changes.close()
        await health.close()
        await kernels.close()

    service = Service(
        name="oversight",
        full_names=(oversight_pb2.DESCRIPTOR.services_by_name["OversightService"].full_name,),
        servicer=OversightServicer(console, stuck),
        register=oversight_pb2_grpc.add_OversightServiceServicer_to_server,
        unready_dependencies=readiness,
        close=close,
    )
    link = ConsoleLink(min(site.origins), console.secret)
    return OpenedOversight(service, make_app(site, readiness, settings), link)
