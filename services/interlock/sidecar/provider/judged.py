"""How bad an answer is on each axis, read from its report, for the comparison of a draft and a remedied answer (ATT-10).

What a stage that ran did not find is 0.0; an axis whose stage did not run is absent. A report with several choices describes
the worst one, and its risk is that of the worst.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.policy.directives import Repetition, Tier
from interlock.domain.policy.improvement import Axis, Judged

_SCORES = (
    (Axis.GROUNDING, "2", "grounding_pct"),
    (Axis.ENTAILMENT, "4", "entailment_score"),
    (Axis.FIDELITY, "4", "fidelity_score"),
    (Axis.COMPLETENESS, "8", "completeness_score"),
    (Axis.FLOW, "9", "flow_score"),
)
_SEVERITIES = ("LOW", "MEDIUM", "HIGH", "CRITICAL")


def judged(report: dpe_pb2.Report) -> Judged:
    """Return how bad the answer of *report* is, by axis."""
    return dict(_axes(report, {one.number for one in report.stages if one.status == dpe_pb2.STAGE_STATUS_RAN}))


def named(axes: Iterable[Axis]) -> list[str]:
    """Return the names of *axes* for the trail, in one order."""
    return [axis.name.lower().replace("_", "-") for axis in sorted(axes)]


def _axes(report: dpe_pb2.Report, ran: set[str]) -> Iterator[tuple[Axis, float]]:
    levels = [report.risk_level, *(choice.risk_level for choice in report.choices)]
    yield Axis.RISK, max(level or common_pb2.RISK_LEVEL_CRITICAL for level in levels)
    yield Axis.COMPOSITE, max([report.composite_score, *(choice.composite_score for choice in report.choices)])
    for axis, stage, field in _SCORES:
        if stage in ran:
            # A score without a value, such as the grounding of an answer that claims nothing, found nothing to fault.
            yield axis, 1.0 - getattr(report, field) if report.HasField(field) else 0.0  # type: ignore[arg-type]
    if "3a" in ran:
        yield Axis.FABRICATIONS, max(report.fabrication_count, len(report.fabricated_entities))
    if "3b" in ran:
        yield Axis.DISTORTIONS, report.distortion_count
    if "3c" in ran:
        yield Axis.CONTRADICTIONS, max(report.contradiction_count, len(report.contradictions))
        yield Axis.GRAVEST_CONTRADICTION, max((_rank(one.severity) for one in report.contradictions), default=0)
    if "7" in ran and report.HasField("repetition_level"):
        level = report.repetition_level
        yield Axis.REPETITION, Repetition[level] if level in Repetition.__members__ else math.nan
    if "10" in ran:
        yield Axis.OMISSIONS, len(report.omissions)
    if "11" in ran:
        yield Axis.PERSONAL_DATA, sum(finding.where != "prompt" for finding in report.pii)
    tiers = list(Tier)
    if report.quality_tier in tiers:
        yield Axis.QUALITY_TIER, tiers.index(Tier(report.quality_tier))


def _rank(severity: str) -> float:
    return _SEVERITIES.index(severity) + 1 if severity in _SEVERITIES else math.nan
