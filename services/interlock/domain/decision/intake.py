"""What came in for one cycle, in an order that does not depend on when it came (SEED-5 §7, collect).

An answer is taken whole or not at all: with one malformed part nothing of it counts, and the rules of its role speak instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.domain.decision.agents import AgentDescriptor, AgentStanding, described
from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.proposals import ProposedAction, Refusal, read
from interlock.domain.decision.reading import canonical
from interlock.domain.decision.signals import Signal, admitted, kind_of
from interlock.domain.decision.words import Arrival, Speaker

MOST_GIVEN, MOST_CARRIED = 256, 256
LARGEST_ANSWER, LARGEST_ANSWERS = 65_536, 524_288
"""Characters of one answer, and of all answers of a cycle: each agent has an equal part, so that none crowds others out."""
HARMLESS = frozenset({"SIGNAL_DUPLICATE", "SIGNAL_CLOCK_PAST", "SIGNAL_CLOCK_FUTURE"})
"""Faults of a signal that do not make the whole answer unusable: it is left out, by name."""


@dataclass(frozen=True)
class RefusedSignal:
    """A signal that was left out."""

    source: str
    type: str
    reason: str

    def told(self) -> dict[str, str]:
        """Return it as JSON."""
        return {"source": self.source, "type": self.type, "reason": self.reason}


@dataclass(frozen=True)
class TakenAnswer:
    """What one agent's answer came to."""

    agent: AgentDescriptor
    standing: AgentStanding
    arrival: Arrival
    fault: str
    """Why nothing of it counts; empty where it does."""
    signals: Sequence[Signal]
    refused_signals: Sequence[RefusedSignal]
    proposals: Sequence[ProposedAction]
    refused: Sequence[Refusal]

    @property
    def is_usable(self) -> bool:
        """Whether the answer came in time and holds."""
        return self.arrival is Arrival.ANSWERED and not self.fault

    @property
    def speaker(self) -> Speaker:
        """Who speaks in this agent's place."""
        return self.standing.speaker if self.is_usable else Speaker.RULES


def normal(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a cycle in their one order: by agent's name, and by content within an agent."""
    agents = [
        {**one, "signals": _ordered(one["signals"]), "proposals": _ordered(one["proposals"])}
        for one in sorted(inputs["agents"], key=lambda one: str(one["descriptor"]["name"]))
    ]
    bus = {"bus": {**inputs["bus"], "signals": _ordered(inputs["bus"]["signals"])}} if "bus" in inputs else {}
    return {
        **inputs, **bus, "agents": agents, "given": _ordered(inputs["given"]), "carried": _ordered(inputs["carried"])
    }  # fmt: skip


def bounded(answer: Mapping[str, Any], rules: ExperimentRules, agents: int) -> dict[str, Any]:
    """Return an answer that is not more than one of so many agents may send; instead of one that is, its numbers alone."""
    signals, proposals = answer["signals"], answer["proposals"]
    few = len(signals) <= rules.whole("max_signals") and len(proposals) <= rules.whole("max_proposals")
    if few and len(canonical([signals, proposals])) <= min(LARGEST_ANSWER, LARGEST_ANSWERS // agents):
        return dict(answer)
    return {**answer, "signals": [], "proposals": [], "too_large": [len(signals), len(proposals)]}


def read_answer(told: Mapping[str, Any], rules: ExperimentRules, *, snapshot_hash: str, now_us: int) -> TakenAnswer:
    """Return what an agent's answer comes to. What it sent may be anything."""
    agent, standing = described(told["descriptor"], rules), AgentStanding.of(told["standing"])
    arrival = Arrival(told["arrival"])
    kept, left_out = read_signals(
        told["signals"], rules, source=agent.name, types=agent.outputs, now_us=now_us
    )  # fmt: skip
    proposals, refused = read(told["proposals"], agent.name, Speaker.AGENT)
    fault = ""
    if told.get("too_large"):
        fault = "ANSWER_TOO_LARGE"
    elif arrival is Arrival.ANSWERED and told["snapshot_hash"] != snapshot_hash:
        fault = "SNAPSHOT_STALE"
    elif refused or any(one.reason not in HARMLESS for one in left_out):
        fault = "ANSWER_UNUSABLE"
    came = arrival is Arrival.ANSWERED
    speaks = came and not fault and standing.speaker is Speaker.AGENT
    if not speaks:
        reason = fault or ("AGENT_ON_PROBATION" if came else "ANSWER_NOT_IN_TIME")
        refused = [*refused, *(Refusal(agent.name, one.id, reason, "INTAKE") for one in proposals)]
        left_out = [*left_out, *(RefusedSignal(agent.name, one["type"], reason) for one in kept)]
    return TakenAnswer(
        agent, standing, arrival, fault, kept if speaks else (), left_out, proposals if speaks else (), refused
    )


def read_signals(
    raw: Sequence[Any], rules: ExperimentRules, *, source: str, types: Sequence[str], now_us: int
) -> tuple[list[Signal], list[RefusedSignal]]:
    """Return the admitted signals of one sender, the oldest first, and the others by name."""
    found: dict[str, Signal] = {}
    left_out: list[RefusedSignal] = []
    for one in raw:
        signal, fault = admitted(one, rules, source=source, types=types, now_us=now_us)
        if signal is not None and signal["id"] in found:
            signal, fault = None, "SIGNAL_DUPLICATE"
        if signal is None:
            left_out.append(RefusedSignal(source, kind_of(one), fault))
        else:
            found[signal["id"]] = signal
    return by_age(found.values()), sorted(left_out, key=lambda one: (one.type, one.reason))


def by_age(signals: Any) -> list[Signal]:
    """Return signals, the oldest first."""
    return sorted(signals, key=lambda one: (one["at_us"], one["id"]))


def _ordered(raw: Sequence[Any]) -> list[Any]:
    return sorted(raw, key=canonical)
