"""The gRPC front of experiments: owners by their API key, agents by their ticket."""

# ruff: noqa: N802 - gRPC's names
from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from interlock.api.decision.v1 import decision_pb2, decision_pb2_grpc
from interlock.decision.agents.desks import Desk, DeskAnswer, Desks
from interlock.decision.agents.tickets import Tickets
from interlock.decision.bus.signal_bus import SignalBus
from interlock.decision.bus_calls import BusCalls
from interlock.decision.experiments import Experiments
from interlock.decision.messages import (
    decision_message,
    descriptor_message,
    raw_descriptor,
    raw_proposal,
    raw_signal,
    signal_message,
)
from interlock.domain.decision.definition import defined
from interlock.domain.errors import invalid
from interlock.runtime.clock import iso8601
from interlock.runtime.keys.api_keys import ApiKeys


class DecisionServicer(BusCalls, decision_pb2_grpc.DecisionServiceServicer):
    """Answers for ``interlock.api.decision.v1.DecisionService``. Every refusal is a status with ErrorInfo."""

    def __init__(  # noqa: PLR0917 - the parts of the service
        self, keys: ApiKeys, tickets: Tickets, desks: Desks, experiments: Experiments, bus: SignalBus,
        profiles: Mapping[str, str],
    ) -> None:  # fmt: skip
        super().__init__(keys, tickets, experiments, bus)
        self._desks, self._profiles = desks, profiles

    async def OpenExperiment(
        self, request: decision_pb2.OpenExperimentRequest, context: Any
    ) -> decision_pb2.OpenExperimentResponse:
        """Create an experiment, or join it."""
        definition = request.definition_json
        if request.WhichOneof("definition") != "definition_json":
            if request.profile not in self._profiles:
                known = ", ".join(sorted(self._profiles))
                raise invalid("DECISION_PROFILE_UNKNOWN", f"bundled profiles are {known}; or give definition_json")
            definition = self._profiles[request.profile]
        found = await self.experiments.open(self.scope(context), request.experiment, definition)
        return decision_pb2.OpenExperimentResponse(
            experiment_id=found.experiment_id, created=found.created, rules_hash=found.rules.hash
        )

    async def RegisterAgent(
        self, request: decision_pb2.RegisterAgentRequest, context: Any
    ) -> decision_pb2.RegisterAgentResponse:
        """Add an agent and tell its ticket."""
        agent = raw_descriptor(request.agent)
        experiment_id, name = await self.experiments.register(self.scope(context), request.experiment, agent)
        return decision_pb2.RegisterAgentResponse(ticket=self.tickets.made(experiment_id, name))

    async def ReinstateAgent(
        self, request: decision_pb2.ReinstateAgentRequest, context: Any
    ) -> decision_pb2.ReinstateAgentResponse:
        """Make an agent ACTIVE again."""
        await self.experiments.reinstate(self.scope(context), request.experiment, request.agent, request.reason)
        return decision_pb2.ReinstateAgentResponse()

    async def DescribeExperiment(
        self, request: decision_pb2.DescribeExperimentRequest, context: Any
    ) -> decision_pb2.DescribeExperimentResponse:
        """Tell the definition, the agents and how they stand."""
        experiment_id, state = await self.experiments.described(self.scope(context), request.experiment)
        agents = [
            decision_pb2.AgentState(
                agent=descriptor_message(told), status=str(state.standing(name).status),
                failures=state.standing(name).failures, connected=self._desks.desk(experiment_id, name).is_connected,
            )
            for name, told in sorted(state.agents.items())
        ]  # fmt: skip
        return decision_pb2.DescribeExperimentResponse(
            experiment_id=experiment_id, cycle=state.cycle, definition_json=state.definition,
            rules_hash=defined(state.definition).hash, agents=agents,
        )  # fmt: skip

    async def RunCycle(self, request: decision_pb2.RunCycleRequest, context: Any) -> decision_pb2.RunCycleResponse:
        """Run a cycle, or answer one that was decided before."""
        given = [raw_signal(one) for one in request.signals]
        found = await self.experiments.run(
            self.scope(context), request.experiment, request.cycle, request.snapshot_json, given
        )
        return decision_pb2.RunCycleResponse(decision=decision_message(found))

    async def ListDecisions(
        self, request: decision_pb2.ListDecisionsRequest, context: Any
    ) -> decision_pb2.ListDecisionsResponse:
        """List decided cycles."""
        found = await self.experiments.listed(self.scope(context), request.experiment, request.after, request.limit)
        return decision_pb2.ListDecisionsResponse(
            decisions=(
                decision_pb2.DecisionSummary(
                    cycle=one.cycle, decision_id=one.decision_id, outcome=one.outcome, chosen=one.chosen,
                    trace_hash=one.trace_hash, timestamp=iso8601(one.at_us),
                )
                for one in found
            )
        )  # fmt: skip

    async def GetDecision(
        self, request: decision_pb2.GetDecisionRequest, context: Any
    ) -> decision_pb2.GetDecisionResponse:
        """Read a sealed trace."""
        experiment_id, found = await self.experiments.trace(self.scope(context), request.experiment, request.cycle)
        return decision_pb2.GetDecisionResponse(
            trace_json=found.text, definition_json=found.definition, trace_hash=found.cycle.trace_hash,
            experiment_id=experiment_id,
        )  # fmt: skip

    async def ReplayDecision(
        self, request: decision_pb2.ReplayDecisionRequest, context: Any
    ) -> decision_pb2.ReplayDecisionResponse:
        """Decide a sealed cycle again."""
        found = await self.experiments.replay(self.scope(context), request.experiment, request.cycle)
        return decision_pb2.ReplayDecisionResponse(
            same=found.is_same, differs_at=found.differs_at, recorded=found.recorded, replayed=found.replayed
        )

    async def Work(self, request: decision_pb2.WorkRequest, context: Any) -> AsyncIterator[decision_pb2.WorkResponse]:
        """Stream the tasks of one agent."""
        del context
        async for task in (await self._desk(request.ticket)).tasks():
            yield decision_pb2.WorkResponse(
                task_id=task.id, cycle=task.cycle, snapshot_json=task.snapshot, snapshot_hash=task.snapshot_hash,
                signals=map(signal_message, task.signals), deadline_ms=task.deadline_ms,
            )  # fmt: skip

    async def Answer(self, request: decision_pb2.AnswerRequest, context: Any) -> decision_pb2.AnswerResponse:
        """Take the answer to a task."""
        del context
        answer = DeskAnswer(
            request.snapshot_hash, [raw_signal(one) for one in request.signals],
            [raw_proposal(one) for one in request.proposals],
        )  # fmt: skip
        reason = (await self._desk(request.ticket)).answer(request.task_id, answer)
        return decision_pb2.AnswerResponse(taken=not reason, reason=reason)

    async def _desk(self, ticket: str) -> Desk:
        experiment_id, agent = self.tickets.read(ticket)
        await self.experiments.having(experiment_id, agent)
        return self._desks.desk(experiment_id, agent)
