"""The peer's ``AsyncSafetyKernel``: the same kernel for asyncio. Calls run in threads, so that the event loop never waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from interlock.client.kernel.model import ActionSpec, Invariant, SafetyVerdict, State, TraceEntry
from interlock.client.kernel.safety import SafetyKernel


class AsyncSafetyKernel:
    """Awaits what ``SafetyKernel`` answers; its arguments are the same."""

    def __init__(self, budget: float, invariants: Sequence[Invariant] = (), **more: Any) -> None:
        self.kernel = SafetyKernel(budget, invariants, **more)

    async def evaluate(self, state: State, action: ActionSpec) -> SafetyVerdict:
        """Check an action and commit nothing."""
        return await asyncio.to_thread(self.kernel.evaluate, state, action)

    async def execute_atomic(
        self, state: State, action: ActionSpec, reasoning_summary: str = ""
    ) -> tuple[State, TraceEntry]:
        """Check, charge and commit in one step."""
        return await asyncio.to_thread(self.kernel.evaluate_and_execute_atomic, state, action, reasoning_summary)

    async def rollback(self, state_before: State, state_after: State, action: ActionSpec) -> State:
        """Undo the last execution of an action."""
        return await asyncio.to_thread(self.kernel.rollback, state_before, state_after, action)

    async def status(self) -> str:
        """Return the kernel in one line."""
        return await asyncio.to_thread(self.kernel.status)

    async def close(self) -> None:
        """Close the connections; the kernel stays."""
        await asyncio.to_thread(self.kernel.close)
