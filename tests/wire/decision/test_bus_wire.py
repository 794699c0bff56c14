"""The signal bus over real gRPC and a real Valkey: emitted, subscribed to, resumed, flooded, lost, and taken into cycles (DEC-2)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time

import grpc
import pytest

from interlock.api.decision.v1 import decision_pb2
from interlock.runtime.rpc.errors import from_rpc_error
from tests.support.decision_service import (
    BusClient,
    DecisionClient,
    emits,
    opened_audit,
    serving,
    settings_of,
)
from tests.support.decisions import ANALYST, EVERYBODY, PROTOCOL, STRATEGY

pytestmark = pytest.mark.req("DEC-2")


@pytest.fixture
async def audit(tmp_path, redis_url):
    async with opened_audit(settings_of(tmp_path, redis_url)) as service:
        yield service


@pytest.fixture
async def stub(tmp_path, redis_url, audit):
    async with serving(settings_of(tmp_path, redis_url), audit) as served:
        yield served


@pytest.fixture
async def bus(stub):
    client = DecisionClient(stub)
    await client.open(bus_signals=256)
    await client.register()
    return BusClient(client)


def plateau(slope: float = 0.0, source: str = "analyst", **more):
    """A signal of the analyst."""
    return emits("metric_plateau", source, {"metric": "loss", "slope": slope}, time.time(), **more)


def trial(number: int, source: str = "executor"):
    """A signal of the execution layer."""
    return emits("trial_completed", source, {"trial": number, "value": 0.5}, time.time())


async def refused(call) -> str:
    """The reason by which a call, or the first page of a stream, is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        if hasattr(call, "__aiter__"):
            async for _ in call:
                break
        else:
            await call
    return from_rpc_error(caught.value, "decision").reason


async def test_what_is_emitted_reaches_those_that_declared_it_in_order(bus):
    """Owner and agent emit; the owner sees all, the protocol agent its one type, and each resumes after its token."""
    await bus.emit(trial(1))
    await bus.emit(plateau(0.5), agent="analyst")
    await bus.emit(trial(2))

    everything = await bus.until(3)
    assert [(one.sequence, one.signal.type, one.signal.source) for one in everything.signals] == [
        (1, "trial_completed", "executor"), (2, "metric_plateau", "analyst"), (3, "trial_completed", "executor"),
    ]  # fmt: skip
    declared = await bus.until(1, agent="protocol")
    assert [one.sequence for one in declared.signals] == [2]
    assert json.loads(declared.signals[0].signal.payload_json) == {"metric": "loss", "slope": 0.5}
    await bus.emit(trial(3))
    assert [one.sequence for one in (await bus.until(1, after=everything.token)).signals] == [4]


async def test_a_subscriber_is_told_what_comes_while_it_waits(bus):
    """Also what another process put."""
    waiting = asyncio.create_task(bus.until(2))
    await asyncio.sleep(0.1)
    await bus.emit(trial(1))
    await bus.emit(trial(2))

    assert [one.sequence for one in (await waiting).signals] == [1, 2]


async def test_a_signal_that_is_put_in_another_process_arrives(bus, tmp_path, redis_url, audit):
    """The bus is the store's, not a process's."""
    async with serving(settings_of(tmp_path, redis_url), audit) as other:
        there = BusClient(DecisionClient(other))
        waiting = asyncio.create_task(there.until(1))
        await asyncio.sleep(0.1)
        await bus.emit(trial(1))

        assert [one.sequence for one in (await waiting).signals] == [1]


BAD = (
    (plateau(confidence=float("nan")), "SIGNAL_CONFIDENCE_INVALID"),
    (plateau(confidence=1.5), "SIGNAL_CONFIDENCE_INVALID"),
    (plateau(source="strategy"), "SIGNAL_SOURCE_FOREIGN"),
    (emits("budget_low", "analyst", {"utilization": 0.9}, time.time()), "SIGNAL_UNDECLARED"),
    (emits("no_such", "analyst", {}, time.time()), "SIGNAL_TYPE_UNKNOWN"),
    (
        emits("metric_plateau", "analyst", {"metric": "x" * 5_000, "slope": 0.0}, time.time()),
        "SIGNAL_PAYLOAD_TOO_LARGE",
    ),
    (emits("metric_plateau", "analyst", {"metric": 1, "slope": 0.0}, time.time()), "SIGNAL_PAYLOAD_INVALID"),
    (emits("metric_plateau", "analyst", {"metric": "loss", "slope": 0.0}, 17.0), "SIGNAL_CLOCK_PAST"),
    (emits("metric_plateau", "analyst", {"metric": "loss", "slope": 0.0}, float("inf")), "SIGNAL_CLOCK_INVALID"),
)


