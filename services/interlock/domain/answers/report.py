"""Whether a report of the analysis is consistent: an analysis that contradicts itself is none (I10, A-40, A-52)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interlock.domain.risk.risk import classify

STAGES = frozenset({"1", "2", "3a", "3b", "3c", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13"})
"""Stages of the analysis (SPEC-005 §2). A report names each of them."""

OPTIONAL = frozenset({"6", "7", "8", "9", "10", "12"})
"""Stages that may be named as not run. Their signals are absent then, and a policy that needs one is broken by that."""

_SLACK = 1e-9
"""Rounding of a score that is a weighted sum."""


@dataclass(frozen=True, slots=True)
class ScoredChoice:
    """The risk of one choice. *level* is the number of a ``RiskLevel``."""

    index: int
    composite: float
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFigures:
    """What a report says of itself."""

    described: ScoredChoice
    """The choice that the report describes, with the risk of the report."""
    choices: Sequence[ScoredChoice]
    """All choices; empty: there is one."""
    scores: Mapping[str, float]
    """Every score from 0.0 to 1.0, by field."""
    stages: Sequence[tuple[str, bool]]
    """Each stage that is named, and whether it ran."""
    counts: Mapping[str, tuple[int, int]]
    """Field → the number that the report tells, and the number that it lists."""
    results: Mapping[str, str]
    """Each result that is there → the stage that it comes from."""


def report_fault(report: ReportFigures) -> str:
    """Return what does not hold in a report: SCORE_RANGE, RISK_LEVEL, CHOICES, STAGES or COUNTS; empty where all holds."""
    if not all(-_SLACK <= score <= 1.0 + _SLACK for score in report.scores.values()):  # false for NaN too
        return "SCORE_RANGE"
    rated = (report.described, *report.choices)
    if not all(_in_class(choice) for choice in rated):
        return "RISK_LEVEL"
    if not _describes_the_worst(report):
        return "CHOICES"
    if not _stages_hold(report):
        return "STAGES"
    return "" if all(told == listed for told, listed in report.counts.values()) else "COUNTS"


def _in_class(choice: ScoredChoice) -> bool:
    in_range = math.isfinite(choice.composite) and 0.0 <= choice.composite <= 1.0
    return in_range and choice.level == classify(choice.composite)


def _describes_the_worst(report: ReportFigures) -> bool:
    indices = [choice.index for choice in report.choices]
    if len(set(indices)) != len(indices):
        return False
    return not report.choices or (
        report.described in report.choices
        and all(choice.composite <= report.described.composite for choice in report.choices)
    )


def _stages_hold(report: ReportFigures) -> bool:
    named = [number for number, _ in report.stages]
    ran = {number for number, has_run in report.stages if has_run}
    if len(set(named)) != len(named) or not set(named) >= STAGES:
        return False
    return ran >= STAGES - OPTIONAL and all(stage in ran for stage in report.results.values())
