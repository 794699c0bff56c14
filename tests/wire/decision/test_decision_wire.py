"""Experiments over real gRPC, a real Valkey and a real audit service: agents pull their tasks, one engine decides (DEC-1 to DEC-8)."""

from __future__ import annotations

import asyncio
import json
import time

import grpc
import pytest

from interlock.api.decision.v1 import decision_pb2
from interlock.domain.errors import unavailable
from tests.support.audit.audit import Attacker
from tests.support.decision_service import (
    DecisionClient,
    emits,
    opened_audit,
    proposes,
    serving,
    settings_of,
)
from tests.support.decisions import ANALYST, PROTOCOL, SNAPSHOT, STRATEGY, TRAINER
from tests.support.sidecar.sidecar import Hooked
from tests.support.valkey import Valkey


@pytest.fixture
async def audit(tmp_path, redis_url):
    async with opened_audit(settings_of(tmp_path, redis_url)) as service:
        yield service


@pytest.fixture
async def stub(tmp_path, redis_url, audit):
    async with serving(settings_of(tmp_path, redis_url), audit) as served:
        yield served


@pytest.fixture
async def search(stub):
    client = DecisionClient(stub)
    assert (await client.open()).created
    return client


@pytest.fixture
async def hasty(stub):
    """An experiment that does not wait long for agents that stay silent."""
    client = DecisionClient(stub)
    await client.open(deadline_ms=700, fail_after=2, probation_after=2, probation_answers=5)
    return client


def reason_of(error: grpc.aio.AioRpcError) -> str:
    from interlock.runtime.rpc.errors import from_rpc_error

    return from_rpc_error(error, "decision").reason


async def refused(call) -> str:
    """The reason by which a call is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return reason_of(caught.value)


def silent(_task):
    """An agent that never answers."""


def switching(_task):
    """An agent that proposes to switch."""
    return {"proposals": [proposes()]}


@pytest.mark.req("DEC-2", "DEC-3", "DEC-4", "DEC-6", "DEC-7")
async def test_agents_observe_and_propose_and_one_engine_decides(search):
    """The analyst's plateau is seen by the protocol agent in the same cycle; its proposal is accepted, sealed, and replays."""
    await search.register(ANALYST, PROTOCOL)
    seen = []

    def analyse(_task):
        return {"signals": [emits("metric_plateau", "analyst", {"metric": "loss", "slope": 0.0}, time.time())]}

    def propose(task):
        seen.append(task)
        return {"proposals": [proposes(signals_used=[one.id for one in task.signals])]}

    async with search.working("analyst", analyse), search.working("protocol", propose) as got:
        decision = await search.run(1)

    assert decision.outcome == "SWITCH_HPO"
    assert decision.chosen == "protocol/p1"
    assert [one.type for one in seen[0].signals] == ["metric_plateau"]
    assert got[0].taken
    found = await search.got(1)
    trace = json.loads(found.trace_json)
    assert trace["chosen"]["signals_used"] == trace["signals"]
    assert found.trace_hash == decision.trace_hash
    assert (await search.replay(1)).same
    assert [one.cycle for one in await search.list()] == [1]


@pytest.mark.req("DEC-7")
async def test_an_agent_is_given_the_snapshot_and_the_signals_that_it_declared_and_nothing_else(search):
    """The analyst hears of trials, not of budgets; a proposer's signal reaches the others a cycle later."""
    await search.register(ANALYST, PROTOCOL, STRATEGY)
    tasks = {"analyst": [], "strategy": []}

    def low(task):
        tasks["strategy"].append(task)
        return {"signals": [emits("budget_low", "strategy", {"utilization": 0.9}, time.time())]}

    def look(task):
        tasks["analyst"].append(task)
        return {}

    given = [
        emits("trial_completed", "executor", {"trial": 1, "value": 0.5}, time.time()),
        emits("budget_low", "executor", {"utilization": 0.85}, time.time()),
    ]
    async with (
        search.working("analyst", look),
        search.working("strategy", low),
        search.working("protocol", lambda _: {}),
    ):
        await search.run(1, signals=given)
        await search.run(2)

    assert [one.type for one in tasks["analyst"][0].signals] == ["trial_completed"]
    assert sorted(one.type for one in tasks["strategy"][0].signals) == ["budget_low", "trial_completed"]
    assert [(one.type, one.source) for one in tasks["strategy"][1].signals] == [("budget_low", "strategy")]
    assert not tasks["analyst"][1].signals
    assert json.loads(tasks["analyst"][0].snapshot_json)["budget"]["limit"] == 100


