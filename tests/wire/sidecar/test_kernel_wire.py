"""Kernels through a real sidecar: JSON over HTTP and gRPC, sealed before they are answered, rebuilt from the chain (KRN-1 to KRN-13)."""

from __future__ import annotations

import asyncio
import json

import grpc
import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.kernel.v1.kernel_pb2_grpc import KernelServiceStub
from interlock.domain.errors import unavailable
from tests.support.kernels import UNIT, KernelClient, definition, failed
from tests.support.sidecar.sidecar import Hooked, another_sidecar, running_sidecar


@pytest.fixture
async def sidecar(tmp_path, redis_url):
    async with running_sidecar(tmp_path, redis_url=redis_url) as running:
        yield running


@pytest.fixture
async def team(sidecar):
    kernel = KernelClient(sidecar.client, "team", key="alice")
    assert (await kernel.open())["created"]
    return kernel


@pytest.mark.req("KRN-1", "KRN-2")
async def test_many_calls_at_once_spend_what_there_is_and_no_more(team):
    """Of 30 tasks of 10 from a budget of 100, ten are done; the others are told every check that failed."""
    verdicts = await asyncio.gather(*(team.execute("task", f"k{n}") for n in range(30)))
    verdicts = [one["verdict"] for one in verdicts]

    assert sum(one["approved"] for one in verdicts) == 10
    rejected = next(one for one in verdicts if not one["approved"])
    assert set(failed(rejected)) == {"BUDGET_EXCEEDED", "INVARIANT_BROKEN"}
    assert "it costs 10 usd, and 0 is left" in rejected["for_model"]
    assert "finish a task first" in rejected["for_model"]
    shown = await team.describe()
    assert shown["state"]["active"] == {"number_micros": str(10 * UNIT)}
    assert await team.spent() == 100 * UNIT
    assert any(one["monitoring"] and not one["passed"] for v in verdicts if v["approved"] for one in v["checks"])


@pytest.mark.req("KRN-2", "KRN-12")
async def test_a_kernel_that_the_store_lost_is_what_its_chain_says(team, sidecar, valkey):
    """After a flush the next call restores it; answers under old keys stay what they were, and joining finds the same budget."""
    first = await team.execute("task", "one")
    before = await team.describe()
    valkey.flush()

    assert await team.describe() == before
    again = await team.execute("task", "one")
    assert again["verdict"] == {**first["verdict"], "replayed": True}
    valkey.flush()
    assert not (await team.open())["created"]
    assert await team.spent() == 10 * UNIT


@pytest.mark.req("KRN-2", "KRN-12")
async def test_a_store_that_went_on_beside_the_chain_is_put_back(team, valkey):
    """A key set back under a running server cannot spend twice: what it decides there conflicts with the chain."""
    key = f"il:{{{(await team.describe())['kernel_id']}}}:kernel"
    await team.execute("task", "one")
    with valkey.client() as client:
        old = client.dump(key)
    for number in range(9):
        assert (await team.execute("task", f"more{number}"))["verdict"]["approved"]
    with valkey.client() as client:
        client.restore(key, 0, old, replace=True)

    assert not (await team.execute("task", "late"))["verdict"]["approved"]
    assert await team.spent() == 100 * UNIT


@pytest.mark.req("KRN-2", "KRN-12")
async def test_a_kernel_that_is_only_read_shows_what_its_chain_says(team, valkey):
    """Nobody acts after the key was set back, so no conflict tells it; what is read is compared with the chain."""
    key = f"il:{{{(await team.describe())['kernel_id']}}}:kernel"
    await team.execute("task", "one")
    with valkey.client() as client:
        old = client.dump(key)
    for number in range(3):
        await team.execute("task", f"more{number}")
    with valkey.client() as client:
        client.restore(key, 0, old, replace=True)

    assert await team.spent() == 40 * UNIT
    assert (await team.describe())["sequence"] == str(len(await team.trace()))


