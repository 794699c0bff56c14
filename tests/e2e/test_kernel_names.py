"""The peer's public names on a real session service and a real Valkey: the seed's usage code, helpers, factories (KRN-8, KRN-14)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from interlock.client.kernel import (
    ActionSpec,
    AsyncSafetyKernel,
    CheckResult,
    Effect,
    Invariant,
    KernelCalls,
    SafetyKernel,
    State,
    invariants,
)
from tests.support.kernels import UNIT, KernelClient
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


@pytest.mark.req("KRN-8", "KRN-1")
async def test_the_seeds_usage_code_with_its_import_changed_runs_as_five_processes(sidecar):
    """Five processes of it, told the kernel's name and the sidecar by their environment, spend the budget of 100 and no more."""
    environment = {**os.environ, "INTERLOCK_KERNEL": "usage", "OPENAI_BASE_URL": f"{sidecar.http}/v1"}
    running = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.support.kernel_usage", cwd=ROOT, env=environment, stderr=subprocess.PIPE
        )
        for _ in range(5)
    ]
    told = [(await one.communicate())[1].decode() for one in running]

    assert all(one.returncode == 0 for one in running), told
    usage = KernelClient(sidecar.client, "usage")
    assert await usage.spent("budget") == 100 * UNIT
    assert (await usage.describe())["state"]["active_tasks"] == {"number_micros": str(10 * UNIT)}
    assert sum(one.count("SAFETY VIOLATION") for one in told) == 15, "of 25 tasks of 10, ten fit"


@pytest.mark.req("KRN-8")
async def test_states_and_actions_are_what_the_kernel_does_with_them(calls):
    """with_updates and without_keys are hints that the kernel takes; the texts of an action name what it then does and costs."""

    def run() -> None:
        kernel = SafetyKernel(10.0, min_action_cost=1.0, calls=calls)
        action = ActionSpec(
            "write", "Write", "writes a line", (Effect("n", "increment", 2), Effect("seen", "delete")), 2.5,
            preconditions_text="a line is there", postconditions_text="one more is",
        )  # fmt: skip
        state = State({"seen": True}).with_updates({"n": 1, "extra": "x"}).without_keys({"extra"})
        assert state == State({"n": 1, "seen": True})
        after, _ = kernel.execute(state, action)
        assert set(state.diff(after)) == action.affected_variables() == {"n", "seen"}
        assert after == State({"n": 3})
        spent = f"${kernel.budget.spent_net:.2f}"
        assert f"({spent}, low)" in action.to_compact_text()
        told = action.to_llm_text()
        for part in (f"cost={spent}", "requires: a line is there", "ensures:  one more is", "n←increment(2)"):
            assert part in told

    await asyncio.to_thread(run)


@pytest.mark.req("KRN-8")
async def test_preconditions_and_emergency_actions_are_added_later(calls):
    """A precondition shows in evaluate and stops execute; an emergency action is free at budget 0, and cannot be made of a used one."""

    def run() -> None:
        kernel = SafetyKernel(2.0, min_action_cost=1.0, calls=calls)
        act, leave = ActionSpec("act", "Act", cost=2.0), ActionSpec("leave", "Leave", cost=1.0)
        kernel.add_precondition(lambda state, _action: (state.get("ready") is True, "not ready"))
        verdict = kernel.evaluate(State({"ready": False}), act)
        assert not verdict.approved
        assert ("Precondition", CheckResult.FAIL_PRECONDITION, "not ready") in verdict.checks
        with pytest.raises(RuntimeError, match="not ready"):
            kernel.execute(State({}), act)
        ready = SafetyKernel(2.0, min_action_cost=1.0, calls=calls)
        ready.register_emergency_action("leave")
        ready.execute(State({}), act)
        assert ready.budget.remaining == 0
        assert ready.execute(State({}), leave)[1].approved
        assert (ready.budget.spent_gross, ready.step_count) == (2, 1)
        with pytest.raises(ValueError, match="costs and has effects"):
            ready.register_emergency_action("act")

    await asyncio.to_thread(run)