@pytest.mark.req("DEC-7")
async def test_a_ticket_opens_nothing_but_its_own_tasks(search, stub):
    """An agent tries each call of an owner with its ticket as a key, another's ticket made up, and no key: each is refused."""
    await search.register()
    ticket = search.tickets["trainer"]
    as_owner = DecisionClient(stub, key=ticket)

    assert await refused(as_owner.run(1)) == "DECISION_EXPERIMENT_NOT_FOUND"
    assert await refused(as_owner.describe()) == "DECISION_EXPERIMENT_NOT_FOUND"
    assert await refused(as_owner.register(TRAINER)) == "DECISION_EXPERIMENT_NOT_FOUND"
    forged = ticket.replace("trainer", "strategy")
    assert await refused(stub.Answer(decision_pb2.AnswerRequest(ticket=forged))) == "DECISION_TICKET_INVALID"
    for bad in ("", "a:b:c", "é:ü:ö", ":::", "x" * 10_000):
        assert await refused(stub.Answer(decision_pb2.AnswerRequest(ticket=bad))) == "DECISION_TICKET_INVALID"
    as_owner.metadata = ()
    assert await refused(as_owner.run(1)) == "DECISION_KEY_REQUIRED"


@pytest.mark.req("DEC-7")
async def test_another_owner_has_experiments_of_its_own(search, stub):
    """What is not the caller's does not exist for it."""
    other = DecisionClient(stub, key="mallory")

    assert await refused(other.describe()) == "DECISION_EXPERIMENT_NOT_FOUND"
    assert (await other.open()).created
    assert (await other.open()).experiment_id != (await search.open()).experiment_id


@pytest.mark.req("DEC-8")
async def test_silent_absent_and_leaving_agents_are_named_and_the_experiment_goes_on(hasty):
    """One stays silent, one never came, one leaves in the middle: three names, three DEGRADED, and the rules speak."""
    await hasty.register(TRAINER, ANALYST, STRATEGY)
    low = [emits("budget_low", "executor", {"utilization": 0.95}, time.time())]

    async def leave_early():
        async with hasty.working("strategy", silent):
            await asyncio.sleep(0.2)

    running = asyncio.create_task(leave_early())
    async with hasty.working("analyst", silent):
        while not (await hasty.describe()).agents[1].connected:
            await asyncio.sleep(0.01)
        decision = await hasty.run(1, signals=low)
    await running

    arrivals = {one.agent: one.arrival for one in decision.agents}
    assert arrivals["trainer"] == "ABSENT"
    assert arrivals["analyst"] == "LATE"
    assert arrivals["strategy"] in {"LEFT", "ABSENT"}
    assert {one.status_after for one in decision.agents} == {"DEGRADED"}
    assert decision.outcome == "STOP_EXPERIMENT"
    assert (await hasty.trace(1))["chosen"]["by"] == "RULES"


@pytest.mark.req("DEC-8")
async def test_an_agent_that_left_in_the_middle_is_told_from_one_that_never_came(hasty):
    """It took its task and its stream ended: LEFT."""
    await hasty.register(PROTOCOL)
    took = asyncio.Event()

    async def leave():
        request = decision_pb2.WorkRequest(ticket=hasty.tickets["protocol"])
        stream = hasty.stub.Work(request, timeout=30)
        async for _ in stream:
            took.set()
            stream.cancel()
            return

    leaving = asyncio.create_task(leave())
    decision = await hasty.run(1)
    await leaving

    assert took.is_set()
    assert [one.arrival for one in decision.agents] == ["LEFT"]


@pytest.mark.req("DEC-8")
async def test_an_agent_fails_after_so_many_is_on_probation_and_a_person_brings_it_back(hasty):
    """DEGRADED, FAILED, not asked, asked on probation without being heard; reinstated it speaks at once."""
    await hasty.register(PROTOCOL)
    seen = []
    for cycle in range(1, 5):
        seen.append((await hasty.run(cycle)).agents[0].status_after)
    assert seen == ["DEGRADED", "FAILED", "FAILED", "PROBATION"]

    async with hasty.working("protocol", switching):
        unheard = await hasty.run(5)
        await hasty.reinstate("protocol", "mended")
        heard = await hasty.run(6)

    assert [one.reason for one in unheard.rejected] == ["AGENT_ON_PROBATION"]
    assert heard.outcome == "SWITCH_HPO"
    assert await hasty.statuses() == {"protocol": "ACTIVE"}


