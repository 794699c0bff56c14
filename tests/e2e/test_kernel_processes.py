"""Kernels over real processes: leases in five agents on one budget, the peer's names, the command line (KRN-4, KRN-8)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import httpx
import pytest
import typer

from interlock.cli.main import app
from interlock.client.kernel import (
    ActionSpec,
    AsyncSafetyKernel,
    CheckResult,
    Effect,
    Invariant,
    KernelCalls,
    Lease,
    SafetyKernel,
    SafetyViolation,
    State,
    safe,
)
from tests.support.kernels import UNIT, KernelClient, done
from tests.support.paths import ROOT
from tests.support.sidecar.sidecar import running_sidecar


@pytest.fixture
async def sidecar(tmp_path, redis_url):
    async with running_sidecar(tmp_path, redis_url=redis_url) as running:
        yield running


@pytest.fixture
def calls(sidecar):
    made = KernelCalls(sidecar.http)
    yield made
    made.close()


async def agents(count: int, *arguments: str) -> list[list[dict]]:
    """Run agents at the same time and return what each printed."""
    command = [sys.executable, "-m", "tests.support.kernel_agents", *arguments]
    running = [
        await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(count)
    ]
    ended = await asyncio.gather(*(one.communicate() for one in running))
    assert all(one.returncode == 0 for one in running), [error.decode()[-2000:] for _, error in ended]
    return [[json.loads(line) for line in out.splitlines()] for out, _ in ended]


@pytest.mark.req("KRN-3")
async def test_four_processes_with_predicates_on_one_hot_kernel_take_turns(sidecar):
    """Every action of each is done once, and a ticket whose holder died does not hold them up beyond its time."""
    running = asyncio.create_task(agents(4, "judging", "hot", sidecar.http, "10"))
    hot = KernelClient(sidecar.client, "hot")
    while (await sidecar.client.get("/crp/v3/kernel/hot/trace?after=4")).json().get("records", []) == []:
        await asyncio.sleep(0.01)
    assert done(await hot.post("ticket", lifetime_ms=1_500, key="dead"))["verdict"]["approved"]
    told = await running

    assert [len(one) for one in told] == [10] * 4
    trace = [(one["type"], json.loads(one["data_json"])) for one in await hot.trace()]
    kinds = [kind for kind, _ in trace]
    assert (await hot.describe())["state"]["n"] == {"number_micros": str(40 * UNIT)}
    assert (kinds.count("KERNEL_EXECUTED"), kinds.count("KERNEL_REJECTED")) == (40, 0)
    assert kinds.count("KERNEL_TICKET_TAKEN") > 1, "who came while the dead one's ticket stood waited for a turn"
    done_at = [int(data["at_ms"]) for kind, data in trace if kind == "KERNEL_EXECUTED"]
    assert max(after - before for before, after in pairwise(done_at)) >= 1_500, (
        "its turn was nobody else's, by the store's clock"
    )


@pytest.mark.req("KRN-4")
async def test_leases_of_five_processes_spend_the_budget_and_no_more(sidecar):
    """All of it is spent, nothing beyond it, and what came back is spent by others."""
    team = KernelClient(sidecar.client, "slices")
    await team.open(invariants=[])
    found = await agents(5, "leasing", "slices", sidecar.http, "60")

    spent = sum(one["spent"] for told in found for one in told)
    usd = next(one for one in (await team.describe())["resources"] if one["name"] == "usd")
    assert spent == await team.spent() <= 100 * UNIT
    assert spent >= 90 * UNIT
    assert usd["leased_micros"] == "0"


@pytest.mark.req("KRN-4")
async def test_a_lease_that_ended_spends_nothing(sidecar, calls):
    """After its time by the holder's own clock a slice is not spent any more; the next one is smaller."""
    team = KernelClient(sidecar.client, "slices")
    await team.open()
    now = [0.0]

    def run() -> tuple[bool, float, bool]:
        with Lease(calls, "slices", "usd", wanted=8.0, lifetime_s=60.0, clock=lambda: now[0]) as lease:
            first = lease.spend(1.0)
            now[0] = 55.0
            again = lease.spend(1.0)
            return first, lease.left, again and not lease.spend(0.5)

    assert await asyncio.to_thread(run) == (True, 3.0, True)
    assert await team.spent() == 2 * UNIT


