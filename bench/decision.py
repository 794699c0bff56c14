"""What decisions cost: proposals per second in the engine, a cycle of a hundred agents over their slowest, and recorded cycles replayed.

    python -m bench.decision

- The engine is pure, so it is counted in CPU of one core: cycles of 100 agents with ten proposals each, most of them good.
- The service is the real one over gRPC, with a real audit service and a Valkey. Each agent pulls its tasks and takes a time of its own, the
  slowest a quarter of a second. Where all propose they are asked at once; where half of them observe they are asked in two rounds, so that
  twice the slowest is the least that such a cycle can take.
- Recorded are 1,000 cycles of ten experiments, with answers that are good, malformed, stale or empty. Each trace is read back and decided
  again here; nothing counts but equal bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import grpc
import uvloop

from interlock.api.decision.v1 import decision_pb2
from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.domain.decision.engine import decide
from interlock.domain.decision.reading import canonical
from interlock.domain.decision.replay import replayed
from tests.support.decision_service import DecisionClient, proposes
from tests.support.decisions import ANALYST, EVERYBODY, PROTOCOL, RULES, STRATEGY, answer, inputs, proposal
from tests.support.servers.processes import Process, environment
from tests.support.valkey import Valkey

AGENTS, EACH, ROUNDS = 100, 10, 7
SLOWEST_S, CYCLES = 0.25, 12
EXPERIMENTS, RECORDED = 10, 100
TARGET_PER_S, TARGET_RATIO = 20_000.0, 2.0
Agent = Callable[[Any], Awaitable[Mapping[str, Any]]]


def engine() -> tuple[float, float]:
    """Return proposals per second of one core: decided, and decided with the trace written."""
    random = Random(7)
    agents = [{**STRATEGY, "name": f"agent{number}"} for number in range(AGENTS)]
    actions = ["MUTATE_SEARCH", "EXTEND_TRIALS", "CONTINUE", "STOP_EXPERIMENT"]

    def one(name: str, number: int) -> dict[str, Any]:
        parameters = {"trials": random.randint(1, 40), "shrink_percent": 10, "diversity": 0.5}
        confidence = str(round(random.uniform(0.2, 1.0), 3))
        return proposal(name, random.choice(actions), id=f"p{number}", confidence=confidence, parameters=parameters)

    cycle = inputs(*(answer(told, *(one(told["name"], number) for number in range(EACH))) for told in agents))
    decide(RULES, cycle)
    spent, written = [], []
    for _ in range(ROUNDS):
        began = time.process_time()
        trace = decide(RULES, cycle)
        decided = time.process_time()
        canonical(trace)
        spent.append(decided - began)
        written.append(time.process_time() - began)
    assert len(trace["proposals_considered"]) == AGENTS * EACH
    return AGENTS * EACH / statistics.median(spent), AGENTS * EACH / statistics.median(written)


@contextlib.asynccontextmanager
async def working(search: DecisionClient, agents: Mapping[str, Agent]) -> AsyncIterator[None]:
    """Let agents pull their tasks, each over a stream of its own, until the block ends."""

    async def work(name: str, agent: Agent) -> None:
        ticket = search.tickets[name]
        async for task in search.stub.Work(decision_pb2.WorkRequest(ticket=ticket), timeout=600):
            told = {"task_id": task.task_id, "snapshot_hash": task.snapshot_hash, **await agent(task)}
            await search.stub.Answer(decision_pb2.AnswerRequest(ticket=ticket, **told))

    tasks = [asyncio.create_task(work(name, agent)) for name, agent in agents.items()]
    try:
        while not all(one.connected for one in (await search.describe()).agents):
            assert not any(one.done() for one in tasks), tasks
            await asyncio.sleep(0.05)
        yield
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def hundred(stub: Any, name: str, observing: int) -> float:
    """Return the p50 of a cycle of a hundred agents over what the slowest took itself."""
    search = DecisionClient(stub, experiment=name)
    await search.open()
    roles = [ANALYST] * observing + [PROTOCOL] * (AGENTS - observing)
    agents = [{**role, "name": f"agent{number}"} for number, role in enumerate(roles)]
    await search.register(*agents)
    took: dict[str, float] = {}

    def pace(number: int) -> Agent:
        """Take longer the higher the number is within its half, and propose where that is allowed."""
        own_s = SLOWEST_S * (number % 50 + 1) / 50

        async def process(_task: Any) -> Mapping[str, Any]:
            began = time.perf_counter()
            await asyncio.sleep(own_s)
            took[f"agent{number}"] = time.perf_counter() - began
            return {} if number < observing else {"proposals": [proposes(agent=f"agent{number}", confidence=0.5)]}

        return process

    ratios = []
    async with working(search, {f"agent{number}": pace(number) for number in range(AGENTS)}):
        for cycle in range(1, CYCLES + 1):
            began = time.perf_counter()
            await search.run(cycle)
            ratios.append((time.perf_counter() - began) / max(took.values()))
            assert len(took) == AGENTS
            took.clear()
    return statistics.median(ratios[2:])  # the first ones warm


async def recorded(stub: Any, number: int) -> list[tuple[str, str]]:
    """Run cycles with all kinds of answers; return definition and trace of each, as they are in the chain."""
    random, search = Random(number), DecisionClient(stub, experiment=f"recorded{number}")
    await search.open()
    await search.register()

    def various(name: str) -> Agent:
        async def process(_task: Any) -> Mapping[str, Any]:
            if name in {"trainer", "analyst"} or random.random() < 0.1:
                return {}
            if random.random() < 0.1:
                return {"snapshot_hash": "0" * 64}
            agent = random.choice([name] * 9 + ["trainer"])
            action = random.choice(["SWITCH_HPO", "MUTATE_SEARCH", "CONTINUE", "DROP_TABLES"])
            confidence = random.choice([0.2, 0.5, 0.79, 0.9, 2.0])
            return {"proposals": [proposes(action, agent, confidence=confidence, id=f"p{n}") for n in range(3)]}

        return process

    async with working(search, {one["name"]: various(one["name"]) for one in EVERYBODY}):
        for cycle in range(1, RECORDED + 1):
            used = {"limit": 100, "used": random.randint(0, 100)}
            await search.run(cycle, json.dumps({"trial_active": random.random() < 0.3, "budget": used}))
    found = [await search.got(cycle) for cycle in range(1, RECORDED + 1)]
    return [(one.definition_json, one.trace_json) for one in found]


def replay(cycles: list[tuple[str, str]]) -> tuple[int, float]:
    """Return how many cycles gave other bytes, and cycles per second of one core."""
    began = time.process_time()
    differing = sum(not replayed(definition, trace).is_same for definition, trace in cycles)
    return differing, len(cycles) / (time.process_time() - began)


async def measured(port: int) -> dict[str, tuple[float, float | None, str, str]]:
    decided, written = engine()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = DecisionServiceStub(channel)
        at_once, two_rounds = await hundred(stub, "at-once", 0), await hundred(stub, "two-rounds", AGENTS // 2)
        runs = await asyncio.gather(*(recorded(stub, number) for number in range(EXPERIMENTS)))
    cycles = [one for run in runs for one in run]
    differing, per_s = replay(cycles)
    outcomes = {json.loads(trace)["outcome"] for _, trace in cycles}
    assert len(cycles) == EXPERIMENTS * RECORDED
    assert len(outcomes) > 1, outcomes
    return {
        "decision: proposals decided per second and core": (decided, TARGET_PER_S, "higher", "1/s"),
        "decision: the same with the trace written": (written, None, "", "1/s"),
        "decision: cycle of 100 agents over their slowest": (at_once, TARGET_RATIO, "lower", "ratio"),
        "decision: the same where half of them observe": (two_rounds, None, "", "ratio"),
        f"decision: cycles with other bytes, of {len(cycles):,} replayed": (differing, 0, "lower", ""),
        "decision: cycles replayed per second and core": (per_s, None, "", "1/s"),
    }


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, Valkey(Path(folder)) as valkey:
        env = environment(Path(folder) / "state", {"redis_url": valkey.url, "log_level": "error"})
        processes = [Process(Path(folder), name, env) for name in ("audit", "decision")]
        try:
            for one in processes:
                one.start().wait()
            rows = uvloop.run(measured(processes[1].ports["decision"]))
        finally:
            for one in processes:
                one.stop()
    names = ("value", "target", "better", "unit")
    print(json.dumps({figure: dict(zip(names, row, strict=True)) for figure, row in rows.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