@pytest.mark.req("KRN-8")
async def test_the_asynchronous_kernel_spends_no_more_under_many_calls_at_once(calls):
    """execute_atomic of ten tasks at once: four of 2.5 fit a budget of 10."""
    kernel = AsyncSafetyKernel(10.0, min_action_cost=1.0, calls=calls)
    tasks = [kernel.execute_atomic(State({}), ActionSpec("a", "A", cost=2.5)) for _ in range(10)]
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(one, tuple) for one in ended) == 4
    assert all("BUDGET" in str(one) or "is left" in str(one) for one in ended if not isinstance(one, tuple))


@pytest.mark.req("KRN-3")
async def test_a_predicate_that_hangs_or_raises_does_not_hold(calls):
    """The caller gets its answer, and nothing is spent."""

    def hangs(_state: State) -> bool:
        time.sleep(30)
        return True

    def run() -> None:
        for predicate, why in (
            (hangs, "timed out after 20 ms"),
            (lambda s: s.get("n") + "x" == "", "raised exception"),
        ):
            kernel = SafetyKernel(
                1.0, [Invariant("mine", predicate, max_eval_ms=20)], min_action_cost=1.0, calls=calls
            )  # fmt: skip
            assert why in str(kernel.evaluate(State({"n": 0}), ActionSpec("a", "A", cost=1.0)).rejection_reasons)
            with pytest.raises(RuntimeError, match="mine"):
                kernel.execute(State({"n": 0}), ActionSpec("a", "A", cost=1.0))
            assert kernel.budget.spent_gross == 0

    await asyncio.to_thread(run)


def rising(name: str, first: float) -> tuple[Any, Any]:
    return Effect(name, "set", first + 1), Effect(name, "set", first - 1)


