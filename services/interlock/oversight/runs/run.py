"""What the page of a run shows, from sealed traces alone. Each trace is decided again here, so that the page says whether it replays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from interlock.domain.decision import engine
from interlock.domain.decision.definition import ExperimentRules, defined
from interlock.domain.decision.replay import replayed
from interlock.domain.decision.signals import Signal


@dataclass(frozen=True)
class ShownProposal:
    """A proposal and what became of it."""

    said: Mapping[str, Any]
    score: float | None
    outcome: str
    """``ACCEPTED``, or the step that rejected it."""
    reason: str
    guards: Sequence[str]

    @property
    def parameters(self) -> str:
        """As JSON."""
        return json.dumps(self.said["parameters"], ensure_ascii=False)

    @property
    def confidence(self) -> float:
        """From 0 to 1."""
        return float(self.said["confidence_micros"]) / 1_000_000


@dataclass(frozen=True)
class ShownCycle:
    """One decided cycle."""

    trace: Mapping[str, Any]
    rules: ExperimentRules
    replays: bool

    @property
    def number(self) -> int:
        """Its place in the experiment, from 1."""
        return int(self.trace["cycle"])

    @property
    def at_us(self) -> int:
        """When it was decided, microseconds since the Unix epoch."""
        return int(self.trace["inputs"]["at_us"])

    @property
    def outcome(self) -> str:
        """What was decided."""
        return str(self.trace["outcome"])

    @cached_property
    def signals(self) -> Sequence[Signal]:
        """What the proposing agents heard."""
        return engine.heard(self.rules, self.trace["inputs"])

    @property
    def proposals(self) -> Sequence[ShownProposal]:
        """Those that were considered, as they were told, and those that could not be read."""
        rejected = {(one["agent"], one["proposal_id"]): one for one in self.trace["rejected"]}
        return [self._shown(one, rejected.get((one["agent"], one["id"]))) for one in self.trace["proposals_considered"]]

    @property
    def unread(self) -> Sequence[Mapping[str, Any]]:
        """Rejections of what was no proposal at all."""
        known = {(one["agent"], one["id"]) for one in self.trace["proposals_considered"]}
        return [one for one in self.trace["rejected"] if (one["agent"], one["proposal_id"]) not in known]

    def _shown(self, said: Mapping[str, Any], rejected: Mapping[str, Any] | None) -> ShownProposal:
        place = f"{said['agent']}/{said['id']}"
        score, chosen = self.trace["scores"].get(place), self.trace["chosen"]
        accepted = chosen is not None and (chosen["agent"], chosen["id"]) == (said["agent"], said["id"])
        return ShownProposal(
            said, None if score is None else score / 1_000_000,
            "ACCEPTED" if accepted else str(rejected["outcome"]) if rejected else "OUTSCORED",
            str(rejected["reason"]) if rejected else "",
            [line.removeprefix(f"{place} ") for line in self.trace["guardrail_checks"] if line.startswith(f"{place} ")],
        )  # fmt: skip


@dataclass(frozen=True)
class ShownRun:
    """The cycles of an experiment, the first first."""

    experiment: str
    cycles: Sequence[ShownCycle]

    @property
    def same(self) -> int:
        """How many traces were decided the same way again, to the byte."""
        return sum(one.replays for one in self.cycles)

    @property
    def outcomes(self) -> Sequence[tuple[str, int]]:
        """How often each was decided, the most frequent first."""
        return Counter(one.outcome for one in self.cycles).most_common()

    @property
    def agents(self) -> Sequence[str]:
        """Every agent of the run."""
        return sorted({one["agent"] for cycle in self.cycles for one in cycle.trace["agents"]})

    @property
    def signal_types(self) -> Sequence[str]:
        """Every type that was heard."""
        return sorted({one["type"] for cycle in self.cycles for one in cycle.signals})


def run_of(experiment: str, sealed: Sequence[tuple[str, str]]) -> ShownRun:
    """Return the run of definitions and traces, as they were sealed."""
    return ShownRun(experiment, [shown_cycle(definition, trace) for definition, trace in sealed])


def shown_cycle(definition: str, trace: str) -> ShownCycle:
    """Return one cycle, decided again."""
    return ShownCycle(json.loads(trace), defined(definition), replayed(definition, trace).is_same)
