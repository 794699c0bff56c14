"""One cycle: those that observe are asked first, those that propose see what they signalled, and the engine decides (SEED-5 §2, §7).

Nothing that an agent does raises here. An agent that does not answer costs one deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from interlock.decision.agents.desks import AgentTask, Desks
from interlock.domain.decision.agents import described
from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.engine import decide, heard, snapshot_hash
from interlock.domain.decision.experiment import ExperimentState
from interlock.domain.decision.intake import bounded
from interlock.domain.decision.signals import Signal
from interlock.domain.decision.words import AgentAuthority, Arrival
from interlock.runtime import failpoints


class CycleRound:
    """The agents of one experiment in one cycle."""

    def __init__(self, desks: Desks, experiment_id: str, rules: ExperimentRules, state: ExperimentState) -> None:
        self._desks, self._experiment_id = desks, experiment_id
        self._rules, self._state = rules, state

    async def decided(
        self, *, cycle: int, at_us: int, snapshot: str, given: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Ask the agents and return the trace."""
        inputs = {
            "experiment": self._experiment_id, "cycle": cycle, "at_us": at_us, "snapshot": snapshot, "given": list(given),
            "carried": list(self._state.carried), "memory": dict(self._state.memory),
        }  # fmt: skip
        proposing = [name for name, one in self._state.agents.items() if AgentAuthority[one["authority"]].proposes]
        observing = [name for name in self._state.agents if name not in proposing]
        first = await self._asked(observing, inputs, heard(self._rules, {**inputs, "agents": []}))
        second = await self._asked(proposing, inputs, heard(self._rules, {**inputs, "agents": first}))
        await failpoints.reached("decision.after_ask")
        return decide(self._rules, {**inputs, "agents": [*first, *second]})

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
        return {**told, "faults": desk.faults_since()}
