"""One cycle: those that observe are asked first, those that propose see what they signalled, and the engine decides (SEED-5 §2, §7).

Nothing that an agent does raises here. An agent that does not answer costs one deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from interlock.decision.agents.desks import AgentTask, Desks
from interlock.domain.decision.agents import described
from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.engine import decide, heard, snapshot_hash
from interlock.domain.decision.experiment import ExperimentState
from interlock.domain.decision.intake import bounded
from interlock.domain.decision.reading import is_name
from interlock.domain.decision.signals import Signal
from interlock.domain.decision.words import AgentAuthority, Arrival
from interlock.runtime import failpoints

LookUp = Callable[[str], Awaitable[Mapping[str, str]]]
"""Window id → what the audit log has of it."""


class CycleRound:
    """The agents of one experiment in one cycle."""

    def __init__(
        self, desks: Desks, experiment_id: str, rules: ExperimentRules, state: ExperimentState, look_up: LookUp
    ) -> None:
        self._desks, self._experiment_id = desks, experiment_id
        self._rules, self._state, self._look_up = rules, state, look_up

    async def decided(
        self, *, cycle: int, at_us: int, snapshot: str, given: Sequence[Mapping[str, Any]],
        more: Mapping[str, Any], kernel: Awaitable[dict[str, Any] | None],
    ) -> dict[str, Any]:  # fmt: skip
        """Ask the agents and return the trace. *more*: what else agents see; *kernel*: figures for the guards, read meanwhile."""
        inputs = {
            "experiment": self._experiment_id, "cycle": cycle, "at_us": at_us, "snapshot": snapshot, "given": list(given),
            "carried": list(self._state.carried), "memory": dict(self._state.memory), **more,
        }  # fmt: skip
        proposing = [name for name, one in self._state.agents.items() if AgentAuthority[one["authority"]].proposes]
        observing = [name for name in self._state.agents if name not in proposing]
        first = await self._asked(observing, inputs, heard(self._rules, {**inputs, "agents": []}))
        second = await self._asked(proposing, inputs, heard(self._rules, {**inputs, "agents": first}))
        await failpoints.reached("decision.after_ask")
        figures = await kernel
        held = {"kernel": figures} if figures is not None else {}
        return decide(self._rules, {**inputs, **held, "agents": [*first, *second]})

    async def _asked(
        self, names: Sequence[str], inputs: Mapping[str, Any], signals: Sequence[Signal]
    ) -> list[dict[str, Any]]:
        return list(await asyncio.gather(*(self._ask(name, inputs, signals) for name in names)))

    async def _ask(self, name: str, inputs: Mapping[str, Any], signals: Sequence[Signal]) -> dict[str, Any]:
        desk = self._desks.desk(self._experiment_id, name)
        agent, standing = described(self._state.agents[name], self._rules), self._state.standing(name)
        told: dict[str, Any] = {
            "descriptor": agent.told(), "standing": standing.told(), "arrival": str(Arrival.NOT_ASKED), "snapshot_hash": "",
            "signals": [], "proposals": [],
        }  # fmt: skip
        if standing.is_asked:
            task = AgentTask(
                cycle=inputs["cycle"], snapshot=inputs["snapshot"], snapshot_hash=snapshot_hash(inputs["snapshot"]),
                signals=tuple(one for one in signals if agent.hears(one["type"])), deadline_ms=self._rules.whole("deadline_ms"),
            )  # fmt: skip
            arrival, answer = await desk.asked(task)
            told["arrival"] = str(arrival)
            if answer is not None:
                sent = {"snapshot_hash": answer.snapshot_hash, "signals": answer.signals, "proposals": answer.proposals}
                told = bounded({**told, **sent}, self._rules, len(self._state.agents))
                told["proposals"] = await self._with_windows(told["proposals"])
        return {**told, "faults": desk.faults_since()}

    async def _with_windows(self, proposals: Sequence[Any]) -> list[Any]:
        """Put beside each window that a proposal names what the audit log has of it. What an agent says of it is not believed."""
        names = {one["window_id"] for one in proposals if is_name(one.get("window_id"))}
        windows = dict(zip(names, await asyncio.gather(*map(self._look_up, names)), strict=True))
        return [
            {**one, "window": windows.get(one["window_id"], {})} if "window_id" in one else one for one in proposals
        ]  # fmt: skip