@pytest.mark.req("DEC-8")
async def test_answers_twice_late_and_for_another_cycle_count_for_nothing(search):
    """Each is told to the agent by its name, and is in the trace of the next cycle."""
    await search.register(PROTOCOL)
    ticket, tasks = search.tickets["protocol"], []

    def remember(task):
        tasks.append(task)
        return {}

    async with search.working("protocol", remember):
        await search.run(1)
        late = await search.stub.Answer(decision_pb2.AnswerRequest(ticket=ticket, task_id=tasks[0].task_id))
        made_up = await search.stub.Answer(decision_pb2.AnswerRequest(ticket=ticket, task_id="f" * 32))
        await search.run(2)

    assert (late.taken, late.reason) == (False, "ANSWERED_TWICE")
    assert (made_up.taken, made_up.reason) == (False, "ANSWERED_FOREIGN_CYCLE")
    assert (await search.trace(2))["agents"][0]["faults"] == {"ANSWERED_FOREIGN_CYCLE": 1, "ANSWERED_TWICE": 1}


BAD = (
    ({"confidence": float("nan")}, "PROPOSAL_CONFIDENCE_INVALID"),
    ({"confidence": float("inf")}, "PROPOSAL_CONFIDENCE_INVALID"),
    ({"agent": "strategy"}, "PROPOSAL_AGENT_FOREIGN"),
    ({"parameters_json": "[1]"}, "PROPOSAL_PARAMETERS_INVALID"),
    ({"rationale": ""}, "RATIONALE_EMPTY"),
    ({"action_type": "STOP_EXPERIMENT"}, "ACTION_UNDECLARED"),
    ({"action_type": "rm -rf"}, "PROPOSAL_MALFORMED"),
)


@pytest.mark.req("DEC-8")
async def test_a_late_answer_is_told_so(hasty):
    """It comes after its deadline and before the next cycle."""
    await hasty.register(PROTOCOL)
    tasks = []
    async with hasty.working("protocol", tasks.append):
        decision = await hasty.run(1)
        request = decision_pb2.AnswerRequest(ticket=hasty.tickets["protocol"], task_id=tasks[0].task_id)
        late = await hasty.stub.Answer(request)

    assert [one.arrival for one in decision.agents] == ["LATE"]
    assert (late.taken, late.reason) == (False, "ANSWERED_LATE")


@pytest.mark.req("DEC-3", "DEC-8")
async def test_bad_proposals_end_by_name_and_raise_nothing(stub):
    """What came is in the trace as it came, NaN included, and the trace replays."""
    search = DecisionClient(stub)
    await search.open(fail_after=100)
    await search.register(PROTOCOL)
    async with search.working("protocol", lambda task: {"proposals": [proposes(**BAD[task.cycle - 1][0])]}):
        for cycle, (_, reason) in enumerate(BAD, 1):
            decision = await search.run(cycle)
            assert [one.reason for one in decision.rejected] == [reason]
            assert decision.outcome == "CONTINUE"
            assert (await search.replay(cycle)).same


@pytest.mark.req("DEC-8")
async def test_a_flood_of_one_agent_takes_nothing_from_another(search):
    """A thousand proposals are counted and dropped; the other agent's one is accepted."""
    await search.register(PROTOCOL, STRATEGY)
    flood = [proposes("CONTINUE", "strategy", id=f"p{n}") for n in range(1000)]
    async with (
        search.working("strategy", lambda _: {"proposals": flood}),
        search.working("protocol", switching),
    ):
        decision = await search.run(1)

    assert decision.chosen == "protocol/p1"
    assert [one.fault for one in decision.agents] == ["", "ANSWER_TOO_LARGE"]
    assert len((await search.got(1)).trace_json) < 20_000


@pytest.mark.req("DEC-6")
async def test_a_cycle_is_decided_once(search):
    """The same cycle again is read from its trace; one that is not the next is refused with the number that is."""
    await search.register(PROTOCOL)
    async with search.working("protocol", switching):
        first = await search.run(1)
    again = await search.run(1, snapshot='{"other": 1}')

    assert again.replayed and not first.replayed
    assert (again.decision_id, again.trace_hash) == (first.decision_id, first.trace_hash)
    assert await refused(search.run(3)) == "DECISION_CYCLE_UNEXPECTED"
    assert await refused(search.run(0)) == "DECISION_CYCLE_UNEXPECTED"
    assert await refused(search.run(2, snapshot="[]")) == "DECISION_SNAPSHOT_INVALID"
    assert await refused(search.got(2)) == "DECISION_CYCLE_NOT_FOUND"


