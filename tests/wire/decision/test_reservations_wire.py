"""What experiments reserve in a real shared kernel, over real gRPC, session and audit services (DEC-13)."""

from __future__ import annotations

import asyncio
import json

import grpc
import pytest

from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.client.decision import DecisionRefusedError, ExperimentClient
from interlock.decision import reservations
from interlock.domain.errors import unavailable
from interlock.runtime.rpc.errors import from_rpc_error
from interlock.runtime.rpc.mesh import Mesh
from interlock.session.wiring import open_service
from tests.support.decision_kernels import AGENT, UNIT, ReservingClient, SharedKernel, kernel_definition
from tests.support.decision_service import opened_audit, proposes, served, serving, settings_of
from tests.support.sidecar.sidecar import Hooked

pytestmark = pytest.mark.req("DEC-13")
RICH = json.dumps({"trial_active": False, "budget": {"limit": 1_000_000, "used": 0}})


@pytest.fixture
def settings(tmp_path, redis_url):
    return settings_of(tmp_path, redis_url, allow_unfit_store=True)


@pytest.fixture
async def audit(settings):
    async with opened_audit(settings) as service:
        yield service


@pytest.fixture
async def session(settings):
    service = await open_service(settings)
    yield service
    await service.close()


@pytest.fixture
async def kernel(settings, session, audit):
    shared = SharedKernel(settings, session, audit)
    await shared.open()
    return shared


@pytest.fixture
async def search(settings, session, audit, kernel):
    async with serving(settings, audit, session=session) as stub:
        client = ReservingClient(stub)
        await client.open()
        await client.register(AGENT)
        yield client


def extends(trials: object = 30, **more):
    """A proposal to extend."""
    return proposes(
        "EXTEND_TRIALS", "strategy", risk_level="MEDIUM", parameters_json=json.dumps({"trials": trials}), **more
    )


def mutates(**more):
    """A cheap second thought, which scores less."""
    return proposes("MUTATE_SEARCH", "strategy", id="p2", confidence=0.5, **more)


async def run(client, cycle, *proposals):
    """Run a cycle in which the strategy agent proposes. The snapshot claims a budget that nobody has."""
    async with client.working("strategy", lambda _: {"proposals": proposals}):
        return await client.run(cycle, snapshot=RICH)


async def refused(call) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return from_rpc_error(caught.value, "decision").reason


async def test_what_is_accepted_is_reserved_and_settled_with_what_it_cost(search, kernel):
    """40 are held, 25 are spent; again the same answer; the other outcome is refused; the trace names key and figures."""
    decision = await run(search, 1, extends())
    assert decision.outcome == "EXTEND_TRIALS"
    assert await kernel.left() == 60
    trace = await search.trace(1)
    reserved = trace["reserved"]
    assert (reserved["approved"], reserved["costs"]) == (True, {"trials": 40 * UNIT})
    assert any(f"trials {40 * UNIT} of {100 * UNIT} micros" in line for line in trace["guardrail_checks"])

    settled = await search.settle(1, done=True, trials=25 * UNIT)
    assert (settled.permit, settled.replayed) == (reserved["key"], False)
    assert await kernel.left() == 75
    assert (await search.settle(1, done=True, trials=25 * UNIT)).replayed
    assert await refused(search.settle(1, done=False)) == "KERNEL_EXECUTION_UNKNOWN"
    assert await refused(search.settle(1, done=True, trials=26 * UNIT)) == "KERNEL_KEY_REUSED"
    assert (await search.replay(1)).same
    assert await kernel.left() == 75


async def test_what_was_not_done_is_given_back(search, kernel):
    """A cycle that reserved nothing has nothing to settle, and more than was reserved is not what it cost."""
    await run(search, 1, extends())
    assert await refused(search.settle(1, done=True, trials=41 * UNIT)) == "DECISION_SETTLEMENT_REFUSED"
    await search.settle(1, done=False)
    assert await kernel.left() == 100
    await run(search, 2)
    assert await refused(search.settle(2, done=True)) == "DECISION_NOTHING_RESERVED"
    assert await refused(search.settle(3, done=True)) == "DECISION_CYCLE_NOT_FOUND"
    assert await refused(search.settle(1, done=False, trials=1)) == "DECISION_COSTS_INVALID"


