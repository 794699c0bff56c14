"""Agents of an experiment as they come: they observe and propose, now and then something that must not pass, and they die."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from typing import Any

from interlock.client.decision import running
from interlock.client.decision.model import DecisionProposal, ExperimentSnapshot, Processed, Signal
from interlock.client.decision.places import DecisionRefusedError
from interlock.domain.decision.agents import AgentDescriptor
from interlock.domain.decision.words import ActionRisk, AgentAuthority

DECLARED_SHARE = 0.9
"""Share of what is proposed that an agent has declared."""

ENDED_S = 1.0
"""How long the end of an agent is waited for."""


class Adviser:
    """One agent: what it answers is drawn with each task."""

    def __init__(self, descriptor: AgentDescriptor, rng: random.Random, deadline_s: float) -> None:
        self.descriptor = descriptor
        self._rng, self._deadline_s = rng, deadline_s

    async def process(self, state: ExperimentSnapshot, signals: Sequence[Signal]) -> Processed:
        """Answer, fail, or answer too late."""
        chance = self._rng.random()
        if chance < 0.04:
            raise RuntimeError("this agent fails on purpose")
        if chance < 0.08:
            await asyncio.sleep(2 * self._deadline_s)
        observed, proposals = [self._observed(state)], [self._proposed(signals)]
        return (observed, ()) if self.descriptor.authority is AgentAuthority.SUGGEST else ((), proposals)

    def _observed(self, state: ExperimentSnapshot) -> Signal:
        payload = {"metric": "loss", "slope": 0.0, "window": state.cycle}
        return Signal(type="metric_plateau", payload=payload, confidence=self._rng.choice((0.5, 0.9)))

    def _proposed(self, signals: Sequence[Signal]) -> DecisionProposal:
        declared = [one for one in PROPOSED if one[0] in self.descriptor.outputs]
        action, parameters = self._rng.choice(declared if self._rng.random() < DECLARED_SHARE else PROPOSED)
        return DecisionProposal(
            id=f"p{self._rng.randrange(1_000_000)}", action_type=action, target="search", parameters=parameters,
            rationale=self._rng.choice(("it is drawn", "it is drawn", "it is drawn", "")),
            confidence=self._rng.choice((0.1, 0.6, 0.7, 0.85, 0.95)), expected_effect="some",
            risk_level=self._rng.choice((ActionRisk.LOW, ActionRisk.LOW, ActionRisk.LOW, ActionRisk.MEDIUM, ActionRisk.HIGH)),
            signals_used=[one.id for one in signals][:2],
        )  # fmt: skip


PROPOSED: Sequence[tuple[str, dict[str, Any]]] = (
    *[("EXTEND_TRIALS", {"trials": trials}) for trials in (2, 3, 4, 5)],
    *[("MUTATE_SEARCH", {"shrink_percent": shrink, "diversity": 0.3}) for shrink in (20, 40, 80)],
    ("SWITCH_HPO", {}), ("STOP_EXPERIMENT", {}), ("RUN_ENSEMBLE", {}), ("CONTINUE", {}),
)  # fmt: skip
"""What is proposed: one that is above its permit and one that shrinks too much are among them, and what some agents may not do."""


def _descriptor(name: str, role: str, authority: AgentAuthority, risk: ActionRisk, *outputs: str) -> AgentDescriptor:
    inputs = ("trial_completed",) if authority is AgentAuthority.SUGGEST else ("*",)
    return AgentDescriptor(name, role, inputs, outputs, authority, risk, "1")


DESCRIPTORS = (
    _descriptor("analyst", "ANALYST", AgentAuthority.SUGGEST, ActionRisk.LOW, "metric_plateau"),
    _descriptor("protocol", "PROTOCOL", AgentAuthority.PROPOSE, ActionRisk.MEDIUM, "SWITCH_HPO", "MUTATE_SEARCH", "CONTINUE"),
    _descriptor("strategy", "STRATEGY", AgentAuthority.PROPOSE, ActionRisk.MEDIUM, "EXTEND_TRIALS", "MUTATE_SEARCH", "CONTINUE"),
    _descriptor("brake", "TRAINER", AgentAuthority.VETO, ActionRisk.HIGH, "STOP_EXPERIMENT", "CONTINUE"),
)  # fmt: skip


class Staff:
    """The agents of an experiment as tasks of this process, each on its stream through a sidecar."""

    def __init__(self, rng: random.Random, places: Sequence[str], tickets: dict[str, str], deadline_s: float) -> None:
        self._rng, self._places, self._tickets, self._deadline_s = rng, places, tickets, deadline_s
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.ended: list[str] = []
        """Agents that ended by themselves, and why."""

    def gather(self) -> None:
        """Start every agent that does not live."""
        for descriptor in DESCRIPTORS:
            task = self._tasks.get(descriptor.name)
            if task is not None and task.done():
                self._buried(descriptor.name, task)
            if descriptor.name not in self._tasks:
                agent = Adviser(descriptor, self._rng, self._deadline_s)
                at, ticket = self._rng.choice(self._places), self._tickets[descriptor.name]
                self._tasks[descriptor.name] = asyncio.create_task(running.arun(agent, at=at, ticket=ticket))

    def _buried(self, name: str, task: asyncio.Task[None]) -> None:
        del self._tasks[name]
        if not task.cancelled() and (error := task.exception()) is not None:
            known = isinstance(error, DecisionRefusedError)
            self.ended.append(f"{name}: {error.reason if known else type(error).__name__}")  # type: ignore[attr-defined]

    async def kill(self, *names: str) -> None:
        """End agents at whatever they do, without a word to anybody."""
        tasks = [self._tasks.pop(name) for name in names or list(self._tasks) if name in self._tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ENDED_S):
                    await asyncio.gather(*tasks, return_exceptions=True)

    async def lose_one(self) -> None:
        """Kill an agent that is drawn."""
        if self._tasks:
            await self.kill(self._rng.choice(sorted(self._tasks)))
