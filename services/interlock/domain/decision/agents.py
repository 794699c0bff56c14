"""Agents as they are declared, and how they stand: ACTIVE, DEGRADED, FAILED, PROBATION (SEED-5 §3, §12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.reading import is_line, is_name
from interlock.domain.decision.words import ActionRisk, AgentAuthority, AgentStatus, Arrival, Speaker
from interlock.domain.errors import Refused, invalid

MOST_AGENTS, MOST_PORTS, LONGEST_VERSION = 128, 64, 64
ALL = "*"
"""As an input: every signal."""


@dataclass(frozen=True)
class AgentDescriptor:
    """What an agent declares. *outputs* are the signals that it emits and the actions that it proposes."""

    name: str
    role: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    authority: AgentAuthority
    risk: ActionRisk
    """The most that its proposals may risk."""
    version: str

    def told(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "name": self.name, "role": self.role, "inputs": list(self.inputs), "outputs": list(self.outputs),
            "authority": self.authority.name, "risk": self.risk.name, "version": self.version,
        }  # fmt: skip

    def hears(self, kind: str) -> bool:
        """Return whether it declared signals of a type as an input."""
        return kind in self.inputs or ALL in self.inputs


def described(told: Mapping[str, Any], rules: ExperimentRules) -> AgentDescriptor:
    """Return a checked descriptor. Refused with DECISION_DESCRIPTOR_INVALID and the *field*."""
    if not is_name(told.get("name")):
        raise _wrong("name", "1 to 64 letters, digits, dots, hyphens or underscores")
    if told.get("role") not in rules.roles:
        raise _wrong("role", f"one of {', '.join(rules.roles)}")
    inputs, outputs = told.get("inputs", []), told.get("outputs", [])
    for field, found, known in (
        ("inputs", inputs, {*rules.signals, ALL}), ("outputs", outputs, {*rules.signals, *rules.actions}),
    ):  # fmt: skip
        if not isinstance(found, list | tuple) or len(found) > MOST_PORTS or not all(one in known for one in found):
            raise _wrong(field, "names of the experiment's definition")
    if told.get("authority") not in AgentAuthority.__members__:
        raise _wrong("authority", "OBSERVE, SUGGEST, PROPOSE or VETO")
    if told.get("risk") not in ActionRisk.__members__:
        raise _wrong("risk", "LOW, MEDIUM, HIGH or CRITICAL")
    if not is_line(told.get("version"), LONGEST_VERSION) or not told["version"]:
        raise _wrong("version", f"1 to {LONGEST_VERSION} characters")
    return AgentDescriptor(
        told["name"], told["role"], tuple(inputs), tuple(outputs),
        AgentAuthority[told["authority"]], ActionRisk[told["risk"]], told["version"],
    )  # fmt: skip


@dataclass(frozen=True)
class AgentStanding:
    """How an agent stands before a cycle."""

    status: AgentStatus = AgentStatus.ACTIVE
    failures: int = 0
    """Missing or unusable answers in a row."""
    good: int = 0
    """Usable answers in a row, on probation."""
    waited: int = 0
    """Cycles since it failed."""

    def told(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"status": str(self.status), "failures": self.failures, "good": self.good, "waited": self.waited}

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> AgentStanding:
        """Read what ``told`` returned."""
        return cls(AgentStatus(told["status"]), told["failures"], told["good"], told["waited"])

    @property
    def is_asked(self) -> bool:
        """Whether it is given a task in the next cycle."""
        return self.status is not AgentStatus.FAILED

    @property
    def speaker(self) -> Speaker:
        """Who speaks for it when its answer is usable."""
        return Speaker.AGENT if self.status in {AgentStatus.ACTIVE, AgentStatus.DEGRADED} else Speaker.RULES

    def after(self, arrival: Arrival, *, usable: bool, rules: ExperimentRules) -> AgentStanding:
        """Return how it stands after a cycle."""
        if self.status is AgentStatus.FAILED:
            waited, due = self.waited + 1, rules.whole("probation_after")
            if due and waited >= due:
                return AgentStanding(AgentStatus.PROBATION)
            return replace(self, waited=waited)
        if arrival is Arrival.ANSWERED and usable:
            good = self.good + 1
            waits = self.status is AgentStatus.PROBATION and good < rules.whole("probation_answers")
            return AgentStanding(AgentStatus.PROBATION, good=good) if waits else AgentStanding()
        failures = self.failures + 1
        failed = self.status is AgentStatus.PROBATION or failures >= rules.whole("fail_after")
        return AgentStanding(AgentStatus.FAILED if failed else AgentStatus.DEGRADED, failures)


def _wrong(field: str, why: str) -> Refused:
    return invalid("DECISION_DESCRIPTOR_INVALID", f"{field}: {why}", field=field)
