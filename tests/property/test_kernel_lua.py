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
from interlock.domain.kernel.state import KEYS_KEPT, Resource, Stepped, replayed
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.kernels.redis import RedisKernels, kernel_key_of
from interlock.session.store.kernels.store import MemoryKernels

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
        RegisteredAction("book", "book", [("n", "increment", "n:1000000")], [("usd", UNIT)], compensation="unbook"),
        RegisteredAction("unbook", "unbook", [("n", "decrement", "n:1000000"), ("tags", "append", "s:c")], []),
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
    st.tuples(st.just("abort"), st.integers(10, 30), st.sampled_from("001")),
    st.tuples(st.just("rollback"), st.lists(st.integers(0, 30), min_size=1, max_size=2)),
    st.tuples(st.just("lease"), st.sampled_from(["usd", "mails", "none"]), st.sampled_from([0, 5 * UNIT, 90 * UNIT])),
    st.tuples(st.just("give_back"), st.integers(0, 5), st.sampled_from([0, UNIT, 30 * UNIT]), st.booleans()),
    st.tuples(st.just("evaluate"), st.sampled_from(ACTIONS)),
    st.tuples(st.just("ticket"), st.sampled_from([500, 900, 2_000])),
    st.tuples(st.just("return_ticket"), st.integers(0, 2)),
    st.tuples(st.just("in_turn"), st.sampled_from(["add", "less", "bad", "unknown"]), st.integers(0, 2), st.sampled_from(["0", "1"])),
    st.tuples(st.just("register"), st.sampled_from(["v:more n!", "v:n s:text", "v:n n:5", "a:add {}"])),
    st.tuples(st.just("emergency"), st.sampled_from(["leave", "add"]), st.sampled_from("0001")),
    st.tuples(st.just("recorded"), st.sampled_from("01"), st.integers(1, 4), st.sampled_from("ab"), st.booleans()),
    st.tuples(st.just("child"), st.sampled_from(["a -", "b a", "c b", "b c", "d x", "a -"]), st.sampled_from([4, 9, 4]), st.sampled_from(["usd", "mails", "none"])),
    st.tuples(st.just("within"), st.sampled_from(["add", "less", "scale", "dear"]), st.sampled_from("abcx"), st.booleans()),
    st.tuples(st.just("within"), st.sampled_from(["add", "less", "scale", "write"]), st.sampled_from("abc"), st.booleans()),
    st.tuples(st.just("begin_saga"), st.integers(0, 2), st.sampled_from([3_000, 20_000])),
    st.tuples(st.just("step"), st.sampled_from(["book", "add", "tag", "write", "book", "bad"]), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("end_saga"), st.integers(0, 2)),
    st.tuples(st.just("undo_saga"), st.integers(0, 2)),
    st.tuples(st.just("claim")),
    st.tuples(st.just("claim")),
    st.tuples(st.just("settle"), st.sampled_from(["done", "failed", "failed", "retry"]), st.booleans(), st.sampled_from([{}, {"of_reviewers": "1"}])),
    st.tuples(st.just("decide"), st.sampled_from(["done", "retry", "leave"]), st.sampled_from([True, True, False])),
    st.tuples(st.just("have"), st.sampled_from([0, 0, 1, 3, -2, 10_000])),
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
        self.tickets: list[str] = ["none"]
        self.sagas: list[str] = ["none"]
        self.claims: list[list[str]] = [["none", "", "", "", "", "1"]]
        self.records: list[list[Any]] = [[], []]
        self.memory_links, self.redis_links = dict[int, str](), dict[int, str]()
        self.have = 0

    @property
    def fields(self) -> dict[str, str]:
        return self.memory._kernels[self.kernel]

    async def open(self) -> None:
        fields, record = opened(DEFINITION, self.kernel, self.now)
        for store in (self.memory, self.redis):
            assert await store.open(self.kernel, fields, record) == "CREATED"

    async def both(self, **ask: Any) -> Stepped:
        ask = {"key": f"auto{next(self.asked)}", "digest": json.dumps(ask, sort_keys=True), **ask}
        asks = [ask | self.in_hand(each) for each in (self.memory_links, self.redis_links)]
        found = [
            await store.step(self.kernel, one, self.now)
            for store, one in zip((self.memory, self.redis), asks, strict=True)
        ]
        for each, links in zip(found, (self.memory_links, self.redis_links), strict=True):
            links |= {one.sequence: one.link for one in each.unsealed}
        assert shape(found[0]) == shape(found[1]), ask
        return found[0]

    def in_hand(self, links: dict[int, str]) -> dict[str, str]:
        """What a caller says that it has: some record that it was given, or one of another history."""
        return {"have": str(self.have), "have_link": links.get(self.have, "0" * 40)} if self.have else {}

    async def step(self, name: str, *given: Any) -> None:
        if name == "have":
            self.have = max(self.memory_links, default=0) - given[0]
        elif name in {"execute", "permit"}:
            await self.both(op=name, action=given[0], key=f"k{given[1]}", version="0")
        elif name == "evaluate":
            await self.both(op="execute", action=given[0], version="0", dry=True)
        elif name == "ticket":
            self.tickets.append(f"ticket{next(self.asked)}")
            await self.both(op=name, key=self.tickets[-1], lifetime_ms=str(given[0]))
        elif name == "return_ticket":
            await self.both(op=name, ticket=self.tickets[-1 - given[0] % len(self.tickets)])
        elif name == "in_turn":
            ticket = self.tickets[-1 - given[1] % len(self.tickets)]
            await self.both(op="execute", action=given[0], version=given[2], ticket=ticket)
        elif name == "confirm":
            await self.both(op=name, permit=f"k{given[0]}", actual=[["usd", str(given[1])]])
        elif name == "abort":
            await self.both(op=name, executions=[f"k{given[0]}"], unseen=given[1])
        elif name == "rollback":
            await self.both(op=name, executions=[f"k{one}" for one in given[0]], saga="")
        elif name == "lease":
            key = f"lease{next(self.asked)}"
            child = "a" if "p:a" in self.fields else ""
            got = await self.both(
                op=name, resource=given[0], wanted=str(given[1]), lifetime_ms="5000", key=key, child=child
            )
            self.leases.append((key, got.answer.get("sequence", "0")))
        elif name == "give_back" and self.leases:
            key, fence = self.leases[given[0] % len(self.leases)]
            await self.both(op=name, lease=key, fence=fence if given[2] else "77", unspent=str(given[1]))
        elif name in {"begin_saga", "step", "end_saga", "undo_saga", "claim", "settle", "decide"}:
            await self.saga(name, *given)
        elif name == "register":
            await self.both(op=name, fields=[given[0].split(" ", 1)], key=" ")
        elif name == "emergency":
            await self.both(op=name, action=given[0], stop=given[1], child="b" if "p:b" in self.fields else "")
        elif name == "recorded":
            await self.recorded(*given)
        elif name == "child":
            child, parent = given[0].split(" ")
            await self.both(
                op=name, child=child, parent=parent.replace("-", ""), limits=[[given[2], str(given[1] * UNIT)]]
            )
        elif name == "within":
            op = {"op": "permit" if given[2] else "execute", "action": given[0], "version": "0", "child": given[1]}
            key = next(self.asked)
            await self.both(**op, key=f"k{key % 31}")
        elif name == "wait":
            self.now += given[0]
        else:
            await self.seal()

    async def recorded(self, stop: str, number: int, spool: str, forgotten: object) -> None:
        told = {
            "spool": spool * 32,
            "number": str(number),
            "at_ms": "5",
            "signed_by": "binding",
            "signature": "",
            "stop": stop,
        }
        key = {} if forgotten else {"key": f"of-{spool}{number}", "digest": ""}
        await self.both(op="emergency", action="leave", stop=stop, child="", recorded=told, **key)

    async def saga(self, name: str, *given: Any) -> None:
        if name == "begin_saga":
            self.sagas.append(f"saga{next(self.asked)}")
            await self.both(op=name, key=self.sagas[-1], lifetime_ms=str(given[1]))
        elif name == "step":
            saga, op = self.sagas[-1 - given[1] % len(self.sagas)], "permit" if given[2] else "execute"
            await self.both(op=op, action=given[0], version="0", saga=saga)
        elif name in {"end_saga", "undo_saga"}:
            saga = self.sagas[-1 - given[0] % len(self.sagas)]
            await self.both(op="rollback" if name == "undo_saga" else name, executions=[], saga=saga)
        elif name == "claim":
            got = await self.both(op=name, lifetime_ms="2000")
            self.claims += [got.answer["claim"]] if got.answer.get("claim") else []
        elif name == "decide":
            stuck = [field[2:] for field, value in self.fields.items() if field[:2] == "j:"]
            key = stuck[-1] if stuck else "none"
            fence = self.fields[f"j:{key}"].split(" ")[5] if stuck and given[1] else "77"
            await self.both(op=name, execution=key, fence=fence, outcome=given[0], decided={"outcome": given[0]})
        else:
            key, fence = self.claims[-1][0], self.claims[-1][5] if given[1] else "77"
            await self.both(op=name, execution=key, fence=fence, outcome=given[0], **given[2])

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
    for field in [one for one in fields if one[:2] == "q:"]:
        share = Resource.of(fields[field])
        assert 0 <= share.gross - share.refunded <= share.limit, "T1 of a child"
        assert 0 <= share.leased <= share.gross - share.refunded
        assert share.gross <= gross[field.rpartition(":")[2]], "a child spent what its parent did not"
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