async def test_an_owner_settles_what_it_did_and_what_it_never_heard_of(settings, session, audit, kernel):
    """The client of the owner: 25 of 40 spent; a cycle whose answer was lost is named by the next one, and given back."""
    async with served(settings, audit, session=session) as address, grpc.aio.insecure_channel(address) as channel:
        agents = ReservingClient(DecisionServiceStub(channel))
        definition = json.loads(kernel_definition())
        with ExperimentClient("search", at=address, api_key="alice", definition=definition) as owner:
            await asyncio.to_thread(owner.open)
            await agents.register(AGENT)
            async with agents.working("strategy", lambda _: {"proposals": [extends()]}):
                first = await asyncio.to_thread(owner.decide, json.loads(RICH))
                await asyncio.to_thread(owner.settle, first.cycle, actual={"trials": 25})
                left = await kernel.left()
                await agents.run(2, snapshot=RICH)  # decided, and the owner did not hear of it
                second = await asyncio.to_thread(owner.decide, json.loads(RICH))
                permit = await asyncio.to_thread(owner.settle, second.unheard_cycle, done=False)
            with pytest.raises(DecisionRefusedError) as nothing:
                await asyncio.to_thread(owner.settle, second.cycle)

    assert (first.outcome, first.unheard_cycle, left) == ("EXTEND_TRIALS", 0, 75)
    assert (second.outcome, second.cycle, second.unheard_cycle) == ("CONTINUE", 3, 2)
    assert permit
    assert nothing.value.reason == "DECISION_NOTHING_RESERVED"
    assert await kernel.left() == 75


async def test_an_owner_hears_of_a_lost_decision_even_while_the_next_one_fails(settings, session, audit, kernel):
    """The answer of cycle 1 was lost, and cycle 2 is refused: that call and no later one names cycle 1."""
    broken = asyncio.Event()

    async def refuse(_request):
        if broken.is_set():
            raise unavailable("AUDIT_BROKEN_BY_TEST", "not now")

    async with served(settings, Hooked(audit, SealDecision=refuse), session=session) as address:
        definition = json.loads(kernel_definition())
        with ExperimentClient("search", at=address, api_key="alice", definition=definition) as owner:
            await asyncio.to_thread(owner.open)
            async with grpc.aio.insecure_channel(address) as channel:
                await ReservingClient(DecisionServiceStub(channel)).run(1, snapshot=RICH)
            broken.set()
            second = await asyncio.to_thread(owner.decide, json.loads(RICH))
            broken.clear()
            third = await asyncio.to_thread(owner.decide, json.loads(RICH))

    assert (second.fault, second.outcome, second.unheard_cycle) == ("AUDIT_BROKEN_BY_TEST", "CONTINUE", 1)
    assert (third.fault, third.cycle, third.unheard_cycle) == ("", 2, 0)


async def test_the_guard_reads_the_kernel_and_not_the_snapshot(search, kernel):
    """The third of 40 does not fit into 100, whatever the snapshot says; nor do 41 trials into a permit of 40."""
    outcomes = [await run(search, cycle, extends()) for cycle in (1, 2, 3)]

    assert [one.outcome for one in outcomes] == ["EXTEND_TRIALS", "EXTEND_TRIALS", "CONTINUE"]
    assert [one.reason for one in outcomes[2].rejected] == ["BUDGET_EXCEEDED"]
    assert any(f"trials {40 * UNIT} of {20 * UNIT} micros" in one for one in outcomes[2].guardrail_checks)
    assert await kernel.left() == 20


async def test_a_proposal_above_its_permit_is_rejected(search, kernel):
    """Also one whose figure is missing; nothing is reserved."""
    reasons = [(await run(search, cycle, extends(trials))).rejected[0].reason for cycle, trials in ((1, 41), (2, "x"))]

    assert reasons == ["BUDGET_ABOVE_PERMIT", "BUDGET_COST_UNKNOWN"]
    assert await kernel.left() == 100


async def test_what_the_kernel_refuses_is_rejected_and_the_next_best_is_reserved(settings, session, audit, kernel):
    """An invariant stands against the first; the second is accepted in the same cycle, and the trace replays."""
    async with serving(settings, audit, session=session) as stub:
        client = ReservingClient(stub, experiment="other")
        await client.open(extend="break")
        await client.register(AGENT)
        decision = await run(client, 1, extends(1), mutates())

        assert decision.outcome == "MUTATE_SEARCH"
        assert [one.reason for one in decision.rejected] == ["BUDGET_PERMIT_REFUSED"]
        assert any("INVARIANT_BROKEN" in line for line in decision.guardrail_checks)
        assert await kernel.left() == 99
        assert (await client.replay(1)).same


