"""The kernel: Lua and the rule are one, and what they promise holds over any sequence of steps (KRN-1, KRN-2, KRN-6)."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.domain.ids import SessionId
from interlock.domain.kernel.definition import Condition, Definition, RegisteredAction, opened
from interlock.domain.kernel.state import Resource, Stepped, replayed
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.kernels import MemoryKernels
from interlock.session.store.kernels_redis import RedisKernels, kernel_key_of

RUNS = count(1)
UNIT = 1_000_000
DEFINITION = Definition(
    resources={"usd": Resource(40 * UNIT, UNIT), "mails": Resource(9 * UNIT, 0)},
    variables={
        "n": "n:0", "price": "n:2500000", "mode": "s:read", "live": "b:1", "log": "l:", "tags": "u:s:a", "gone": "n!",
    },
    invariants=[
        Condition("bound", "n <= 12 and n >= -3", blocking=True, suggestion="do less"),
        Condition("short", "size(log) < 4 or not live", blocking=True),
        Condition("tagged", '"x" not in tags and mode in ("read", "write")', blocking=True),
        Condition("rate", "uses(add, 10) <= 3", blocking=True),
        Condition("pace", "spent(usd, 20) + price <= 30 and left(mails) >= 0", blocking=True),
        Condition("total", "sum(log) < 20", blocking=False),
        Condition("kept", "not had(gone) or before(gone) <= gone + 1 or before(mode) == mode", blocking=True),
    ],
    actions=[
        RegisteredAction("add", "add", [("n", "increment", "n:3000000")], [("usd", 2 * UNIT)]),
        RegisteredAction("less", "less", [("n", "decrement", "n:1500000"), ("gone", "increment", "n:1")], [("usd", UNIT)], ["live"]),
        RegisteredAction("scale", "scale", [("price", "multiply", "n:-1333333")], [("usd", UNIT), ("mails", 2 * UNIT)]),
        RegisteredAction("write", "write", [("log", "append", "n:7000000"), ("mode", "set", "s:write")], [("usd", 3 * UNIT)]),
        RegisteredAction("unwrite", "unwrite", [("log", "remove", "n:7000000"), ("gone", "delete", "")], [("usd", UNIT)]),
        RegisteredAction("tag", "tag", [("tags", "append", "s:b"), ("live", "set", "b:0")], [("usd", UNIT)], irreversible=True),
        RegisteredAction("bad", "bad", [("tags", "append", "s:x")], [("usd", UNIT)]),
        RegisteredAction("free", "free", [("n", "set", "n:0")], []),
        RegisteredAction("dear", "dear", [], [("usd", 50 * UNIT), ("mails", 10 * UNIT)]),
        RegisteredAction("leave", "leave", [], [], emergency=True),
    ],
    open_registry=True,
)  # fmt: skip
ACTIONS = [one.id for one in DEFINITION.actions] + ["unknown"]
KEYS = st.integers(0, 7)
STEPS = st.one_of(
    st.tuples(st.just("execute"), st.sampled_from(ACTIONS), KEYS),
    st.tuples(st.just("execute"), st.sampled_from(ACTIONS), st.integers(10, 99)),
    st.tuples(st.just("permit"), st.sampled_from(ACTIONS), st.integers(10, 30)),
    st.tuples(st.just("confirm"), st.integers(10, 30), st.sampled_from([0, UNIT, 60 * UNIT])),
    st.tuples(st.just("abort"), st.integers(10, 30)),
    st.tuples(st.just("rollback"), st.lists(st.integers(0, 30), min_size=1, max_size=2)),
    st.tuples(st.just("lease"), st.sampled_from(["usd", "mails", "none"]), st.sampled_from([0, 5 * UNIT, 90 * UNIT])),
    st.tuples(st.just("give_back"), st.integers(0, 5), st.sampled_from([0, UNIT, 30 * UNIT]), st.booleans()),
    st.tuples(st.just("evaluate"), st.sampled_from(ACTIONS)),
    st.tuples(st.just("register"), st.sampled_from(["v:more n!", "v:n s:text", "v:n n:5", "a:add {}"])),
    st.tuples(st.just("emergency"), st.sampled_from(["leave", "add"]), st.sampled_from("0001")),
    st.tuples(st.just("seal")),
    st.tuples(st.just("wait"), st.sampled_from([1_000, 9_000, 70_000])),
)  # fmt: skip


@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def redis_kernels(valkey, runner):
    valkey.flush()
    batcher = Batcher(parse(valkey.url), timeout_s=60)  # the law is what is tested, not the load
    yield RedisKernels(batcher)
    runner.run(batcher.close())


class Two:
    """Both stores, and every record that was sealed."""

    def __init__(self, redis_kernels: RedisKernels) -> None:
        self.kernel = SessionId(f"crp_sess_{next(RUNS):032x}")
        self.memory, self.redis = MemoryKernels(), redis_kernels
        self.now = 1_000_000
        self.asked = count()
        self.leases: list[tuple[str, str]] = []
        self.records: list[list[Any]] = [[], []]

    @property
    def fields(self) -> dict[str, str]:
        return self.memory._kernels[self.kernel]

    async def open(self) -> None:
        fields, record = opened(DEFINITION, self.kernel, self.now)
        for store in (self.memory, self.redis):
            assert await store.open(self.kernel, fields, record) == "CREATED"

    async def both(self, **ask: Any) -> Stepped:
        ask = {"key": f"auto{next(self.asked)}", "digest": json.dumps(ask, sort_keys=True), **ask}
        found = [await store.step(self.kernel, ask, self.now) for store in (self.memory, self.redis)]
        assert shape(found[0]) == shape(found[1]), ask
        return found[0]

    async def step(self, name: str, *given: Any) -> None:
        if name in {"execute", "permit"}:
            await self.both(op=name, action=given[0], key=f"k{given[1]}", version="0")
        elif name == "evaluate":
            await self.both(op="execute", action=given[0], version="0", dry=True)
        elif name == "confirm":
            await self.both(op=name, permit=f"k{given[0]}", actual=[["usd", str(given[1])]])
        elif name == "abort":
            await self.both(op=name, executions=[f"k{given[0]}"])
        elif name == "rollback":
            await self.both(op=name, executions=[f"k{one}" for one in given[0]])
        elif name == "lease":
            key = f"lease{next(self.asked)}"
            got = await self.both(op=name, resource=given[0], wanted=str(given[1]), lifetime_ms="5000", key=key)
            self.leases.append((key, got.answer.get("sequence", "0")))
        elif name == "give_back" and self.leases:
            key, fence = self.leases[given[0] % len(self.leases)]
            await self.both(op=name, lease=key, fence=fence if given[2] else "77", unspent=str(given[1]))
        elif name == "register":
            await self.both(op=name, fields=[given[0].split(" ", 1)], key=" ")
        elif name == "emergency":
            await self.both(op=name, action=given[0], stop=given[1])
        elif name == "wait":
            self.now += given[0]
        else:
            await self.seal()

    async def seal(self) -> None:
        for number, store in enumerate((self.memory, self.redis)):
            pending = (await store.read(self.kernel)).unsealed
            self.records[number] += pending
            if pending:
                assert await store.sealed(self.kernel, pending[-1].sequence, pending[-1].link)

    async def same(self) -> None:
        memory, store = [(await one.read(self.kernel)).answer for one in (self.memory, self.redis)]
        assert plain(memory) == plain(store)


def plain(fields: Any) -> dict[str, Any]:
    """Fields without what differs by the order of a table: links and texts of JSON."""
    kept = {name: value for name, value in fields.items() if name not in {"link", "epoch"} and name[:2] != "o:"}
    return {name: same(json.loads(value)) if value[:1] == "{" else value for name, value in kept.items()}


def same(value: Any) -> Any:
    """JSON in which an empty list and an empty object are one, as Lua writes them."""
    if isinstance(value, dict):
        return {name: same(one) for name, one in sorted(value.items())} or []
    return [same(one) for one in value] if isinstance(value, list) else value


def shape(stepped: Stepped) -> Any:
    answer = dict(stepped.answer)
    answer["values"] = sorted(map(tuple, answer.get("values") or ()))
    told = [(one.sequence, one.type, one.severity) for one in stepped.unsealed]
    return stepped.status, stepped.subject, same(answer), told


def laws(fields: dict[str, str], gross: dict[str, int]) -> None:
    """T1 to T4 of one kernel."""
    for name in ("usd", "mails"):
        one = Resource.of(fields[f"r:{name}"])
        assert 0 <= one.gross - one.refunded <= one.limit, "T1"
        assert one.gross >= gross.get(name, 0), "T4"
        assert 0 <= one.leased <= one.gross - one.refunded
        gross[name] = one.gross
    assert int(fields["steps"]) <= 40, "T2"
    assert -3 * UNIT <= int(fields["v:n"][2:] or 0) <= 12 * UNIT, "T3"
    assert "s:x" not in fields["v:tags"], "T3"


@pytest.mark.req("KRN-1", "KRN-2", "KRN-6")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=5, max_size=40))
def test_lua_and_the_rule_are_one(steps, runner, redis_kernels):
    """Every step gives the same answer and the same state, keeps the laws, and the state is what its records say."""

    async def run() -> None:
        two, gross = Two(redis_kernels), dict[str, int]()
        await two.open()
        for one in steps:
            await two.step(*one)
            laws(two.fields, gross)
        await two.same()
        await two.seal()
        for number in (0, 1):
            rebuilt = replayed(two.records[number])
            held = (await (two.memory, two.redis)[number].read(two.kernel)).answer
            assert plain({**rebuilt, "sealed": held["sealed"]}) == plain(held), number

    runner.run(run())


@pytest.mark.req("KRN-12")
def test_a_lost_kernel_is_what_its_records_say(runner, redis_kernels):
    """A restored kernel goes on where it was; a store that knows as much is left alone; a foreign link is not noted."""

    async def run() -> None:
        two = Two(redis_kernels)
        await two.open()
        for action in ("add", "write", "bad", "add"):
            await two.step("execute", action, next(two.asked) + 200)
        await two.seal()
        records = two.records[1]
        assert not await two.redis.restore(two.kernel, replayed(records), len(records))
        await two.redis._batcher.command("DEL", kernel_key_of(two.kernel))
        assert (await two.redis.read(two.kernel)).status == "KERNEL_NOT_FOUND"
        assert await two.redis.restore(two.kernel, replayed(records), len(records))
        await two.same()
        await two.step("execute", "less", 300)
        assert not await two.redis.sealed(two.kernel, len(records) + 1, "0" * 40)
        await two.same()

    runner.run(run())