@pytest.mark.req("KRN-2")
def test_a_number_of_a_spool_is_taken_once_and_none_after_a_later_one(runner, redis_kernels):
    """Whether its key is remembered or not: what a sidecar recorded is in the chain once, in its order."""

    async def run() -> None:
        two = Two(redis_kernels)
        await two.open()

        async def recorded(number: int) -> Stepped:
            told = {"spool": "a" * 32, "number": str(number), "at_ms": "5", "stop": "1", "child": ""}
            return await two.both(op="emergency", action="leave", stop="1", child="", recorded=told)

        first, again, later, passed = [await recorded(number) for number in (7, 7, 9, 8)]
        assert [one.answer["sequence"] for one in (first, again, later)] == ["2", "2", "3"]
        assert again.answer["replayed"] == "1"
        assert passed.status == "KERNEL_EMERGENCY_PASSED"
        assert two.fields["stopped"] == "1" and two.fields["seq"] == "3"
        assert json.loads(later.unsealed[-1].data)["recorded"]["number"] == "9"

    runner.run(run())


TOGETHER = st.one_of(
    st.tuples(st.sampled_from(["execute", "permit"]), st.sampled_from(ACTIONS), st.integers(0, 12)),
    st.tuples(st.just("abort"), st.integers(0, 12), st.sampled_from(["0", "1"])),
    st.tuples(st.just("confirm"), st.integers(0, 12), st.sampled_from([0, UNIT, 60 * UNIT])),
    st.tuples(st.just("evaluate"), st.sampled_from(ACTIONS)),
    st.tuples(st.just("lease"), st.integers(20, 29)),
)