@pytest.mark.req("DEC-6")
async def test_what_the_store_lost_is_made_again_from_the_chain(hasty, valkey):
    """After a flush, standings, cooldowns, traces and the number of the next cycle are what they were."""
    await hasty.register(PROTOCOL, TRAINER)
    async with hasty.working("protocol", switching):
        await hasty.run(1)
        before = (await hasty.statuses(), (await hasty.got(1)).trace_json)
        valkey.flush()
        assert (await hasty.statuses(), (await hasty.got(1)).trace_json) == before
        valkey.flush()
        second = await hasty.run(2)

    assert [one.reason for one in second.rejected] == ["COOLDOWN_ACTIVE"]
    assert [one.cycle for one in await hasty.list(after=1)] == [2]


@pytest.mark.req("DEC-6")
async def test_two_processes_that_decide_one_cycle_have_one_decision(hasty, tmp_path, redis_url, audit):
    """Of two that run the same cycle at once, the chain takes one; the other's caller asks again and reads it."""
    await hasty.register(TRAINER)
    async with serving(settings_of(tmp_path, redis_url), audit) as other_stub:
        other = DecisionClient(other_stub)
        found = await asyncio.gather(hasty.run(1), other.run(1), return_exceptions=True)
        decisions = [one for one in found if not isinstance(one, BaseException)]
        errors = [reason_of(one) for one in found if isinstance(one, grpc.aio.AioRpcError)]
        again = await other.run(1)

    assert len(decisions) == 1
    assert errors == ["DECISION_CHAIN_CONFLICT"]
    assert again.decision_id == decisions[0].decision_id


@pytest.mark.req("DEC-6")
async def test_nothing_is_answered_that_is_not_sealed(tmp_path, redis_url, audit):
    """While the audit service refuses, no decision is told; afterwards the cycle is run and sealed."""
    broken = asyncio.Event()

    async def refuse(_request):
        if broken.is_set():
            raise unavailable("AUDIT_BROKEN_BY_TEST", "not now")

    async with serving(settings_of(tmp_path, redis_url), Hooked(audit, SealDecision=refuse)) as stub:
        search = DecisionClient(stub)
        await search.open(deadline_ms=50)
        broken.set()
        assert await refused(search.run(1)) == "AUDIT_BROKEN_BY_TEST"
        assert (await search.describe()).cycle == 0
        broken.clear()

        assert (await search.run(1)).outcome == "CONTINUE"


@pytest.mark.req("DEC-6")
async def test_a_trace_that_somebody_changed_is_not_shown(tmp_path, redis_url):
    """Whoever has the database and no key changes a decision: its trace is refused, and no further cycle is sealed."""
    settings = settings_of(tmp_path, redis_url)
    async with opened_audit(settings) as audit, serving(settings, audit) as stub:
        search = DecisionClient(stub)
        await search.open(deadline_ms=50)
        assert (await search.run(1)).outcome == "CONTINUE"
        assert (await search.replay(1)).same
    with Attacker(settings.state_dir / "audit.db") as attack:
        changed = "UPDATE events SET data_json = replace(data_json, 'CONTINUE', 'STOP_EXPERIMENT') WHERE event_type = 'DECISION_TRACE'"
        attack(changed)
    async with opened_audit(settings) as audit, serving(settings, audit) as stub:
        search = DecisionClient(stub)

        assert await refused(search.got(1)) == "CHAIN_BROKEN"


@pytest.mark.req("DEC-6", "DEC-8")
async def test_a_store_that_dies_in_the_middle_of_a_cycle_costs_one_deadline(tmp_path):
    """The decision is sealed, so it is told; while the store is away nothing is decided; back, it is made what the chain says."""
    (tmp_path / "store").mkdir()
    with Valkey(tmp_path / "store") as store:
        settings = settings_of(tmp_path, store.url, rpc_timeout_s=1)
        async with opened_audit(settings) as audit, serving(settings, audit) as stub:
            search = DecisionClient(stub)
            await search.open(deadline_ms=700)
            await search.register(PROTOCOL)

            def killing(_task):
                store.kill()
                return {}

            async with search.working("protocol", killing):
                first = await search.run(1)
            assert [one.arrival for one in first.agents] in (["LATE"], ["LEFT"])
            assert await refused(search.run(2)) == "DECISION_STORE_UNAVAILABLE"
            store.start()

            assert (await search.run(2)).cycle == 2
            assert next(one.decision_id for one in await search.list()) == first.decision_id