@pytest.mark.req("KRN-2")
async def test_nothing_is_answered_that_is_not_sealed(tmp_path, redis_url):
    """While the audit service refuses, nobody is told; afterwards the same key gets the one answer, and its record is in the trace."""
    broken = asyncio.Event()

    async def refuse(_request):
        if broken.is_set():
            raise unavailable("AUDIT_BROKEN_BY_TEST", "not now")

    def wrap(services):
        return {**services, "audit": Hooked(services["audit"], SealKernel=refuse)}

    async with running_sidecar(tmp_path, redis_url=redis_url, wrap=wrap) as sidecar:
        team = KernelClient(sidecar.client, "team")
        await team.open()
        broken.set()
        assert (await team.post("execute", action="task", key="one")).status_code >= 500
        assert (await sidecar.client.get("/crp/v3/kernel/team")).status_code >= 500, "what is not sealed is not shown"
        broken.clear()

        assert (await team.execute("task", "one"))["verdict"]["approved"]
        assert await team.spent() == 10 * UNIT
        assert [one["type"] for one in await team.trace()] == ["KERNEL_OPENED", "KERNEL_EXECUTED"]


@pytest.mark.req("KRN-1", "KRN-13")
async def test_another_caller_and_another_tree_have_kernels_of_their_own(team, sidecar):
    """What is not the caller's does not exist for it, keys of others included."""
    await team.execute("task", "one")
    other = KernelClient(sidecar.client, "team", key="mallory")
    assert (await other.post("execute", action="task", key="one")).json()["reason"] == "KERNEL_NOT_FOUND"
    assert (await sidecar.client.get("/crp/v3/kernel/team/trace", headers=other.headers)).status_code == 404
    await other.open()
    assert await other.spent() == 0
    forged = KernelClient(sidecar.client, "team", key="alice", token="crp_tok_x")
    assert (await sidecar.client.get("/crp/v3/kernel/team", headers=forged.headers)).status_code in {400, 401}


@pytest.mark.req("KRN-7")
async def test_a_permit_is_settled_with_what_it_cost_or_taken_back(team):
    """Reserved in full, settled with less; aborted it is as if it had not been; neither twice."""
    for key in ("one", "two"):
        assert (await team.post("permit", action="task", key=key)).json()["verdict"]["approved"]
    assert await team.spent() == 20 * UNIT
    more = [{"resource": "usd", "micros": 11 * UNIT}]
    too_much = (await team.post("confirm", permit="one", key="c0", actual=more)).json()
    assert failed(too_much["verdict"]) == ["COST_ABOVE_RESERVED"]
    less = [{"resource": "usd", "micros": 3 * UNIT}]
    assert (await team.post("confirm", permit="one", key="c1", actual=less)).json()["verdict"]["approved"]
    assert (await team.post("abort", permit="two", key="a1")).json()["verdict"]["approved"]

    assert await team.spent() == 3 * UNIT
    assert (await team.describe())["state"]["active"] == {"number_micros": str(UNIT)}
    assert (await team.post("abort", permit="one", key="a2")).json()["reason"] == "KERNEL_EXECUTION_UNKNOWN"
    assert (await team.post("confirm", permit="two", key="c2")).json()["reason"] == "KERNEL_PERMIT_UNKNOWN"


@pytest.mark.req("KRN-7")
async def test_a_permit_that_comes_after_its_abort_is_refused(team):
    """Whoever was not answered takes back what may still be on its way: nothing is left reserved, and the chain says why."""
    assert (await team.post("abort", permit="late", key="a1")).json()["reason"] == "KERNEL_EXECUTION_UNKNOWN"
    taken = (await team.post("abort", permit="late", key="a1", even_unseen=True)).json()["verdict"]
    late = await team.post("permit", action="task", key="late")

    assert (taken["approved"], [one["name"] for one in taken["checks"]]) == (True, ["unseen:late"])
    assert (late.status_code, late.json()["reason"]) == (409, "KERNEL_PERMIT_ABORTED")
    assert await team.spent() == 0
    assert [one["type"] for one in await team.trace()][-1] == "KERNEL_ABORTED"


