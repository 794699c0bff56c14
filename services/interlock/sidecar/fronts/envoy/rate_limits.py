"""Envoy's rate limit service on the kernel: a request goes on where each of its descriptors may be charged (MSH-3).

Whatever goes wrong is OVER_LIMIT with its reason in the body: on an error Envoy would let the request pass, unless its filter says otherwise.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.api.envoy import rls_pb2 as pb
from interlock.api.envoy import rls_pb2_grpc
from interlock.api.kernel.v1 import kernel_pb2
from interlock.domain.errors import Refused, exhausted
from interlock.runtime.rpc.errors import internal
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.runtime.settings.rereading import Reread
from interlock.sidecar.fronts.envoy.rate_mapping import KernelCharge, RateLimits, charge_of
from interlock.sidecar.fronts.responses import refused_body
from interlock.sidecar.openai import strictjson
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

ASKED = Counter("interlock_rate_limits", "Requests that Envoy asked the limits of, by outcome.", ["outcome"])

Ask = Callable[[str, Any], Awaitable[Any]]
Then = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Taken:
    """What was taken for a descriptor."""

    settle: Then
    undo: Then


class RateLimiter(rls_pb2_grpc.RateLimitServiceServicer):
    """Answers for ``envoy.service.ratelimit.v3.RateLimitService``."""

    def __init__(self, kernels: Kernels, limits: Reread[RateLimits] | None) -> None:
        """*limits*: what descriptors are counted as; ``None``: nothing is, and every request ends here."""
        self._kernels, self._limits = kernels, limits

    async def ShouldRateLimit(self, request: pb.RateLimitRequest, _context: Any) -> pb.RateLimitResponse:  # noqa: N802 - gRPC's name
        """Charge every descriptor, or none."""
        try:
            await self._charged(request)
        except Refused as refused:
            return _over(refused, len(request.descriptors))
        except Exception:
            log.exception("envoy.rate_limit_defect")
            return _over(internal(), len(request.descriptors))
        ASKED.labels("ok").inc()
        return _answered(pb.RateLimitResponse.OK, len(request.descriptors))

    async def _charged(self, request: pb.RateLimitRequest) -> None:
        if self._limits is None or not request.descriptors:
            raise exhausted("RATE_LIMIT_UNMAPPED", "nobody has said what this request is counted as (rate_limits_file)")
        limits = self._limits.now()
        charges = [charge_of(limits, request.domain, _entries(one), _hits(one, request)) for one in request.descriptors]
        taken: list[Taken] = []
        try:
            for charge in charges:
                taken.append(await self._take(limits.caller, charge))  # noqa: PERF401 - what was taken so far is undone
        except Refused:
            for one in reversed(taken):
                with contextlib.suppress(Refused):  # what cannot be given back stays charged
                    await one.undo()
            raise
        for one in taken:
            await one.settle()

    async def _take(self, scope: str, charge: KernelCharge) -> Taken:
        """Take what a descriptor asks. Refused with RATE_LIMIT_REACHED, or as the kernel says."""
        ask = partial(self._kernels.ask, scope, "")
        return await (_permitted(ask, charge) if charge.resource else _executed(ask, charge))


async def _executed(ask: Ask, charge: KernelCharge) -> Taken:
    """Execute the action, at its own costs."""
    key = uuid.uuid4().hex
    request = kernel_pb2.ExecuteRequest(kernel=charge.kernel, action=charge.action, key=key, child=charge.child)
    _require((await ask("execute", request)).verdict, charge.action)

    async def undo() -> None:
        back = kernel_pb2.RollbackRequest(kernel=charge.kernel, executions=[key], key=uuid.uuid4().hex)
        await ask("rollback", back)

    return Taken(_nothing, undo)


async def _permitted(ask: Ask, charge: KernelCharge) -> Taken:
    """Reserve the action's costs, of which the hits are settled. A permit that nobody settles counts as done in full."""
    key = uuid.uuid4().hex
    request = kernel_pb2.PermitRequest(kernel=charge.kernel, action=charge.action, key=key, child=charge.child)
    verdict = (await ask("permit", request)).verdict
    _require(verdict, charge.action)

    async def settle() -> None:
        actual = [kernel_pb2.Cost(resource=charge.resource, micros=charge.amount_micros)]
        confirm = kernel_pb2.ConfirmRequest(kernel=charge.kernel, permit=key, key=uuid.uuid4().hex, actual=actual)
        _require((await ask("confirm", confirm)).verdict, charge.action)

    async def undo() -> None:
        abort = kernel_pb2.AbortRequest(kernel=charge.kernel, permit=key, key=uuid.uuid4().hex)
        await ask("abort", abort)

    if charge.amount_micros > sum(one.micros for one in verdict.costs if one.resource == charge.resource):
        await undo()
        raise exhausted("RATE_LIMIT_HITS", "so many hits cost more than the action reserves")
    return Taken(settle, undo)


async def _nothing() -> None:
    """An execution is settled already."""


def _require(verdict: kernel_pb2.Verdict, what: str) -> None:
    if not verdict.approved:
        checks = ",".join(one.code for one in verdict.checks if not one.passed and not one.monitoring)
        raise _reached(what, checks, verdict.for_model)


def _reached(what: str, checks: str, for_model: str) -> Refused:
    told = {"limit": what, "checks": checks, "for_model": for_model}
    known = {name: value for name, value in told.items() if value}
    return exhausted("RATE_LIMIT_REACHED", f"the kernel does not allow {what} now", **known)


def _entries(one: pb.RateLimitDescriptor) -> list[tuple[str, str]]:
    return [(entry.key, entry.value) for entry in one.entries]


def _hits(one: pb.RateLimitDescriptor, request: pb.RateLimitRequest) -> int:
    """Return the hits of a descriptor; what is to be given back is none that can be charged."""
    if one.is_negative_hits:
        return 0
    return int(one.hits_addend.value) if one.HasField("hits_addend") else request.hits_addend or 1


def _over(refused: Refused, count: int) -> pb.RateLimitResponse:
    ASKED.labels("over").inc()
    log.info("envoy.over_limit", reason=refused.reason)
    over = _answered(pb.RateLimitResponse.OVER_LIMIT, count)
    over.raw_body = strictjson.dumps(refused_body(refused, ResponseHeaders()))
    over.response_headers_to_add.add(key="content-type", value="application/json")
    return over


def _answered(code: pb.RateLimitResponse.Code.ValueType, count: int) -> pb.RateLimitResponse:
    return pb.RateLimitResponse(
        overall_code=code, statuses=[pb.RateLimitResponse.DescriptorStatus(code=code) for _ in range(count)]
    )