@pytest.mark.req("KRN-8")
async def test_the_peers_names_do_what_the_peers_do(calls):
    """Evaluate, execute, reject, roll back, emergencies, preconditions, status; sync and async."""

    def run() -> None:
        kernel = SafetyKernel(
            10.0, [Invariant("few", expression="n <= 3", suggestion="less"), Invariant("even", lambda s: s.get("n") != 2)],
            min_action_cost=1.0, emergency_actions={"SAFE_HOVER"}, calls=calls,
        )  # fmt: skip
        state = State({"n": 0, "names": ["a"], "ok": True})
        add = ActionSpec("add", "Add", "", (Effect("n", "increment", 1), Effect("names", "append", "b")), 2.5)
        verdict = kernel.evaluate(state, add)
        assert verdict.approved
        assert verdict.simulated_next_state == State({"n": 1, "names": ["a", "b"], "ok": True})
        after, entry = kernel.execute(state, add)
        assert (after.get("n"), entry.approved, kernel.step_count) == (1, True, 1)
        rejected = kernel.evaluate(after, add)
        assert not rejected.approved
        assert CheckResult.FAIL_INVARIANT in {result for _, result, _ in rejected.checks}
        with pytest.raises(RuntimeError, match="even"):
            kernel.execute(after, add)
        assert kernel.budget.remaining == 7.5
        assert kernel.rollback(state, after, add) == state
        assert (kernel.budget.spent_gross, kernel.budget.spent_net) == (2.5, 0)
        hover = ActionSpec("SAFE_HOVER", "Hover", "", (), 0.0)
        assert kernel.execute(state, hover)[1].approved
        kernel.add_precondition(lambda s, a: (s.get("ok") is False, "not ok"))
        with pytest.raises(RuntimeError, match="not ok"):
            kernel.execute(state, add)
        assert "of 10" in kernel.status()
        with pytest.raises(ValueError, match="finite"):
            kernel.execute(
                State({"n": float("nan")}), ActionSpec("nan", "n", "", (Effect("n", "set", float("nan")),), 1.0)
            )
        with pytest.raises(ValueError, match="not dict"):
            kernel.evaluate(State({"d": {}}), add)

    await asyncio.to_thread(run)
    kernel = AsyncSafetyKernel(2.0, min_action_cost=1.0, calls=calls)
    one = ActionSpec("one", "One", "", (), 2.0)
    _, entry = await kernel.execute_atomic(State({}), one)
    assert entry.approved
    with pytest.raises(RuntimeError, match="0 is left"):
        await kernel.execute_atomic(State({}), one)


@pytest.mark.req("KRN-8", "KRN-7")
async def test_safe_calls_a_function_as_often_as_the_shared_budget_allows(sidecar, calls):
    """Two decorated functions of one kernel name share what is left; the one that is refused is not called."""

    def run() -> list[int]:
        called: list[int] = []
        made = [
            safe(20.0, cost_per_call=5.0, action_name="call", name="shared", calls=calls)(called.append)
            for _ in range(2)
        ]
        for number in range(4):
            made[number % 2](number)
        with pytest.raises(SafetyViolation, match="0 is left"):
            made[0](99)
        return called

    assert await asyncio.to_thread(run) == [0, 1, 2, 3]
    shown = await KernelClient(sidecar.client, "shared").describe()
    assert shown["state"]["call_count"] == {"number_micros": str(4 * UNIT)}