async def test_a_child_of_the_kernel_has_its_own_limit(settings, session, audit, kernel):
    """What is left is the least of all above it."""
    await kernel.child("writer", 50)
    async with serving(settings, audit, session=session) as stub:
        client = ReservingClient(stub, experiment="other")
        await client.open(child="writer")
        await client.register(AGENT)
        found = [await run(client, cycle, extends()) for cycle in (1, 2)]

    assert [one.outcome for one in found] == ["EXTEND_TRIALS", "CONTINUE"]
    assert [one.reason for one in found[1].rejected] == ["BUDGET_EXCEEDED"]
    assert await kernel.left() == 60


async def test_without_the_kernel_the_guard_rejects_and_the_experiment_goes_on(settings, session, audit, kernel):
    """The session service is down: BUDGET_KERNEL_UNAVAILABLE, CONTINUE; back again, the next cycle reserves."""
    down = asyncio.Event()

    async def refuse(_request):
        if down.is_set():
            raise unavailable("SESSION_BROKEN_BY_TEST", "not now")

    async with serving(settings, audit, session=Hooked(session, StepKernel=refuse)) as stub:
        client = ReservingClient(stub)
        await client.open()
        await client.register(AGENT)
        down.set()
        decision = await run(client, 1, extends())
        assert decision.outcome == "CONTINUE"
        assert [one.reason for one in decision.rejected] == ["BUDGET_KERNEL_UNAVAILABLE"]
        down.clear()
        assert (await run(client, 2, extends())).outcome == "EXTEND_TRIALS"
        assert (await client.replay(1)).same
    assert await kernel.left() == 60


async def test_a_kernel_that_was_never_opened_rejects(settings, session, audit):
    """Named as what it is."""
    async with serving(settings, audit, session=session) as stub:
        client = ReservingClient(stub)
        await client.open()
        await client.register(AGENT)
        decision = await run(client, 1, extends())

    assert [one.reason for one in decision.rejected] == ["BUDGET_KERNEL_UNAVAILABLE"]
    assert any("KERNEL_NOT_FOUND" in line for line in decision.guardrail_checks)


async def test_what_a_broken_cycle_reserved_is_taken_back(settings, session, audit, kernel):
    """The permit was given and the seal refused; the cycle is run again and decides otherwise: its 40 come back."""
    broken = asyncio.Event()

    async def refuse(_request):
        if broken.is_set():
            raise unavailable("AUDIT_BROKEN_BY_TEST", "not now")

    async with serving(settings, Hooked(audit, SealDecision=refuse), session=session) as stub:
        client = ReservingClient(stub)
        await client.open()
        await client.register(AGENT)
        broken.set()
        assert await refused(run(client, 1, extends())) == "AUDIT_BROKEN_BY_TEST"
        assert await kernel.left() == 60
        broken.clear()
        assert (await run(client, 1, mutates())).outcome == "MUTATE_SEARCH"
        assert await kernel.left() == 99


async def test_a_permit_that_comes_after_its_cycle_reserves_nothing(settings, session, audit, kernel, monkeypatch):
    """The kernel was slow, the cycle was decided without it and cleared: what it is asked then is refused."""
    monkeypatch.setattr(reservations, "KERNEL_LIMIT_S", 0.5)
    late = []

    async def slow(request):
        if request.WhichOneof("ask") == "permit":
            late.append(request)
            await asyncio.sleep(5)

    async with serving(settings, audit, session=Hooked(session, StepKernel=slow)) as stub:
        client = ReservingClient(stub)
        await client.open()
        await client.register(AGENT)
        assert (await run(client, 1, extends())).outcome == "CONTINUE"
    mesh = Mesh.local(session=session, policy=None, dpe=None, audit=audit)
    for request in late:
        assert (await mesh.session.StepKernel(request)).refusal.reason == "KERNEL_PERMIT_ABORTED"
    assert late
    assert await kernel.left() == 100


async def test_what_could_not_be_taken_back_is_taken_back_by_the_next_cycle(settings, session, audit, kernel):
    """The kernel does not answer when the 40 of a broken cycle are to come back."""
    broken, mute = asyncio.Event(), asyncio.Event()

    async def refuse(_request):
        if broken.is_set():
            raise unavailable("AUDIT_BROKEN_BY_TEST", "not now")

    async def silent(request):
        if mute.is_set() and request.WhichOneof("ask") == "abort":
            raise unavailable("SESSION_BROKEN_BY_TEST", "not now")

    hooked = Hooked(audit, SealDecision=refuse), Hooked(session, StepKernel=silent)
    async with serving(settings, hooked[0], session=hooked[1]) as stub:
        client = ReservingClient(stub)
        await client.open()
        await client.register(AGENT)
        broken.set()
        assert await refused(run(client, 1, extends())) == "AUDIT_BROKEN_BY_TEST"
        broken.clear()
        mute.set()
        assert (await run(client, 1, mutates())).outcome == "MUTATE_SEARCH"
        assert await kernel.left() == 59
        mute.clear()
        await run(client, 2)
        assert await kernel.left() == 99