@pytest.mark.req("KRN-1", "KRN-7")
async def test_a_permit_that_was_taken_back_permits_nothing_when_it_is_asked_for_again(team):
    """A retry of the permit comes after a person took it back: who asks is not told to act, since nothing is reserved any more."""
    asked = {"action": "task", "key": "slow"}
    assert (await team.post("permit", **asked)).json()["verdict"]["approved"]
    assert (await team.post("permit", **asked)).json()["verdict"]["replayed"]
    await team.post("abort", permit="slow", key="a1")
    again = await team.post("permit", **asked)

    assert (again.status_code, again.json()["reason"]) == (409, "KERNEL_PERMIT_ABORTED")
    assert await team.spent() == 0


@pytest.mark.req("KRN-1", "KRN-5", "KRN-7")
async def test_an_irreversible_permit_stays_charged_when_its_saga_is_rolled_back(team):
    """Its holder may have acted before it died: what it costs is not spent again, and a person is told."""
    pay = {"id": "pay", "irreversible": True, "costs": [{"resource": "usd", "micros": 60 * UNIT}]}
    await team.open(actions=[pay])
    await team.post("begin-saga", lifetime_ms=60_000, key="saga")
    permit = {"action": "pay", "key": "one", "saga": "saga"}
    assert (await team.post("permit", **permit)).json()["verdict"]["approved"]
    assert (await team.post("rollback", saga="saga", key="undo")).json()["verdict"]["approved"]

    assert await team.spent() == 60 * UNIT
    told = (await team.describe())["compensations"]
    assert [(one["execution"], one["stuck"]) for one in told] == [("one", True)]
    assert (await team.post("permit", **permit)).json()["reason"] == "KERNEL_PERMIT_ABORTED"
    assert failed((await team.post("permit", action="pay", key="two")).json()["verdict"]) == ["BUDGET_EXCEEDED"]


@pytest.mark.req("KRN-2", "KRN-5")
async def test_rollback_undoes_exactly_and_refunds_apart(team):
    """T7: the state before, gross spending as it was, refunds beside it; once."""
    before = (await team.describe())["state"]
    await team.execute("task", "one")
    await team.execute("mail", "two")
    assert (await team.post("rollback", executions=["one", "two"], key="r")).json()["verdict"]["approved"]

    shown = await team.describe()
    usd = next(one for one in shown["resources"] if one["name"] == "usd")
    assert shown["state"] == before
    assert (usd["gross_micros"], usd["refunded_micros"]) == (str(11 * UNIT), str(11 * UNIT))
    assert (await team.post("rollback", executions=["one"], key="r2")).json()["reason"] == "KERNEL_EXECUTION_UNKNOWN"


@pytest.mark.req("KRN-4")
async def test_a_lease_is_spent_when_it_is_granted_and_fenced(team):
    """The slice leaves the budget at the grant; a wrong fence brings nothing back, a second return neither."""
    granted = (await team.post("lease", resource="usd", wanted_micros=30 * UNIT, lifetime_ms=60_000, key="l1")).json()
    assert granted["granted_micros"] == str(30 * UNIT)
    assert await team.spent() == 30 * UNIT
    back = {"lease": "l1", "unspent_micros": 20 * UNIT}
    assert (await team.post("return", **back, fence=1, key="b0")).json()["reason"] == "KERNEL_LEASE_FENCED"
    returned = (await team.post("return", **back, fence=granted["fence"], key="b1")).json()
    assert returned["verdict"]["approved"]
    assert await team.spent() == 10 * UNIT
    again = await team.post("return", **back, fence=granted["fence"], key="b2")
    assert again.json()["reason"] == "KERNEL_LEASE_UNKNOWN"