async def test_bad_signals_are_refused_one_by_one_and_counted(bus):
    """Each by its name; the good one among them is taken, and nothing of the others is on the bus."""
    from interlock.decision.metrics import SIGNALS_REJECTED

    def counted():
        return sum(SIGNALS_REJECTED.labels(reason)._value.get() for reason in {reason for _, reason in BAD})

    before = counted()
    found = await bus.emit(*(one for one, _ in BAD), plateau(), agent="analyst")

    assert [one.reason for one in found] == [*(reason for _, reason in BAD), ""]
    assert counted() == before + len(BAD)
    assert [one.signal.type for one in (await bus.until(1)).signals] == ["metric_plateau"]
    assert [one.reason for one in await bus.emit(plateau())] == ["SIGNAL_SOURCE_FOREIGN"], "the owner is no agent"


async def test_an_agent_gets_no_more_than_it_declared(bus, stub):
    """Types of others, made-up tickets, foreign experiments, bad tokens, unknown types and floods in one call: refused by name."""
    analyst = bus.owner.tickets["analyst"]
    request = decision_pb2.SubscribeRequest
    assert await refused(stub.Subscribe(request(ticket=analyst, types=["budget_low"]))) == "DECISION_TYPE_UNDECLARED"
    assert await refused(stub.Subscribe(request(ticket=analyst, types=["no_such"]))) == "DECISION_TYPE_UNKNOWN"
    forged = analyst.replace("analyst", "strategy")
    assert await refused(stub.Subscribe(request(ticket=forged))) == "DECISION_TICKET_INVALID"
    assert await refused(stub.Emit(decision_pb2.EmitRequest(ticket=forged))) == "DECISION_TICKET_INVALID"
    assert await refused(stub.Emit(decision_pb2.EmitRequest(experiment="search"))) == "DECISION_KEY_REQUIRED"
    mallory = BusClient(DecisionClient(stub, key="mallory"))
    assert await refused(mallory.emit(trial(1))) == "DECISION_EXPERIMENT_NOT_FOUND"
    for token in ("nonsense", "a.99999999999999999999"):
        assert await refused(stub.Subscribe(request(ticket=analyst, after=token))) == "DECISION_TOKEN_INVALID"
    assert await refused(bus.emit(*(trial(number) for number in range(257)))) == "DECISION_SIGNALS_TOO_MANY"


async def test_a_flood_costs_its_sender_and_the_subscriber_is_told_the_gap(bus):
    """One agent says one thing, another floods: the one thing stays, and from, to and count of what went are told."""
    await bus.emit(plateau(), agent="analyst")
    for at in range(0, 600, 200):
        low = [emits("budget_low", "strategy", {"utilization": at + one}, time.time()) for one in range(200)]
        await bus.emit(*low, agent="strategy")

    page = await bus.until(256)
    assert page.signals[0].signal.source == "analyst"
    assert [one.sequence for one in page.signals] == [1, *range(347, 602)]
    assert (page.gap.from_sequence, page.gap.to_sequence, page.gap.count) == (2, 346, 345)
    behind = await bus.until(255, after=page.token.split(".")[0] + ".100")
    assert (behind.gap.from_sequence, behind.gap.to_sequence, behind.gap.count) == (101, 346, 246)
    assert not (await bus.until(1, after=page.token.split(".")[0] + ".600")).HasField("gap")


async def test_a_signal_sent_again_keeps_its_place(bus):
    """An emitter without an answer repeats its call."""
    once = trial(1)
    first, again = await bus.emit(once), await bus.emit(once, trial(2))

    assert (again[0].id, again[0].sequence, again[0].duplicate) == (first[0].id, 1, True)
    assert (again[1].sequence, again[1].duplicate) == (2, False)


async def test_a_lost_store_is_told_and_the_bus_begins_anew(bus, valkey):
    """Signals are transient: the subscriber is told that it is another bus; those used in a trace are in the trace."""
    await bus.emit(trial(1), trial(2))
    token = (await bus.until(2)).token
    await bus.owner.register(STRATEGY)
    used = await bus.run_quietly(1)
    valkey.flush()
    await bus.emit(trial(3))

    page = await bus.until(1, after=token)
    assert page.gap.restarted
    assert [(one.sequence, json.loads(one.signal.payload_json)["trial"]) for one in page.signals] == [(1, 3)]
    trace = await bus.owner.trace(1)
    assert len(trace["inputs"]["bus"]["signals"]) == 2
    assert used.cycle == 1
    assert (await bus.run_quietly(2)).cycle == 2
    again = await bus.owner.trace(2)
    assert again["bus"]["restarted"] and again["bus"]["to"] == 1
    assert (await bus.owner.replay(2)).same


