"""Whether each rule earns its place: how often it fires on unfaithful and on faithful answers of sets that no rule was tuned on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.quality.engine import Judged
from bench.quality.plan import Job
from bench.quality.rows import ENTAILED
from bench.quality.sets import BY_NAME
from interlock.domain.risk.risk import RiskLevel
from interlock.domain.risk.strictness import LabelledVerdict, OperatingPoint, operating_points

EARNS_FROM = 3.0
LEAST_FIRES = 10
_SLOTS = frozenset(
    [
        "agent",
        "object",
        "recipient",
        "beneficiary",
        "source",
        "place",
        "when",
        "said-by",
        "cause",
        "order",
        "predicate",
        "condition",
        "quantifier",
        "partner",
        "value",
        "certainty",
        "conversion",
        "role",
        "to",
        "from",
        "for",
        "in",
        "on",
        "at",
        "by",
        "with",
        "than",
    ]
)
"""The slots that have a name of ours; any other is the column of a table, whose name is the row's own."""
_Z = 1.959964
_NAMES = {1: RiskLevel.LOW, 2: RiskLevel.MEDIUM, 3: RiskLevel.HIGH, 4: RiskLevel.CRITICAL}


@dataclass(frozen=True)
class Rule:
    """A floor or a kind of finding: how many unfaithful and faithful answers have it, of how many."""

    name: str
    unfaithful: int
    of_unfaithful: int
    faithful: int
    of_faithful: int

    @property
    def ratio(self) -> float:
        """How many times as often it fires on unfaithful answers, half an answer added to each count."""
        return ((self.unfaithful + 0.5) / (self.of_unfaithful + 1)) / ((self.faithful + 0.5) / (self.of_faithful + 1))

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, by the logarithm of the ratio."""
        error = math.sqrt(
            1 / (self.unfaithful + 0.5)
            - 1 / (self.of_unfaithful + 1)
            + 1 / (self.faithful + 0.5)
            - 1 / (self.of_faithful + 1)
        )
        return self.ratio * math.exp(-_Z * error), self.ratio * math.exp(_Z * error)

    @property
    def verdict(self) -> str:
        """What the ratio says, in words."""
        if self.unfaithful + self.faithful < LEAST_FIRES:
            return "too few to tell"
        return "yes" if self.ratio >= EARNS_FROM else "**no**"


def untuned(jobs: Mapping[str, Job]) -> list[tuple[bool, Judged]]:
    """Return label and verdict of every answer of the sets that nothing was trained or tuned on."""
    found: list[tuple[bool, Judged]] = []
    for name, job in jobs.items():
        group, _, known = name.partition(":")
        about = BY_NAME.get(known)
        fresh = name == "everyday" or (about is not None and not about.trained and not about.unseen)
        if group not in {"everyday", "responses", "reports"} or not fresh:
            continue
        for row, one in zip(job.done, job.results, strict=True):
            told = one.get("report") if isinstance(one, dict) else one
            if told is not None:
                found.append((row.label == ENTAILED, told))
    return found


def fired(one: Judged) -> frozenset[str]:
    """Return the floors, the types of distortion and the slots of one report."""
    kinds = [
        ("fabrication", one.fabrications),
        ("contradiction", one.contradictions),
        ("misattribution", one.misattributions),
    ]
    return frozenset(
        [
            *one.floors,
            *(f"distortion {kind}" for kind in one.types),
            *(f"slot {slot}" if slot in _SLOTS else "slot column" for slot in one.slots),
            *(name for name, count in kinds if count),
        ]
    )


def rules(told: Sequence[tuple[bool, Judged]]) -> list[Rule]:
    """Return every rule that fired, the ones with most fires first."""
    names = sorted({name for _, one in told for name in fired(one)})
    good = [fired(one) for faithful, one in told if faithful]
    bad = [fired(one) for faithful, one in told if not faithful]
    found = [
        Rule(name, sum(name in one for one in bad), len(bad), sum(name in one for one in good), len(good))
        for name in names
    ]
    return sorted(found, key=lambda one: (-(one.unfaithful + one.faithful), one.name))


def points(told: Sequence[tuple[bool, Judged]]) -> tuple[OperatingPoint, ...]:
    """Return how each setting of the strictness does on the same answers."""
    return operating_points(
        [
            LabelledVerdict(faithful, _NAMES.get(one.level, RiskLevel.CRITICAL), one.cannot_tell)
            for faithful, one in told
        ]
    )


def table(jobs: Mapping[str, Job]) -> dict[str, Any]:
    """Return rules and operating points, over all sets and over the everyday answers alone."""
    everyday = untuned({name: job for name, job in jobs.items() if name == "everyday"})
    every = untuned(jobs)
    return {
        "rules": [
            {"name": r.name, "unfaithful": r.unfaithful, "of_unfaithful": r.of_unfaithful, "faithful": r.faithful,
             "of_faithful": r.of_faithful, "ratio": round(r.ratio, 2), "low": round(r.interval[0], 2),
             "high": round(r.interval[1], 2), "earns": r.verdict}
            for r in rules(every)
        ],
        "points": {"everyday answers, held back": points(everyday), "all sets that nothing was tuned on": points(every)},
        "sets": sorted({name for name in jobs if untuned({name: jobs[name]})}),
    }  # fmt: skip