class Deaf(KernelCalls):
    """A way to the kernel on which an answer can be lost, and that can be cut altogether."""

    lost, cut = "permit", False

    def post(self, kernel: str, ask: str, body: Mapping[str, Any]) -> dict[str, Any]:
        told = super().post(kernel, ask, body)
        if ask == self.lost:
            raise httpx.ReadTimeout("lost by the test")
        return told

    def post_once(self, kernel: str, ask: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if self.cut:
            raise httpx.ConnectError("cut by the test")
        return super().post_once(kernel, ask, body)


@pytest.mark.req("KRN-8", "KRN-7")
@pytest.mark.parametrize("cut", [False, True])
async def test_a_call_whose_permit_was_not_answered_is_not_made_and_charges_nothing(sidecar, cut):
    """The permit is there, and its answer is lost: it is taken back at once, or before the next call where the kernel was silent."""
    shared, called = KernelClient(sidecar.client, "shared"), list[int]()

    def run() -> None:
        calls = Deaf(sidecar.http)
        calls.cut = cut
        function = safe(20.0, cost_per_call=5.0, action_name="call", name="shared", calls=calls)(called.append)
        with pytest.raises(httpx.ReadTimeout):
            function(1)
        calls.cut, calls.lost = False, ""
        if cut:
            function(2)
        calls.close()

    await asyncio.to_thread(run)
    assert called == ([2] if cut else [])
    assert await shared.spent("budget") == (5 * UNIT if cut else 0)


@pytest.mark.req("KRN-8", "KRN-7")
async def test_a_call_that_was_made_gives_its_result_though_nobody_confirms_it(sidecar):
    """What the function returned is not lost with the answer to its confirmation: a second call would do its work again."""

    def run() -> str:
        calls = Deaf(sidecar.http)
        calls.lost = "confirm"
        try:
            return safe(20.0, cost_per_call=5.0, action_name="call", name="shared", calls=calls)(lambda: "done")()
        finally:
            calls.close()

    assert await asyncio.to_thread(run) == "done"
    assert await KernelClient(sidecar.client, "shared").spent("budget") == 5 * UNIT


@pytest.mark.req("KRN-1")
async def test_the_command_line_shows_tries_and_executes(sidecar, capsys):
    """describe, evaluate, execute and watch at a real sidecar; the exit code is the verdict."""
    team = KernelClient(sidecar.client, "team")
    await team.open()

    async def run(*arguments: str) -> tuple[int, str]:
        def command() -> int:
            try:
                named = ["kernel", *arguments, "--url", sidecar.http]
                return app(named, prog_name="interlock", standalone_mode=False) or 0
            except typer.Exit as ended:
                return ended.exit_code

        code = await asyncio.to_thread(command)
        return code, "".join(capsys.readouterr())

    assert (await run("evaluate", "team", "task"))[0] == 0
    for number in range(10):
        assert (await run("execute", "team", "task", "--key", f"k{number}"))[0] == 0
    code, said = await run("execute", "team", "task")
    assert (code, "it costs 10 usd, and 0 is left" in said) == (1, True)
    code, said = await run("describe", "team")
    assert (code, "few: active <= 10" in said, "active = 10" in said) == (0, True, True)
    code, said = await run("watch", "team", "--once", "--after", "10")
    assert (code, said.count("KERNEL_EXECUTED"), said.count("BUDGET_EXCEEDED")) == (0, 1, 1)
    assert (await run("describe", "nothing"))[0] == 2
    await team.post("open-child", child="writer", limits=[{"resource": "usd", "micros": UNIT}], key="child")
    assert (await run("stop", "team", "task"))[0] == 2, "an ordinary action stops nothing"
    assert (await run("stop", "team", "leave", "--child", "writer"))[0] == 0
    writer = next(line for line in (await run("describe", "team"))[1].splitlines() if line.startswith("writer/usd"))
    assert writer.split() == ["writer/usd", "1", "0", "0", "0", "1", "STOPPED"]
    assert (await run("stop", "team", "leave"))[0] == 0
    assert "STOPPED" in (await run("describe", "team"))[1]


@pytest.mark.req("KRN-1")
def test_the_command_line_tells_the_key_of_a_call_without_an_answer(capsys):
    """Whoever repeats it under another key would have it done twice."""
    for command in (["execute", "team", "task"], ["stop", "team", "leave"]):
        named = ["kernel", *command, "--key", "mine", "--url", "http://127.0.0.1:1"]
        assert app(named, prog_name="interlock", standalone_mode=False) == 2
        assert "repeat it with --key mine" in capsys.readouterr().err
