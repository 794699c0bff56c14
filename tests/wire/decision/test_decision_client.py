"""The client of the decision protocol against a real service: what authors and owners write (DEC-8, DEC-11, DEC-12)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping

import pytest

from interlock.client.decision import (
    ActionRisk,
    AgentAuthority,
    AgentDescriptor,
    DecisionProposal,
    DecisionRefusedError,
    ExperimentClient,
    Signal,
    arun,
)
from interlock.client.decision import running as run_loop
from interlock.client.decision.reference.agents import AGENTS
from interlock.decision.wiring import open_decision
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.server import RpcServer
from tests.faults.parts.proxy import FaultProxy
from tests.support.decision_service import ml, opened_audit, settings_of

LOSSES = [0.5, 0.4, 0.3, *[0.21] * 12]
STATE = {
    "trial_active": False, "budget": {"limit": 100, "used": 40}, "losses": LOSSES, "metric": "loss",
    "last": {"trial": 14, "state": "COMPLETE", "value": 0.21},
    "search": {"sampler": "random", "samplers": ["random", "tpe"], "shrunk_percent": 70},
}  # fmt: skip


@contextlib.asynccontextmanager
async def serving(tmp_path, redis_url):
    """Serve experiments over a real audit service; yields the address."""

    async def ready() -> Mapping[str, str]:
        return {}

    settings = settings_of(tmp_path, redis_url)
    async with opened_audit(settings) as audit:
        decision = open_decision(settings, Mesh.local(session=None, policy=None, dpe=None, audit=audit), ready)
        server = RpcServer([decision.service], settings)
        port = await server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            decision.leave()
            await server.drain()
            await decision.service.close()


@pytest.fixture
async def at(tmp_path, redis_url):
    async with serving(tmp_path, redis_url) as address:
        yield address


class Experiment:
    """An owner, whose blocking calls run in threads, and the agents that it starts."""

    def __init__(self, at: str, **limits) -> None:
        self.at = at
        self.client = ExperimentClient("search", at=at, api_key="alice", definition=json.loads(ml(**limits)))
        self.tasks: list[asyncio.Task] = []

    async def start(self, *agents) -> None:
        await asyncio.to_thread(self.client.open)
        for agent in agents:
            ticket = await asyncio.to_thread(self.client.register, agent.descriptor)
            self.tasks.append(asyncio.create_task(arun(agent, at=self.at, ticket=ticket)))
        names = {one.descriptor.name for one in agents}
        while not names <= await asyncio.to_thread(self.client.connected):
            await asyncio.sleep(0.02)

    async def decide(self, state=STATE, signals=()):
        return await asyncio.to_thread(self.client.decide, state, signals)

    async def trace(self, cycle: int) -> dict:
        return json.loads((await asyncio.to_thread(self.client.sealed, cycle))[1])

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.client.close()


@pytest.fixture
async def experiment(at):
    made = Experiment(at, deadline_ms=1_500)
    yield made
    await made.end()


class Custom:
    """An agent whose process is given."""

    descriptor = AgentDescriptor(
        "protocol", "PROTOCOL", ("metric_plateau",), ("SWITCH_HPO",), AgentAuthority.PROPOSE, ActionRisk.LOW, "1"
    )

    def __init__(self, process) -> None:
        self.process = process


def switching(_state, _signals):
    return (), [DecisionProposal(action_type="SWITCH_HPO", target="search", rationale="flat", confidence=0.9)]


@pytest.mark.req("DEC-11")
async def test_the_four_reference_agents_steer_an_experiment(experiment):
    """The trainer tells of the trial, the analyst of the plateau, and the switch of the protocol agent is accepted."""
    await experiment.start(*(one() for one in AGENTS.values()))
    decision = await experiment.decide()
    trace = await experiment.trace(1)
    emitted = {one["type"] for agent in trace["inputs"]["agents"] for one in agent["signals"]}

    assert {one["arrival"] for one in trace["agents"]} == {"ANSWERED"}
    assert emitted == {"trial_completed", "metric_plateau", "high_variance"}
    assert (decision.outcome, decision.parameters) == ("SWITCH_HPO", {"sampler": "tpe"})
    assert trace["chosen"]["signals_used"]


@pytest.mark.req("DEC-11")
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_process_may_be_a_function_or_a_coroutine(experiment, kind):
    """Either is served, with the cycle and the time that is left."""
    seen = []

    async def waiting(state, signals):
        seen.append((state.cycle, state.remaining_s))
        return switching(state, signals)

    def blocking(state, signals):
        seen.append((state.cycle, state.remaining_s))
        return switching(state, signals)

    await experiment.start(Custom(waiting if kind == "async" else blocking))

    assert (await experiment.decide()).outcome == "SWITCH_HPO"
    assert seen[0][0] == 1
    assert 0 < seen[0][1] <= 1.4


@pytest.mark.req("DEC-8")
async def test_an_agent_that_raises_or_is_late_costs_a_cycle_and_answers_the_next(experiment):
    """Its loop goes on: an exception and a missed deadline answer nothing, and the third cycle is its own again."""

    async def moody(state, signals):
        if state.cycle == 1:
            raise RuntimeError("broken")
        if state.cycle == 2:
            await asyncio.sleep(30)
        return switching(state, signals)

    await experiment.start(Custom(moody))
    outcomes = [(await experiment.decide()).outcome for _ in range(3)]
    traces = [await experiment.trace(cycle) for cycle in (1, 2, 3)]

    assert [one["agents"][0]["arrival"] for one in traces] == ["LATE", "LATE", "ANSWERED"]
    assert outcomes == ["CONTINUE", "CONTINUE", "SWITCH_HPO"]
    assert not traces[2]["agents"][0]["faults"]


@pytest.mark.req("DEC-7")
async def test_a_wrong_ticket_and_a_second_instance_end_the_loop_by_name(experiment):
    """No other try would help: the loop raises instead of asking for ever."""
    await experiment.start(Custom(switching))
    with pytest.raises(DecisionRefusedError) as wrong:
        await arun(Custom(switching), at=experiment.at, ticket="a:b:c")
    ticket = await asyncio.to_thread(experiment.client.register, Custom.descriptor)
    second = asyncio.create_task(arun(Custom(switching), at=experiment.at, ticket=ticket))
    experiment.tasks.append(second)
    [first] = await asyncio.gather(experiment.tasks[0], return_exceptions=True)

    assert wrong.value.reason == "DECISION_TICKET_INVALID"
    assert first.reason == "DECISION_AGENT_REPLACED"


@pytest.mark.req("DEC-8")
async def test_an_owner_without_a_service_continues_and_goes_on_with_the_next_cycle(tmp_path, redis_url):
    """CONTINUE with its reason while the service is away, and a decision when it is there."""
    async with serving(tmp_path, redis_url) as at:
        made = Experiment(at)
        await made.start(Custom(switching))
        first = await made.decide()
    away = await made.decide()
    await made.end()

    assert (first.outcome, first.cycle) == ("SWITCH_HPO", 1)
    assert (away.outcome, away.fault) == ("CONTINUE", "UNAVAILABLE")


@pytest.mark.req("DEC-8")
async def test_a_decision_whose_answer_was_lost_is_not_taken_for_a_new_one(experiment):
    """Somebody decided cycle 1 meanwhile: the owner's state is decided as cycle 2."""
    await experiment.start(Custom(switching))
    other = ExperimentClient("search", at=experiment.at, api_key="alice", definition=json.loads(ml(deadline_ms=1_500)))
    await asyncio.to_thread(other.decide, STATE)
    decision = await experiment.decide()
    other.close()

    assert decision.cycle == 2