@pytest.mark.req("DEC-6")
async def test_a_store_that_was_set_back_decides_no_cycle_again(search, valkey):
    """What it decides beside the chain is refused once, and from then on it is what the chain says."""
    await search.register(PROTOCOL)
    key = f"il:{{{(await search.describe()).experiment_id}}}:decision"
    with valkey.client() as client:
        old = client.dump(key)
    async with search.working("protocol", switching):
        first = await search.run(1)
        with valkey.client() as client:
            client.restore(key, 0, old, replace=True)
        assert await refused(search.run(1)) == "DECISION_CHAIN_CONFLICT"
        again = await search.run(1)

    assert again.replayed
    assert again.decision_id == first.decision_id


@pytest.mark.req("DEC-6")
async def test_an_agent_and_a_type_that_went_back_with_the_store_are_in_the_chain(search, valkey):
    """Their tickets and names still hold: working, emitting and reinstating ask the chain before anything is called unknown."""
    key = f"il:{{{(await search.describe()).experiment_id}}}:decision"
    with valkey.client() as client:
        old = client.dump(key)
    await search.register(PROTOCOL)
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}})
    kind = decision_pb2.RegisterSignalRequest(experiment="search", type="own", schema_json=schema)
    await search.stub.RegisterSignal(kind, metadata=search.metadata)

    async def set_back() -> None:
        with valkey.client() as client:
            client.restore(key, 0, old, replace=True)

    await set_back()
    async with search.working("protocol", switching):
        assert (await search.run(1)).chosen
    await set_back()
    own = decision_pb2.Signal(
        type="own", source="executor", timestamp=time.time(), confidence=1, payload_json='{"a":1}'
    )
    emitted = decision_pb2.EmitRequest(experiment="search", signals=[own])
    told = await search.stub.Emit(emitted, metadata=search.metadata)
    assert [one.reason for one in told.signals] == [""]
    await set_back()
    await search.reinstate("protocol", "looked at")
    assert await search.statuses() == {"protocol": "ACTIVE"}


@pytest.mark.req("DEC-8")
async def test_a_caller_that_leaves_in_the_middle_leaves_nothing_behind(search):
    """Nothing of that cycle is sealed; the agent's answer to it counts for nothing; the cycle is run by the next call."""
    await search.register(PROTOCOL)
    tasks = []
    async with search.working("protocol", tasks.append):
        request = decision_pb2.RunCycleRequest(experiment="search", cycle=1, snapshot_json=SNAPSHOT)
        left = search.stub.RunCycle(request, metadata=search.metadata, timeout=30)
        while not tasks:
            await asyncio.sleep(0.01)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        assert (await search.describe()).cycle == 0
        running = asyncio.create_task(search.run(1))
        while len(tasks) < 2:
            await asyncio.sleep(0.01)
        ticket = search.tickets["protocol"]
        stale = await search.stub.Answer(decision_pb2.AnswerRequest(ticket=ticket, task_id=tasks[0].task_id))
        fields = {"task_id": tasks[1].task_id, "snapshot_hash": tasks[1].snapshot_hash, "proposals": [proposes()]}
        assert (await search.stub.Answer(decision_pb2.AnswerRequest(ticket=ticket, **fields))).taken
        decision = await running

    assert (stale.taken, stale.reason) == (False, "ANSWERED_LATE")
    assert (decision.outcome, decision.replayed) == ("SWITCH_HPO", False)


@pytest.mark.req("DEC-1")
async def test_an_experiment_is_joined_under_its_own_definition_alone(search):
    """The same again joins; another definition, an unknown profile and a bad descriptor are refused by name."""
    assert not (await search.open()).created
    assert await refused(search.open(max_cycles=3)) == "DECISION_DEFINITION_DIFFERS"
    unknown = decision_pb2.OpenExperimentRequest(experiment="other", profile="nonsense")
    assert await refused(search.stub.OpenExperiment(unknown, metadata=search.metadata)) == "DECISION_PROFILE_UNKNOWN"
    assert await refused(search.register({**TRAINER, "role": "KING"})) == "DECISION_DESCRIPTOR_INVALID"
    bundled = decision_pb2.OpenExperimentRequest(experiment="watch", profile="oncall")
    assert (await search.stub.OpenExperiment(bundled, metadata=search.metadata)).created


@pytest.mark.req("DEC-6", "SVC-9")
async def test_without_its_store_the_service_says_so_and_decides_nothing(tmp_path, audit):
    """A store that is not there: UNAVAILABLE by name, and not ready."""
    settings = settings_of(tmp_path, "redis://127.0.0.1:1/0", rpc_timeout_s=1)
    async with serving(settings, audit) as stub:
        assert await refused(DecisionClient(stub).open()) == "DECISION_STORE_UNAVAILABLE"
