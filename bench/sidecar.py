"""What the sidecar adds to a call, without models: p50 of Check at 1 in flight over p50 of a grpc.aio echo.

    python -m bench.sidecar

The real session (Valkey, AOF always), policy and audit (SQLite, synchronous FULL) services run as in production; only
the dpe service is replaced by one that returns a fixed report, because its models would hide everything else. Echo and
both topologies are measured in interleaved rounds of one run.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import uvloop

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc
from interlock.api.sidecar.v1 import sidecar_pb2, sidecar_pb2_grpc
from interlock.domain.answers.report import STAGES
from interlock.runtime import logging, telemetry
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings
from tests.support.valkey import Valkey

if TYPE_CHECKING:
    from interlock.sidecar.wiring import Sidecar

ROUNDS, CALLS, WINDOWS = 12, 40, 21
ECHO = "/bench.Echo/Call"


class FixedReport(dpe_pb2_grpc.DpeServiceServicer):
    """Answers at once, with a report as small as a real LOW one."""

    report = dpe_pb2.Report(
        claims_total=1, grounding_pct=1.0, fidelity_score=1.0, entailment_score=0.99, composite_score=0.01,
        risk_level=common_pb2.RISK_LEVEL_LOW, gdpr_pii_detected=False, quality_tier="A", attribution_dominant=1,
        claims=[dpe_pb2.Claim(claim_id="c1", claim_type=dpe_pb2.CLAIM_TYPE_FACTUAL, text="A claim.",
                              attribution=dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED)],
        stages=[dpe_pb2.Stage(number=n, name="fixed", status=dpe_pb2.STAGE_STATUS_RAN) for n in sorted(STAGES)],
    )  # fmt: skip

    async def ReservePlace(self, _request, _context):
        return dpe_pb2.ReservePlaceResponse(place_id="place")

    async def ReleasePlace(self, _request, _context):
        return dpe_pb2.ReleasePlaceResponse()

    async def Analyze(self, _request, _context):
        return dpe_pb2.AnalyzeResponse(report=self.report)


async def _none_missing() -> dict[str, str]:
    return {}


async def _nothing() -> None:
    return None


def fixed_dpe() -> Service:
    return Service(
        "dpe", ("interlock.api.dpe.v1.DpeService",), FixedReport(),
        dpe_pb2_grpc.add_DpeServiceServicer_to_server, _none_missing, _nothing,
    )  # fmt: skip


def ready(port: int) -> None:
    print(json.dumps({"port": port}), flush=True)


async def serve(service: Service, settings: Settings) -> None:
    server = RpcServer([service], settings.model_copy(update={"allow_plaintext": True}), port=0)
    ready(await server.start())
    await asyncio.Event().wait()


async def serve_echo() -> None:
    async def echo(request: bytes, _context: object) -> bytes:
        return request

    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Echo", {"Call": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    ready(port)
    await server.wait_for_termination()


async def serve_dpe() -> None:
    logging.configure(Settings().log_level)
    await serve(fixed_dpe(), Settings())


async def open_mesh(settings: Settings) -> Sidecar:
    """Open the real services over the local channel, as `interlock serve` wires them."""
    from interlock.audit.wiring import open_service as open_audit
    from interlock.policy.wiring import open_service as open_policy
    from interlock.session.wiring import open_service as open_session
    from interlock.sidecar.wiring import open_sidecar

    logging.configure(settings.log_level)
    telemetry.configure(settings, service="bench")
    mesh = Mesh.local(
        session=await open_session(settings), policy=await open_policy(settings),
        dpe=fixed_dpe(), audit=await open_audit(settings),
    )  # fmt: skip
    return await open_sidecar(settings, mesh, mesh.unready_dependencies)


async def serve_mesh() -> None:
    """One process, asked over gRPC."""
    settings = Settings()
    await serve((await open_mesh(settings)).service, settings)


class Children:
    """Child processes of one measurement; all end with it."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.folder, self.redis_url, self.processes = folder, redis_url, []

    def start(self, command: list[str], name: str, **settings: str) -> dict[str, object]:
        environment = {
            **os.environ, "INTERLOCK_REDIS_URL": self.redis_url, "INTERLOCK_STATE_DIR": str(self.folder / "state"),
            "INTERLOCK_AUDIT_URL": f"sqlite:///{self.folder / name}.db", "INTERLOCK_MAX_WINDOWS": "60",
            "INTERLOCK_MAX_DAG_NODES": "60", "INTERLOCK_PROFILE": "enforce", "INTERLOCK_REMEDIATION": "full", **settings,
        }  # fmt: skip
        log = (self.folder / f"{name}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", *command], env=environment, stdout=subprocess.PIPE, stderr=log
        )
        self.processes.append(process)
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"{name} did not start:\n{(self.folder / f'{name}.log').read_text()[-2000:]}")
        return json.loads(line)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()


