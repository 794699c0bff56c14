"""Steps that are undone together, over processes and in the world (KRN-5)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from interlock.client.errors import InterlockError
from interlock.client.kernel.calls import KernelCalls
from interlock.client.kernel.model import ActionSpec, State, TraceEntry
from interlock.client.kernel.permits import Permits

R = TypeVar("R")


class _Kernel(Protocol):
    calls: KernelCalls
    name: str
    permits: Permits

    def execute_in(
        self, saga: str, state: State, action: ActionSpec, reasoning_summary: str = ""
    ) -> tuple[State, TraceEntry]: ...

    def prepare(self, state: State, action: ActionSpec | None) -> None: ...

    def decide(self, action: ActionSpec, ask: str = "execute", *, saga: str = "") -> tuple[Mapping[str, Any], str]: ...


class Saga:
    """``with`` opens and ends it; an exception rolls it back. One whose process dies is rolled back at the end of its time."""

    def __init__(self, kernel: _Kernel, *, lifetime_s: float) -> None:
        self._kernel, self._lifetime_s = kernel, lifetime_s
        self.key = uuid.uuid4().hex

    def __enter__(self) -> Self:
        body = {"lifetime_ms": int(self._lifetime_s * 1000), "key": self.key}
        told = self._kernel.calls.post(self._kernel.name, "begin-saga", body)["verdict"]
        _require(told, "a saga")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._settled("end-saga", "end")
        else:
            self._settled("rollback", "undo")

    def execute(self, state: State, action: ActionSpec, reasoning_summary: str = "") -> tuple[State, TraceEntry]:
        """Check, charge and commit an action as a step. Raises ``RuntimeError`` with every reason of a rejection."""
        return self._kernel.execute_in(self.key, state, action, reasoning_summary)

    def perform(self, action: ActionSpec, function: Callable[[], R]) -> R:
        """Permit a step in the world, make it, confirm it. One that raises counts as made: it is made up for with the saga."""
        self._kernel.prepare(State({}), action)
        told, key = self._kernel.decide(action, "permit", saga=self.key)
        _require(told, action.id)
        result = function()
        self._kernel.permits.confirm(key)
        return result

    def _settled(self, ask: str, purpose: str) -> None:
        # One key per purpose: a call that got no answer is repeated, and done once.
        body = {"saga": self.key, "key": f"{purpose}-{self.key}"}
        _require(self._kernel.calls.post(self._kernel.name, ask, body)["verdict"], "a saga")


def compensate(
    calls: KernelCalls, kernel: str, handlers: Mapping[str, Callable[[str], Any]], *, lifetime_s: float
) -> int:
    """Run the compensations that are due (``SafetyKernel.compensate``)."""
    count = 0
    while True:
        body = {"lifetime_ms": int(lifetime_s * 1000), "key": uuid.uuid4().hex}
        told = calls.post(kernel, "claim-compensation", body)
        given = told.get("compensation")
        if given is None:
            if not told["again"]:
                return count
            continue
        outcome = "OUTCOME_DONE" if _made(handlers.get(given["action"]), given["execution"]) else "OUTCOME_FAILED"
        settled = {
            "execution": given["execution"],
            "fence": given["fence"],
            "outcome": outcome,
            "key": uuid.uuid4().hex,
        }
        count += _settled(calls, kernel, settled) and outcome == "OUTCOME_DONE"


def _settled(calls: KernelCalls, kernel: str, settled: Mapping[str, Any]) -> bool:
    """Tell how it ended; false where its claim ran out meanwhile, and it is another's by now, or settled."""
    try:
        return bool(calls.post(kernel, "settle-compensation", settled)["verdict"]["approved"])
    except InterlockError as refused:
        if refused.reason not in {"KERNEL_COMPENSATION_FENCED", "KERNEL_COMPENSATION_UNKNOWN"}:
            raise
        return False


def _made(handler: Callable[[str], Any] | None, execution: str) -> bool:
    if handler is None:
        return False
    try:
        handler(execution)
    except Exception:  # noqa: BLE001 - whatever it is, it is tried again, and at last told to a person
        return False
    return True


def _require(told: Mapping[str, Any], what: str) -> None:
    if not told["approved"]:
        raise RuntimeError(
            f"SAFETY VIOLATION: {what}. Reasons: {[one['words'] for one in told['checks'] if one['words']]}"
        )