def asked(number: int, name: str, *given: Any) -> dict[str, Any]:
    """One of several things that are asked at once."""
    ask: dict[str, Any]
    if name == "abort":
        ask = {"op": name, "executions": [f"k{given[0]}"], "unseen": given[1], "key": f"auto{number}"}
    elif name == "confirm":
        ask = {"op": name, "permit": f"k{given[0]}", "actual": [["usd", str(given[1])]], "key": f"auto{number}"}
    elif name == "evaluate":
        ask = {"op": "execute", "action": given[0], "version": "0", "dry": True, "key": ""}
    elif name == "lease":
        ask = {"op": name, "resource": "usd", "wanted": "1", "lifetime_ms": "5000", "child": "", "key": f"k{given[0]}"}
    else:
        ask = {"op": name, "action": given[0], "version": "0", "key": f"k{given[1]}"}
    return {**ask, "digest": json.dumps([name, *given])}


@pytest.mark.req("KRN-1", "KRN-2")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    groups=st.lists(
        st.tuples(st.lists(TOGETHER, min_size=1, max_size=24), st.sampled_from(["", "seal", "tell", "lie"])),
        min_size=1, max_size=6,
    )
)  # fmt: skip
def test_what_is_decided_in_one_call_is_what_so_many_calls_decide(groups, runner, redis_kernels):
    """However actions are put together, each gets the answer that it gets when it is asked by itself, in the same order."""

    async def run() -> None:
        two, gross, numbers = Two(redis_kernels), dict[str, int](), count()
        await two.open()
        known: list[dict[str, str]] = [{}, {}]
        for group, then in groups:
            asks = [asked(next(numbers), *one) for one in group]
            single = [await two.memory.step(two.kernel, one, two.now) for one in [asks[0] | known[0], *asks[1:]]]
            together = await two.redis.steps(two.kernel, [asks[0] | known[1], *asks[1:]], two.now)
            assert [shape(one)[:3] for one in single] == [shape(one)[:3] for one in together]
            pending = [(await one.read(two.kernel)).unsealed for one in (two.memory, two.redis)]
            told = [one.unsealed for one in together if one.status in {"OK", "FULL"}]
            assert all(one == pending[1] for one in told), "all that is answered rests on all that is not sealed"
            laws(two.fields, gross)
            known = [{}, {}]
            if then == "seal":
                await two.seal()
            elif then and pending[0]:
                links = ["0" * 40] * 2 if then == "lie" else [one[-1].link for one in pending]
                known = [{"sealed": str(pending[0][-1].sequence), "sealed_link": link} for link in links]
        await two.same()

    runner.run(run())