@pytest.mark.req("KRN-2")
async def test_an_emergency_action_is_free_and_stops_the_kernel(team):
    """T8: allowed with nothing left; after a stop nothing is permitted, and emergency actions still are."""
    for number in range(10):
        await team.execute("task", f"k{number}")
    assert (await team.post("emergency", action="leave", key="e1")).json()["verdict"]["approved"]
    assert (await team.post("emergency", action="leave", stop=True, key="e2")).json()["verdict"]["approved"]
    assert "KERNEL_STOPPED" in failed((await team.execute("small", "s"))["verdict"])
    assert (await team.post("emergency", action="leave", key="e3")).json()["verdict"]["approved"]
    assert (await team.post("emergency", action="task", key="e4")).json()["reason"] == "KERNEL_EMERGENCY_UNKNOWN"


@pytest.mark.req("KRN-3")
async def test_a_predicate_holds_on_the_version_that_was_seen(team, sidecar):
    """A kernel with a predicate of its callers commits on that version alone, and only for who carries that predicate."""
    digest = "ab" * 32
    kernel = KernelClient(sidecar.client, "judged", key="alice")
    await kernel.open(invariants=[{"name": "mine", "predicate_hash": digest}])
    holds = {"name": "mine", "hash": digest, "holds": True}
    assert (await kernel.post("execute", action="task", key="k0")).json()["reason"] == "KERNEL_VERSION_NEEDED"
    shown = (await kernel.post("evaluate", action="task")).json()
    assert shown["state_after"]["active"] == {"number_micros": str(UNIT)}
    version = int(shown["verdict"]["version"])
    missing = (await kernel.execute("task", "k1", version=version))["verdict"]
    assert failed(missing) == ["PREDICATE_MISSING"]
    assert (await kernel.execute("task", "k2", version=version, predicates=[holds]))["verdict"]["approved"]
    late = await kernel.post("execute", action="task", key="k3", version=version, predicates=[holds])
    assert (late.status_code, late.json()["reason"]) == (409, "KERNEL_VERSION_CHANGED")


@pytest.mark.req("KRN-3")
async def test_a_ticket_gives_its_holder_the_next_turn(team, sidecar):
    """Whoever has none waits, over HTTP and gRPC; a decided action uses it up, and a replay of it needs none."""
    metadata = [("authorization", "Bearer alice")]
    assert (await team.post("ticket", lifetime_ms=10_001, key="long")).json()["reason"] == "KERNEL_LIFETIME_INVALID"
    async with grpc.aio.insecure_channel(sidecar.grpc) as channel:
        request = kernel_pb2.TakeTicketRequest(kernel="team", lifetime_ms=10_000, key="mine")
        taken = await KernelServiceStub(channel).TakeTicket(request, metadata=metadata)
    second = (await team.post("ticket", lifetime_ms=10_000, key="next")).json()
    assert (taken.verdict.approved, taken.ahead, second["ahead"]) == (True, 0, "1")

    version = int((await team.describe())["version"])
    waits = await team.post("execute", action="task", key="k0", version=version)
    assert (waits.status_code, waits.json()["reason"]) == (409, "KERNEL_TICKET_AHEAD")
    assert (await team.post("execute", action="task", key="k1", ticket="next")).json()["metadata"]["subject"] == "1"
    assert (await team.execute("task", "k1", ticket="mine"))["verdict"]["approved"]
    assert (await team.execute("task", "k1"))["verdict"]["replayed"]
    used = await team.post("execute", action="task", key="k2", ticket="mine")
    assert (used.status_code, used.json()["reason"]) == (404, "KERNEL_TICKET_UNKNOWN")
    assert (await team.post("permit", action="task", key="k3", ticket="next")).json()["verdict"]["approved"]
    version = int((await team.describe())["version"])
    assert (await team.execute("task", "k4", version=version))["verdict"]["approved"], "nobody waits any more"


