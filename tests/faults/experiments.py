"""An experiment that agents advise while things break: its owner asks, does what is decided, and settles what that cost.

The owner and the agents are the clients that the product ships. What the owner was told and what it did is kept beside it.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from typing import Any

import grpc

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.decision.v1 import decision_pb2
from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.client.decision.model import Signal
from interlock.client.decision.owner import CycleDecision, ExperimentClient
from interlock.client.decision.places import DecisionRefusedError
from interlock.decision.wiring import profile_text
from tests.faults.advisers import DESCRIPTORS, Staff
from tests.faults.facts import Experiment, Record, ToldCycle
from tests.faults.kernels import ASK_S, UNIT, KernelClient
from tests.faults.parts.cluster import Cluster

KEY = "key-of-experiments"
DEADLINE_S = 0.3
PAUSE_S = 0.1
SURE = 2
"""Cycles that are decided in a row before nothing of an experiment is in doubt."""
TRIALS, EXTENDED, MUTATED = 60, 4, 1
"""Of a kernel: its limit, and what its two actions cost, whole trials."""
RESERVING = {"EXTEND_TRIALS": EXTENDED, "MUTATE_SEARCH": MUTATED}
WORKED_OUT = frozenset({"DECISION_NOTHING_RESERVED"})

KERNEL: dict[str, Any] = {
    "resources": [{"name": "trials", "limit_micros": TRIALS * UNIT}],
    "actions": [
        {"id": "extend", "costs": [{"resource": "trials", "micros": EXTENDED * UNIT}]},
        {"id": "mutate", "costs": [{"resource": "trials", "micros": MUTATED * UNIT}]},
    ],
}


def definition(kernel: str) -> dict[str, Any]:
    """Return the ML profile with short deadlines, and its trials in a kernel."""
    told: dict[str, Any] = json.loads(profile_text("ml"))
    cost = {"parameter": "trials", "per_unit": 1, "resource": "trials"}
    told["kernel"] = {"name": kernel}
    told["actions"]["EXTEND_TRIALS"] |= {"permit": "extend", "cost": cost}
    told["actions"]["MUTATE_SEARCH"] |= {"permit": "mutate"}
    told["limits"] = {
        "deadline_ms": round(DEADLINE_S * 1000), "cooldown_cycles": 1, "max_in_window": 15, "fail_after": 2,
        "probation_after": 2, "probation_answers": 1,
    }  # fmt: skip
    return told


@dataclass
class ExperimentOwner:
    """One experiment of a run, with its kernel and its agents."""

    cluster: Cluster
    rng: random.Random
    told: list[ToldCycle] = field(default_factory=list)
    done: dict[int, int] = field(default_factory=dict)
    """Cycle → micros that its action really cost; -1: it was not done."""
    refused: list[str] = field(default_factory=list)
    """Settlements that were refused for good."""
    _due: list[int] = field(default_factory=list)
    """Cycles that are to be settled."""

    def __post_init__(self) -> None:
        name = f"search-{self.rng.getrandbits(64):016x}"
        self.kernel = KernelClient(self.cluster, self.rng, name=name, key=KEY)
        self._place = self.rng.choice(self.cluster.rpc_fronts)
        self._client = ExperimentClient(name, at=self._place, api_key=KEY, definition=definition(name))
        self._tickets: dict[str, str] = {}
        self._staff = Staff(self.rng, self.cluster.rpc_fronts, self._tickets, DEADLINE_S)
        self._active = False

    @property
    def begun(self) -> bool:
        """Whether it came to be, with all of its agents."""
        return len(self._tickets) == len(DESCRIPTORS)

    async def open(self) -> bool:
        """Open kernel and experiment, and register the agents, as far as that goes now."""
        if not self.begun:
            try:
                if not self._client.experiment_id and await self.kernel.post("open", definition=KERNEL):
                    await asyncio.to_thread(self._client.open)
                for one in DESCRIPTORS if self._client.experiment_id else ():
                    self._tickets[one.name] = await asyncio.to_thread(self._client.register, one)
            except DecisionRefusedError:
                return False
        return self.begun

    async def step(self) -> None:
        """Run a cycle with whoever of the agents lives, do what it says, and settle."""
        if not await self.open():
            await asyncio.sleep(PAUSE_S)
            return
        if self.rng.random() < 0.25:
            killing = asyncio.create_task(self._kill_one())
            await asyncio.gather(self._cycle(), killing)
        else:
            self._staff.gather()
            await self._cycle()
        await self._settled()
        await asyncio.sleep(PAUSE_S)

    async def _kill_one(self) -> None:
        await asyncio.sleep(self.rng.uniform(0, 0.02))
        await self._staff.lose_one()

    async def _cycle(self) -> bool:
        """Ask for a decision, and note it, whatever comes of it."""
        state = {"trial_active": self.rng.random() < 0.2, "budget": {"limit": 100, "used": 10}}
        signals = [Signal(type="trial_completed", payload={"trial": len(self.told), "value": 0.5}, confidence=1.0)]
        started, raised, decision = time.monotonic(), "", CycleDecision()
        try:
            decision = await asyncio.to_thread(self._client.decide, state, signals)
        except Exception as error:  # what must never happen
            raised = type(error).__name__
        self.told.append(
            ToldCycle(
                started, time.monotonic(), raised, decision.fault, decision.cycle, decision.decision_id, decision.outcome,
                decision.chosen, decision.unheard_cycle,
            )
        )  # fmt: skip
        self._do(decision)
        return not (raised or decision.fault)

    def _do(self, decision: CycleDecision) -> None:
        if decision.unheard_cycle:
            self.done[decision.unheard_cycle] = -1
            self._due.append(decision.unheard_cycle)
        if most := RESERVING.get(decision.outcome):
            self.done[decision.cycle] = self.rng.choice((-1, most * UNIT, self.rng.randint(0, most) * UNIT))
            self._due.append(decision.cycle)

    async def _settled(self) -> None:
        """Settle what is due, until one of it gets no answer."""
        while self._due:
            cycle = self._due[0]
            cost = self.done[cycle]
            actual = {} if cost < 0 else {"trials": cost / UNIT}
            try:
                await asyncio.to_thread(self._client.settle, cycle, done=cost >= 0, actual=actual)
            except DecisionRefusedError as refused:
                if refused.reason not in WORKED_OUT and _may_pass(refused.reason):
                    return
                if refused.reason not in WORKED_OUT:
                    self.refused.append(f"cycle {cycle}: {refused.reason}")
            self._due.pop(0)

    async def finish(self, limit_s: float) -> None:
        """Go on until nothing is in doubt: everything is settled, and some cycles were decided one after the other."""
        end, good = time.monotonic() + limit_s, 0
        try:
            while self.begun and time.monotonic() < end and (good < SURE or self._due):
                self._staff.gather()
                good = good + 1 if await self._cycle() else 0
                await self._settled()
                await asyncio.sleep(PAUSE_S)
        finally:
            await self.close()

    async def close(self) -> None:
        """End the agents."""
        await self._staff.kill()

    async def facts(self) -> Experiment | None:
        """Return what is known of the experiment at the end; ``None`` where it never came to be."""
        if not self.begun:
            self._client.close()
            return None
        experiment_id, audit = self._client.experiment_id, self.cluster.audit_stub()
        exported = audit.Export(audit_pb2.ExportRequest(session_id=experiment_id), timeout=ASK_S)
        records = [
            Record(one.event.sequence, one.event.event_type, json.loads(one.event.data_json)) async for one in exported
        ]
        verdict = await audit.Verify(audit_pb2.VerifyRequest(session_id=experiment_id), timeout=ASK_S)
        integrity = common_pb2.ChainIntegrity.Name(verdict.integrity).removeprefix("CHAIN_INTEGRITY_")
        cycle, statuses = await self._described()
        return Experiment(
            experiment_id, tuple(records), integrity, tuple(self.told), dict(self.done), tuple(self._due),
            tuple(self.refused), tuple(self._staff.ended), await self.kernel.facts(), cycle, statuses,
        )  # fmt: skip

    async def _described(self) -> tuple[int, dict[str, str]]:
        """Return the last cycle and how the agents stand, as the store has it."""
        async with grpc.aio.insecure_channel(self._place, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            request = decision_pb2.DescribeExperimentRequest(experiment=self._client.name)
            said = await DecisionServiceStub(channel).DescribeExperiment(
                request, metadata=(("authorization", f"Bearer {KEY}"),), timeout=ASK_S, wait_for_ready=True
            )
        return said.cycle, {one.agent.name: one.status for one in said.agents}


def _may_pass(reason: str) -> bool:
    """Tell whether a refusal is one of something that is down, or of a race, and not of what was asked."""
    return reason != "DECISION_SETTLEMENT_REFUSED"