async def test_what_could_not_be_taken_back_for_long_is_taken_back_by_whoever_goes_on(
    settings, session, audit, kernel, monkeypatch
):
    """The kernel is silent for three cycles after the broken one, and another process has the last two: the 40 come back."""
    monkeypatch.setattr(reservations, "KERNEL_LIMIT_S", 0.2)
    broken, mute = asyncio.Event(), asyncio.Event()

    async def refuse(_request):
        if broken.is_set():
            raise unavailable("AUDIT_BROKEN_BY_TEST", "not now")

    async def silent(_request):
        if mute.is_set():
            raise unavailable("SESSION_BROKEN_BY_TEST", "not now")

    audited, shared = Hooked(audit, SealDecision=refuse), Hooked(session, StepKernel=silent)
    async with serving(settings, audited, session=shared) as stub:
        client = ReservingClient(stub)
        await client.open()
        await client.register(AGENT)
        broken.set()
        assert await refused(run(client, 1, extends())) == "AUDIT_BROKEN_BY_TEST"
        broken.clear()
        mute.set()
        for cycle in (1, 2, 3):
            await run(client, cycle)
    async with serving(settings, audited, session=shared) as stub:
        client = ReservingClient(stub)
        await client.register(AGENT)
        await run(client, 4)
        assert await client.trace(4)
        mute.clear()
        assert await kernel.left() == 60
        await run(client, 5)
        assert await kernel.left() == 100
        assert (await client.trace(5))["inputs"]["doubtful_from"] == 1
        assert "doubtful_from" not in (await run_traced(client, 6))["inputs"]


async def run_traced(client, cycle):
    """Run a cycle in which nothing is proposed; return its trace, which replays."""
    await run(client, cycle)
    assert (await client.replay(cycle)).same
    return await client.trace(cycle)


async def test_what_a_cycle_reserved_whose_owner_left_is_taken_back(settings, session, audit, kernel):
    """The owner's deadline passed between permit and seal; the cycle is run again and decides otherwise: its 40 come back."""
    waits, reached = asyncio.Event(), asyncio.Event()

    async def hold(_request):
        if waits.is_set():
            reached.set()
            await asyncio.Event().wait()

    async with serving(settings, Hooked(audit, SealDecision=hold), session=session) as stub:
        client = ReservingClient(stub)
        await client.open()
        await client.register(AGENT)
        await run(client, 1)
        waits.set()
        running = asyncio.create_task(run(client, 2, extends()))
        await reached.wait()
        running.cancel()
        await asyncio.wait([running])
        assert await kernel.left() == 60
        waits.clear()
        assert (await run(client, 2, mutates())).outcome == "MUTATE_SEARCH"
        assert await kernel.left() == 99


async def test_a_cycle_that_is_run_again_takes_the_permit_that_it_has(settings, session, audit, kernel):
    """It is reserved once, however often the seal was refused."""
    broken = asyncio.Event()

    async def refuse(_request):
        if broken.is_set():
            raise unavailable("AUDIT_BROKEN_BY_TEST", "not now")

    async with serving(settings, Hooked(audit, SealDecision=refuse), session=session) as stub:
        client = ReservingClient(stub)
        await client.open()
        await client.register(AGENT)
        broken.set()
        assert await refused(run(client, 1, extends())) == "AUDIT_BROKEN_BY_TEST"
        broken.clear()
        assert (await run(client, 1, extends())).outcome == "EXTEND_TRIALS"
        assert await kernel.left() == 60
        await client.settle(1, done=False)
        assert await kernel.left() == 100


async def test_two_experiments_never_accept_more_than_the_kernel_has(settings, session, audit, kernel):
    """Two services decide at once, three cycles each, of 40: two are accepted of six."""
    async with (
        serving(settings, audit, session=session) as one,
        serving(settings, audit, session=session) as other,
    ):
        clients = [ReservingClient(one, experiment="first"), ReservingClient(other, experiment="second")]
        for client in clients:
            await client.open()
            await client.register(AGENT)
        outcomes = []
        for cycle in (1, 2, 3):
            outcomes += await asyncio.gather(*(run(client, cycle, extends()) for client in clients))

    assert [one.outcome for one in outcomes].count("EXTEND_TRIALS") == 2
    assert await kernel.left() == 20
