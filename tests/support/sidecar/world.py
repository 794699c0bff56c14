"""A whole mesh for scenario tables: one process, or four sidecars and three services as processes, behind one face.

The model provider says what a question tells it to say, and the analysis takes the risk and the tier from what was said:
``Say: HIGH tier=B``. Everything else is real: HTTP, gRPC, sessions, policy, audit log, and Valkey where there are processes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
import yaml
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from interlock.api.audit.v1 import audit_pb2
from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceStub
from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc
from interlock.api.sidecar.v1.sidecar_pb2_grpc import SidecarServiceStub
from interlock.runtime.rpc.errors import answers_refusals
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings
from interlock.sidecar.provider.prompts import FINDINGS_FORM
from tests.support.policy import agents
from tests.support.servers.processes import Processes
from tests.support.servers.provider import Provider, completion, message
from tests.support.sidecar.sidecar import NO_COOKIES, DpeDouble, a_report, running_sidecar

SIDECARS = 4
CALM: Mapping[str, Any] = {"remediation": "none", "drain_s": 2, "rpc_timeout_s": 5, "request_timeout_s": 30}
_SAY = re.compile(r"Say: (.*)")
_RISK = re.compile(r"\b(CRITICAL|HIGH|MEDIUM|LOW)\b")
_TIER = re.compile(r"tier=([SABCD])")


def obedient(provider: Provider) -> Provider:
    """Let *provider* say what the question tells it to, find no fault with it, and refuse to when told ``FAIL``."""

    def reply(request: Request) -> Response:
        body = provider.received[-1].body
        texts = [str(part.get("content") or "") for part in body["messages"]]
        if any(FINDINGS_FORM in text for text in texts):
            return JSONResponse(completion(message('{"issues": []}')))
        wanted = [found[1] for text in texts if (found := _SAY.search(text))]
        if wanted[-1:] == ["FAIL"]:
            return JSONResponse({"error": {"message": "no"}}, 500)
        return JSONResponse(completion(message(wanted[-1] if wanted else "LOW")))

    provider._reply = reply
    return provider


class ToldDpe(DpeDouble):
    """An analysis that finds the risk and the tier that an answer names; LOW and A where it names none."""

    @answers_refusals(dpe_pb2.AnalyzeResponse)
    async def Analyze(self, request, _context):
        self.asked.append(request)
        said = " ".join(output.text for output in request.outputs)
        risk, tier = _RISK.search(said), _TIER.search(said)
        report = a_report(risk[1] if risk else "LOW", quality_tier=tier[1] if tier else "A")
        for index in sorted({output.choice_index for output in request.outputs}):
            report.choices.add(choice_index=index, composite_score=report.composite_score, risk_level=report.risk_level)
        return dpe_pb2.AnalyzeResponse(report=report)

    @answers_refusals(dpe_pb2.CheckSummaryResponse)
    async def CheckSummary(self, _request, _context):
        return dpe_pb2.CheckSummaryResponse(fidelity_score=1.0, claims=1)


@dataclass
class World:
    """Where the sidecars are, and what can be asked about what they did."""

    http: list[str]
    grpc: list[str]
    provider: Provider
    audit: Any
    ends: AsyncExitStack
    folder: Path
    clients: dict[int, httpx.AsyncClient] = field(default_factory=dict)
    stubs: dict[int, Any] = field(default_factory=dict)

    async def client(self, place: int) -> httpx.AsyncClient:
        """The HTTP side of a sidecar; places count round."""
        place %= len(self.http)
        if place not in self.clients:
            client = httpx.AsyncClient(
                base_url=self.http[place], trust_env=False, timeout=60, verify=False, cookies=NO_COOKIES
            )
            self.clients[place] = await self.ends.enter_async_context(client)
        return self.clients[place]

    async def stub(self, place: int) -> Any:
        """The gRPC side of a sidecar."""
        place %= len(self.grpc)
        if place not in self.stubs:
            channel = await self.ends.enter_async_context(grpc.aio.insecure_channel(self.grpc[place]))
            self.stubs[place] = SidecarServiceStub(channel)
        return self.stubs[place]

    async def trail(self, session_id: str) -> list[tuple[str, dict[str, Any]]]:
        """The events of a session, each with its fields."""
        stream = self.audit.Export(audit_pb2.ExportRequest(session_id=session_id))
        return [(one.event.event_type, json.loads(one.event.data_json)) async for one in stream]


def agents_file(folder: Path, agents: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write a registry in which every agent's key is its name."""
    listed = {
        name: {"api_key": f"sha256:{hashlib.sha256(name.encode()).hexdigest()}", **fields}
        for name, fields in agents.items()
    }
    path = folder / "agents.yaml"
    path.write_text(yaml.safe_dump({"agents": listed}))
    return path


@asynccontextmanager
async def one_process(
    folder: Path, provider: Provider, upstream: str, settings: Mapping[str, Any]
) -> AsyncIterator[World]:
    """Everything in this process."""
    async with AsyncExitStack() as ends:
        running = await ends.enter_async_context(
            running_sidecar(folder, upstream=upstream, dpe=ToldDpe(), **{**CALM, **settings})
        )
        yield World([running.http], [running.grpc], provider, running.mesh.audit, ends, folder)


@asynccontextmanager
async def four_sidecars(
    folder: Path, provider: Provider, upstream: str, settings: Mapping[str, Any]
) -> AsyncIterator[World]:
    """Session, policy and audit as processes, four sidecars before them, and the analysis of this process."""
    async with AsyncExitStack() as ends:
        dpe = RpcServer([_dpe_service()], Settings(allow_plaintext=True), port=0)
        dpe_port = await dpe.start()
        ends.push_async_callback(dpe.drain)
        reviewed = {"reviewers_file": agents.write(folder / "reviewers-of-the-test.yaml", agents.reviewers())}
        processes = ends.enter_context(
            Processes(folder, {**CALM, **reviewed, "upstream_base_url": upstream, **settings})
        )
        services = [processes.process(name).start() for name in ("session", "policy", "audit")]
        found = {f"{one.name}_address": f"127.0.0.1:{one.wait().ports[str(one.name)]}" for one in services}
        found["dpe_address"] = f"127.0.0.1:{dpe_port}"
        sidecars = []
        for number in range(SIDECARS):
            sidecars.append(processes.process("sidecar", label=f"sidecar-{number}", **found).start())
        ports = [sidecar.wait().ports for sidecar in sidecars]
        assert len({port["sidecar_http"] for port in ports}) == SIDECARS
        channel = await ends.enter_async_context(grpc.aio.insecure_channel(found["audit_address"]))
        yield World(
            [f"http://127.0.0.1:{port['sidecar_http']}" for port in ports],
            [f"127.0.0.1:{port['sidecar_grpc']}" for port in ports],
            provider, AuditServiceStub(channel), ends, folder,
        )  # fmt: skip


def _dpe_service() -> Service:
    async def nothing_unready() -> Mapping[str, str]:
        return {}

    async def nothing_to_close() -> None:
        return None

    return Service(
        name="dpe",
        full_names=(dpe_pb2.DESCRIPTOR.services_by_name["DpeService"].full_name,),
        servicer=ToldDpe(),
        register=dpe_pb2_grpc.add_DpeServiceServicer_to_server,
        unready_dependencies=nothing_unready,
        close=nothing_to_close,
    )
