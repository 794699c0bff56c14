"""A real sidecar for tests: real HTTP and gRPC servers over a mesh of real services, with a dpe that a test may choose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib import import_module
from pathlib import Path
from typing import Any

import grpc
import httpx

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc
from interlock.api.sidecar.v1.sidecar_pb2_grpc import SidecarServiceStub
from interlock.decision.wiring import open_decision
from interlock.domain.errors import Kind, Refused
from interlock.runtime.http.server import WebServer, listen
from interlock.runtime.rpc.errors import answers_refusals
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from interlock.sidecar.wiring import open_sidecar
from tests.support.policy import agents
from tests.support.profiles import ENFORCING

RISKS = {
    "LOW": (common_pb2.RISK_LEVEL_LOW, 0.05),
    "MEDIUM": (common_pb2.RISK_LEVEL_MEDIUM, 0.30),
    "HIGH": (common_pb2.RISK_LEVEL_HIGH, 0.50),
    "CRITICAL": (common_pb2.RISK_LEVEL_CRITICAL, 0.90),
}
NO_COOKIES = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
"""A client that keeps no cookie: each of its calls without a token begins a session, as long as nothing else binds it."""
RAN = ("1", "2", "3a", "3b", "3c", "4", "5", "10", "11", "13")


def a_report(risk: str = "LOW", **more: Any) -> dpe_pb2.Report:
    """A report with that risk and nothing found."""
    level, score = RISKS[risk]
    values: dict[str, Any] = {
        "claims_total": 1,
        "attribution_dominant": dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED,
        "grounding_pct": 1.0,
        "fidelity_score": 1.0,
        "entailment_score": 0.9,
        "composite_score": score,
        "base_composite": score,
        "risk_level": level,
        "gdpr_pii_detected": False,
        "quality_tier": "A",
        "envelope_etag": "sha256:" + "ab" * 32,
        "facts_total": 1,
        "envelope_tokens": 7,
        "stages": [
            dpe_pb2.Stage(
                number=number,
                status=dpe_pb2.STAGE_STATUS_RAN if number in RAN else dpe_pb2.STAGE_STATUS_NOT_RUN,
            )
            for number in (*RAN, "6", "7", "8", "9", "12")
        ],
        "claims": [dpe_pb2.Claim(claim_id="c1", claim_type=dpe_pb2.CLAIM_TYPE_FACTUAL,
                                 attribution=dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED, text="A claim.")],
        "omission_summary": {"CRITICAL": 0, "HIGH": 0, "MEDIUM": 0},
        **more,
    }  # fmt: skip
    return dpe_pb2.Report(**values)


@dataclass
class DpeDouble(dpe_pb2_grpc.DpeServiceServicer):
    """The dpe service over its real interface: a test chooses its report, by the text where it names a risk."""

    report: dpe_pb2.Report | None = None
    failure: Exception | None = None
    asked: list[dpe_pb2.AnalyzeRequest] = field(default_factory=list)
    gate: Any = None
    """An awaitable maker that each analysis waits for; ``None``: it does not wait."""
    places: set[str] = field(default_factory=set)
    """Places that are held."""
    most_places: int = 1_000_000
    reserved: int = 0
    kept: int = 0
    """Times that a place which was held was kept for longer."""
    turned_away: int = 0
    """Analyses that found no place of their own."""

    @answers_refusals(dpe_pb2.ReservePlaceResponse)
    async def ReservePlace(self, request, _context):
        if request.place_id in self.places:
            self.kept += 1
            return dpe_pb2.ReservePlaceResponse(place_id=request.place_id)
        if len(self.places) >= self.most_places:
            raise Refused(Kind.EXHAUSTED, "OVERLOADED", "no place is free", retry_after_ms=1700)
        self.reserved += 1
        place_id = f"place_{self.reserved}"
        self.places.add(place_id)
        return dpe_pb2.ReservePlaceResponse(place_id=place_id)

    async def ReleasePlace(self, request, _context):
        self.places.discard(request.place_id)
        return dpe_pb2.ReleasePlaceResponse()

    @answers_refusals(dpe_pb2.AnalyzeResponse)
    async def Analyze(self, request, _context):
        if request.HasField("place_for") and len(self.places) >= self.most_places:
            self.turned_away += 1
            raise Refused(Kind.EXHAUSTED, "OVERLOADED", "no place is free", retry_after_ms=1700)
        self.asked.append(request)
        if self.gate is not None:
            await self.gate()
        if self.failure is not None:
            raise self.failure
        report = dpe_pb2.Report()
        report.CopyFrom(self.report or a_report(_named(request)))
        if not report.choices:
            for index in sorted({output.choice_index for output in request.outputs}):
                report.choices.add(
                    choice_index=index, composite_score=report.composite_score, risk_level=report.risk_level
                )
        return dpe_pb2.AnalyzeResponse(report=report)


def _named(request: dpe_pb2.AnalyzeRequest) -> str:
    """The worst risk that a text names: an answer that says CRITICAL is analysed as CRITICAL."""
    said = " ".join(output.text for output in request.outputs)
    return next((risk for risk in ("CRITICAL", "HIGH", "MEDIUM") if risk in said), "LOW")


@dataclass
class RunningSidecar:
    """Where the sidecar listens, and what stands behind it."""

    settings: Settings
    http: str
    grpc: str
    dpe: Any
    mesh: Mesh
    services: Mapping[str, Any]
    missing: dict[str, str]
    client: httpx.AsyncClient
    stub: Any
    apis: tuple[Any, ...] = ()
    """The APIs that its front governs, as they are wired."""
    envoy: int = 0
    """Port that Envoy asks, where ``envoy_port`` is set."""

    async def chat(self, text: str = "What is it?", *, token: str | None = None, headers=None, **more: Any):
        """Post a chat request."""
        body = {"model": "test-model", "messages": [{"role": "user", "content": text}], **more}
        sent = {**({"crp-session-token": token} if token else {}), **(headers or {})}
        return await self.client.post("/v1/chat/completions", json=body, headers=sent)

    async def settled(self, first: httpx.Response, *, windows: int) -> dict[str, Any]:
        """The session that *first* began, when it has so many windows: who hung up is not told."""
        uri = f"/crp/v3/session/{first.headers['crp-context-session-id']}"
        async with asyncio.timeout(10):
            while True:
                shown = (await self.client.get(uri, headers={"crp-session-token": token_of(first)})).json()
                if len(shown["windows"]) == windows:
                    return shown
                await asyncio.sleep(0.02)

    async def events(self, session_id: str) -> list[Any]:
        """The session's audit events."""
        from interlock.api.audit.v1 import audit_pb2

        stream = self.mesh.audit.Export(audit_pb2.ExportRequest(session_id=session_id))
        return [answer.event async for answer in stream]


