"""The six guards (SEED-5 §8). A guard that lacks a figure blocks: what is not known is not allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.proposals import ProposedAction, effective_risk
from interlock.domain.decision.words import ActionRisk

MOST_REMEMBERED = 64


@dataclass(frozen=True)
class GuardView:
    """What the guards look at: the cycle, the snapshot, and in which cycles which action was accepted."""

    rules: ExperimentRules
    cycle: int
    snapshot: Mapping[str, Any]
    accepted: Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class GuardCheck:
    """One guard on one proposal. *fault* is empty where it passed."""

    place: str
    guard: str
    figures: str
    fault: str

    @property
    def line(self) -> str:
        """The check in words, with its figures."""
        return f"{self.place} {self.guard}: {self.figures}: {self.fault or 'ok'}"


def guarded(one: ProposedAction, view: GuardView) -> list[GuardCheck]:
    """Return every guard that this proposal passes through, in a fixed order."""
    named = view.rules.actions[one.action].guards
    checks = {
        "budget": _budget, "mutation": _mutation, "stability": _stability, "risk": _risk, "loop": _loop, "cooldown": _cooldown,
    }  # fmt: skip
    found = []
    for guard, check in checks.items():
        if guard in {"risk", "loop"} or guard in named:
            figures, fault = check(one, view)
            found.append(GuardCheck(one.place, guard, figures, fault))
    return found


def remembered(accepted: Mapping[str, Sequence[int]], action: str, cycle: int) -> dict[str, list[int]]:
    """Return the memory of the guards after an action was accepted."""
    cycles = {name: list(one) for name, one in accepted.items()}
    cycles[action] = [*cycles.get(action, []), cycle][-MOST_REMEMBERED:]
    return cycles


def _budget(one: ProposedAction, view: GuardView) -> tuple[str, str]:
    budget = view.snapshot.get("budget")
    limit, used = (_figure(budget.get(name)) if isinstance(budget, dict) else None for name in ("limit", "used"))
    if limit is None or used is None:
        return "the snapshot names no budget", "BUDGET_UNKNOWN"
    rules = view.rules.actions[one.action]
    units = _figure(one.parameters.get(rules.cost_parameter)) if rules.cost_parameter else 0.0
    if units is None or units < 0:
        return f"{rules.cost_parameter} is not a number of 0 or more", "BUDGET_COST_UNKNOWN"
    cost, left = units * rules.cost_per_unit, limit - used
    fits = left > 0 and cost <= left
    return f"costs {cost:g}, {left:g} of {limit:g} is left", "" if fits else "BUDGET_EXCEEDED"


def _mutation(one: ProposedAction, view: GuardView) -> tuple[str, str]:
    shrink, diversity = (_figure(one.parameters.get(name)) for name in ("shrink_percent", "diversity"))
    if shrink is None or diversity is None:
        return "shrink_percent or diversity is not named", "MUTATION_UNSTATED"
    most, least = view.rules.limits["max_shrink_percent"], view.rules.limits["min_diversity"]
    figures = f"shrinks by {shrink:g} % of {most:g} %, diversity {diversity:g} of {least:g}"
    if not 0 <= shrink <= most:
        return figures, "MUTATION_SHRINK"
    return figures, "" if diversity >= least else "MUTATION_DIVERSITY"


def _stability(_one: ProposedAction, view: GuardView) -> tuple[str, str]:
    active = view.snapshot.get("trial_active")
    if not isinstance(active, bool):
        return "the snapshot does not tell whether a trial runs", "STABILITY_UNKNOWN"
    return ("a trial runs", "STABILITY_TRIAL_ACTIVE") if active else ("no trial runs", "")


def _risk(one: ProposedAction, view: GuardView) -> tuple[str, str]:
    risk, least = effective_risk(one, view.rules), view.rules.confidence("high_risk_confidence")
    blocked = risk >= ActionRisk.HIGH and one.confidence < least
    return f"{risk.name}, confidence {one.confidence}, HIGH needs {least}", "RISK_CONFIDENCE" if blocked else ""


def _loop(one: ProposedAction, view: GuardView) -> tuple[str, str]:
    rules, most = view.rules.actions[one.action], view.rules.whole("max_cycles")
    blocked = view.cycle > most and not (rules.neutral or rules.emergency)
    return f"cycle {view.cycle} of {most}", "LOOP_EXHAUSTED" if blocked else ""


def _cooldown(one: ProposedAction, view: GuardView) -> tuple[str, str]:
    cycles, rules = view.accepted.get(one.action, []), view.rules
    pause, window, most = (
        rules.whole(name) for name in ("cooldown_cycles", "frequency_window_cycles", "max_in_window")
    )
    recent = sum(cycle > view.cycle - window for cycle in cycles)
    since = view.cycle - max(cycles) if cycles else None
    figures = f"{recent} of {most} in {window} cycles, the last {'never' if since is None else f'{since} cycles ago'}"
    if since is not None and since <= pause:
        return figures, "COOLDOWN_ACTIVE"
    return figures, "COOLDOWN_FREQUENCY" if recent >= most else ""


def _figure(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
