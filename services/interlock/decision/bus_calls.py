"""The calls about signals and about what is reserved: by the owner's key, or by an agent's ticket."""

# ruff: noqa: N802 - gRPC's names
from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Any

from interlock.api.decision.v1 import decision_pb2
from interlock.decision.agents.tickets import Tickets
from interlock.decision.bus.signal_bus import DeliveredPage, SignalBus
from interlock.decision.experiments import Experiments
from interlock.decision.messages import raw_signal, signal_message
from interlock.domain.decision.experiment import ExperimentState, experiment_id_of
from interlock.domain.errors import invalid, unauthenticated
from interlock.runtime.keys.api_keys import ANONYMOUS, ApiKeys


class BusCalls:
    """A part of ``interlock.api.decision.v1.DecisionService``."""

    def __init__(self, keys: ApiKeys, tickets: Tickets, experiments: Experiments, bus: SignalBus) -> None:
        self.keys, self.tickets, self.experiments, self.bus = keys, tickets, experiments, bus

    async def RegisterSignal(
        self, request: decision_pb2.RegisterSignalRequest, context: Any
    ) -> decision_pb2.RegisterSignalResponse:
        """Add a type of signals."""
        added = await self.experiments.add_type(
            self.scope(context), request.experiment, request.type, request.schema_json
        )  # fmt: skip
        return decision_pb2.RegisterSignalResponse(added=added)

    async def Emit(self, request: decision_pb2.EmitRequest, context: Any) -> decision_pb2.EmitResponse:
        """Put signals on the bus."""
        by_ticket = request.WhichOneof("emitter") == "ticket"
        types = {one.type for one in request.signals}
        experiment_id, agent, state = await self._caller(request, context, types, by_ticket=by_ticket)
        found = await self.bus.emit(experiment_id, state, agent, [raw_signal(one) for one in request.signals])
        return decision_pb2.EmitResponse(
            signals=(
                decision_pb2.EmittedSignal(id=one.id, sequence=one.number, reason=one.reason, duplicate=one.duplicate)
                for one in found
            )
        )

    async def Subscribe(
        self, request: decision_pb2.SubscribeRequest, context: Any
    ) -> AsyncIterator[decision_pb2.SubscribeResponse]:
        """Stream signals."""
        by_ticket = request.WhichOneof("subscriber") == "ticket"
        experiment_id, agent, state = await self._caller(request, context, request.types, by_ticket=by_ticket)
        if len(request.types) > len(state.rules.signals):
            raise invalid("DECISION_TYPES_TOO_MANY", "there are not so many types")
        if unknown := [one for one in request.types if one not in state.rules.signals]:
            raise invalid("DECISION_TYPE_UNKNOWN", "the experiment has no signals of this type", type=unknown[0][:64])
        async for page in self.bus.pages(experiment_id, state, agent, request.types, request.after):
            yield _page_message(page)

    async def SettleDecision(
        self, request: decision_pb2.SettleDecisionRequest, context: Any
    ) -> decision_pb2.SettleDecisionResponse:
        """Confirm or abort what a cycle reserved."""
        actual = {one.resource: one.micros for one in request.actual}
        if (
            len(actual) < len(request.actual)
            or any(one < 0 for one in actual.values())
            or (actual and not request.done)
        ):
            raise invalid("DECISION_COSTS_INVALID", "each resource once, 0 or more, and none where it was not done")
        key, sequence, again = await self.experiments.settle(
            self.scope(context), request.experiment, request.cycle, done=request.done, actual=actual
        )  # fmt: skip
        return decision_pb2.SettleDecisionResponse(permit=key, sequence=sequence, replayed=again)

    async def _caller(
        self, request: Any, context: Any, types: Collection[str], *, by_ticket: bool
    ) -> tuple[str, str, ExperimentState]:
        """Return the experiment, the agent or nothing for its owner, and the state."""
        if by_ticket:
            experiment_id, agent = self.tickets.read(request.ticket)
        else:
            experiment_id, agent = str(experiment_id_of(self.scope(context), request.experiment)), ""
        return experiment_id, agent, await self.experiments.having(experiment_id, agent, types)

    def scope(self, context: Any) -> str:
        """Return the scope of the caller's key. Refused with DECISION_KEY_REQUIRED without one."""
        sent = [(name, value) for name, value in context.invocation_metadata() or () if isinstance(value, str)]
        caller = self.keys.caller([value for name, value in sent if name == "authorization"])
        if caller.scope == ANONYMOUS:
            # Without a key an agent would be whoever owns the experiment.
            raise unauthenticated(
                "DECISION_KEY_REQUIRED", "experiments belong to API keys: send authorization: Bearer KEY"
            )
        return caller.scope


def _page_message(page: DeliveredPage) -> decision_pb2.SubscribeResponse:
    gap = None
    if page.gap is not None:
        gap = decision_pb2.BusGap(
            from_sequence=page.gap.first, to_sequence=page.gap.last, count=page.gap.count, restarted=page.gap.restarted
        )
    return decision_pb2.SubscribeResponse(
        token=page.place.token, gap=gap,
        signals=(
            decision_pb2.BusSignal(
                sequence=one.number, signal=signal_message(one.signal, one.payload_json), cycle=one.cycle
            )
            for one in page.signals
        ),
    )  # fmt: skip
