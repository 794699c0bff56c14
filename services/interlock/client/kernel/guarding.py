"""The peer's ``@safe``: a function that runs only as often as a shared budget and its invariants allow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from interlock.client.kernel.model import ActionSpec, Effect, Invariant, State, verdict_of
from interlock.client.kernel.safety import SafetyKernel

P = ParamSpec("P")
R = TypeVar("R")


class SafetyViolation(RuntimeError):  # noqa: N818 - the peer's name
    """The function was not called. *reasons* tell every check that failed."""

    def __init__(self, action: str, reasons: Sequence[str]) -> None:
        super().__init__(f"{action}: {'; '.join(reasons)}")
        self.reasons = tuple(reasons)


def safe(
    budget: float,
    *,
    cost_per_call: float = 1.0,
    invariants: Sequence[Invariant] = (),
    action_name: str | None = None,
    **kernel: Any,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Charge each call before it is made; raise ``SafetyViolation`` instead where it is not permitted.

    Invariants see ``call_count`` and ``total_cost``. A call is a permit: confirmed when the function returns; one that raises, or whose
    process dies, counts as made; one whose permit was not answered is not made, and charges nothing. *kernel* are further arguments of
    ``SafetyKernel``, such as *name*.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = action_name or str(getattr(function, "__name__", "call"))
        shared = SafetyKernel(budget, invariants, **kernel)
        counts = (Effect("call_count", "increment", 1), Effect("total_cost", "increment", cost_per_call))
        action = ActionSpec(name, name, effects=counts, cost=cost_per_call)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            shared.prepare(State({"call_count": 0, "total_cost": 0}), action)
            told, key = shared.decide(action, "permit")
            if not told["approved"]:
                raise SafetyViolation(name, verdict_of(told, action).rejection_reasons)
            result = function(*args, **kwargs)
            shared.permits.confirm(key)
            return result

        vars(called)["kernel"] = shared
        return called

    return decorate
