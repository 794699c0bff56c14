"""A real decision service over a real audit service, and agents that pull their tasks over gRPC."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import grpc

from interlock.api.decision.v1 import decision_pb2
from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.audit.wiring import open_service
from interlock.decision.wiring import open_decision
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.decisions import EVERYBODY, ML, SNAPSHOT

Task = decision_pb2.WorkResponse
Answering = Callable[[Task], Mapping[str, Any] | None]
"""What an agent makes of a task: fields of its answer; ``None``: it stays silent."""


def owner(key: str = "alice") -> tuple[tuple[str, str], ...]:
    """The metadata of an owner."""
    return (("authorization", f"Bearer {key}"),)


def ml(**limits: Any) -> str:
    """The ML profile under other limits. Agents that answer end a cycle at once, however long they had."""
    return json.dumps({**json.loads(ML), "limits": {"deadline_ms": 15_000, **limits}})


class DecisionClient:
    """Calls of one owner."""

    def __init__(self, stub: Any, key: str = "alice", experiment: str = "search") -> None:
        self.stub, self.metadata, self.experiment = stub, owner(key), experiment
        self.tickets: dict[str, str] = {}

    async def open(self, **limits: Any) -> Any:
        request = decision_pb2.OpenExperimentRequest(experiment=self.experiment, definition_json=ml(**limits))
        return await self.stub.OpenExperiment(request, metadata=self.metadata)

    async def register(self, *agents: Mapping[str, Any]) -> None:
        for told in agents or EVERYBODY:
            agent = decision_pb2.AgentDescriptor(**told)
            request = decision_pb2.RegisterAgentRequest(experiment=self.experiment, agent=agent)
            self.tickets[agent.name] = (await self.stub.RegisterAgent(request, metadata=self.metadata)).ticket

    async def reinstate(self, agent: str, reason: str) -> None:
        request = decision_pb2.ReinstateAgentRequest(experiment=self.experiment, agent=agent, reason=reason)
        await self.stub.ReinstateAgent(request, metadata=self.metadata)

    async def run(self, cycle: int, snapshot: str = SNAPSHOT, signals: Any = ()) -> Any:
        request = decision_pb2.RunCycleRequest(
            experiment=self.experiment, cycle=cycle, snapshot_json=snapshot, signals=signals
        )
        return (await self.stub.RunCycle(request, metadata=self.metadata, timeout=30)).decision

    async def trace(self, cycle: int) -> dict[str, Any]:
        return json.loads((await self.got(cycle)).trace_json)

    async def got(self, cycle: int) -> Any:
        request = decision_pb2.GetDecisionRequest(experiment=self.experiment, cycle=cycle)
        return await self.stub.GetDecision(request, metadata=self.metadata)

    async def replay(self, cycle: int) -> Any:
        request = decision_pb2.ReplayDecisionRequest(experiment=self.experiment, cycle=cycle)
        return await self.stub.ReplayDecision(request, metadata=self.metadata)

    async def list(self, **fields: Any) -> list[Any]:
        request = decision_pb2.ListDecisionsRequest(experiment=self.experiment, **fields)
        return list((await self.stub.ListDecisions(request, metadata=self.metadata)).decisions)

    async def describe(self) -> Any:
        request = decision_pb2.DescribeExperimentRequest(experiment=self.experiment)
        return await self.stub.DescribeExperiment(request, metadata=self.metadata)

    async def statuses(self) -> dict[str, str]:
        return {one.agent.name: one.status for one in (await self.describe()).agents}

    @contextlib.asynccontextmanager
    async def working(self, name: str, answering: Answering) -> AsyncIterator[list[Any]]:
        """Run an agent until the block ends; yields the answers that it got to its own. It is connected at once."""
        got: list[Any] = []
        task = asyncio.create_task(self._work(name, answering, got))
        try:
            while not next(one.connected for one in (await self.describe()).agents if one.agent.name == name):
                assert not task.done(), task
                await asyncio.sleep(0.01)
            yield got
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _work(self, name: str, answering: Answering, got: list[Any]) -> None:
        ticket = self.tickets[name]
        async for task in self.stub.Work(decision_pb2.WorkRequest(ticket=ticket), timeout=60):
            told = answering(task)
            if told is not None:
                fields = {"task_id": task.task_id, "snapshot_hash": task.snapshot_hash, **told}
                got.append(await self.stub.Answer(decision_pb2.AnswerRequest(ticket=ticket, **fields)))


@contextlib.asynccontextmanager
async def opened_audit(settings: Settings) -> AsyncIterator[Any]:
    """A real audit service in this process."""
    audit = await open_service(settings)
    try:
        yield audit
    finally:
        await audit.close()


def settings_of(tmp_path: Path, redis_url: str, **more: Any) -> Settings:
    """Settings of both services."""
    return Settings(state_dir=tmp_path / "state", redis_url=redis_url, decision_port=0, drain_s=1, **more)


@contextlib.asynccontextmanager
async def serving(settings: Settings, audit: Any, *, session: Any = None) -> AsyncIterator[Any]:
    """Serve experiments over *audit*, and over the kernels of *session*; yields a stub."""
    async with served(settings, audit, session=session) as address, grpc.aio.insecure_channel(address) as channel:
        yield DecisionServiceStub(channel)


@contextlib.asynccontextmanager
async def served(settings: Settings, audit: Any, *, session: Any = None) -> AsyncIterator[str]:
    """Serve experiments over *audit*, and over the kernels of *session*; yields the address."""

    async def ready() -> Mapping[str, str]:
        return {}

    mesh = Mesh.local(session=session, policy=None, dpe=None, audit=audit)
    decision = open_decision(settings, mesh, ready)
    server = RpcServer([decision.service], settings)
    port = await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        decision.leave()
        await server.drain()
        await decision.service.close()


def proposes(action: str = "SWITCH_HPO", agent: str = "protocol", **more: Any) -> decision_pb2.Proposal:
    """A proposal that is accepted where nothing better is there."""
    fields = {
        "agent": agent, "action_type": action, "target": "search", "parameters_json": "{}", "risk_level": "LOW",
        "confidence": 0.9, "rationale": "the loss is flat", "expected_effect": "better trials", "id": "p1", **more,
    }  # fmt: skip
    return decision_pb2.Proposal(**fields)


def emits(kind: str, source: str, payload: Mapping[str, Any], timestamp: float, **more: Any) -> decision_pb2.Signal:
    """A signal."""
    fields = {
        "type": kind,
        "source": source,
        "payload_json": json.dumps(payload),
        "timestamp": timestamp,
        "confidence": 0.9,
    }
    return decision_pb2.Signal(**{**fields, **more})


class BusClient:
    """The bus of one experiment, as its owner and its agents call it."""

    def __init__(self, owner_client: DecisionClient) -> None:
        self.owner = owner_client

    async def emit(self, *signals: decision_pb2.Signal, agent: str = "") -> list[Any]:
        request = decision_pb2.EmitRequest(signals=signals, **self._by(agent))
        answer = await self.owner.stub.Emit(request, metadata=() if agent else self.owner.metadata)
        return list(answer.signals)

    async def register(self, kind: str, schema: str) -> Any:
        request = decision_pb2.RegisterSignalRequest(experiment=self.owner.experiment, type=kind, schema_json=schema)
        return await self.owner.stub.RegisterSignal(request, metadata=self.owner.metadata)

    def stream(self, *types: str, agent: str = "", after: str = "", timeout: float = 30) -> Any:
        request = decision_pb2.SubscribeRequest(types=types, after=after, **self._by(agent))
        return self.owner.stub.Subscribe(request, metadata=() if agent else self.owner.metadata, timeout=timeout)

    async def until(self, count: int, *types: str, agent: str = "", after: str = "") -> decision_pb2.SubscribeResponse:
        """Read until so many signals came; returns them with the first gap and the last token."""
        found = decision_pb2.SubscribeResponse()
        stream = self.stream(*types, agent=agent, after=after)
        async for page in stream:
            found.signals.extend(page.signals)
            found.token = page.token
            if page.HasField("gap") and not found.HasField("gap"):
                found.gap.CopyFrom(page.gap)
            if len(found.signals) >= count:
                break
        stream.cancel()
        return found

    async def run_quietly(self, cycle: int) -> Any:
        """Run a cycle in which every agent answers with nothing."""
        async with contextlib.AsyncExitStack() as agents:
            for name in self.owner.tickets:
                await agents.enter_async_context(self.owner.working(name, lambda _: {}))
            return await self.owner.run(cycle)

    def _by(self, agent: str) -> dict[str, str]:
        return {"ticket": self.owner.tickets[agent]} if agent else {"experiment": self.owner.experiment}
