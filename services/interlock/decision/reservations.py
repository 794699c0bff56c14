"""What accepted actions reserve in the shared kernel, and how that is settled (DEC-13; ADR 39).

The key of a permit is made of the experiment, the cycle and the kernel's action. So a cycle that is run again after a crash finds the
permit that it took, and two processes that run one cycle take one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import structlog

from interlock.api.kernel.v1 import kernel_pb2
from interlock.decision import metrics
from interlock.domain.decision.definition import ExperimentRules, KernelAddress
from interlock.domain.decision.engine import decide, permit_wanted
from interlock.domain.decision.reading import digest
from interlock.domain.errors import Kind, Refused, unavailable
from interlock.runtime.rpc.kernels.kernels import Kernels

log = structlog.get_logger()

KERNEL_LIMIT_S = 3.0
"""The most that a kernel's answer may hold a cycle up. Without one the guard rejects, and the experiment goes on."""


def permit_key(experiment_id: str, cycle: int, action: str) -> str:
    """Return the key under which a cycle reserves an action of the kernel."""
    return "dec_" + digest(["permit", experiment_id, cycle, action])[:48]


class Reservations:
    """The kernels of experiments' owners, asked for figures and permits."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels

    async def figures(self, scope: str, rules: ExperimentRules) -> dict[str, Any] | None:
        """Return what the guard reads of the kernel: what is left, and what the actions cost. ``None`` without a kernel."""
        place = rules.kernel
        if place is None:
            return None
        told = {"name": place.kernel, "child": place.child, "fault": ""}
        try:
            found = (await self._asked(scope, "describe", kernel_pb2.DescribeRequest(kernel=place.kernel))).described
        except Refused as refused:
            log.warning("decision.kernel_unread", scope=scope, reason=refused.reason)
            return {**told, "fault": refused.reason}
        wanted = {one.permit for one in rules.actions.values() if one.permit}
        remaining, stopped = _left(found, place)
        if remaining is None:
            return {**told, "fault": "KERNEL_CHILD_UNKNOWN"}
        costs = {
            one.id: {cost.resource: cost.micros for cost in one.costs}
            for one in found.definition.actions
            if one.id in wanted
        }
        return {**told, "remaining": remaining, "costs": costs, "stopped": stopped, "sequence": found.sequence}

    async def decided(self, scope: str, rules: ExperimentRules, trace: dict[str, Any]) -> dict[str, Any]:
        """Return the trace once everything that it accepts is permitted. What the kernel refuses is rejected, and decided anew."""
        while action := permit_wanted(rules, trace):
            inputs = trace["inputs"]
            key = permit_key(inputs["experiment"], inputs["cycle"], action)
            permits = {**inputs.get("permits", {}), action: await self._permit(scope, rules, action, key)}
            trace = await asyncio.to_thread(decide, rules, {**inputs, "permits": permits})
        return trace

    async def release(
        self, scope: str, rules: ExperimentRules, experiment_id: str, cycle: int, *, keep: Collection[str]
    ) -> bool:
        """Take back what a sealed cycle did not accept; tell whether the kernel answered. What it was not asked counts as done there."""
        for action in sorted({one.permit for one in rules.actions.values() if one.permit}):
            key = permit_key(experiment_id, cycle, action)
            if rules.kernel is None or key in keep:
                continue
            # What was not answered may still be on its way.
            request = kernel_pb2.AbortRequest(
                kernel=rules.kernel.kernel, permit=key, key=f"{key}:void", even_unseen=True
            )
            try:
                found = await self._asked(scope, "abort", request)
            except Refused as refused:
                if refused.reason != "KERNEL_EXECUTION_UNKNOWN":
                    log.warning("decision.not_released", experiment_id=experiment_id, reason=refused.reason)
                if refused.kind in {Kind.UNAVAILABLE, Kind.TIMEOUT}:
                    return False  # nor does it answer for the next action: a cycle waits for it once
            else:
                was_there = not any(one.name.startswith("unseen:") for one in found.verdict.checks)
                metrics.RESERVATIONS.labels("released").inc(was_there)
        return True

    async def settle(
        self, scope: str, place: KernelAddress, key: str, *, done: bool, actual: Mapping[str, int]
    ) -> kernel_pb2.Verdict:
        """Confirm a permit with what it cost, or take it back. Raises the kernel's refusals."""
        request: Any
        if done:
            costs = [kernel_pb2.Cost(resource=name, micros=micros) for name, micros in sorted(actual.items())]
            request = kernel_pb2.ConfirmRequest(kernel=place.kernel, permit=key, key=f"{key}:done", actual=costs)
            found = await self._asked(scope, "confirm", request)
        else:
            request = kernel_pb2.AbortRequest(kernel=place.kernel, permit=key, key=f"{key}:not")
            found = await self._asked(scope, "abort", request)
        verdict: kernel_pb2.Verdict = found.verdict
        return verdict

    async def _permit(self, scope: str, rules: ExperimentRules, action: str, key: str) -> dict[str, Any]:
        assert rules.kernel is not None, "a definition with a permit names its kernel"
        request = kernel_pb2.PermitRequest(
            kernel=rules.kernel.kernel, child=rules.kernel.child, action=action, key=key
        )  # fmt: skip
        try:
            verdict = (await self._asked(scope, "permit", request)).verdict
        except Refused as refused:
            metrics.RESERVATIONS.labels("unanswered").inc()
            return {
                "key": key,
                "approved": False,
                "reason": refused.reason,
                "sequence": 0,
                "costs": {},
                "asked": "unknown",
            }
        metrics.RESERVATIONS.labels("approved" if verdict.approved else "rejected").inc()
        failed = [one.code for one in verdict.checks if not one.passed and not one.monitoring]
        costs = {one.resource: one.micros for one in verdict.costs} if verdict.approved else {}
        return {
            "key": key, "approved": verdict.approved, "reason": ",".join(sorted({*failed})), "sequence": verdict.sequence,
            "costs": costs, "asked": "answered",
        }  # fmt: skip

    async def _asked(self, scope: str, what: str, request: Any) -> Any:
        """Return the kernel's answer; a kernel that is slow is one that does not answer."""
        try:
            async with asyncio.timeout(KERNEL_LIMIT_S):
                return await self._kernels.ask(scope, "", what, request)
        except TimeoutError:
            raise unavailable("KERNEL_UNANSWERED", "the kernel does not answer in time") from None


def _left(found: kernel_pb2.DescribeResponse, place: KernelAddress) -> tuple[dict[str, int] | None, bool]:
    """Return what is left for a place, which is the least of it and of all above it, and whether any of these is stopped."""
    remaining = {one.name: one.remaining_micros for one in found.resources}
    children = {one.name: one for one in found.children}
    stopped, name = found.stopped, place.child
    while name:
        if name not in children:
            return None, stopped
        for one in children[name].resources:
            remaining[one.name] = min(remaining.get(one.name, one.remaining_micros), one.remaining_micros)
        stopped = stopped or children[name].stopped
        name = children[name].parent
    return remaining, stopped
