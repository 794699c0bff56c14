"""The circuit breaker of a session: three states that follow from the budget alone and change in one direction (SPEC-012 §5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from interlock.domain.budget import HALF_OPEN_AT, OPEN_AT, Micros

FORCED_STRATEGY = "reflexive"


class BreakerState(IntEnum):
    """State of the breaker, in rising order. The numbers equal ``interlock.api.common.v1.BreakerState``."""

    CLOSED = 1
    HALF_OPEN = 2
    OPEN = 3


@dataclass(frozen=True)
class Transition:
    """One step of the breaker."""

    before: BreakerState
    after: BreakerState


def breaker_state(budget: Micros) -> BreakerState:
    """Return the state at this budget: OPEN at 0.10 and below, CLOSED above 0.50."""
    if budget <= OPEN_AT:
        return BreakerState.OPEN
    return BreakerState.HALF_OPEN if budget <= HALF_OPEN_AT else BreakerState.CLOSED


def transitions(before: BreakerState, after: BreakerState) -> tuple[Transition, ...]:
    """Return each step from one state to the other, in order. The way from CLOSED to OPEN passes through HALF_OPEN.

    The breaker never closes again within a session. Raises ``ValueError`` for a step back, which is a defect.
    """
    if after < before:
        raise ValueError(f"the breaker moves one way: {before.name} to {after.name}")
    return tuple(Transition(BreakerState(step), BreakerState(step + 1)) for step in range(before, after))


def strategy_under(state: BreakerState, strategy: str) -> str:
    """Return the dispatch strategy to use: reflexive once the breaker has left CLOSED (SPEC-012 §5.1)."""
    return strategy if state is BreakerState.CLOSED else FORCED_STRATEGY