async def test_a_cycle_takes_what_came_since_the_last_one(bus):
    """The protocol agent is given its declared type alone; ids are in the trace, taken once; the trace replays."""
    await bus.emit(plateau(0.25), agent="analyst")
    await bus.emit(trial(7))
    seen = []
    async with contextlib.AsyncExitStack() as agents:
        for one in EVERYBODY:
            await agents.enter_async_context(
                bus.owner.working(one["name"], lambda task, name=one["name"]: seen.append((name, task)) or {})
            )
        await bus.owner.run(1)
        await bus.owner.run(2)

    given = {(name, task.cycle): [one.type for one in task.signals] for name, task in seen}
    assert given["protocol", 1] == ["metric_plateau"]
    assert given["analyst", 1] == ["trial_completed"]
    assert given["strategy", 1] == ["metric_plateau", "trial_completed"]
    assert given["trainer", 1] == []
    assert not any(given[one["name"], 2] for one in EVERYBODY)
    trace = await bus.owner.trace(1)
    assert trace["signals"] == [
        one["id"] for one in sorted(trace["inputs"]["bus"]["signals"], key=lambda one: one["at_us"])
    ]
    assert (trace["bus"]["to"], (await bus.owner.trace(2))["bus"]["after"]) == (2, 2)
    assert (await bus.owner.replay(1)).same


async def test_signals_of_a_cycle_are_on_the_bus_and_are_not_taken_twice(bus):
    """Subscribers see what was given and answered, with the number of its cycle."""

    def analyse(task):
        return {"signals": [plateau()]} if task.cycle == 1 else {}

    async with contextlib.AsyncExitStack() as agents:
        for name in bus.owner.tickets:
            answering = analyse if name == "analyst" else lambda _: {}
            await agents.enter_async_context(bus.owner.working(name, answering))
        await bus.owner.run(1, signals=[trial(1)])
        await bus.owner.run(2)

    page = await bus.until(2)
    assert sorted((one.cycle, one.signal.source) for one in page.signals) == [(1, "analyst"), (1, "executor")]
    assert (await bus.owner.trace(2))["inputs"]["bus"]["signals"] == []


async def test_a_type_is_registered_once_and_its_schema_holds(bus, valkey):
    """Agents may declare it then; a flush changes nothing; another schema, a reference and the name of an action are refused."""
    schema = '{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}'
    assert (await bus.register("own", schema)).added
    assert not (await bus.register("own", schema)).added
    await bus.owner.register({**ANALYST, "outputs": [*ANALYST["outputs"], "own"]}, {**PROTOCOL, "inputs": ["own"]})
    valkey.flush()
    sent = [emits("own", "analyst", {"n": value}, time.time()) for value in (1, "1")]
    assert [one.reason for one in await bus.emit(*sent, agent="analyst")] == ["", "SIGNAL_PAYLOAD_INVALID"]
    assert [one.signal.type for one in (await bus.until(1, agent="protocol")).signals] == ["own"]

    assert await refused(bus.register("own", '{"type": "object"}')) == "DECISION_SIGNAL_DIFFERS"
    assert await refused(bus.register("far", '{"$ref": "https://example.org/s"}')) == "DECISION_SIGNAL_INVALID"
    assert await refused(bus.register("CONTINUE", schema)) == "DECISION_SIGNAL_INVALID"
    assert not (await bus.owner.open(bus_signals=256)).created, "the definition is the same as before"
    assert (await bus.run_quietly(1)).cycle == 1
    assert (await bus.owner.replay(1)).same


async def test_subscriptions_of_one_caller_are_bounded(bus):
    """A caller that opens more and more is refused; others are not."""
    streams = [bus.stream() for _ in range(16)]
    try:
        await bus.emit(trial(1))
        for one in streams:
            async for _ in one:
                break
        assert await refused(bus.stream()) == "DECISION_SUBSCRIPTIONS_TOO_MANY"
        assert (await bus.until(1, agent="strategy")).signals
    finally:
        for one in streams:
            one.cancel()