@pytest.mark.req("KRN-7")
def test_a_permit_that_its_abort_overtook_reserves_nothing(runner, redis_kernels):
    """It is refused when it comes, in a rebuilt kernel too, as long as its key is remembered, and is one like any other after that."""

    async def run() -> None:
        two = Two(redis_kernels)
        await two.open()
        permit = {"op": "permit", "action": "add", "version": "0", "key": "late"}
        abort = {"op": "abort", "executions": ["late"], "unseen": "1", "key": "void"}
        assert (await two.both(**{**abort, "unseen": "0"})).status == "KERNEL_EXECUTION_UNKNOWN"
        assert [(await two.both(**abort)).answer.get("replayed", "0") for _ in range(2)] == ["0", "1"]
        assert (await two.both(**permit)).status == "KERNEL_PERMIT_ABORTED"
        assert Resource.of(two.fields["r:usd"]).left == 40 * UNIT
        await two.seal()
        assert json.loads(replayed(two.records[1])["x:late"])["state"] == "U"

        field, keys = f"k:{int(two.fields['seq']) + 1 - KEYS_KEPT}", two.fields[f"k:{two.fields['seq']}"]
        two.fields[field] = keys  # as if as many records had come after it as keep a key
        await two.redis._batcher.command("HSET", kernel_key_of(two.kernel), field, keys)
        await two.step("execute", "less", 300)
        await two.same()
        assert (await two.both(**permit)).answer["approved"] == "1"

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


@pytest.mark.req("KRN-12")
def test_a_key_that_is_remembered_no_longer_is_not_new_while_it_names_something(runner, redis_kernels):
    """A lease that is out, an open saga and a step to compensate keep their keys, however many records came after."""

    async def run() -> None:
        two = Two(redis_kernels)
        await two.open()
        lease = {"op": "lease", "key": "one", "resource": "usd", "wanted": "1", "lifetime_ms": "1000", "child": ""}
        saga = {"op": "begin_saga", "key": "saga", "lifetime_ms": "9000"}
        book = {"op": "execute", "key": "step", "action": "book", "version": "0"}
        for ask in (
            lease,
            saga,
            {**book, "saga": "saga"},
            {"op": "rollback", "executions": [], "saga": "saga"},
            {**saga, "key": "b"},
        ):
            assert (await two.both(**ask)).answer["approved"] == "1"
        for key in ("one", "b", "step"):
            del two.fields["x:" + key]
            await two.redis._batcher.command("HDEL", kernel_key_of(two.kernel), "x:" + key)
        for ask in (lease, {**saga, "key": "b"}, book):
            assert (await two.both(**ask)).status == "KERNEL_KEY_REUSED"
        two.now += 7_000
        assert (await two.both(**lease)).answer["approved"] == "1", "a lease that ended gives its key back"

    runner.run(run())


