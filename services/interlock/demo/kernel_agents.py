"""The agents of the kernel demonstration, each in its own process; what they did is printed as JSON lines.

``python -m interlock.demo.kernel_agents worker|booker NAME MODULE``. MODULE is interlock.client.kernel, or clampai: the peer, whose names
it has, so that the same lines run on both.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

BUDGET, WORK, BOOKING, MOST = 100.0, 3.0, 10.0, 40


def say(agent: str, event: str, **fields: Any) -> None:
    """Print one line about an agent."""
    print(json.dumps({"agent": agent, "event": event, **fields}), flush=True)  # noqa: T201 - the demonstration reads it


def kernel_of(module: Any, **more: Any) -> Any:
    """Return the kernel of the five: INTERLOCK_KERNEL names it, and the peer keeps one for itself."""
    few = module.Invariant("bookings", lambda state: state.get("booked", 0) <= 5)
    shared = module.__name__ == "interlock.client.kernel"
    if shared:  # an expression is evaluated in the store, so no process has to carry it
        few = module.Invariant("bookings", expression="booked <= 5", variables={"booked": "n"})
    return module.SafetyKernel(
        BUDGET, [few], min_action_cost=1.0, **more, **({"emergency_actions": {"leave"}} if shared else {})
    )


def worker(agent: str, module: Any) -> None:
    """Work until it is refused; then, at a word, try once more."""
    kernel, state = kernel_of(module), module.State({"booked": 0, "done": 0})
    work = module.ActionSpec(
        "work", "Work", description="", effects=(module.Effect("done", "increment", 1),), cost=WORK
    )
    done = 0
    sys.stdin.readline()
    for _ in range(MOST):
        try:
            state, _ = kernel.execute(state, work)
        except RuntimeError as refused:
            say(agent, "refused", done=done, why=str(refused))
            break
        done += 1
    else:
        say(agent, "ended", done=done, why="")
    if sys.stdin.readline():
        try:
            kernel.execute(state, work)
            say(agent, "went on", done=done + 1, why="")
        except RuntimeError as refused:
            say(agent, "stopped", done=done, why=str(refused))


def booker(agent: str, module: Any) -> None:
    """Book in the middle of a saga, and wait for what is to come."""
    kernel, state = kernel_of(module), module.State({"booked": 0, "done": 0})
    book, unbook = booking(module)
    if module.__name__ == "interlock.client.kernel":
        kernel.prepare(state, None)
        with kernel.saga(lifetime_s=2.0) as saga:
            saga.perform(book, lambda: None)
            say(agent, "booked", saga=saga.key)
            time.sleep(600)
    kernel.execute(state, book)
    del unbook
    say(agent, "booked", saga="")
    time.sleep(600)


def booking(module: Any) -> tuple[Any, Any]:
    """Return the action of the saga, and what makes up for it."""
    unbook = module.ActionSpec(
        "unbook", "Unbook", description="", effects=(module.Effect("booked", "decrement", 1),), cost=0.0
    )
    more = {"compensation": unbook} if module.__name__ == "interlock.client.kernel" else {}
    effects = (module.Effect("booked", "increment", 1),)
    return module.ActionSpec("book", "Book", description="", effects=effects, cost=BOOKING, **more), unbook


def main() -> None:
    """Be one agent."""
    what, agent, name = sys.argv[1:]
    {"worker": worker, "booker": booker}[what](agent, importlib.import_module(name))


if __name__ == "__main__":
    main()