@pytest.mark.req("KRN-2", "KRN-6")
async def test_grpc_and_another_sidecar_see_the_same_kernel(team, sidecar):
    """The same answers over gRPC, a trace as a stream with a place to resume from, and a second sidecar over the same services."""
    metadata = [("authorization", "Bearer alice")]
    async with grpc.aio.insecure_channel(sidecar.grpc) as channel:
        stub = KernelServiceStub(channel)
        request = kernel_pb2.ExecuteRequest(kernel="team", action="task", key="grpc")
        done = await stub.Execute(request, metadata=metadata)
        assert done.verdict.approved
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Execute(kernel_pb2.ExecuteRequest(kernel="team", action="none", key="x"), metadata=metadata)
        assert refused.value.code() == grpc.StatusCode.NOT_FOUND
        async with another_sidecar(sidecar) as http:
            response = await sidecar.client.post(
                f"{http}/crp/v3/kernel/team/execute", json={"action": "task", "key": "http"}, headers=team.headers
            )
            assert response.json()["verdict"]["approved"]
        watched = stub.Watch(kernel_pb2.WatchRequest(kernel="team", after=1), metadata=metadata)
        seen = [await watched.read(), await watched.read()]
        watched.cancel()
    assert [one.sequence for one in seen] == [2, 3]
    assert [json.loads(one.data_json)["key"] for one in seen] == ["grpc", "http"]


@pytest.mark.req("KRN-2")
async def test_the_trace_is_a_chain_that_verifies(team, sidecar):
    """T6: every decision is an event of one chain, rejections included, and the audit service verifies it."""
    for number in range(12):
        await team.execute("task", f"k{number}")
    shown = await team.describe()
    found = await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=shown["kernel_id"]))
    assert not found.faults
    records = await team.trace()
    assert [int(one["sequence"]) for one in records] == list(range(1, 14))
    assert [one["type"] for one in records].count("KERNEL_REJECTED") == 2


