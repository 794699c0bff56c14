"""A trace that is decided again under the limits that it had is what it was (KRN-1; ``interlock kernel simulate``)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.domain.errors import Refused
from interlock.domain.kernel.simulation import OtherTerms, Simulated, simulated
from interlock.session.store.kernels.store import MemoryKernels
from tests.property.test_kernel_lua import STEPS, UNIT, Two

AS_IT_WAS: dict[str, Any] = {"limits": {}, "min_costs": {}, "invariants": {}, "without": frozenset()}


async def recorded(*steps: Any) -> Two:
    """Two stores in memory after some steps, with every record sealed."""
    two = Two(MemoryKernels())
    await two.open()
    for one in steps:
        await two.step(*one)
    await two.seal()
    return two


def again(two: Two, **changes: Any) -> Simulated:
    records = [(one.sequence, one.type, json.loads(one.data)) for one in two.records[0]]
    return simulated(records, OtherTerms(**{**AS_IT_WAS, **changes}))


@pytest.mark.req("KRN-1")
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(STEPS, min_size=5, max_size=40))
@example(steps=[("child", "a -", 4, "usd"), ("child", "a -", 4, "usd")])
def test_nothing_differs_where_nothing_is_changed(steps):
    """Every kind of record is decided as it was, and the budgets end as they did."""
    found = again(asyncio.run(recorded(*steps)))

    assert not found.differs
    assert found.simulated == found.recorded


def acts(*actions: str) -> list[tuple[str, str, int]]:
    return [("execute", action, 100 + number) for number, action in enumerate(actions)]


@pytest.mark.req("KRN-1")
@pytest.mark.parametrize(
    ("changes", "rejected", "code"),
    [
        ({"limits": {"usd": 3 * UNIT}}, [4, 5], "BUDGET_EXCEEDED"),
        ({"min_costs": {"usd": 2 * UNIT}}, [3, 4], "COST_BELOW_MINIMUM"),
        ({"invariants": {"few": "n <= 2"}}, [2], "INVARIANT_BROKEN"),
        ({"invariants": {"rate": "uses(add, 10) <= 0"}}, [2], "INVARIANT_BROKEN"),
        ({"invariants": {"paced": "spent(mails, 60) <= 1"}}, [4], "INVARIANT_BROKEN"),
    ],
)
def test_what_would_have_been_rejected_is_named_with_its_checks(changes, rejected, code):
    """A smaller budget, a larger least cost, and invariants of one's own, windows included."""
    two = asyncio.run(recorded(*acts("add", "less", "scale", "write")))
    found = again(two, **changes)

    assert [one.sequence for one in found.differs if not one.approved] == rejected
    assert {one.checks[0][2] for one in found.differs} == {code}


@pytest.mark.req("KRN-1")
def test_what_would_have_been_approved_is_done_and_what_rests_on_a_rejection_is_not():
    """A rejected action under a larger limit; and a permit that is not given any more is not confirmed either."""
    more = again(
        asyncio.run(recorded(*acts("dear"))), limits={"usd": 60 * UNIT, "mails": 20 * UNIT}, invariants={"pace": "true"}
    )
    permitted = asyncio.run(
        recorded(("permit", "add", 10), ("confirm", 10, UNIT), ("lease", "usd", 5 * UNIT), ("give_back", 0, UNIT, True))
    )
    less = again(permitted, limits={"usd": UNIT})

    assert [(one.sequence, one.approved) for one in more.differs] == [(2, True)]
    assert (more.simulated["usd"].gross, more.recorded["usd"].gross) == (50 * UNIT, 0)
    assert ([one.type for one in less.differs], less.left_out) == (["KERNEL_PERMITTED"], [3])
    assert less.simulated["usd"].gross == UNIT, "a smaller lease is granted"


@pytest.mark.req("KRN-1")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"limits": {"eur": UNIT}}, "KERNEL_RESOURCE_UNKNOWN"),
        ({"limits": {"usd": -1}}, "KERNEL_AMOUNT_INVALID"),
        ({"without": frozenset({"none"})}, "KERNEL_INVARIANT_UNKNOWN"),
        ({"invariants": {"i": "surprise < 1"}}, "KERNEL_VARIABLE_UNKNOWN"),
        ({"invariants": {"i": "n > 0"}}, "KERNEL_INVARIANT_BROKEN"),
    ],
)
def test_changes_that_do_not_fit_are_refused(changes, reason):
    """By the reason that opening such a kernel has."""
    with pytest.raises(Refused) as refused:
        again(asyncio.run(recorded(*acts("add"))), **changes)

    assert refused.value.reason == reason


@pytest.mark.req("KRN-1")
def test_a_trace_with_a_gap_is_not_decided_again():
    """Without one of its records nothing after it can be told."""
    two = asyncio.run(recorded(*acts("add", "add")))
    del two.records[0][1]
    with pytest.raises(Refused, match="KERNEL_RECORD_BROKEN"):
        again(two)
