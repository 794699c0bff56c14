"""A small service of our own protos whose every answer a test chooses by the request's text."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from interlock.api.audit.v1 import audit_pb2
from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceServicer, add_AuditServiceServicer_to_server
from interlock.api.policy.v1 import policy_pb2
from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceServicer, add_PolicyServiceServicer_to_server
from interlock.domain.errors import conflict, exhausted, invalid
from interlock.runtime.rpc.errors import answers_refusals
from interlock.runtime.rpc.service import Service
from tests.support.texts.canary import PROMPT


class PolicyProbe(PolicyServiceServicer):
    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()

    async def Parse(self, request, context):
        match request.text:
            case "refuse":
                raise exhausted("PROBE_FULL", "the probe is full")
            case "crash":
                raise ValueError(PROMPT)
            case "wait":
                self.started.set()
                await self.release.wait()
            case "remaining":
                return policy_pb2.ParseResponse(canonical_text=str(context.time_remaining()))
            case "large":
                return policy_pb2.ParseResponse(canonical_text="x" * 5_000_000)
        return policy_pb2.ParseResponse(canonical_text=request.text)

    @answers_refusals(policy_pb2.CompareResponse)
    async def Compare(self, request, _context):
        raise invalid("PROBE_INVALID", "the probe says no", position="7")


class AuditProbe(AuditServiceServicer):
    def __init__(self) -> None:
        self.ended = asyncio.Event()
        """Whether a flood was ended where it stood."""

    async def Export(self, request, _context):
        for sequence in (1, 2):
            yield audit_pb2.ExportResponse(event=audit_pb2.Event(sequence=sequence, session_id=request.session_id))
        match request.session_id:
            case "refuse":
                raise conflict("PROBE_BROKEN", "the probe's chain is broken")
            case "crash":
                raise ValueError(PROMPT)
            case "wait":
                await asyncio.Event().wait()
            case "flood":
                try:
                    while True:
                        yield audit_pb2.ExportResponse(event=audit_pb2.Event(data_json="x" * 100_000))
                finally:
                    self.ended.set()


class Dependency:
    """What a service of a test misses now."""

    def __init__(self) -> None:
        self.gone: dict[str, str] = {}

    async def unready_dependencies(self) -> Mapping[str, str]:
        return dict(self.gone)


def policy_service(servicer: PolicyProbe, dependency: Dependency | None = None) -> Service:
    return _service("policy", servicer, add_PolicyServiceServicer_to_server, dependency)


def audit_service(servicer: AuditProbe, dependency: Dependency | None = None) -> Service:
    return _service("audit", servicer, add_AuditServiceServicer_to_server, dependency)


def _service(name, servicer, register, dependency):
    async def close() -> None:
        pass

    return Service(
        name=name,
        full_names=(f"interlock.api.{name}.v1.{name.capitalize()}Service",),
        servicer=servicer,
        register=register,
        unready_dependencies=(dependency or Dependency()).unready_dependencies,
        close=close,
    )