def start_separate(children: Children) -> int:
    """Start each service in a process of its own, on a socket as without certificates, and return the sidecar's port."""
    addresses = {}
    for name in ("session", "policy", "audit"):
        told = children.start(["interlock.cli.main", "serve", name, "-o", "json"], name, INTERLOCK_METRICS_PORT="0")
        addresses[f"INTERLOCK_{name.upper()}_ADDRESS"] = f"unix:{told['sockets'][name]}"
    addresses["INTERLOCK_DPE_ADDRESS"] = f"127.0.0.1:{children.start(['bench.sidecar', 'dpe'], 'dpe')['port']}"
    told = children.start(
        ["interlock.cli.main", "serve", "sidecar", "-o", "json"], "sidecar", INTERLOCK_ALLOW_PLAINTEXT="true",
        INTERLOCK_SIDECAR_HTTP_PORT="0", INTERLOCK_SIDECAR_GRPC_PORT="0", **addresses,
    )  # fmt: skip
    return told["ports"]["sidecar_grpc"]


class Agent:
    """Calls Check window after window and starts a new session before the old one ends."""

    def __init__(self, port: int) -> None:
        self.stub = sidecar_pb2_grpc.SidecarServiceStub(grpc.aio.insecure_channel(f"127.0.0.1:{port}"))
        self.token, self.left = "", 0

    async def call(self) -> None:
        if not self.left:
            self.token, self.left = (await self.check("")).outcome.session_token, WINDOWS - 1
        self.token = (await self.check(self.token)).outcome.session_token
        self.left -= 1

    async def check(self, token: str) -> sidecar_pb2.CheckResponse:
        return await self.stub.Check(
            sidecar_pb2.CheckRequest(
                context=sidecar_pb2.CallContext(session_token=token), text="Revenue rose by 4 %.",
                facts=[common_pb2.Fact(id="f", content="Revenue rose by 4 %.", importance=0.5)], query="Revenue?",
            ),
            timeout=10,
        )  # fmt: skip


async def p50(call: Callable[[], object]) -> float:
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        await call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


async def measure(echo_port: int, one_port: int, separate_port: int) -> dict[str, float]:
    echo_call = grpc.aio.insecure_channel(f"127.0.0.1:{echo_port}").unary_unary(ECHO)
    payload = bytes(200)
    calls = {"echo": lambda: echo_call(payload), "one": Agent(one_port).call, "separate": Agent(separate_port).call}
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for name, call in calls.items():
        for _ in range(30):
            await call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            rounds[name].append(await p50(call))
    return {name: statistics.median(values) for name, values in rounds.items()}


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "valkey").mkdir()
        with Valkey(folder / "valkey") as valkey:
            children = Children(folder, valkey.url)
            try:
                echo = children.start(["bench.sidecar", "echo"], "echo")["port"]
                one = children.start(["bench.sidecar", "mesh"], "mesh")["port"]
                found = asyncio.run(measure(echo, one, start_separate(children)))
            except Exception:
                print((folder / "mesh.log").read_text()[-3000:], file=sys.stderr)
                raise
            finally:
                children.stop()
    figures = {
        "sidecar: echo p50": (found["echo"] * 1e6, None, "", "us"),
        "sidecar: Check p50, one process": (found["one"] * 1e6, None, "", "us"),
        "sidecar: Check p50, separate services": (found["separate"] * 1e6, None, "", "us"),
        "sidecar: Check over echo, one process": (found["one"] / found["echo"], 1.6, "lower", "ratio"),
        "sidecar: Check over echo, separate services": (found["separate"] / found["echo"], 3.5, "lower", "ratio"),
    }
    names = ("value", "target", "better", "unit")
    print(json.dumps({figure: dict(zip(names, row, strict=True)) for figure, row in figures.items()}))


ROLES = {"echo": serve_echo, "dpe": serve_dpe, "mesh": serve_mesh}

if __name__ == "__main__":
    uvloop.run(ROLES[sys.argv[1]]()) if len(sys.argv) > 1 else main()
