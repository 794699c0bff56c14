"""Decisions per second of one process: spending from a lease, and the peer's atomic call, which decides in this process alone."""

from __future__ import annotations

import time
import uuid
from importlib.util import find_spec

from bench.kernel.meshes import DEFINITION, RESOURCE
from interlock.client.kernel import KernelCalls, Lease

PEER = "clampai"
EACH, FIRST_SLICE = 20_000, 5.0


def has_peer() -> bool:
    return find_spec(PEER) is not None


class Leasing:
    """Ours: slices of a real kernel over HTTP; the first one is small and they grow, as the client has them grow."""

    def __init__(self, url: str) -> None:
        self._calls, self._kernel = KernelCalls(url), f"lease-{uuid.uuid4().hex}"
        self._calls.post(self._kernel, "open", {"definition": dict(DEFINITION)})
        self._spent = 0

    def rate(self) -> float:
        began = time.perf_counter()
        with Lease(self._calls, self._kernel, RESOURCE, wanted=FIRST_SLICE) as lease:
            done = sum(lease.spend(1.0) for _ in range(EACH))
        took = time.perf_counter() - began
        self._spent += done
        held = next(one for one in self._calls.describe(self._kernel)["resources"] if one["name"] == RESOURCE)
        charged = int(held["gross_micros"]) - int(held["refunded_micros"])
        if done != EACH or charged != self._spent * 1_000_000:
            raise SystemExit(f"{done} of {EACH} were spent, and {charged} micros are charged")
        return EACH / took


class Peer:
    """The peer's ``evaluate_and_execute_atomic`` with as little to do as it can have: no invariants and no effects."""

    def __init__(self) -> None:
        from clampai import ActionSpec, SafetyKernel, State

        self._make = lambda: SafetyKernel(budget=10.0 * EACH, invariants=[], min_action_cost=1.0)
        self._state = State({"n": 0})
        self._action = ActionSpec(id="pay", name="Pay", description="", effects=(), cost=1.0)

    def rate(self) -> float:
        kernel = self._make()
        began = time.perf_counter()
        for _ in range(EACH):
            kernel.evaluate_and_execute_atomic(self._state, self._action)
        took = time.perf_counter() - began
        if kernel.step_count != EACH:
            raise SystemExit(f"the peer took {kernel.step_count} of {EACH} steps")
        return EACH / took