@pytest.mark.req("KRN-3", "KRN-12")
def test_tickets_are_used_in_the_order_in_which_they_were_taken(runner, redis_kernels):
    """The first one's turn, then the next one's; who has none waits; one whose holder died is over after its time; a rejection uses one up."""

    async def run() -> None:
        two = Two(redis_kernels)
        await two.open()
        version = two.fields["version"]
        for key in ("t1", "t2", "t3"):
            assert (await two.both(op="ticket", key=key, lifetime_ms="1000")).answer["granted"] == str(int(key[1]) - 1)
        assert two.fields["version"] == version, "nobody has to evaluate again because of a ticket"

        async def acted(ticket: str, action: str = "add") -> tuple[str, str]:
            got = await two.both(op="execute", action=action, version=two.fields["version"], ticket=ticket)
            return got.status, got.answer.get("approved", got.subject)

        assert await acted("") == ("KERNEL_TICKET_AHEAD", "3")
        assert await acted("t2") == ("KERNEL_TICKET_AHEAD", "1")
        assert (await two.both(op="execute", action="less", version="0")).status == "OK", "evaluated by nobody"
        assert await acted("t1", "bad") == ("OK", "0")
        assert await acted("t1") == ("KERNEL_TICKET_UNKNOWN", "")
        two.now += 1_001  # the holder of t2 died
        assert await acted("t2") == ("KERNEL_TICKET_UNKNOWN", "")
        assert await acted("t3") == ("OK", "1")
        assert await acted("") == ("OK", "1")
        await two.both(op="ticket", key="t4", lifetime_ms="1000")
        two.now += 1_001
        assert await acted("") == ("OK", "1"), "the last one's time is over too"
        for key in ("t5", "t6", "t7"):
            await two.both(op="ticket", key=key, lifetime_ms="1000")
        version = two.fields["version"]
        for key, status in (("t6", "OK"), ("t5", "OK"), ("t5", "KERNEL_TICKET_UNKNOWN")):
            assert (await two.both(op="return_ticket", ticket=key)).status == status
        assert two.fields["version"] == version, "who leaves the line changes nothing of the state"
        assert await acted("t7", "less") == ("OK", "1"), "those before it left: its turn is now"
        await two.same()
        await two.seal()
        for number in (0, 1):
            held = (await (two.memory, two.redis)[number].read(two.kernel)).answer
            assert plain({**replayed(two.records[number]), "sealed": held["sealed"]}) == plain(held), number

    runner.run(run())


class Sagas(Two):
    """Both stores, sealed after each step, and the types of what was recorded."""

    def __init__(self, redis_kernels: RedisKernels) -> None:
        super().__init__(redis_kernels)
        self.types: list[str] = []

    async def ask(self, **what: Any) -> Any:
        got = await self.both(**what)
        self.types += [one.type.removeprefix("KERNEL_") for one in got.unsealed]
        await self.seal()
        return got.answer if got.status == "OK" else got.status

    async def begun(self, *actions: str) -> list[str]:
        saga = f"saga{next(self.asked)}"
        await self.ask(op="begin_saga", key=saga, lifetime_ms="9000")
        keys = [f"{saga}.{number}" for number in range(len(actions))]
        for key, action in zip(keys, actions, strict=True):
            assert (await self.ask(op="execute", action=action, version="0", saga=saga, key=key))["approved"] == "1"
        return [saga, *keys]

    async def claimed(self) -> list[str]:
        return (await self.ask(op="claim", lifetime_ms="2000")).get("claim") or []

    async def settled(self, execution: str, outcome: str, fence: str = "0") -> Any:
        return await self.ask(op="settle", execution=execution, fence=fence, outcome=outcome)

    async def decided(self, execution: str, outcome: str, fence: str, **more: str) -> Any:
        told = {"outcome": outcome, "reviewer_id": "ann"}
        return await self.ask(op="decide", execution=execution, fence=fence, outcome=outcome, decided=told, **more)

    def fence(self, execution: str) -> str:
        return self.fields[f"j:{execution}"].split(" ")[5]

    async def restored(self) -> None:
        await self.same()
        for number in (0, 1):
            held = (await (self.memory, self.redis)[number].read(self.kernel)).answer
            assert plain({**replayed(self.records[number]), "sealed": held["sealed"]}) == plain(held), number


