"""The servers of the kernel's bench: session, audit and sidecar in one process, on a real Valkey or in its memory, with and without the seal.

    python -m bench.kernel.meshes sealed|unsealed

Prints its ports. Without the seal the audit service is one that answers at once and keeps nothing; all else is the product.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

import uvloop

from bench.sidecar import fixed_dpe
from interlock.api.audit.v1 import audit_pb2, audit_pb2_grpc
from interlock.runtime import logging, telemetry
from interlock.runtime.http.server import WebServer, listen
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings

RESOURCE, ACTION, LIMIT = "usd", "pay", 1_000_000_000_000_000
DEFINITION: Mapping[str, Any] = {
    "resources": [{"name": RESOURCE, "limit_micros": str(LIMIT), "min_cost_micros": "1"}],
    "actions": [{"id": ACTION, "costs": [{"resource": RESOURCE, "micros": "1000000"}]}],
}


class NoSeal(audit_pb2_grpc.AuditServiceServicer):
    """Takes records of kernels for sealed."""

    async def SealKernel(self, request, _context):
        return audit_pb2.SealKernelResponse(sequence=request.records[-1].sequence)


async def _none_missing() -> dict[str, str]:
    return {}


async def _nothing() -> None:
    return None


def no_seal() -> Service:
    return Service(
        "audit", ("interlock.api.audit.v1.AuditService",), NoSeal(),
        audit_pb2_grpc.add_AuditServiceServicer_to_server, _none_missing, _nothing,
    )  # fmt: skip


async def serve(kind: str) -> None:
    from interlock.audit.wiring import open_service as open_audit
    from interlock.policy.wiring import open_service as open_policy
    from interlock.session.wiring import open_service as open_session
    from interlock.sidecar.wiring import open_sidecar

    settings = Settings(allow_plaintext=True)
    logging.configure(settings.log_level)
    telemetry.configure(settings, service="bench")
    mesh = Mesh.local(
        session=await open_session(settings), policy=await open_policy(settings), dpe=fixed_dpe(),
        audit=await open_audit(settings) if kind == "sealed" else no_seal(),
    )  # fmt: skip
    sidecar = await open_sidecar(settings, mesh, mesh.unready_dependencies)
    server = RpcServer([sidecar.service], settings, port=0)
    web = WebServer(sidecar.http_app, settings, listen(settings, 0, "http"), front=True)
    print(json.dumps({"grpc": await server.start(), "http": await web.start()}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
