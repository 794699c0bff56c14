"""What an experiment is: its actions, signal types, roles, limits and the rules that speak for a silent agent. All of it is data.

The engine knows no action, no role and no signal by name: a profile has them (``interlock/decision/profiles``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.domain.decision import reading
from interlock.domain.decision.schema import schema_fault
from interlock.domain.decision.words import ActionRisk
from interlock.domain.errors import Refused, invalid

LARGEST_DEFINITION, LARGEST_SCHEMA = 24_000, 4_096
MOST_ACTIONS, MOST_SIGNALS, MOST_ROLES, MOST_RULES = 64, 64, 16, 64
GUARDS = ("budget", "mutation", "stability", "cooldown")
"""Guards that an action names. Risk and loop guard every action."""

LIMITS: Mapping[str, tuple[float, float, float]] = {
    "min_confidence": (0.3, 0.0, 1.0), "high_risk_confidence": (0.8, 0.0, 1.0),
    "max_shrink_percent": (50.0, 0.0, 100.0), "min_diversity": (0.2, 0.0, 1.0),
    "max_cycles": (1_000, 1, 1_000_000), "cooldown_cycles": (3, 0, 10_000),
    "frequency_window_cycles": (20, 1, 10_000), "max_in_window": (3, 1, 64),
    "deadline_ms": (2_000, 10, 20_000), "fail_after": (3, 1, 100), "probation_after": (5, 0, 10_000),
    "probation_answers": (2, 1, 100), "max_signal_age_s": (3_600, 1, 31_536_000),
    "max_signals": (64, 1, 256), "max_proposals": (16, 1, 64), "bus_signals": (10_000, 256, 1_000_000),
}  # fmt: skip
"""Limit → default, least, most. docs/decision.md says what each does."""
_PERMIT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}", re.ASCII)
_FRACTIONS = frozenset({"min_confidence", "high_risk_confidence"})
_FIGURES = frozenset({"max_shrink_percent", "min_diversity"})


@dataclass(frozen=True)
class ActionRules:
    """What is known of an action. *risk* is the least that it has: a proposal cannot make it harmless by saying so."""

    risk: ActionRisk
    guards: Sequence[str]
    neutral: bool
    """Whether it changes nothing, such as CONTINUE."""
    emergency: bool
    """Whether it stops things: an agent with VETO may propose it, and the loop guard lets it pass."""
    cost_parameter: str
    """The parameter that the budget guard multiplies with *cost_per_unit*; empty: it costs nothing."""
    cost_per_unit: float
    cost_resource: str = ""
    """The kernel's resource of which the permit has to hold that cost; empty: none."""
    permit: str = ""
    """The kernel's action that is permitted when this one is accepted; empty: none."""


@dataclass(frozen=True)
class KernelAddress:
    """The shared kernel of an experiment, and the child of it that is charged; empty: the kernel itself."""

    kernel: str
    child: str


@dataclass(frozen=True)
class RolePolicy:
    """One rule of a role: on a signal of that type it proposes."""

    role: str
    signal: str
    least_confidence: int
    proposal: Mapping[str, str]
    """As an agent would have sent it."""


@dataclass(frozen=True)
class ExperimentRules:
    """A checked definition. *text* is its canonical JSON."""

    text: str
    actions: Mapping[str, ActionRules]
    signals: Mapping[str, Mapping[str, Any]]
    roles: Mapping[str, int]
    rules: Sequence[RolePolicy]
    limits: Mapping[str, float]
    kernel: KernelAddress | None = None

    def having(self, types: Mapping[str, Any]) -> ExperimentRules:
        """Return the rules with types of signals that were registered later. The hash stays that of the definition."""
        return replace(self, signals={**self.signals, **types}) if types else self

    @property
    def hash(self) -> str:
        """SHA-256 of the definition, 64 hex digits."""
        return reading.digest(self.text)

    def whole(self, name: str) -> int:
        """Return a limit that counts."""
        return int(self.limits[name])

    def confidence(self, name: str) -> int:
        """Return a limit that is a confidence, millionths."""
        return reading.micros(self.limits[name])