@pytest.mark.req("KRN-5")
def test_sagas_are_one_in_lua_and_the_rule(runner, redis_kernels):
    """Undone in reverse, compensated one after the other, over a dead worker, stuck after five attempts, tried again by a person."""

    async def run() -> None:
        two = Sagas(redis_kernels)
        await two.open()
        saga, first, _, last = await two.begun("book", "less", "book")
        assert (await two.ask(op="rollback", executions=[], saga=saga))["approved"] == "1"
        assert (await two.ask(op="rollback", executions=[], saga=saga)) == "KERNEL_SAGA_UNKNOWN"
        assert two.fields["v:gone"] == "n!", "what the kernel can undo is undone at once"
        key, *_, fence, _ = await two.claimed()
        assert (key, await two.claimed()) == (last, []), (
            "the last step first, and nothing else before it is made up for"
        )
        assert await two.settled(first, "failed", fence) == "KERNEL_COMPENSATION_FENCED"
        assert (await two.settled(last, "done"))["approved"] == "1"
        for attempt in range(1, 6):
            got = await two.claimed()
            assert got[4] == str(attempt)
            if attempt == 3:
                two.now += 2_001  # the worker died
                continue
            await two.settled(first, "failed", got[5])
            assert await two.claimed() == []
            two.now += 1_000 * 2**attempt
        assert two.types[-1] == "COMPENSATION_STUCK"
        assert (await two.settled(first, "retry"))["approved"] == "1"
        await two.claimed()
        await two.settled(first, "done")
        assert (two.fields["v:n"], two.fields["due"], two.fields["sagas"]) == ("n:0", "", "")
        await two.restored()

    runner.run(run())


@pytest.mark.req("KRN-5")
def test_a_saga_whose_time_is_over_is_rolled_back_by_a_claim(runner, redis_kernels):
    """Its late step is refused; what cannot be undone and what was built on are left to a person, who settles both."""

    async def run() -> None:
        two = Sagas(redis_kernels)
        await two.open()
        saga, only, other = await two.begun("write", "tag")
        await two.ask(op="execute", action="unwrite", version="0")
        two.now += 9_001
        assert await two.ask(op="execute", action="add", version="0", saga=saga) == "KERNEL_SAGA_EXPIRED"
        assert await two.claimed() == []
        stuck = [field for field, value in two.fields.items() if field[:2] == "j:" and value.endswith("stuck")]
        assert stuck == [f"j:{other}", f"j:{only}"], "one cannot be undone, the other was built on"
        assert await two.settled(only, "retry") == "KERNEL_COMPENSATION_FENCED"
        for field in stuck:
            await two.settled(field[2:], "done")
        assert not [field for field in two.fields if field[:2] == "j:"]
        assert two.types[-3:] == ["COMPENSATION_STUCK", "COMPENSATED", "COMPENSATED"]
        await two.restored()

    runner.run(run())