BAD = [
    ("execute", {"action": "task"}, "KERNEL_KEY_INVALID"),
    ("execute", {"action": "nothing", "key": "k"}, "KERNEL_ACTION_UNKNOWN"),
    ("execute", {"action": "x\n", "key": "k"}, "KERNEL_NAME_INVALID"),
    ("execute", {"action": "task", "key": "k", "effects": []}, "KERNEL_REQUEST_INVALID"),
    ("execute", {"action": "task", "key": "k", "version": -1}, "KERNEL_VERSION_INVALID"),
    ("execute", {"action": "task", "key": "k", "version": 1.5}, "KERNEL_NUMBER_INVALID"),
    ("execute", {"action": "task", "key": "k", "kernel": "other"}, "KERNEL_REQUEST_INVALID"),
    ("lease", {"resource": "usd", "wanted_micros": -1, "lifetime_ms": 1000, "key": "k"}, "KERNEL_AMOUNT_INVALID"),
    ("lease", {"resource": "usd", "wanted_micros": 10**16, "lifetime_ms": 1000, "key": "k"}, "KERNEL_AMOUNT_INVALID"),
    ("lease", {"resource": "usd", "wanted_micros": "1_0", "lifetime_ms": 1000, "key": "k"}, "KERNEL_NUMBER_INVALID"),
    ("lease", {"resource": "usd", "wanted_micros": "NaN", "lifetime_ms": 1000, "key": "k"}, "KERNEL_NUMBER_INVALID"),
    ("lease", {"resource": "usd", "wanted_micros": "007", "lifetime_ms": 1000, "key": "k"}, "KERNEL_NUMBER_INVALID"),
    ("lease", {"resource": "usd", "wanted_micros": 10**30, "lifetime_ms": 1000, "key": "k"}, "INVALID_JSON"),
    ("lease", {"resource": "eur", "lifetime_ms": 1000, "key": "k"}, "KERNEL_RESOURCE_UNKNOWN"),
    ("lease", {"resource": "usd", "lifetime_ms": 1, "key": "k"}, "KERNEL_LIFETIME_INVALID"),
    ("return", {"lease": "none", "key": "k"}, "KERNEL_LEASE_UNKNOWN"),
    ("rollback", {"executions": [], "key": "k"}, "KERNEL_EXECUTIONS_INVALID"),
    ("rollback", {"executions": ["none"], "key": "k"}, "KERNEL_EXECUTION_UNKNOWN"),
]
NUMBER = {"name": "n", "type": "VARIABLE_TYPE_NUMBER"}
BAD_DEFINITIONS = [
    ({"resources": [{"name": "usd", "limit_micros": -1}]}, "KERNEL_AMOUNT_INVALID"),
    ({"resources": [{"name": "usd", "limit_micros": 10**16}]}, "KERNEL_AMOUNT_INVALID"),
    ({"resources": [{"name": "a b"}]}, "KERNEL_NAME_INVALID"),
    ({"resources": [{"name": "a"}, {"name": "a"}]}, "KERNEL_DUPLICATE"),
    ({"variables": [{"name": "n"}]}, "KERNEL_VARIABLE_INVALID"),
    ({"variables": [{**NUMBER, "initial": {"text": "1"}}]}, "KERNEL_VARIABLE_INVALID"),
    ({"variables": [{**NUMBER, "initial": {"number_micros": 10**16}}]}, "KERNEL_NUMBER_TOO_LARGE"),
    ({"variables": [{"name": f"n{i}", "type": 1} for i in range(10_000)]}, "KERNEL_TOO_LARGE"),
    ({"actions": [{"id": "a", "effects": [{"variable": "n", "mode": 1, "value": {"flag": True}}]}]}, "KERNEL_VARIABLE_UNKNOWN"),
    ({"variables": [NUMBER], "actions": [{"id": "a", "effects": [{"variable": "n", "mode": 1, "value": {"flag": True}}]}]}, "KERNEL_EFFECT_INVALID"),
    ({"variables": [NUMBER], "actions": [{"id": "a", "effects": [{"variable": "n", "mode": 99}]}]}, "KERNEL_EFFECT_INVALID"),
    ({"actions": [{"id": "a", "costs": [{"resource": "eur"}]}]}, "KERNEL_RESOURCE_UNKNOWN"),
    ({"actions": [{"id": "a"}, {"id": "a"}]}, "KERNEL_DUPLICATE"),
    ({"resources": [{"name": "usd"}], "actions": [{"id": "a", "emergency": True, "costs": [{"resource": "usd", "micros": 1}]}]}, "KERNEL_EMERGENCY_INVALID"),
    ({"invariants": [{"name": "i"}]}, "KERNEL_INVARIANT_INVALID"),
    ({"invariants": [{"name": "i", "predicate_hash": "xyz"}]}, "KERNEL_INVARIANT_INVALID"),
    ({"variables": [NUMBER], "invariants": [{"name": "i", "expression": "n > 0"}]}, "KERNEL_INVARIANT_BROKEN"),
    ({"variables": [NUMBER], "invariants": [{"name": "i", "expression": "n"}]}, "KERNEL_EXPRESSION_INVALID"),
    ({"variables": [NUMBER], "invariants": [{"name": "i", "expression": "__import__('os')"}]}, "KERNEL_VARIABLE_UNKNOWN"),
    ({"variables": [NUMBER], "invariants": [{"name": "i", "expression": "n < 1e9"}]}, "KERNEL_EXPRESSION_INVALID"),
    ({"variables": [NUMBER], "invariants": [{"name": "i", "expression": "m < 1"}]}, "KERNEL_VARIABLE_UNKNOWN"),
    ({"invariants": [{"name": "i", "expression": "(" * 40 + "true" + ")" * 40}]}, "KERNEL_EXPRESSION_TOO_DEEP"),
    ({"invariants": [{"name": "i", "expression": "true" + " or true" * 200}]}, "KERNEL_EXPRESSION_TOO_LONG"),
    ({"invariants": [{"name": "i", "expression": "uses(none, 5) < 1"}]}, "KERNEL_ACTION_UNKNOWN"),
    ({"surprise": 1}, "KERNEL_REQUEST_INVALID"),
]  # fmt: skip


