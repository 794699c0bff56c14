"""The six guards (SEED-5 §8). A guard that lacks a figure blocks: what is not known is not allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from interlock.domain.decision.definition import ActionRules, ExperimentRules
from interlock.domain.decision.proposals import ProposedAction, effective_risk
from interlock.domain.decision.reading import UNIT
from interlock.domain.decision.words import ActionRisk

MOST_REMEMBERED = 64


@dataclass(frozen=True)
class GuardView:
    """What the guards look at: the cycle, the snapshot, and in which cycles which action was accepted."""

    rules: ExperimentRules
    cycle: int
    snapshot: Mapping[str, Any]
    accepted: Mapping[str, Sequence[int]]
    kernel: Mapping[str, Any] = field(default_factory=dict)
    """The shared kernel as it stood before the decision: what is left of its resources, and what its actions cost, micros."""
    permits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the kernel answered when this decision asked it to reserve, by the kernel's action."""


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
    rules = view.rules.actions[one.action]
    named = {*rules.guards, "budget"} if rules.permit else {*rules.guards}
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
    if view.rules.actions[one.action].permit:
        return _permit(one, view)
    budget = view.snapshot.get("budget")
    limit, used = (_figure(budget.get(name)) if isinstance(budget, dict) else None for name in ("limit", "used"))
    if limit is None or used is None:
        return "the snapshot names no budget", "BUDGET_UNKNOWN"
    rules = view.rules.actions[one.action]
    units = _units(one, rules)
    if units is None:
        return f"{rules.cost_parameter} is not a number of 0 or more", "BUDGET_COST_UNKNOWN"
    cost, left = units * rules.cost_per_unit, limit - used
    fits = left > 0 and cost <= left
    return f"costs {cost:g}, {left:g} of {limit:g} is left", "" if fits else "BUDGET_EXCEEDED"


def _permit(one: ProposedAction, view: GuardView) -> tuple[str, str]:
    """Check an action that the shared kernel has to permit: what the snapshot says of a budget is not asked."""
    rules, kernel = view.rules.actions[one.action], view.kernel
    if fault := kernel.get("fault", "KERNEL_NOT_ASKED"):
        return f"the kernel gives no figures: {fault}", "BUDGET_KERNEL_UNAVAILABLE"
    place = f"{kernel['name']}/{kernel['child']}" if kernel["child"] else kernel["name"]
    costs, units = kernel["costs"].get(rules.permit), _units(one, rules)
    if costs is None:
        return f"{place} knows no action {rules.permit}", "BUDGET_KERNEL_ACTION_UNKNOWN"
    if units is None:
        return f"{rules.cost_parameter} is not a number of 0 or more", "BUDGET_COST_UNKNOWN"
    held, answer = kernel["remaining"], view.permits.get(rules.permit)
    told = ", ".join(f"{name} {costs[name]} of {held.get(name, 0)}" for name in sorted(costs)) or "nothing"
    figures = f"{place} {rules.permit} costs {told} micros"
    wanted = units * rules.cost_per_unit * UNIT if rules.cost_resource else 0.0
    if rules.cost_resource:
        figures += f", proposed {wanted:g} {rules.cost_resource}"
    if answer is not None:
        figures += f", {answer['key']} record {answer['sequence']} {answer['reason']}".rstrip()
    faults = (
        (kernel["stopped"], "BUDGET_KERNEL_STOPPED"),
        (wanted > costs.get(rules.cost_resource, 0), "BUDGET_ABOVE_PERMIT"),
        (any(amount > held.get(name, 0) for name, amount in costs.items()), "BUDGET_EXCEEDED"),
        (answer is not None and not answer["approved"], "BUDGET_PERMIT_REFUSED"),
    )
    return figures, next((fault for broken, fault in faults if broken), "")


def _units(one: ProposedAction, rules: ActionRules) -> float | None:
    """Return how many units a proposal costs; ``None`` where it does not say so."""
    units = _figure(one.parameters.get(rules.cost_parameter)) if rules.cost_parameter else 0.0
    return units if units is not None and units >= 0 else None


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
