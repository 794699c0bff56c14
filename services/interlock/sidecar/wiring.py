"""The sidecar, wired in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import structlog
from starlette.types import ASGIApp

from interlock.api.sidecar.v1 import sidecar_pb2, sidecar_pb2_grpc
from interlock.domain.errors import unavailable
from interlock.domain.headers import headers
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission.admission import Admission
from interlock.sidecar.call.identity import load_api_keys
from interlock.sidecar.fronts.front import Front
from interlock.sidecar.fronts.http import make_app
from interlock.sidecar.fronts.release import Releases
from interlock.sidecar.fronts.servicer import SidecarServicer
from interlock.sidecar.fronts.sessions import Sessions
from interlock.sidecar.guard import Guard
from interlock.sidecar.provider.upstream import Upstream
from interlock.sidecar.settlement.recovery import Recovery
from interlock.sidecar.trail.response_headers import report_uri

log = structlog.get_logger()


@dataclass(frozen=True)
class Sidecar:
    """The opened sidecar: its gRPC service, its HTTP front, how to end it."""

    service: Service
    http_app: ASGIApp
    close: Callable[[], Awaitable[None]]


async def open_sidecar(
    settings: Settings,
    mesh: Mesh,
    readiness: Callable[[], Awaitable[Mapping[str, str]]],
) -> Sidecar:
    """Open the sidecar over *mesh*. Refused with API_KEYS_FILE_INVALID, UPSTREAM_URL_INVALID or PUBLIC_BASE_URL_INVALID.

    *readiness* tells what the process misses, for /readyz.
    """
    base_url = _base_url(settings)
    # Whatever asks for a session here has it rebuilt where the store lost it.
    recovering = Recovery.over(settings, mesh)
    mesh = replace(mesh, session=cast("Any", recovering))
    upstream = Upstream(settings)
    admission = Admission(settings, mesh, base_url)
    guard = Guard(settings, mesh, admission, base_url)
    front = Front(
        settings=settings,
        keys=load_api_keys(settings.api_keys_file),
        guard=guard,
        admission=admission,
        sessions=Sessions(settings, mesh, admission),
        upstream=upstream,
        releases=Releases(settings, mesh, base_url),
    )

    async def close() -> None:
        """End after the calls in flight, those of callers that have left among them."""
        await recovering.close()
        await guard.drain()
        await upstream.close()

    service = Service(
        name="sidecar",
        full_name=sidecar_pb2.DESCRIPTOR.services_by_name["SidecarService"].full_name,
        servicer=SidecarServicer(front),
        register=sidecar_pb2_grpc.add_SidecarServiceServicer_to_server,
        unready_dependencies=readiness,
        close=close,
    )
    if not settings.ai_domain:
        # SPEC-002 §12.5: an AI system that nobody registered is of unknown class, and that is worth a line.
        log.warning("system.unregistered", hint="CRP-Compliance-EU-AI-Act is UNKNOWN; set INTERLOCK_AI_DOMAIN")
    return Sidecar(service, make_app(front, readiness, base_url), close)


def _base_url(settings: Settings) -> str:
    """Return the base of the URIs in our headers; one that no header could carry would go missing without a word."""
    base_url = settings.public_base_url.rstrip("/") or f"http://{settings.host}:{settings.sidecar_http_port}"
    example = report_uri(base_url, "crp_win_" + "0" * 32)
    if not headers.admissible({"CRP-Provenance-Report-URI": example}):
        raise unavailable("PUBLIC_BASE_URL_INVALID", "public_base_url must be http(s)://host/path", retry_after_ms=0)
    return base_url
