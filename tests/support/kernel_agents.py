"""Agents of kernel tests, each a process of its own: ``python -m tests.support.kernel_agents WHAT KERNEL URL [COUNT]``.

What they did is printed as JSON, one line per action that was answered.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Mapping
from typing import Any

import httpx

from interlock.client.errors import InterlockError
from interlock.client.kernel import ActionSpec, Effect, Invariant, KernelCalls, Lease, SafetyKernel, State
from interlock.client.kernel.calls import micros


def acting(kernel: str, url: str, count: int) -> None:
    """Executes, permits, aborts and rolls back, each under a key of its own; tells each answer once it has it."""
    calls = KernelCalls(url, retries=8)
    for number in range(count):
        key = uuid.uuid4().hex
        if number % 40 == 39:
            alarmed(calls, kernel, key)
            continue
        ask = "permit" if number % 5 == 4 else "execute"
        try:
            verdict = calls.post(kernel, ask, {"action": ("small", "task", "mail")[number % 3], "key": key})["verdict"]
            told(key=key, approved=verdict["approved"], sequence=int(verdict["sequence"]))
            if not verdict["approved"]:
                continue
            if ask == "permit":
                undone = calls.post(kernel, "abort", {"permit": key, "key": f"a{key}"})["verdict"]
            elif number % 4 == 3:
                undone = calls.post(kernel, "rollback", {"executions": [key], "key": f"r{key}"})["verdict"]
            else:
                continue
            told(undone=key, approved=undone["approved"], sequence=int(undone["sequence"]))
        except (InterlockError, httpx.TransportError) as error:
            told(failed=str(error), key=key)


def alarmed(calls: KernelCalls, kernel: str, key: str) -> None:
    """Does an emergency action, which is possible at any time, and tells whether its sidecar only recorded it."""
    try:
        verdict = calls.post(kernel, "emergency", {"action": "leave", "key": key})["verdict"]
    except (InterlockError, httpx.TransportError) as error:
        told(failed=str(error), key=key)
    else:
        told(
            key=key,
            approved=verdict["approved"],
            sequence=int(verdict["sequence"]),
            recorded="recorded_at_ms" in verdict,
        )


def leasing(kernel: str, url: str, count: int) -> None:
    """Spends from leases until the budget is gone or *count* is reached, and tells what it spent."""
    with Lease(KernelCalls(url, retries=8), kernel, "usd", wanted=5.0, lifetime_s=5.0) as lease:
        for _ in range(count):
            if not lease.spend(1.0):
                break
            told(spent=micros(1.0))


def judging(kernel: str, url: str, count: int) -> None:
    """Executes under a predicate of its own, so that only one of all who evaluate at a time can commit."""
    few = Invariant("few", lambda state: state.get("n", 0) <= 1_000, "few")
    shared = SafetyKernel(1_000.0, [few], min_action_cost=1.0, name=kernel, calls=KernelCalls(url, retries=8))
    step = ActionSpec("step", "A step", effects=(Effect("n", "increment", 1),), cost=1.0)
    for _ in range(count):
        after, entry = shared.evaluate_and_execute_atomic(State({"n": 0}), step)
        told(n=after.get("n"), step=entry.step)


def told(**what: Any) -> None:
    """Print what happened; it is out before the next thing begins."""
    line: Mapping[str, Any] = what
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    what, kernel, url, *rest = sys.argv[1:]
    {"acting": acting, "leasing": leasing, "judging": judging}[what](kernel, url, int(rest[0]) if rest else 1)


if __name__ == "__main__":
    main()