@pytest.mark.parametrize("state", [{"x": float("nan")}, {"x": {1, 2}}, {"x": "y" * 20_000}])
@pytest.mark.req("DEC-8")
async def test_a_state_that_cannot_be_sent_is_a_continue_and_no_exception(experiment, state):
    """The meta layer never breaks the execution layer, whatever it is given."""
    decision = await experiment.decide(state, [Signal(type="none", payload={}, confidence=2, timestamp=time.time())])

    assert decision.outcome == "CONTINUE"
    assert decision.fault


async def test_an_agent_whose_line_died_in_silence_connects_again(at, experiment, monkeypatch):
    """Nobody tells it: its pings are not answered, so it gives the line up and opens another. Here it pings sooner than it does."""
    timeouts = dict.fromkeys(("grpc.keepalive_timeout_ms", "grpc.http2.ping_timeout_ms"), 1_000)
    sooner = {"grpc.keepalive_time_ms": 1_000, **timeouts}
    monkeypatch.setattr(run_loop, "OPTIONS", [(name, sooner.get(name, value)) for name, value in run_loop.OPTIONS])
    line = await FaultProxy(int(at.rsplit(":", 1)[1])).start()
    try:
        await experiment.start()
        agent = Custom(lambda _state, _signals: ((), ()))
        ticket = await asyncio.to_thread(experiment.client.register, agent.descriptor)
        experiment.tasks.append(asyncio.create_task(arun(agent, at=line.address, ticket=ticket)))
        while not await asyncio.to_thread(experiment.client.connected):
            await asyncio.sleep(0.02)
        line.half_open()
        async with asyncio.timeout(30):
            while line.connections < 2:
                await asyncio.sleep(0.05)
            line.mend()
            while not await asyncio.to_thread(experiment.client.connected):
                await asyncio.sleep(0.05)
        assert (await experiment.decide()).fault == ""
    finally:
        await line.stop()
