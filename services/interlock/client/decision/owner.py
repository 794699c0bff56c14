"""The owner's side: open an experiment, register agents, run cycles. A cycle never raises into the experiment (SEED-5 §12)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Self, TypeVar

import grpc

from interlock.api.decision.v1 import decision_pb2
from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.client.decision.model import Signal
from interlock.client.decision.places import OPTIONS, credentials, place, refusal
from interlock.client.kernel.calls import micros
from interlock.domain.decision.agents import AgentDescriptor

log = logging.getLogger("interlock.decision")

CONTINUE = "CONTINUE"
CALL_S = 10.0
PHASES = 2
"""Agents that observe are asked first, then those that propose: a cycle lasts so many deadlines."""

T = TypeVar("T")


@dataclass(frozen=True)
class CycleDecision:
    """What the experiment does next. *fault*: why there is no decision and it goes on as it was; empty where there is one."""

    outcome: str = CONTINUE
    target: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    cycle: int = 0
    decision_id: str = ""
    chosen: str = ""
    """Agent and id of the accepted proposal, with a slash; empty: none was accepted."""
    fault: str = ""
    unheard_cycle: int = 0
    """The cycle before, where it was decided and its answer was lost: nobody did what it says. What it reserved in a kernel stays
    charged until ``settle(unheard_cycle, done=False)``. 0: there is none."""

    @classmethod
    def of(cls, message: decision_pb2.Decision, *, unheard_cycle: int = 0) -> CycleDecision:
        """Read a message."""
        return cls(
            message.outcome, message.target, json.loads(message.final_parameters_json or "{}"), message.cycle,
            message.decision_id, message.chosen, unheard_cycle=unheard_cycle,
        )  # fmt: skip


class ExperimentClient:
    """One experiment of the caller in OPENAI_API_KEY. Its decisions are CONTINUE for as long as nobody answers. Thread-safe."""

    def __init__(
        self,
        name: str,
        *,
        at: str = "",
        api_key: str = "",
        ca: Path | str | None = None,
        profile: str = "ml",
        definition: Mapping[str, Any] | None = None,
    ) -> None:
        """*definition*: one's own instead of a bundled *profile*. Nothing is connected yet."""
        held = credentials(ca)
        self.name = name
        self._key = (("authorization", f"Bearer {api_key or os.environ.get('OPENAI_API_KEY', '')}"),)
        self._definition = {"definition_json": json.dumps(definition)} if definition else {"profile": profile}
        self._channel = (
            grpc.secure_channel(place(at), held, options=OPTIONS)
            if held
            else grpc.insecure_channel(place(at), options=OPTIONS)
        )
        self._stub = DecisionServiceStub(self._channel)
        self._next, self._cycle_s = 0, 0.0
        self.experiment_id = ""

    def open(self) -> str:
        """Create or join the experiment; return the id of its chain. Raises ``DecisionRefusedError``."""
        request = decision_pb2.OpenExperimentRequest(experiment=self.name, **self._definition)
        self.experiment_id = self._asked(self._stub.OpenExperiment, request).experiment_id
        found = self._asked(self._stub.DescribeExperiment, decision_pb2.DescribeExperimentRequest(experiment=self.name))
        deadline_ms = json.loads(found.definition_json).get("limits", {}).get("deadline_ms", 2_000)
        self._cycle_s = PHASES * deadline_ms / 1000 + CALL_S
        self._next = found.cycle + 1
        return self.experiment_id

    def register(self, agent: AgentDescriptor) -> str:
        """Register an agent; return the ticket that its process presents. Raises ``DecisionRefusedError``."""
        told = decision_pb2.AgentDescriptor(**agent.told())
        request = decision_pb2.RegisterAgentRequest(experiment=self.name, agent=told)
        ticket: str = self._asked(self._stub.RegisterAgent, request).ticket
        return ticket

    def connected(self) -> set[str]:
        """Return the names of the agents whose streams are open. Raises ``DecisionRefusedError``."""
        request = decision_pb2.DescribeExperimentRequest(experiment=self.name)
        return {one.agent.name for one in self._asked(self._stub.DescribeExperiment, request).agents if one.connected}

    def decide(self, state: Mapping[str, Any], signals: Sequence[Signal] = (), *, source: str = "executor") -> CycleDecision:  # fmt: skip
        """Run the next cycle and return what was decided. Never raises: without a decision the experiment goes on as it was."""
        unheard = 0
        try:
            if not self._next:
                self.open()
            decision = self._run(state, signals, source)
            if decision.replayed:
                # It was decided before, and the answer was lost on its way. What it was decided from is past: decide anew.
                unheard, self._next = decision.cycle, self._next + 1
                decision = self._run(state, signals, source)
            self._next = decision.cycle + 1
            return CycleDecision.of(decision, unheard_cycle=unheard)
        except Exception as error:  # noqa: BLE001 - the meta layer must not break the execution layer
            fault = getattr(error, "reason", type(error).__name__)
            log.warning("no decision, the experiment continues: %s", error)
            if fault == "DECISION_CYCLE_UNEXPECTED":
                self._next = 0
            return CycleDecision(fault=fault, unheard_cycle=unheard)

    def settle(self, cycle: int, *, done: bool = True, actual: Mapping[str, float | Decimal] | None = None) -> str:
        """Tell whether what a cycle decided was done, where its action reserved something in a kernel; return the permit's key.

        *actual*: what it really cost, by resource, at most what was reserved, which counts where none is named. Asking again changes
        nothing. A decision that nobody settles counts as done. Raises ``DecisionRefusedError``: DECISION_NOTHING_RESERVED where
        the cycle reserved nothing; ``ValueError`` for an amount that is not finite, or has more than six decimals.
        """
        costs = [
            decision_pb2.ResourceCost(resource=name, micros=micros(amount)) for name, amount in (actual or {}).items()
        ]
        request = decision_pb2.SettleDecisionRequest(experiment=self.name, cycle=cycle, done=done, actual=costs)
        permit: str = self._asked(self._stub.SettleDecision, request).permit
        return permit

    def sealed(self, cycle: int) -> tuple[str, str]:
        """Return the definition and the sealed trace of a cycle, as JSON texts. Raises ``DecisionRefusedError``."""
        request = decision_pb2.GetDecisionRequest(experiment=self.name, cycle=cycle)
        found = self._asked(self._stub.GetDecision, request)
        return found.definition_json, found.trace_json

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def __enter__(self) -> Self:
        """Do nothing: the first cycle opens the experiment."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def _run(self, state: Mapping[str, Any], signals: Sequence[Signal], source: str) -> decision_pb2.Decision:
        request = decision_pb2.RunCycleRequest(
            experiment=self.name, cycle=self._next, snapshot_json=json.dumps(state, allow_nan=False),
            signals=[one.message(source) for one in signals],
        )  # fmt: skip
        found: decision_pb2.Decision = self._asked(self._stub.RunCycle, request, self._cycle_s).decision
        return found

    def _asked(self, call: Callable[..., T], request: Any, timeout_s: float = CALL_S) -> T:
        try:
            return call(request, metadata=self._key, timeout=timeout_s)
        except grpc.RpcError as error:
            raise refusal(error) from None
