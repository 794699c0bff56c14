"""The state of a session before each of its answers, read off the events of its audit chain in their order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.domain.breaker import BreakerState
from interlock.domain.budget import FULL, Micros
from interlock.domain.policy.directives import Tier
from interlock.domain.policy.workbench.trial import Acceptance
from interlock.domain.risk.risk import RiskLevel

_WOULD = {"halt": "halted", "hold": "held", "reject": "refused"}
_ACCEPT_RISK, _ACCEPT_QUALITY = "CRP-Accept-Risk ", "CRP-Accept-Quality "


@dataclass(frozen=True)
class Charge:
    """What the settlement of a window says: the budget that it began with along its path, and what it cost."""

    ceiling: Micros
    charge: Micros
    accumulate: bool


@dataclass(frozen=True)
class Sealed:
    """A sealed answer, and what the chain tells of the moment when it was decided."""

    window_id: str
    at: str
    number: int
    outcome: str
    observed: bool
    budget: Micros
    """Of the session or of the window's path, the lower one; of the session alone where the settlement is not known."""
    breaker: BreakerState
    accepts: Acceptance
    """The caller's bounds for this call that the answer broke. One that it kept to changes nothing, and is not recorded."""


@dataclass
class _Window:
    halted: bool = False
    would: str = ""
    accepts: Acceptance = field(default_factory=Acceptance)


def answers(events: Iterable[tuple[str, str, str, str]], charges: Mapping[str, Charge]) -> Iterator[Sealed]:
    """Yield each sealed answer of a session. An event is its type, window, time and data as canonical JSON."""
    budget, breaker, noted = FULL, BreakerState.CLOSED, dict[str, _Window]()
    for kind, window_id, at, data_json in events:
        data = _object(data_json)
        window = noted.setdefault(window_id, _Window())
        if kind == "SAFETY_HALT":
            window.halted = True
        elif kind == "WOULD_HAVE":
            window.would = window.would or _WOULD.get(str(data.get("action")), "")
        elif kind == "POLICY_VIOLATION":
            window.accepts = _accepted(window.accepts, str(data.get("directive")))
        elif kind == "BREAKER_TRANSITION":
            breaker = max(breaker, _breaker(data.get("to_state")))
        elif kind == "SAFETY_BUDGET_CASCADED":
            budget = min(budget, _micros(data.get("after")))
        elif kind == "WINDOW_SEALED":
            charge = charges.get(window_id)
            before = budget if charge is None else min(budget, charge.ceiling)
            yield Sealed(
                window_id, at, _number(data.get("window_number")), window.would or _outcome(data, window),
                bool(window.would), before, breaker, window.accepts,
            )  # fmt: skip
            budget = _after(budget, charge)


def _after(budget: Micros, charge: Charge | None) -> Micros:
    """Return the session's budget after a window: its path's if that is lower, or less the charge where charges add up."""
    if charge is None:
        return budget
    left = budget - charge.charge if charge.accumulate else min(budget, charge.ceiling - charge.charge)
    return Micros(max(0, left))


def _outcome(data: Mapping[str, Any], window: _Window) -> str:
    status = data.get("status")
    if status in {"HELD", "COMPLETED"}:
        return "held" if status == "HELD" else "delivered"
    return "halted" if window.halted else "refused"


def _accepted(so_far: Acceptance, directive: str) -> Acceptance:
    if directive.startswith(_ACCEPT_RISK) and directive[len(_ACCEPT_RISK) :] in RiskLevel.__members__:
        return so_far._replace(risk=RiskLevel[directive[len(_ACCEPT_RISK) :]])
    if directive.startswith(_ACCEPT_QUALITY):
        names = directive[len(_ACCEPT_QUALITY) :].split()
        return so_far._replace(quality=frozenset(Tier(name) for name in names if name in Tier.__members__))
    return so_far


def _breaker(name: object) -> BreakerState:
    return BreakerState[name] if isinstance(name, str) and name in BreakerState.__members__ else BreakerState.CLOSED


def _micros(text: object) -> Micros:
    try:
        return Micros(round(float(str(text)) * FULL))
    except (ValueError, OverflowError):
        return FULL


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