NOW = time.time()
ROWS: list[tuple[Callable[[], Invariant], dict[str, Any], Effect, Effect]] = [
    (lambda: invariants.rate_limit_invariant("n", 2), {"n": 1}, Effect("n", "increment", 1), Effect("n", "increment", 2)),
    (lambda: invariants.resource_ceiling_invariant("n", 2.5), {}, Effect("n", "set", 2.5), Effect("n", "set", 2.500001)),
    (lambda: invariants.max_retries_invariant("n", 3), {}, Effect("n", "set", 3), Effect("n", "set", 4)),
    (lambda: invariants.file_operation_limit_invariant(max_ops=1), {}, Effect("files_modified", "set", 1), Effect("files_modified", "set", 2)),
    (lambda: invariants.api_call_limit_invariant(max_calls=1), {}, Effect("api_calls", "set", 1), Effect("api_calls", "set", 2)),
    (lambda: invariants.email_safety_invariant(), {}, Effect("x", "set", 1), Effect("emails_deleted", "increment", 1)),
    (lambda: invariants.value_range_invariant("n", -1, 1), {}, Effect("n", "set", -1), Effect("n", "set", -1.5)),
    (lambda: invariants.allowed_values_invariant("mode", {"read", "write"}), {"mode": "read"}, Effect("mode", "set", "write"), Effect("mode", "set", "drop")),
    (lambda: invariants.allowed_values_invariant("mode", [1, "a"]), {"mode": "a"}, Effect("x", "set", 1), Effect("mode", "set", "b")),
    (lambda: invariants.monotone_increasing_invariant("n"), {"n": 5}, *rising("n", 5)),
    (lambda: invariants.monotone_decreasing_invariant("n"), {"n": 5}, *reversed(rising("n", 5))),
    (lambda: invariants.monotone_decreasing_invariant("n", 9), {"n": 5}, Effect("n", "set", 0), Effect("n", "delete")),
    (lambda: invariants.no_delete_invariant("who"), {"who": "me"}, Effect("who", "set", "you"), Effect("who", "delete")),
    (lambda: invariants.non_empty_invariant("log"), {"log": ["a"]}, Effect("x", "set", 1), Effect("log", "remove", "a")),
    (lambda: invariants.read_only_keys_invariant(["v", "w"], State({"v": 1, "w": {"a", "b"}})), {"v": 1, "w": {"a", "b"}}, Effect("x", "set", 1), Effect("v", "set", 2)),
    (lambda: invariants.required_fields_invariant(["a", "b"]), {"a": 1, "b": 0}, Effect("a", "set", 0), Effect("b", "delete")),
    (lambda: invariants.human_approval_gate_invariant("ok"), {"ok": True}, Effect("x", "set", 1), Effect("ok", "set", False)),
    (lambda: invariants.no_action_after_flag_invariant("end"), {"end": False}, Effect("x", "set", 1), Effect("end", "set", True)),
    (lambda: invariants.list_length_invariant("log", 2), {"log": ["a"]}, Effect("x", "set", 1), Effect("log", "set", ["a", "b", "c"])),
    (lambda: invariants.string_length_invariant("text", 3), {}, Effect("text", "set", "abc"), Effect("text", "set", "abcd")),
    (lambda: invariants.no_duplicate_ids_invariant("ids"), {"ids": ["a"]}, Effect("ids", "set", ["a", "b"]), Effect("ids", "append", "a")),
    (lambda: invariants.no_sensitive_substring_invariant("out", ["Token", "sk-"]), {}, Effect("out", "set", "fine"), Effect("out", "set", "the tOKEN is")),
    (lambda: invariants.no_regex_match_invariant("out", r"eyJ[A-Za-z0-9+/=]{5,}"), {}, Effect("out", "set", "eyJab"), Effect("out", "set", "x eyJabcdef")),
    (lambda: invariants.pii_guard_invariant("out", "other"), {"other": ""}, Effect("out", "set", "order 12345"), Effect("out", "set", "to ann@example.org")),
    (lambda: invariants.time_window_rate_invariant("times", 2, 3600), {"times": ["1.5"]}, Effect("times", "append", f"{NOW}"), Effect("times", "set", [f"{NOW}", f"{NOW - 1}"])),
    (lambda: invariants.json_schema_invariant("doc", {"n": int}), {"doc": "{}"}, Effect("doc", "set", '{"n": 1}'), Effect("doc", "set", '{"n": "1"}')),
    (lambda: invariants.custom_invariant("mail", lambda v: "@" in str(v), "to"), {"to": "a@b"}, Effect("to", "set", "c@d"), Effect("to", "set", "nobody")),
]  # fmt: skip


@pytest.mark.req("KRN-14")
async def test_every_factory_lets_the_one_action_pass_and_stops_the_other(calls):
    """Each of the peer's factories, by name, on the authoritative state; a second object of the same kernel carries the same hash."""

    def run(row: tuple[Callable[[], Invariant], dict[str, Any], Effect, Effect], number: int) -> str:
        made, first, passes, breaks = row
        kernel, again = (
            SafetyKernel(10.0, [made()], min_action_cost=1.0, name=f"factory{number}", calls=calls) for _ in range(2)
        )
        name = kernel.invariants[0].name
        kernel.execute(State(first), ActionSpec("passes", "Passes", effects=(passes,), cost=1.0))
        held = kernel.state()
        with pytest.raises(RuntimeError, match="SAFETY VIOLATION") as refused:
            again.execute(State(first), ActionSpec("breaks", "Breaks", effects=(breaks,), cost=1.0))
        assert name in str(refused.value), name
        assert again.state() == held
        assert again.budget.spent_gross == 1
        assert again.invariants[0].check(held)[0], "what the kernel holds, check holds too"
        return name

    named = await asyncio.gather(*(asyncio.to_thread(run, row, number) for number, row in enumerate(ROWS)))
    assert len(invariants.__all__) == 25
    untried = [one for one in invariants.__all__ if not any(one in row[0].__code__.co_names for row in ROWS)]
    assert not untried
    assert len(named) == len(ROWS)
