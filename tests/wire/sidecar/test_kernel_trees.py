"""Trees of kernels through a real sidecar: charged up the tree in one step, stopped down it, rebuilt from the chain (KRN-6)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock.client.kernel import ActionSpec, KernelCalls, SafetyKernel, State
from tests.support.kernels import UNIT, KernelClient, failed
from tests.support.sidecar.sidecar import running_sidecar


@pytest.fixture
async def sidecar(tmp_path, redis_url):
    async with running_sidecar(tmp_path, redis_url=redis_url) as running:
        yield running


@pytest.fixture
async def team(sidecar):
    """A kernel of 100 with the children a of 60 and b of 70, and c of 30 below a."""
    kernel = KernelClient(sidecar.client, "team", key="alice")
    await kernel.open(invariants=[])
    for child, parent, limit in (("a", "", 60), ("b", "", 70), ("c", "a", 30)):
        opened = await child_of(kernel, child, parent, limit)
        assert opened["verdict"]["approved"]
    return kernel


async def child_of(kernel: KernelClient, child: str, parent: str, limit: int, key: str = "") -> Any:
    limits = [{"resource": "usd", "micros": limit * UNIT}]
    asked = await kernel.post("open-child", child=child, parent=parent, limits=limits, key=key or f"open-{child}")
    return asked.json()


async def spent(kernel: KernelClient) -> dict[str, int]:
    """Net spending, whole dollars: of the kernel itself and of each child."""
    shown = await kernel.describe()
    parts = [("", shown["resources"]), *((one["name"], one["resources"]) for one in shown["children"])]
    net = {name: int(one["gross_micros"]) - int(one["refunded_micros"]) for name, (one, *_) in parts}
    return {name: amount // UNIT for name, amount in net.items()}


@pytest.mark.req("KRN-6", "KRN-2")
async def test_what_a_child_spends_is_spent_above_it_exactly(team, sidecar, valkey):
    """Of 36 tasks of 10 at once by three parts: each stays within its own limit and within all above it; a flush changes nothing."""
    parts = ["a", "b", "c"] * 12
    done = await asyncio.gather(*(team.execute("task", f"k{n}", child=one) for n, one in enumerate(parts)))
    done = [one["verdict"]["approved"] for one in done]

    told = await spent(team)
    made = {name: 10 * sum(ok for ok, one in zip(done, parts, strict=True) if one == name) for name in "abc"}
    assert told[""] == 100 == sum(made.values())
    assert told == {"": 100, "a": made["a"] + made["c"], "b": made["b"], "c": made["c"]}
    assert told["a"] <= 60
    assert told["b"] <= 70
    assert told["c"] <= 30
    valkey.flush()
    assert await spent(team) == told


@pytest.mark.req("KRN-6")
async def test_refunds_and_leases_go_up_the_tree_too(team):
    """Rollback, confirm, abort and a returned lease give back to the child and to all above it; a lease is no larger than the least of them."""
    await team.execute("task", "one", child="c")
    await team.post("permit", action="task", key="two", child="c")
    assert await spent(team) == {"": 20, "a": 20, "b": 0, "c": 20}
    await team.post("rollback", executions=["one"], key="undo")
    await team.post("confirm", permit="two", actual=[{"resource": "usd", "micros": 4 * UNIT}], key="settle")
    assert await spent(team) == {"": 4, "a": 4, "b": 0, "c": 4}
    slice_of = {"resource": "usd", "wanted_micros": 90 * UNIT, "lifetime_ms": 60_000}
    lease = (await team.post("lease", **slice_of, key="slice", child="c")).json()
    assert int(lease["granted_micros"]) == 13 * UNIT, "half of the 26 that are left of c"
    assert await spent(team) == {"": 17, "a": 17, "b": 0, "c": 17}
    back = {"lease": "slice", "fence": lease["fence"], "unspent_micros": 10 * UNIT, "key": "back"}
    assert (await team.post("return", **back)).json()["verdict"]["approved"]
    assert await spent(team) == {"": 7, "a": 7, "b": 0, "c": 7}


@pytest.mark.req("KRN-6", "KRN-2")
async def test_a_stop_goes_down_the_tree(team):
    """What is below a stopped child is stopped; its sibling and what is above it are not, until all is."""
    assert (await team.post("emergency", action="leave", stop=True, child="a", key="e1")).json()["verdict"]["approved"]
    for child, running in (("a", False), ("c", False), ("b", True), ("", True)):
        verdict = (await team.execute("small", f"one-{child}", child=child))["verdict"]
        assert verdict["approved"] is running, child
        assert running or set(failed(verdict)) == {"KERNEL_STOPPED"}
        lease = {"resource": "usd", "lifetime_ms": 1000, "key": f"slice-{child}", "child": child}
        assert (await team.post("lease", **lease)).json()["verdict"]["approved"] is running, child
    await team.post("emergency", action="leave", stop=True, key="e2")
    assert not (await team.execute("small", "late", child="b"))["verdict"]["approved"]
    assert [one["stopped"] for one in (await team.describe())["children"]] == [True, False, False]


@pytest.mark.req("KRN-6", "KRN-13")
async def test_a_child_is_what_it_was_opened_as(team):
    """The same again is the same; another limit, parent or resource, and a child or parent that is not there, are refused with a reason."""
    assert (await child_of(team, "a", "", 60, "again"))["verdict"]["approved"]
    for child, parent, limit, reason in (
        ("a", "", 61, "KERNEL_CHILD_DIFFERS"), ("c", "b", 30, "KERNEL_CHILD_DIFFERS"),
        ("d", "none", 1, "KERNEL_CHILD_UNKNOWN"), ("a b", "", 1, "KERNEL_NAME_INVALID"), ("d", "", -1, "KERNEL_AMOUNT_INVALID"),
    ):  # fmt: skip
        assert (await child_of(team, child, parent, limit, "bad"))["reason"] == reason
    nothing = await team.post("open-child", child="d", limits=[{"resource": "eur", "micros": 1}], key="bad")
    assert nothing.json()["reason"] == "KERNEL_RESOURCE_UNKNOWN"
    assert (await team.post("open-child", child="d", key="bad")).json()["reason"] == "KERNEL_REQUEST_INVALID"
    unknown = await team.post("execute", action="small", child="d", key="bad")
    assert unknown.json()["reason"] == "KERNEL_CHILD_UNKNOWN"
    above = ""
    for depth in range(15):
        assert (await child_of(team, f"deep{depth}", above, 1))["verdict"]["approved"] is True
        above = f"deep{depth}"
    assert (await child_of(team, "deep15", above, 1))["verdict"]["approved"]
    assert failed((await child_of(team, "deep16", "deep15", 1))["verdict"]) == ["CHILDREN_TOO_DEEP"]


@pytest.mark.req("KRN-6", "KRN-8")
async def test_the_client_has_parts_of_a_kernel(sidecar):
    """child() spends from its own budget and from its parent's; stop() stops it alone; what it says is its own."""
    calls = KernelCalls(sidecar.http)

    def run() -> None:
        whole = SafetyKernel(10.0, min_action_cost=1.0, emergency_actions={"leave"}, name="whole", calls=calls)
        part = whole.child("part", 4.0)
        act = ActionSpec("act", "Act", cost=2.0)
        part.execute(State({}), act)
        with part.lease(wanted=1.0) as lease:
            assert lease.spend(1.0)
        assert (part.budget.remaining, whole.budget.remaining) == (1, 7)
        with pytest.raises(RuntimeError, match="part/budget, and 1 is left"):
            part.execute(State({}), act)
        assert not part.evaluate(State({}), act).approved
        assert whole.evaluate(State({}), act).approved
        part.stop(ActionSpec("leave", "Leave"))
        with pytest.raises(RuntimeError, match="stopped"):
            part.child("below", 1.0).execute(State({}), ActionSpec("cheap", "Cheap", cost=1.0))
        assert whole.execute(State({}), act)[1].approved

    await asyncio.to_thread(run)
    calls.close()
