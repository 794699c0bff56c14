"""Looking at what a step would make of the state, while others act: in the end by a ticket, and never for ever (KRN-3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId
from interlock.domain.kernel.definition import Condition, Definition, RegisteredAction, opened
from interlock.domain.kernel.state import Resource, Stepped
from interlock.session.kernel import cel_steps
from interlock.session.kernel.cel_language import LANGUAGE
from interlock.session.kernel.cel_steps import OPTIMISTIC, CelSteps
from interlock.session.store.kernels.store import MemoryKernels

pytestmark = pytest.mark.req("KRN-3")
KERNEL = SessionId("crp_sess_" + "7" * 32)
UNIT = 1_000_000
DEFINITION = Definition(
    resources={"usd": Resource(500 * UNIT, 0)},
    variables={"n": "n:0", "m": "n:0"},
    invariants=[Condition("few", "", blocking=True, cel="n <= 100 && m <= 1000")],
    actions=[
        RegisteredAction("step", "step", [("n", "increment", f"n:{UNIT}")], []),
        RegisteredAction("other", "other", [("m", "increment", f"n:{UNIT}")], []),
    ],
    open_registry=False,
)


class Racing(MemoryKernels):
    """A store whose state somebody else changes after each look, as long as nobody's turn keeps them from it."""

    def __init__(self, *, by: str = "execute") -> None:
        super().__init__()
        self.by, self.numbers, self.raced, self.quiet = by, count(), 0, False
        self.rivals: CelSteps | None = None

    async def step(self, kernel_id: SessionId, ask: Mapping[str, Any], now_ms: int) -> Stepped:
        found = await super().step(kernel_id, ask, now_ms)
        if found.status == "LOOK" and not str(ask["key"]).startswith("rival") and not self.quiet:
            await self.race(kernel_id, now_ms)
        return found

    async def race(self, kernel_id: SessionId, now_ms: int) -> None:
        """Somebody else's action, looked at and done."""
        key = f"rival{next(self.numbers)}"
        ask = {"op": "execute", "action": "other", "version": "0", "key": key, "digest": key}
        if self.by == "lease":
            ask = {
                "op": "lease",
                "resource": "usd",
                "wanted": str(UNIT),
                "lifetime_ms": "60000",
                "key": key,
                "digest": key,
            }
        looked = await super().step(kernel_id, ask, now_ms)
        if looked.status == "LOOK":
            told = {cel_steps.digest(looked.subject): "1"}
            looked = await super().step(kernel_id, {**ask, "told": told}, now_ms)
        self.raced += looked.status == "OK"


async def opened_in(store: MemoryKernels, definition: Definition = DEFINITION) -> CelSteps:
    fields, record = opened(definition, KERNEL, 1, cel=LANGUAGE)
    await store.open(KERNEL, fields, record)
    return CelSteps(store, LANGUAGE, lambda: 1_000)


def kinds(store: MemoryKernels) -> Sequence[str]:
    fields = store._kernels[KERNEL]
    numbers = range(1, int(fields["seq"]) + 1)
    return [json.loads(fields[f"o:{number}"])[3] for number in numbers]


ASK = {"op": "execute", "action": "step", "version": "0", "key": "mine", "digest": "mine"}


async def test_what_others_come_before_again_and_again_takes_a_ticket_and_is_done():
    """Six times somebody else is quicker; then the others wait, and the action is done in its turn, which it uses up."""
    store = Racing()
    steps = await opened_in(store)
    found = await steps.step(KERNEL, ASK)

    assert (found.status, found.answer["approved"]) == ("OK", "1")
    assert store.raced == OPTIMISTIC + 1
    assert kinds(store).count("KERNEL_TICKET_TAKEN") == 1
    assert kinds(store)[-1] == "KERNEL_EXECUTED"
    assert store._kernels[KERNEL]["tickets"] == "", "the turn is used up"


async def test_an_action_waits_behind_the_ticket_of_another_and_takes_one():
    """Whoever has none gets into the line, and is served when the turn before is over."""
    store = Racing()
    store.quiet = True
    steps = await opened_in(store)
    now = [1_000]
    steps = CelSteps(store, LANGUAGE, lambda: now[0])
    await store.step(KERNEL, {"op": "ticket", "key": "other", "digest": "", "lifetime_ms": "500"}, now[0])
    waiting = asyncio.create_task(steps.step(KERNEL, ASK))
    while kinds(store).count("KERNEL_TICKET_TAKEN") < 2:
        await asyncio.sleep(0)
    assert not waiting.done()
    now[0] += 501

    assert (await waiting).answer["approved"] == "1"


async def test_what_never_stands_still_is_refused_and_leaves_the_line(monkeypatch):
    """Leases are no actions, wait for nobody, and change what a condition on a budget speaks of: after its looks the action is refused."""
    monkeypatch.setattr(cel_steps, "LOOKS", 12)
    store = Racing(by="lease")
    definition = replace(DEFINITION, invariants=[Condition("rich", "", blocking=True, cel="left.usd >= 1.0 && n <= 9")])
    steps = await opened_in(store, definition)
    with pytest.raises(Refused) as refused:
        await steps.step(KERNEL, ASK)

    assert refused.value.reason == "KERNEL_CEL_CONTENDED"
    assert store._kernels[KERNEL]["v:n"] == "n:0", "nothing was done"
    assert kinds(store)[-1] == "KERNEL_TICKET_RETURNED"


async def test_what_a_condition_does_not_speak_of_may_change_under_it():
    """An action is not looked at again because of what no condition speaks of: no version is compared, but what was seen."""
    store = Racing()
    definition = replace(DEFINITION, invariants=[Condition("few", "", blocking=True, cel="n <= 100")])
    steps = await opened_in(store, definition)
    found = await steps.step(KERNEL, ASK)

    assert found.answer["approved"] == "1"
    assert (store.raced, kinds(store).count("KERNEL_TICKET_TAKEN")) == (1, 0)


async def test_many_at_once_are_each_decided_and_rest_on_the_same_records():
    """Those that are looked at come one by one after the others; what is to be sealed is all of it, for each."""
    store = MemoryKernels()
    steps = await opened_in(store, replace(DEFINITION, invariants=[Condition("few", "", blocking=True, cel="n <= 2")]))
    asks = [{**ASK, "key": f"k{number}", "digest": f"{number}"} for number in range(5)]
    asks.insert(2, {"op": "abort", "executions": ["none"], "unseen": "1", "key": "void", "digest": ""})
    found = await steps.steps(KERNEL, asks)
    answers = [one for one in found if isinstance(one, Stepped)]

    assert [one.answer["approved"] for one in answers] == ["1", "1", "1", "0", "0", "0"]
    assert {len(one.unsealed) for one in answers} == {7}
