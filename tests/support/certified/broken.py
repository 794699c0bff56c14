"""An agent as a process of its own: ``python -m tests.support.certified.broken RULE`` breaks that rule and no other."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from dataclasses import replace

import grpc

from interlock.api.decision.v1 import decision_pb2
from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.client.decision import DecisionProposal, Signal
from interlock.client.decision.reference.agents import ProtocolAgent
from interlock.client.decision.running import arun

RULES = ("schema", "deterministic", "guards", "explainability", "isolation", "deadline", "crash")


class Broken:
    """The protocol agent, but for one rule."""

    descriptor = ProtocolAgent.descriptor

    def __init__(self, rule: str) -> None:
        self.rule = rule

    def process(self, state, signals):
        emitted, proposals = [], list(ProtocolAgent().process(state, signals)[1])
        if self.rule == "schema" and signals:
            emitted.append(Signal(type="drift_detected", payload={"method": "none", "statistic": 1}, confidence=1))
        if self.rule == "deterministic":
            proposals = [replace(one, confidence=random.uniform(0.5, 0.9)) for one in proposals]
        if self.rule == "guards" and signals:
            proposals.append(
                DecisionProposal(action_type="STOP_EXPERIMENT", target="all", rationale="I may", confidence=0.9)
            )
        if self.rule == "explainability":
            proposals = [replace(one, rationale="") for one in proposals]
        if self.rule == "isolation" and "ticket" in (state.get("neighbour") or ()) and signals:
            self.trespass(state["neighbour"])
        if self.rule == "deadline" and signals:
            time.sleep(state.remaining_s + 0.3)
        return emitted, proposals

    @staticmethod
    def trespass(neighbour) -> None:
        """Answer in another agent's name."""
        with grpc.insecure_channel(neighbour["address"]) as channel:
            request = decision_pb2.AnswerRequest(ticket=neighbour["ticket"], task_id="x")
            try:
                DecisionServiceStub(channel).Answer(request, timeout=2)
            except grpc.RpcError:
                pass


async def once(agent: Broken) -> None:
    """Serve until the stream ends, and leave for good: the broken crash rule."""
    from interlock.client.decision import running

    async with grpc.aio.insecure_channel(os.environ["INTERLOCK_DECISION_AT"]) as channel:
        desk = running._Agent(agent, DecisionServiceStub(channel), os.environ["INTERLOCK_DECISION_TICKET"])
        try:
            await desk.work()
        except grpc.aio.AioRpcError:
            await asyncio.sleep(60)


if __name__ == "__main__":
    made = Broken(sys.argv[1])
    asyncio.run(once(made) if made.rule == "crash" else arun(made))