def defined(text: str) -> ExperimentRules:
    """Return the rules of a definition's JSON. Refused with DECISION_DEFINITION_INVALID and the *part* that is wrong."""
    told = reading.json_object(text, LARGEST_DEFINITION)
    if told is None:
        raise _wrong("definition", f"it is a JSON object of at most {LARGEST_DEFINITION} bytes")
    if len(reading.canonical(told)) > LARGEST_DEFINITION + LARGEST_DEFINITION // 6:
        raise _wrong("definition", "its canonical JSON, in ASCII, is too long")
    _known(told, {"actions", "signals", "roles", "rules", "limits", "kernel"}, "definition")
    actions = {name: _action(name, one) for name, one in _objects(told, "actions", MOST_ACTIONS)}
    signals = {name: _signal(name, one) for name, one in _objects(told, "signals", MOST_SIGNALS)}
    roles = _roles(told.get("roles"))
    if not actions or not roles:
        raise _wrong("actions" if not actions else "roles", "at least one is needed")
    kernel = _kernel(told.get("kernel"))
    if permits := [name for name, one in actions.items() if one.permit and kernel is None]:
        raise _wrong(f"actions.{permits[0]}", "a permit needs a kernel")
    if both := sorted(set(actions) & set(signals)):
        raise _wrong("signals", f"{both[0]} is an action too")
    rules = [_rule(one, actions, signals, roles) for one in _rules(told.get("rules", []))]
    return ExperimentRules(
        reading.canonical(told), actions, signals, roles, rules, _limits(told.get("limits", {})), kernel
    )


def _objects(told: Mapping[str, Any], part: str, most: int) -> Sequence[tuple[str, Any]]:
    found = told.get(part, {})
    if not isinstance(found, dict) or len(found) > most or not all(map(reading.is_name, found)):
        raise _wrong(part, f"it is an object of at most {most} names")
    return list(found.items())


def _action(name: str, one: Any) -> ActionRules:
    part = f"actions.{name}"
    _known(one, {"risk", "guards", "neutral", "emergency", "cost", "permit"}, part)
    if one.get("risk") not in ActionRisk.__members__:
        raise _wrong(part, "risk is LOW, MEDIUM, HIGH or CRITICAL")
    guards = one.get("guards", [])
    if not isinstance(guards, list) or not all(guard in GUARDS for guard in guards):
        raise _wrong(part, f"guards are of {', '.join(GUARDS)}")
    flags = [one.get(flag, False) for flag in ("neutral", "emergency")]
    if not all(isinstance(flag, bool) for flag in flags):
        raise _wrong(part, "neutral and emergency are true or false")
    cost = one.get("cost", {})
    _known(cost, {"parameter", "per_unit", "resource"}, f"{part}.cost")
    parameter, per_unit = cost.get("parameter", ""), cost.get("per_unit", 1)
    resource, permit = cost.get("resource", ""), one.get("permit", "")
    if (permit and not _PERMIT.fullmatch(str(permit))) or (permit and flags[0]):
        raise _wrong(part, "permit is the id of a kernel's action, of an action that is not neutral")
    if resource and not (permit and reading.is_name(resource)):
        raise _wrong(f"{part}.cost", "resource is a name, and needs a permit")
    if (cost and not reading.is_name(parameter)) or not _is_number(per_unit) or per_unit < 0:
        raise _wrong(f"{part}.cost", "it has the name of a parameter, and per_unit of 0 or more")
    return ActionRules(
        ActionRisk[one["risk"]], guards, flags[0], flags[1], parameter, float(per_unit), resource, permit
    )


