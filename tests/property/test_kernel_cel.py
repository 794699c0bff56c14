"""Conditions in CEL: Lua and the rule are one, they hold over any sequence of steps, and they say what Google's library says (KRN-3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from cel_expr_python import cel
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId
from interlock.domain.kernel.cel.conditions import verdicts
from interlock.domain.kernel.cel.evaluation import BROKEN, FAILED, HOLDS, verdict_of
from interlock.domain.kernel.cel.names import bindings, digest, parted, shown_of
from interlock.domain.kernel.definition import Condition, opened
from interlock.domain.kernel.expression import Declared
from interlock.domain.kernel.state import Stepped, replayed
from interlock.session.kernel import cel_language
from interlock.session.kernel.cel_language import LANGUAGE
from interlock.session.kernel.cel_steps import CelSteps
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.kernels.redis import RedisKernels
from tests.property import test_kernel_lua as plain

pytestmark = pytest.mark.req("KRN-3")
UNIT = plain.UNIT
CONDITIONS = [
    Condition("bound", "", blocking=True, cel="n <= 12 && n >= -3.0"),
    Condition("slow", "", blocking=True, cel="n <= before.n + 3.0 || action == ''"),
    Condition("clean", "", blocking=True, cel="!('x' in tags) && tags.all(t, t.matches('^[a-w]+$'))"),
    Condition("short", "", blocking=True, cel="log.size() < 4 && log.all(one, one > 0)"),
    Condition("poor", "", blocking=True, cel="left.usd >= 1.5 && cost.mails <= 4.0"),
    Condition("kept", "", blocking=True, cel="!had.gone || held.gone || action == 'unwrite'"),
    Condition("written", "", blocking=False, cel="mode == 'read' || 1 / 0 == 1"),
]
DEFINITION = replace(plain.DEFINITION, invariants=[*CONDITIONS, *plain.DEFINITION.invariants[3:5]])


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def redis_kernels(valkey: Any, runner: asyncio.Runner) -> Iterator[RedisKernels]:
    valkey.flush()
    batcher = Batcher(parse(valkey.url), timeout_s=60)
    yield RedisKernels(batcher)
    runner.run(batcher.close())


class Looking(plain.Two):
    """Both stores, each told what conditions say of what it shows."""

    looks = 0

    async def open(self) -> None:
        fields, record = opened(DEFINITION, self.kernel, self.now, cel=LANGUAGE)
        for store in (self.memory, self.redis):
            assert await store.open(self.kernel, fields, record) == "CREATED"

    async def both(self, **ask: Any) -> Stepped:
        ask = {"key": f"auto{next(self.asked)}", **ask}
        found, told = await super().both(**ask), dict[str, str]()
        while found.status == "LOOK":
            self.looks += 1
            conditions, shown = parted(found.subject)
            text = self.fields["cel"]
            assert digest(text) == conditions == digest(await self.redis.conditions(self.kernel))
            told[digest(found.subject)] = verdicts(text, shown, LANGUAGE.matches)
            found = await super().both(**{**ask, "digest": "", "told": told})
        return found


def t3(fields: dict[str, str]) -> None:
    """What the conditions promise of every state."""
    assert -3 * UNIT <= int(fields["v:n"][2:] or 0) <= 12 * UNIT, "bound"
    assert "s:x" not in fields["v:tags"], "clean"
    assert len([one for one in fields["v:log"][2:].split("\x1f") if one]) < 4, "short"
    assert plain.Resource.of(fields["r:usd"]).left >= 1_500_000, "poor"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(plain.STEPS, min_size=5, max_size=40))
def test_lua_and_the_rule_ask_back_for_the_same_and_decide_the_same(steps, runner, redis_kernels):
    """Every step shows the same views, every state keeps the conditions, and the state is what its records say."""

    async def run() -> None:
        two = Looking(redis_kernels)
        await two.open()
        for one in steps:
            await two.step(*one)
            t3(two.fields)
        await two.same()
        await two.seal()
        for number in (0, 1):
            rebuilt = replayed(two.records[number])
            held = (await (two.memory, two.redis)[number].read(two.kernel)).answer
            assert plain.plain({**rebuilt, "sealed": held["sealed"]}) == plain.plain(held), number

    runner.run(run())


def test_a_verdict_about_another_state_is_none(runner, redis_kernels):
    """What was said of one view does not count once somebody changed what it shows: the store shows the new one."""

    async def run() -> None:
        two = Looking(redis_kernels)
        await two.open()
        ask = {"op": "execute", "action": "add", "version": "0", "key": "one"}
        first = await plain.Two.both(two, **ask)
        told = {digest(first.subject): "1" * len(CONDITIONS)}
        for key in ("a", "b", "c"):
            await two.both(op="execute", action="less", version="0", key=key)
        again = await plain.Two.both(two, **ask, told=told)
        assert (again.status, again.subject != first.subject) == ("LOOK", True)
        answer = (await two.both(**ask)).answer
        assert (answer["approved"], two.fields["v:n"]) == ("1", "n:0")

    runner.run(run())


def test_two_services_that_look_at_the_same_time_commit_no_more_than_holds(runner, valkey):
    """Each has connections and locks of its own, so that the looks of one lie between the looks and commits of the other."""
    kernel = SessionId("crp_sess_" + "2" * 32)
    few = Condition("few", "", blocking=True, cel="n <= 6 && left.usd >= 0.0")

    async def run() -> None:
        batchers = [Batcher(parse(valkey.url), timeout_s=60) for _ in range(2)]
        stores = [RedisKernels(one) for one in batchers]
        fields, record = opened(replace(DEFINITION, invariants=[few]), kernel, 1, cel=LANGUAGE)
        await stores[0].open(kernel, fields, record)
        services = [CelSteps(one, LANGUAGE, lambda: 1_000) for one in stores]
        asks = [
            {"op": "execute", "action": ("add", "free")[n % 8 == 7], "version": "0", "key": f"k{n}", "digest": ""}
            for n in range(24)
        ]
        found = await asyncio.gather(*(services[n % 2].step(kernel, one) for n, one in enumerate(asks)))
        done = [one.answer["approved"] for one in found]
        held = (await stores[1].read(kernel)).answer
        kept = [json.loads(json.loads(held[f"o:{n}"])[5])["changes"].get("v:n", "n:0") for n in range(2, len(done) + 2)]
        assert max(int(one[2:]) for one in kept) == 6 * UNIT, "no state of any record is above it"
        assert "0" in done
        for one in batchers:
            await one.close()

    runner.run(run())


NAMES = Declared({"x": "n", "y": "n", "s": "s", "f": "b", "l": "l"}, frozenset(), frozenset({"usd"}))
TYPES = {"x": cel.Type.DOUBLE, "y": cel.Type.DOUBLE, "s": cel.Type.STRING, "f": cel.Type.BOOL, "l": cel.Type.List(cel.Type.DYN)}  # fmt: skip
DECIMALS = st.integers(-40, 40).map(lambda n: n / 4)  # exact in binary too, so that the library can be asked
NUMBERS = st.one_of(
    st.sampled_from(["x", "y", "before.x", "double(size(l))", "double(size(s))", "l[0]"]), DECIMALS.map(repr)
)


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(lambda one: f"({' '.join(one)})"),
        inner.map(lambda one: f"-({one})"),
        st.tuples(BASIC, inner, inner).map(lambda one: f"({one[0]} ? {one[1]} : {one[2]})"),
    )


BASIC = st.one_of(
    st.sampled_from(["f", "!f", "true", "s == 'ab'", "s.contains('b')", "s.startsWith('a')", "s + 'c' == 'abc'", "s < 'b'"]),
    st.tuples(NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), NUMBERS).map(" ".join),
    st.tuples(NUMBERS, NUMBERS).map(lambda one: f"{one[0]} in [{one[1]}, x]"),
)  # fmt: skip
SUMS = st.recursive(NUMBERS, joined, max_leaves=6)
CONDITION = st.recursive(
    st.one_of(
        BASIC,
        st.tuples(SUMS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), SUMS).map(" ".join),
        st.tuples(st.sampled_from(["all", "exists", "exists_one"]), st.sampled_from(["<", ">="]), DECIMALS)
        .map(lambda one: f"l.{one[0]}(i, i {one[1]} {one[2]!r})"),
        DECIMALS.map(lambda one: f"l.filter(i, i > {one!r}).map(i, i * 2.0).size() > 1"),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||", "==", "!="]), inner).map(lambda one: f"(({one[0]}) {one[1]} ({one[2]}))"),
        inner.map(lambda one: f"!({one})"),
    ),
    max_leaves=6,
)  # fmt: skip
WORLDS = st.fixed_dictionaries({
    "x": DECIMALS, "y": DECIMALS, "before.x": DECIMALS, "s": st.sampled_from(["", "ab", "b", "é"]), "f": st.booleans(),
    "l": st.lists(st.one_of(DECIMALS, DECIMALS, st.just("t")), max_size=4),
})  # fmt: skip


def stored(value: Any) -> str:
    if isinstance(value, bool):
        return f"b:{int(value)}"
    if isinstance(value, str):
        return f"s:{value}"
    if isinstance(value, list):
        return "l:" + "\x1f".join(map(stored, value))
    return f"n:{round(value * UNIT)}"


def said_here(text: str, world: dict[str, Any]) -> str:
    tree, seen = LANGUAGE.read(text, NAMES)
    shown = shown_of(seen, {"v": lambda name: stored(world[name]), "b": lambda name: stored(world[f"before.{name}"])})
    return verdict_of(tree, bindings(seen, shown), LANGUAGE.matches)


def said_there(text: str, world: dict[str, Any]) -> str:
    found = cel.NewEnv(variables={**TYPES, "before.x": cel.Type.DOUBLE}).compile(text).eval(data=world)
    if str(found.type()) != "BOOL":
        return FAILED
    return HOLDS if found.value() else BROKEN


@settings(max_examples=400, deadline=None)
@given(text=CONDITION, world=WORLDS)
def test_a_condition_says_what_the_library_says(text, world):
    """On numbers that binary fractions hold, and with no division that they cut off, both agree; errors and who absorbs them included."""
    assume("/" not in text and len(text) < 900)
    try:
        said_here(text, world)
    except Refused as refused:
        assert refused.reason == "KERNEL_EXPRESSION_TOO_DEEP"
        return

    assert said_here(text, world) == said_there(text, world), (text, world)


@settings(max_examples=200, deadline=None)
@given(a=st.integers(-(10**15), 10**15), b=st.integers(-(10**15), 10**15), c=st.integers(1, 10**15))
def test_numbers_are_exact(a, b, c):
    """Sums, products and quotients of a kernel's numbers are what they are in millionths; the library's are not."""
    names = Declared({"a": "n", "b": "n", "c": "n", "d": "n"}, frozenset(), frozenset())
    world = {"a": f"n:{a}", "b": f"n:{b}", "c": f"n:{c}", "d": f"n:{a + b}"}

    def said(text: str) -> str:
        tree, seen = LANGUAGE.read(text, names)
        return verdict_of(tree, bindings(seen, [world[name] for _, name in seen]), LANGUAGE.matches)

    assert said("a + b == d && d - b == a") == HOLDS
    assert said("a / c * c == a && (a + b) * c == a * c + b * c") == HOLDS
    assert said("a + b > d || a + b < d") == BROKEN


def test_a_tenth_and_two_tenths_are_three_tenths():
    """The library says that they are not, and a kernel's budget says that they are."""
    world = {"x": 0.1, "y": 0.2}

    assert said_here("x + y == 0.3 && x + y <= 0.3 && 0.1 + 0.2 == 0.3", world) == HOLDS
    assert said_there("x + y == 0.3", {**world, "before.x": 0.0, "s": "", "f": True, "l": []}) == BROKEN


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("n <= ", "KERNEL_CEL_INVALID"),
        ("", "KERNEL_CEL_INVALID"),
        ("n <= 1\x00", "KERNEL_CEL_INVALID"),
        ("s.matches('(')", "KERNEL_CEL_INVALID"),
        ("x <= 10" + " " * 1_000, "KERNEL_EXPRESSION_TOO_LONG"),
        ("(" * 300 + "f" + ")" * 300, "KERNEL_EXPRESSION_TOO_DEEP"),
        ("[" * 200 + "f" + "]" * 200 + " == []", "KERNEL_EXPRESSION_TOO_DEEP"),
        ("x" + " + x" * 200 + " > 1.0", "KERNEL_EXPRESSION_TOO_DEEP"),
        ("!!(!!!!!!(!!!!(((((!!(!!(!!!!((" * 20 + "1", "KERNEL_EXPRESSION_TOO_DEEP"),
        ("z > 1", "KERNEL_VARIABLE_UNKNOWN"),
        ("left.eur > 1", "KERNEL_VARIABLE_UNKNOWN"),
        ("l.all(i, j > 1)", "KERNEL_VARIABLE_UNKNOWN"),
        ("x", "KERNEL_CEL_NOT_BOOLEAN"),
        ("l[0]", "KERNEL_CEL_NOT_BOOLEAN"),
        ("s > 1", "KERNEL_CEL_TYPES"),
        ("x == 'a'", "KERNEL_CEL_TYPES"),
        ("f + 1 <= 2.5", "KERNEL_CEL_TYPES"),
        ("x && f", "KERNEL_CEL_TYPES"),
        ("l.all(i, i + 1)", "KERNEL_CEL_TYPES"),
        ("f ? x > 1 : s", "KERNEL_CEL_TYPES"),
        ("size(x) > 1", "KERNEL_CEL_TYPES"),
        ("has(before.x)", "KERNEL_CEL_UNSUPPORTED"),
        ("{'a': 1}['a'] == 1", "KERNEL_CEL_UNSUPPORTED"),
        ("timestamp('2026-01-01T00:00:00Z') == timestamp('2026-01-01T00:00:00Z')", "KERNEL_CEL_UNSUPPORTED"),
        ("string(x) == '1'", "KERNEL_CEL_UNSUPPORTED"),
        ("x == 0.0000001", "KERNEL_CEL_UNSUPPORTED"),
        ("x < 1e300", "KERNEL_CEL_UNSUPPORTED"),
        ("s.matches(s)", "KERNEL_CEL_UNSUPPORTED"),
        ("1u == 1u", "KERNEL_CEL_UNSUPPORTED"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_reason(text, reason):
    """Each bad text has one stable reason, and none of them takes long or much memory."""
    with pytest.raises(Exception, match=reason) as refused:
        LANGUAGE.read(text, NAMES)
    assert getattr(refused.value, "reason", "") == reason


@pytest.mark.parametrize(
    "text",
    [
        "l.all(i, l.all(j, l.all(k, i + j + k > 0.0)))",
        "l.map(i, l.map(j, l.map(k, k))).size() > 0",
        "l.map(i, s + s + s + s).map(i, i + i + i + i).map(i, i + i + i + i).all(i, i.contains('b') && i.contains('c'))",
        "l.exists(i, l.exists(j, s.matches('(a*)*(b*)*(c*)*$') && i > j))",
    ],
)
def test_a_loop_in_a_loop_ends(text):
    """However many items a kernel holds, a condition takes so many steps at most, and does not hold when they are used up."""
    tree, seen = LANGUAGE.read(text, NAMES)
    world = {"l": "l:" + "\x1f".join(["n:1000000"] * 1_000), "s": "s:" + "ab" * 500}

    assert verdict_of(tree, bindings(seen, [world[name] for _, name in seen]), LANGUAGE.matches) in {"b", "e"}


def test_without_the_library_a_condition_is_refused_and_nothing_else(monkeypatch):
    """A kernel without conditions in CEL needs no library; one with them is not opened without it."""
    monkeypatch.setitem(__import__("sys").modules, "cel_expr_python", None)
    cel_language._pattern.cache_clear()
    cel_language._environment.cache_clear()

    with pytest.raises(Exception, match="KERNEL_CEL_UNAVAILABLE"):
        opened(DEFINITION, SessionId("crp_sess_" + "0" * 32), 1, cel=LANGUAGE)
    with pytest.raises(Exception, match="KERNEL_CEL_UNAVAILABLE"):
        opened(DEFINITION, SessionId("crp_sess_" + "0" * 32), 1)
    assert opened(plain.DEFINITION, SessionId("crp_sess_" + "0" * 32), 1)[1].sequence == 1


def conditions(*texts: str) -> Sequence[Condition]:
    return [Condition(f"c{n}", "", blocking=True, cel=text) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("invariants", "reason"),
    [
        (conditions("n >= 1"), "KERNEL_INVARIANT_BROKEN"),
        (conditions("1 / 0 == 1"), "KERNEL_INVARIANT_BROKEN"),
        (conditions(*["n <= 1"] * 17), "KERNEL_TOO_LARGE"),
        ([Condition("two", "n <= 1", blocking=True, cel="n <= 1")], "KERNEL_INVARIANT_INVALID"),
    ],
)
def test_a_kernel_whose_conditions_do_not_hold_at_the_beginning_is_not_opened(invariants, reason):
    """Neither is one with more than it can have, or with two kinds of one condition."""
    with pytest.raises(Exception, match=reason):
        opened(replace(DEFINITION, invariants=invariants), SessionId("crp_sess_" + "0" * 32), 1, cel=LANGUAGE)
