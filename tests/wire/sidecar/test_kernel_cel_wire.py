"""Conditions in CEL through real sidecars and a real Valkey: they hold for every caller, who says nothing of them (KRN-3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from interlock.client.kernel import ActionSpec, Effect, Invariant, KernelCalls, SafetyKernel, State
from tests.support.kernels import UNIT, KernelClient, definition, failed
from tests.support.sidecar.sidecar import running_sidecar

pytestmark = pytest.mark.req("KRN-3")
FEW = {"name": "few", "cel": "active <= 5 && log.size() <= 3", "suggestion": "finish a task first"}
INVARIANTS = [
    FEW,
    {"name": "rich", "cel": "left.usd >= 20.5 || action == 'mail'"},
    {"name": "watched", "cel": "active <= before.active", "enforcement": "ENFORCEMENT_MONITORING"},
]


@pytest.fixture
async def sidecar(tmp_path, redis_url):
    async with running_sidecar(tmp_path, redis_url=redis_url) as running:
        yield running


@pytest.fixture
async def team(sidecar):
    kernel = KernelClient(sidecar.client, "team", key="alice")
    assert (await kernel.open(invariants=INVARIANTS))["created"]
    return kernel


def broken(verdict: dict) -> Sequence[str]:
    return [one["name"] for one in verdict["checks"] if not one["passed"] and not one["monitoring"]]


async def test_a_condition_holds_over_many_calls_at_once(team):
    """Of 30 tasks at once five are done; each of the others is told by name what would not hold, and what to do instead."""
    verdicts = [one["verdict"] for one in await asyncio.gather(*(team.execute("task", f"k{n}") for n in range(30)))]

    assert sum(one["approved"] for one in verdicts) == 5
    rejected = next(one for one in verdicts if not one["approved"])
    assert (broken(rejected), failed(rejected)) == (["invariant:few"], ["INVARIANT_BROKEN"])
    assert "few would not hold afterwards Suggestion: finish a task first" in rejected["for_model"]
    assert (await team.describe())["state"]["active"] == {"number_micros": str(5 * UNIT)}
    done = [one for one in verdicts if one["approved"]]
    assert all([one["name"] for one in v["checks"] if not one["passed"]] == ["invariant:watched"] for v in done)
    assert [one["verdict"]["replayed"] for one in [await team.execute("task", f"k{n}") for n in range(3)]] == [True] * 3


async def test_a_dry_run_shows_every_condition_and_what_is_kept_is_shown(team):
    """Evaluate names what would hold and what not; Describe and the first record have the text."""
    for number in range(5):
        await team.execute("task", f"k{number}")
    told = (await team.post("evaluate", action="task")).json()["verdict"]
    checks = {one["name"]: one["passed"] for one in told["checks"] if one["name"].startswith("invariant:")}

    assert checks == {"invariant:few": False, "invariant:rich": True, "invariant:watched": False}
    assert {one["name"]: one["cel"] for one in (await team.describe())["definition"]["invariants"]} == {
        one["name"]: one["cel"] for one in INVARIANTS
    }
    first = json.loads((await team.trace())[0]["data_json"])
    assert INVARIANTS[0]["cel"] in json.dumps(json.loads(first["changes"]["def"]))


async def test_joining_compares_the_text(team, sidecar):
    """The same text joins; another one, and an expression of the same words, are refused with what differs."""
    assert not (await team.open(invariants=INVARIANTS))["created"]
    for other in ({**FEW, "cel": "active <= 6 && log.size() <= 3"}, {"name": "few", "expression": "active <= 5"}):
        told = await team.post("open", definition=definition(invariants=[other, *INVARIANTS[1:]]))
        assert (told.status_code, told.json()["reason"]) == (409, "KERNEL_DEFINITION_DIFFERS")


async def test_nothing_that_a_caller_says_counts(team):
    """Predicates of that name, with whatever hash and however true, and a version, change nothing."""
    for number in range(5):
        await team.execute("task", f"k{number}")
    version = (await team.describe())["version"]
    for digest in ("", "ab" * 32):
        claims = [{"name": name, "hash": digest, "holds": True} for name in ("few", "invariant:few")]
        told = await team.execute("task", f"forged{digest}", predicates=claims, version=version)
        assert failed(told["verdict"]) == ["INVARIANT_BROKEN"]
        version = (await team.describe())["version"]


async def test_permits_leases_rollbacks_and_sagas_keep_it_too(team):
    """A lease is granted while what is left afterwards is enough; a way back that would break a condition is not gone."""
    permit = (await team.post("permit", action="task", key="p1")).json()["verdict"]
    assert permit["approved"]
    lease = (await team.post("lease", resource="usd", wanted_micros=60 * UNIT, lifetime_ms=5_000, key="l1")).json()
    assert lease["verdict"]["approved"]
    assert lease["granted_micros"] == str(45 * UNIT), "half of what was left, and 45 stay: above 20.5"
    more = (await team.post("lease", resource="usd", wanted_micros=60 * UNIT, lifetime_ms=5_000, key="l2")).json()
    assert more["verdict"]["approved"], "a third of 45, and 30 stay"
    more = (await team.post("lease", resource="usd", wanted_micros=60 * UNIT, lifetime_ms=5_000, key="l3")).json()
    assert more["verdict"]["approved"], "a quarter of 30, and 22.5 stay"
    last = (await team.post("lease", resource="usd", wanted_micros=60 * UNIT, lifetime_ms=5_000, key="l4")).json()
    assert (last["granted_micros"], broken(last["verdict"])) == ("0", ["invariant:rich"])
    assert (await team.post("abort", permit="p1", key="a1")).json()["verdict"]["approved"]
    assert (await team.describe())["state"]["active"] == {"number_micros": "0"}


async def test_a_way_back_that_would_break_it_is_not_gone(sidecar):
    """A rollback is rejected, and a saga's step becomes a person's, where the state before would not keep the condition."""
    team = KernelClient(sidecar.client, "back")
    keep = {"name": "rising", "cel": "active >= before.active"}
    await team.open(invariants=[keep])
    await team.execute("task", "one")
    told = (await team.post("rollback", executions=["one"], key="r1")).json()["verdict"]
    assert broken(told) == ["invariant:rising"]
    await team.post("begin-saga", key="s", lifetime_ms=60_000)
    await team.execute("task", "two", saga="s")
    assert (await team.post("rollback", saga="s", key="r2")).status_code == 200
    shown = await team.describe()
    assert [(one["execution"], one["stuck"]) for one in shown["compensations"]] == [("two", True)]
    assert shown["state"]["active"] == {"number_micros": str(2 * UNIT)}


async def test_a_kernel_that_the_store_lost_keeps_its_conditions(team, valkey):
    """They are in the chain: after a flush the next action is decided by them."""
    for number in range(5):
        await team.execute("task", f"k{number}")
    valkey.flush()
    assert broken((await team.execute("task", "late"))["verdict"]) == ["invariant:few"]


async def test_one_that_fails_or_takes_too_long_does_not_hold(sidecar):
    """What cannot be calculated, and a loop in a loop in a loop over a long list, reject the action and say so."""
    team = KernelClient(sidecar.client, "odd")
    slow = {"name": "slow", "cel": "log.all(a, log.all(b, log.all(c, a + b + c != 'q')))"}
    items = [{"text": "a"}] * 9
    await team.open(
        invariants=[slow, {"name": "odd", "cel": "10.0 / (active - 2.0) <= 1.0"}],
        variables=[
            {"name": "active", "type": "VARIABLE_TYPE_NUMBER"},
            {"name": "log", "type": "VARIABLE_TYPE_LIST", "initial": {"list": {"items": items}}},
        ],
    )
    codes = []
    for number in range(12):
        told = (await team.execute("mail", f"m{number}"))["verdict"]
        codes += failed(told)
    assert set(codes) == {"INVARIANT_TOO_COSTLY"}, codes
    assert (await team.execute("task", "t1"))["verdict"]["approved"]
    assert failed((await team.execute("task", "t2"))["verdict"]) == ["INVARIANT_FAILED"]


@pytest.mark.parametrize(
    ("invariant", "reason"),
    [
        ({"cel": "active <= "}, "KERNEL_CEL_INVALID"),
        ({"cel": "unknown <= 1"}, "KERNEL_VARIABLE_UNKNOWN"),
        ({"cel": "active + 1"}, "KERNEL_CEL_NOT_BOOLEAN"),
        ({"cel": "active == 'a'"}, "KERNEL_CEL_TYPES"),
        ({"cel": "string(active) == '1'"}, "KERNEL_CEL_UNSUPPORTED"),
        ({"cel": "(" * 200 + "true" + ")" * 200}, "KERNEL_EXPRESSION_TOO_DEEP"),
        ({"cel": "active <= 1 " + " " * 1000}, "KERNEL_EXPRESSION_TOO_LONG"),
        ({"cel": "active >= 1"}, "KERNEL_INVARIANT_BROKEN"),
        ({"cel": "active <= 1", "expression": "active <= 1"}, "KERNEL_INVARIANT_INVALID"),
    ],
)
async def test_what_is_no_condition_opens_no_kernel(sidecar, invariant, reason):
    """Each is a 400 with its reason, and nothing is there afterwards."""
    team = KernelClient(sidecar.client, "bad")
    told = await team.post("open", definition=definition(invariants=[{"name": "one", **invariant}]))
    assert (told.status_code, told.json()["reason"]) == (400, reason)
    assert (await team.post("execute", action="task", key="k")).json()["reason"] == "KERNEL_NOT_FOUND"


async def test_the_python_client_hands_conditions_over(sidecar):
    """An invariant in CEL needs no version and no predicate; a second object of the same name joins by its text."""
    calls = KernelCalls(sidecar.http)

    def run() -> None:
        few = Invariant("few", cel="n <= 2 && names.all(x, x != 'bad')", variables={"n": "n", "names": "l"})
        made = [SafetyKernel(100.0, [few], min_action_cost=1.0, name="shared", calls=calls) for _ in range(2)]
        add = ActionSpec("add", "Add", effects=(Effect("n", "increment", 1),), cost=1.0)
        state = State({"n": 0})
        for number in range(2):
            state, _ = made[number].execute(state, add)
        assert state.get("n") == 2
        assert not made[0].evaluate(state, add).approved
        with pytest.raises(RuntimeError, match="few would not hold afterwards"):
            made[1].execute(state, add)

    await asyncio.to_thread(run)
    calls.close()


async def test_a_predicate_beside_a_condition_is_decided_on_what_both_saw(sidecar):
    """The caller evaluates its predicate on a version, the session service its condition: both hold, over two objects at once."""
    calls = KernelCalls(sidecar.http)

    def run() -> int:
        told = [Invariant("few", cel="n <= 6", variables={"n": "n"}), Invariant("even", lambda s: s.get("n", 0) != 99)]
        kernel = SafetyKernel(100.0, told, min_action_cost=1.0, name="both", calls=calls)
        add = ActionSpec("add", "Add", effects=(Effect("n", "increment", 1),), cost=1.0)
        done = 0
        for _ in range(5):
            try:
                kernel.execute(State({"n": 0}), add)
            except RuntimeError as error:
                assert "few would not hold afterwards" in str(error)
            else:
                done += 1
        return done

    done = await asyncio.gather(*(asyncio.to_thread(run) for _ in range(2)))
    calls.close()
    assert sum(done) == 6