class Hooked:
    """A real servicer with a hook before some of its methods: what the hook raises, the caller gets."""

    def __init__(self, service: Any, **hooks: Any) -> None:
        self._inner, self._hooks = getattr(service, "servicer", service), hooks
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def hooked(request, context):
            self.calls.append(name)
            if name in self._hooks:
                await self._hooks[name](request)
            return await method(request, context)

        return method if name == "Export" else hooked


def reason_of(response: httpx.Response) -> str:
    """The reason in an error body."""
    return response.json()["reason"]


def token_of(response: httpx.Response) -> str:
    """The token in CRP-Set-Session."""
    return response.headers["crp-set-session"].split(";")[0].removeprefix("token=")


@asynccontextmanager
async def another_sidecar(one: RunningSidecar) -> AsyncIterator[str]:
    """Serve a further sidecar over the same services, and give the address of its HTTP front."""
    async with _served(one.settings, one.mesh, one.missing) as (_, http, *_):
        yield http


@asynccontextmanager
async def _served(
    settings: Settings, mesh: Mesh, missing: Mapping[str, str], *, decides: bool = False
) -> AsyncIterator[tuple[Settings, str, int, tuple[Any, ...], int]]:
    """Serve a sidecar; give its settings with its own address, the address of its HTTP front, the port of its gRPC, its APIs and
    the port that Envoy asks.
    """

    async def readiness() -> Mapping[str, str]:
        return missing

    async with AsyncExitStack() as ends:
        listener = listen(settings, 0, "sidecar_http")
        ends.callback(listener.close)
        http = f"http://127.0.0.1:{listener.getsockname()[1]}"
        if not settings.public_base_url:
            settings = settings.model_copy(update={"public_base_url": http})
        decision = open_decision(settings, mesh, readiness) if decides else None
        if decision is not None:
            ends.push_async_callback(decision.service.close)
        servicer = decision.service.servicer if decision else None
        sidecar = await open_sidecar(settings, mesh, readiness, decision=servicer)
        ends.push_async_callback(sidecar.close)
        web, server = WebServer(sidecar.http_app, settings, listener), RpcServer([sidecar.service], settings, port=0)
        await web.start()
        ends.push_async_callback(web.drain)
        port = await server.start()
        ends.push_async_callback(server.drain)
        if decision is not None:
            ends.callback(decision.leave)  # before the drain: agents keep their streams open
        envoy = 0
        if sidecar.envoy is not None:
            asked = RpcServer([sidecar.envoy], settings, port=settings.envoy_port or 0, largest_request=4 * 1024 * 1024)
            envoy = await asked.start()
            ends.push_async_callback(asked.drain)
        yield settings, http, port, sidecar.apis, envoy


@asynccontextmanager
async def running_sidecar(
    tmp_path: Path,
    *,
    upstream: str = "",
    dpe: Any = None,
    wrap: Any = None,
    decides: bool = False,
    **overrides: Any,
) -> AsyncIterator[RunningSidecar]:
    """Serve a sidecar over real session, policy and audit services in this process.

    *dpe* is a servicer or None for a ``DpeDouble``; *wrap* may put something between the mesh and its services; *decides*: with a
    decision service beside them.
    """
    tmp_path.mkdir(parents=True, exist_ok=True)
    settings = Settings(
        **{
            **ENFORCING,
            "reviewers_file": agents.write(tmp_path / "reviewers-of-the-test.yaml", agents.reviewers()),
            "state_dir": tmp_path / "state",
            "redis_url": "memory://",
            "upstream_base_url": upstream,
            "sidecar_grpc_port": 0,
            "sidecar_http_port": 0,
            "drain_s": 5,
            **overrides,
        }
    )
    async with AsyncExitStack() as ends:
        services: dict[str, Any] = {"dpe": dpe or DpeDouble()}
        for name in ("session", "policy", "audit"):
            services[name] = await import_module(f"interlock.{name}.wiring").open_service(settings)
            ends.push_async_callback(services[name].close)
        if wrap is not None:
            services = wrap(services)
        mesh, missing = Mesh.local(**services), {}

        serving = _served(settings, mesh, missing, decides=decides)
        settings, http, port, apis, envoy = await ends.enter_async_context(serving)
        client = await ends.enter_async_context(
            httpx.AsyncClient(base_url=http, trust_env=False, timeout=30, verify=False, cookies=NO_COOKIES)
        )
        channel = await ends.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{port}"))
        yield RunningSidecar(
            settings, http, f"127.0.0.1:{port}", services["dpe"], mesh, services, missing, client,
            SidecarServiceStub(channel), apis, envoy,
        )  # fmt: skip
