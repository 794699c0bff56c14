"""Decisions per second of one process: spending from a lease, and the peer's atomic call, which decides in this process alone."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from importlib.util import find_spec

from bench.kernel.meshes import DEFINITION, RESOURCE
from interlock.client.kernel import KernelCalls, Lease

PEER = "clampai"
SECONDS, FIRST_SLICE, AT_ONCE = 2.0, 5.0, 100


def has_peer() -> bool:
    return find_spec(PEER) is not None


def counted(spend: Callable[[], object]) -> tuple[int, float]:
    """Spend one after the other for a time; return how often, and how often per second."""
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        for _ in range(AT_ONCE):
            spend()
        done += AT_ONCE
    return done, done / (time.perf_counter() - began)


class Leasing:
    """Ours: slices of a real kernel over HTTP; the first one is small and they grow, as the client has them grow."""

    def __init__(self, url: str) -> None:
        self._calls, self._kernel = KernelCalls(url), f"lease-{uuid.uuid4().hex}"
        self._calls.post(self._kernel, "open", {"definition": dict(DEFINITION)})
        self._spent = 0

    def rate(self) -> float:
        said: list[bool] = []
        with Lease(self._calls, self._kernel, RESOURCE, wanted=FIRST_SLICE) as lease:
            done, rate = counted(lambda: said.append(lease.spend(1.0)))
        self._spent += done
        held = next(one for one in self._calls.describe(self._kernel)["resources"] if one["name"] == RESOURCE)
        charged = int(held["gross_micros"]) - int(held["refunded_micros"])
        if not all(said) or charged != self._spent * 1_000_000:
            raise SystemExit(f"{sum(said)} of {done} were spent, and {charged} micros are charged")
        return rate


class Peer:
    """The peer's ``evaluate_and_execute_atomic`` with as little to do as it can have: no invariants and no effects."""

    def __init__(self) -> None:
        from clampai import ActionSpec, SafetyKernel, State

        self._make = lambda: SafetyKernel(budget=1e9, invariants=[], min_action_cost=1.0)
        self._state = State({"n": 0})
        self._action = ActionSpec(id="pay", name="Pay", description="", effects=(), cost=1.0)

    def rate(self) -> float:
        kernel = self._make()
        done, rate = counted(lambda: kernel.evaluate_and_execute_atomic(self._state, self._action))
        if kernel.step_count != done:
            raise SystemExit(f"the peer took {kernel.step_count} of {done} steps")
        return rate