def _kernel(told: Any) -> KernelAddress | None:
    if told is None:
        return None
    _known(told, {"name", "child"}, "kernel")
    name, child = told.get("name"), told.get("child", "")
    if not reading.is_name(name) or (child and not reading.is_name(child)):
        raise _wrong("kernel", "it has the name of a kernel, and of a child")
    return KernelAddress(name, child)


def signal_schema(text: str) -> Mapping[str, Any]:
    """Return the schema of a payload. Refused with DECISION_SIGNAL_INVALID; references are not known, wherever they lead."""
    schema = reading.json_object(text, LARGEST_SCHEMA)
    fault = "it is a JSON object of at most 4,096 bytes" if schema is None else schema_fault(schema)
    if schema is None or fault or schema["type"] != "object":
        raise invalid("DECISION_SIGNAL_INVALID", f"the schema of a payload: {fault or 'it is an object'}")
    return schema


def _signal(name: str, schema: Any) -> Mapping[str, Any]:
    fault = schema_fault(schema)
    if fault or schema["type"] != "object":
        raise _wrong(f"signals.{name}", fault or "a payload is an object")
    return dict(schema)


def _roles(told: Any) -> Mapping[str, int]:
    if not isinstance(told, dict) or len(told) > MOST_ROLES or not all(map(reading.is_name, told)):
        raise _wrong("roles", f"it is an object of at most {MOST_ROLES} names")
    for name, priority in told.items():
        if not isinstance(priority, int) or isinstance(priority, bool) or not 1 <= priority <= 1_000:
            raise _wrong(f"roles.{name}", "a priority is from 1 to 1000")
    return told


def _rules(told: Any) -> Sequence[Any]:
    if not isinstance(told, list) or len(told) > MOST_RULES:
        raise _wrong("rules", f"it is a list of at most {MOST_RULES}")
    return told


def _rule(one: Any, actions: Mapping[str, Any], signals: Mapping[str, Any], roles: Mapping[str, Any]) -> RolePolicy:
    texts = ("action", "target", "rationale", "expected_effect")
    _known(one, {"role", "signal", "least_confidence", "confidence", "parameters", *texts}, "rules")
    known = one.get("role") in roles and one.get("signal") in signals and one.get("action") in actions
    if not known or not all(reading.is_line(one.get(name, "")) for name in texts):
        raise _wrong("rules", "a rule names a role, a signal and an action of the definition")
    least, own = (one.get(name, 0) for name in ("least_confidence", "confidence"))
    if not all(_is_number(value) and 0 <= value <= 1 for value in (least, own)):
        raise _wrong("rules", "confidences are from 0 to 1")
    if not isinstance(one.get("parameters", {}), dict):
        raise _wrong("rules", "parameters are an object")
    proposal = {
        "action": one["action"], "risk": actions[one["action"]].risk.name, "confidence": repr(float(own)),
        "parameters_json": reading.canonical(one.get("parameters", {})),
        **{name: one.get(name, "") for name in ("target", "rationale", "expected_effect")},
    }  # fmt: skip
    return RolePolicy(one["role"], one["signal"], reading.micros(float(least)), proposal)


def _limits(told: Any) -> Mapping[str, float]:
    _known(told, set(LIMITS), "limits")
    found: dict[str, float] = {}
    for name, (default, least, most) in LIMITS.items():
        value = told.get(name, default)
        counts = name not in _FRACTIONS | _FIGURES
        if not _is_number(value) or not least <= value <= most or (counts and value != int(value)):
            raise _wrong(f"limits.{name}", f"it is from {least:g} to {most:g}")
        found[name] = float(value)
    return found


def _known(told: Any, names: set[str], part: str) -> None:
    if not isinstance(told, dict):
        raise _wrong(part, "it is an object")
    if unknown := sorted(set(told) - names):
        raise _wrong(part, f"{unknown[0][:64]} is not known")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong(part: str, why: str) -> Refused:
    return invalid("DECISION_DEFINITION_INVALID", f"{part}: {why}", part=part)