@pytest.mark.req("KRN-1", "KRN-13")
async def test_bad_input_has_a_reason_and_changes_nothing(team, sidecar):
    """Every malformed call is refused by name, and the kernel is as before."""
    before = await team.describe()
    for ask, body, reason in BAD:
        answer = await team.post(ask, **body)
        assert (answer.status_code < 500, answer.json()["reason"]) == (True, reason), (ask, body, answer.text)
    for given, reason in BAD_DEFINITIONS:
        answer = await KernelClient(sidecar.client, "bad", key="alice").post("open", definition=given)
        assert answer.json().get("reason") == reason, (given, answer.text)
    nan = await sidecar.client.post(
        "/crp/v3/kernel/team/lease",
        content='{"wanted_micros": NaN}',
        headers={**team.headers, "content-type": "application/json"},
    )
    assert nan.status_code == 400
    twice = await sidecar.client.get("/crp/v3/kernel/team/trace?after=1&after=2", headers=team.headers)
    assert (twice.status_code, twice.json()["reason"]) == (400, "INVALID_PARAMETER")
    for after in (2**63, 10**19 - 1, -1):
        beyond = await sidecar.client.get(f"/crp/v3/kernel/team/trace?after={after}", headers=team.headers)
        assert (beyond.status_code, beyond.json()["reason"]) == (400, "KERNEL_PLACE_INVALID")
    assert await team.describe() == before


LEASE = {"resource": "usd", "key": "k"}
ODD = [
    ("lease", {**LEASE, "lifetimeMs": "1_000"}, "KERNEL_NUMBER_INVALID"),
    ("lease", {**LEASE, "lifetimeMs": 1000.0}, "KERNEL_NUMBER_INVALID"),
    ("lease", {**LEASE, "lifetimeMs": 1000, "wantedMicros": "+1"}, "KERNEL_NUMBER_INVALID"),
    ("lease", {**LEASE, "lifetimeMs": 1000, "lifetime_ms": 2000}, "KERNEL_REQUEST_INVALID"),
    ("settle-compensation", {"execution": "x", "outcome": 1.9, "key": "k"}, "KERNEL_NUMBER_INVALID"),
    ("settle-compensation", {"execution": "x", "outcome": True, "key": "k"}, "KERNEL_NUMBER_INVALID"),
]


@pytest.mark.req("KRN-1", "KRN-13")
@pytest.mark.parametrize(("ask", "body", "reason"), ODD)
async def test_a_field_is_read_one_way_by_either_of_its_names(team, ask, body, reason):
    """A number in a form of its own, a choice that is cut to one, and a field that stands twice are refused, and grant nothing."""
    answer = await team.post(ask, **body)
    assert (answer.status_code, answer.json().get("reason")) == (400, reason), answer.text
    assert (await team.describe())["sequence"] == "1"


@pytest.mark.req("KRN-13")
async def test_an_agent_cannot_invent_effects(team, sidecar):
    """What is registered stays as it is; a closed registry takes nothing new; another definition is told how it differs."""
    await team.execute("task", "one")
    reused = await team.post("execute", action="mail", key="one")
    assert (reused.status_code, reused.json()["reason"]) == (409, "KERNEL_KEY_REUSED")
    cheap = [{"id": "task", "name": "A task", "costs": [{"resource": "usd", "micros": UNIT}]}]
    changed = await team.post("open", definition=definition(actions=cheap))
    assert changed.json()["reason"] == "KERNEL_ACTION_DIFFERS"
    richer = [{"name": "usd", "limit_micros": 999 * UNIT, "min_cost_micros": UNIT}]
    other = await team.post("open", definition=definition(resources=richer, actions=[]))
    assert (other.json()["reason"], other.json()["metadata"]["part"]) == ("KERNEL_DEFINITION_DIFFERS", "resources")
    closed = KernelClient(sidecar.client, "closed", key="alice")
    await closed.open(open_registry=False)
    new = [{"id": "new", "costs": [{"resource": "usd", "micros": UNIT}]}]
    refused = await closed.post("open", definition=definition(actions=new, open_registry=False))
    assert (refused.status_code, refused.json()["reason"]) == (403, "KERNEL_REGISTRY_CLOSED")
    retyped = [{"name": "active", "type": "VARIABLE_TYPE_TEXT"}]
    wrong = await team.post("open", definition=definition(variables=retyped, actions=[]))
    assert wrong.status_code >= 400
    assert await team.spent() == 10 * UNIT