@pytest.mark.req("KRN-5", "KRN-2")
def test_a_saga_whose_way_back_would_break_an_invariant_is_left_to_a_person(runner, redis_kernels):
    """T3 holds for the way back too: nothing is undone that the state cannot bear, and nothing is lost sight of."""

    async def run() -> None:
        two = Two(redis_kernels)
        await two.open()
        await two.both(op="begin_saga", key="saga", lifetime_ms="9000")
        await two.both(op="execute", action="add", version="0", saga="saga", key="up")
        for _ in range(3):
            await two.both(op="execute", action="less", version="0")
        held = two.fields["v:n"]
        done = await two.both(op="rollback", executions=[], saga="saga")
        assert (done.answer["approved"], two.fields["v:n"]) == ("1", held)
        assert two.fields["j:up"].split(" ")[6] == "stuck"
        await two.same()

    runner.run(run())


@pytest.mark.req("KRN-5")
def test_a_person_decides_about_the_compensation_that_was_shown(runner, redis_kernels):
    """Left, tried again, made up for: each once, about the record that the person saw, and who decided is in the record."""

    async def run() -> None:
        two = Sagas(redis_kernels)
        await two.open()
        saga, kept, booked = await two.begun("tag", "book")
        await two.ask(op="rollback", executions=[], saga=saga)
        seen = two.fence(kept)
        assert seen == two.fields["seq"], "the number of the record that says so"
        assert await two.decided(booked, "done", "0") == "KERNEL_COMPENSATION_NOT_STUCK"
        assert await two.decided(kept, "done", "77") == "KERNEL_COMPENSATION_MOVED_ON"
        assert await two.decided("none", "done", seen) == "KERNEL_COMPENSATION_UNKNOWN"
        assert await two.decided(kept, "retry", seen) == "KERNEL_COMPENSATION_FENCED", "there is no action to try again"
        for outcome in ("done", "retry", "failed"):
            ask = {"op": "settle", "execution": kept, "fence": seen, "outcome": outcome, "of_reviewers": "1"}
            assert await two.ask(**ask) == "KERNEL_REVIEWER_NEEDED", "not a caller's to settle, where that is set"
        first = await two.decided(kept, "leave", seen, key="appr1")
        assert (first["approved"], two.fields[f"j:{kept}"].split(" ")[6]) == ("1", "stuck")
        assert (await two.decided(kept, "leave", seen, key="appr1"))["replayed"] == "1", (
            "asked again, answered the same"
        )
        assert await two.decided(kept, "done", seen) == "KERNEL_COMPENSATION_MOVED_ON", "decided about already"
        await two.decided(kept, "done", two.fence(kept))
        assert two.types[-2:] == ["COMPENSATION_LEFT", "COMPENSATED"]
        for records in two.records:
            assert json.loads(records[-1].data)["decided"] == {"outcome": "done", "reviewer_id": "ann"}
        for _ in range(5):
            await two.settled(booked, "failed", (await two.claimed())[5])
            two.now += 60_000
        await two.claimed()
        old = two.fence(booked)
        await two.decided(booked, "retry", old)
        assert await two.decided(booked, "done", old) == "KERNEL_COMPENSATION_NOT_STUCK"
        assert (await two.claimed())[4] == "1", "tried again at once, from the first attempt on"
        await two.restored()

    runner.run(run())


@pytest.mark.req("KRN-1", "KRN-2")
def test_what_a_caller_has_in_hand_is_not_sent_again(runner, redis_kernels):
    """Only what comes after the record that it names; everything where it names one of another history, or none."""

    async def run() -> None:
        two = Two(redis_kernels)
        await two.open()
        await two.both(op="execute", action="add", version="0")
        for store, number in ((two.memory, 0), (two.redis, 1)):
            held = (await store.read(two.kernel)).unsealed
            assert len(held) == 2
            for link, sent in ((held[1].link, 1), (held[0].link, 3), ("0" * 40, 3), ("", 3)):
                ask = {
                    "op": "execute",
                    "action": "less",
                    "version": "0",
                    "digest": "d",
                    "key": f"again{number}",
                    "have": "2",
                    "have_link": link,
                }
                found = await store.step(two.kernel, ask, two.now)
                assert [one.sequence for one in found.unsealed] == [1, 2, 3][-sent:], (number, sent)

    runner.run(run())
