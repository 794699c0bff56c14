"""Whether answers that govern a call are consistent: policies, decisions, opened windows, settlements (I1, I2, I10, A-52)."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.domain.breaker import BreakerState, breaker_state
from interlock.domain.budget import EXHAUSTED_AT, FULL, Micros, charge
from interlock.domain.policy.directives import policy_hash

_BREAKERS = frozenset(map(int, BreakerState))
DELIVERED = "DELIVER"
REMEDIES = frozenset({"REDISPATCH", "CONTINUE", "STITCH"})
KEPT_BACK = frozenset({"HOLD", "HALT", "REJECT_QUALITY"})


def policy_fault(text: str, told_hash: str) -> str:
    """Return POLICY_HASH unless *told_hash* is that of the canonical *text*."""
    return "" if told_hash == policy_hash(text) else "POLICY_HASH"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldDecision:
    """A decision, and what was asked. *action* is the name of the action, without its prefix; budgets are millionths."""

    action: str
    reason: str
    halt_reason: str
    remedies: int
    """Remedies that it names; only a re-dispatch has any."""
    observed: bool
    """Whether the response is only watched: it is delivered whatever is found."""
    breaker: int
    """Number of the ``BreakerState`` before the response."""
    budget: Micros
    charge: Micros


def decision_fault(told: ToldDecision) -> str:
    """Return what does not hold in a decision: ACTION, REASON, REMEDIES or BREAKER; empty where all holds."""
    if told.action not in {DELIVERED, *REMEDIES, *KEPT_BACK}:
        return "ACTION"
    if bool(told.reason) != (told.action in KEPT_BACK) or (told.halt_reason and not told.reason):
        return "REASON"
    if bool(told.remedies) != (told.action == "REDISPATCH"):
        return "REMEDIES"
    spent = breaker_state(charge(told.budget, told.charge)) is BreakerState.OPEN or told.breaker == BreakerState.OPEN
    return "BREAKER" if told.action == DELIVERED and spent and not told.observed else ""


def standing_fault(budget: int, breaker: int) -> str:
    """Return what does not hold where a session stands: BUDGET_RANGE, or BREAKER for one less open than its budget implies.

    It may be more open: another branch of the session opened it (requirements.md, reading 7).
    """
    if not EXHAUSTED_AT <= budget <= FULL:
        return "BUDGET_RANGE"
    return "" if breaker in _BREAKERS and breaker >= breaker_state(Micros(budget)) else "BREAKER"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldSettlement:
    """A settlement, and what was asked. Budgets are millionths. The same holds where the window was settled before."""

    path_budget: int
    session_budget: int
    breaker: int
    ceiling: int
    """Lowest budget that anybody vouched for before it."""
    charge: int


def settlement_fault(told: ToldSettlement) -> str:
    """Return what does not hold in a settlement: BUDGET_RANGE, BREAKER or BUDGET_RISES; empty where all holds."""
    if not EXHAUSTED_AT <= told.path_budget <= FULL:
        return "BUDGET_RANGE"
    if fault := standing_fault(told.session_budget, told.breaker):
        return fault
    return "BUDGET_RISES" if told.path_budget > max(0, told.ceiling - told.charge) else ""
