"""The breaker follows from the budget and moves one way."""

from __future__ import annotations

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.domain.breaker import BreakerState, Transition, breaker_state, strategy_under, transitions
from interlock.domain.budget import Micros

CLOSED, HALF_OPEN, OPEN = BreakerState


@pytest.mark.req("BRK-1", "BUD-3")
@pytest.mark.parametrize(
    ("budget", "state"),
    [
        (1_000_000, CLOSED),
        (500_001, CLOSED),
        (500_000, HALF_OPEN),
        (100_001, HALF_OPEN),
        (100_000, OPEN),
        (0, OPEN),
    ],
)
def test_the_state_changes_exactly_at_its_boundary(budget, state):
    """CLOSED above 0.50, OPEN at 0.10 and below, HALF_OPEN between (SPEC-012 §5.1)."""
    assert breaker_state(Micros(budget)) is state


@pytest.mark.req("BRK-1", "BRK-5")
@pytest.mark.parametrize(
    ("before", "after", "steps"),
    [
        (CLOSED, CLOSED, ()),
        (CLOSED, HALF_OPEN, (Transition(CLOSED, HALF_OPEN),)),
        (HALF_OPEN, OPEN, (Transition(HALF_OPEN, OPEN),)),
        (CLOSED, OPEN, (Transition(CLOSED, HALF_OPEN), Transition(HALF_OPEN, OPEN))),
        (OPEN, OPEN, ()),
    ],
)
def test_every_step_is_named_in_order(before, after, steps):
    """A fall through HALF_OPEN is two transitions: each has its effects and its audit event (SPEC-012 §5.2)."""
    assert transitions(before, after) == steps


@pytest.mark.req("BRK-1")
@pytest.mark.parametrize(("before", "after"), [(OPEN, HALF_OPEN), (OPEN, CLOSED), (HALF_OPEN, CLOSED)])
def test_the_breaker_never_closes_again(before, after):
    """A step back is a defect, not a transition."""
    with pytest.raises(ValueError, match="one way"):
        transitions(before, after)


@pytest.mark.req("BRK-2")
def test_half_open_forces_the_reflexive_strategy():
    """Whatever strategy the session has, HALF_OPEN dispatches reflexively."""
    assert [strategy_under(state, "push") for state in BreakerState] == ["push", "reflexive", "reflexive"]


def test_the_numbers_are_those_of_the_proto():
    """A state crosses the wire as its number."""
    names = {f"BREAKER_STATE_{state.name}": int(state) for state in BreakerState}

    assert names == {name: n for name, n in common_pb2.BreakerState.items() if n}
