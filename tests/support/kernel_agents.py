"""Agents of kernel tests, each a process of its own: ``python -m tests.support.kernel_agents WHAT KERNEL URL [COUNT]``.

What they did is printed as JSON, one line per action that was answered.
"""

from __future__ import annotations

import json
import sys
import threading
import uuid
from collections.abc import Mapping
from typing import Any

import httpx

from interlock.client.errors import InterlockError
from interlock.client.kernel import ActionSpec, Effect, Invariant, KernelCalls, Lease, SafetyKernel, State
from interlock.client.kernel.calls import micros


def agent_worker(agent_id: str, shared_kernel: SafetyKernel, initial_state: State):
    """The worker of the seed, as it stands there (SEED-2, Usage)."""
    action = ActionSpec(
        id=f"task_{agent_id}",
        name=f"Agent {agent_id} task",
        effects=(Effect("active_tasks", "increment", 1),),
        cost=10.0,
    )
    # evaluate_and_execute_atomic is thread-safe
    new_state, entry = shared_kernel.evaluate_and_execute_atomic(  # noqa: RUF059 - as it stands there
        initial_state, action, reasoning_summary=f"Agent {agent_id} acting"
    )
    return new_state


def seed(kernel: str, url: str, count: int) -> None:
    """The usage code of the seed: five threads, each its own task, until the budget of all processes is spent."""
    shared_kernel = SafetyKernel(
        budget=100.0,
        invariants=[
            Invariant(
                "global_resource_limit",
                lambda s: s.get("active_tasks", 0) <= 10,
                enforcement="blocking",
            )
        ],
        min_action_cost=1.0,
        name=kernel,
        base_url=url,
    )
    state = State({"active_tasks": 0})

    def work(agent_id: str) -> None:
        try:
            told(done=agent_worker(agent_id, shared_kernel, state).to_dict())
        except RuntimeError as error:
            told(refused=str(error))

    threads = [threading.Thread(target=work, args=(str(i),)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def acting(kernel: str, url: str, count: int) -> None:
    """Executes, permits, aborts and rolls back, each under a key of its own; tells each answer once it has it."""
    calls = KernelCalls(url, retries=8)
    for number in range(count):
        key = uuid.uuid4().hex
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


def leasing(kernel: str, url: str, count: int) -> None:
    """Spends from leases until the budget is gone or *count* is reached, and tells what it spent."""
    with Lease(KernelCalls(url, retries=8), kernel, "usd", wanted=5.0, lifetime_s=5.0) as lease:
        for _ in range(count):
            if not lease.spend(1.0):
                break
            told(spent=micros(1.0))


def told(**what: Any) -> None:
    """Print what happened; it is out before the next thing begins."""
    line: Mapping[str, Any] = what
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    what, kernel, url, *rest = sys.argv[1:]
    {"seed": seed, "acting": acting, "leasing": leasing}[what](kernel, url, int(rest[0]) if rest else 1)


if __name__ == "__main__":
    main()
