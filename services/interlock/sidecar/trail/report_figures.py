"""What a report of the analysis says of itself, as the domain's rule takes it (``domain/answers/report.py``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.answers.report import ReportFigures, ScoredChoice

_RESULTS: Mapping[str, str] = {
    "grounding_pct": "2",
    "fidelity_score": "3a",
    "entailment_score": "4",
    "repetition_level": "7",
    "repetition_overlap": "7",
    "completeness_score": "8",
    "flow_score": "9",
    "gdpr_pii_detected": "11",
    "eu_ai_act_class": "12",
}
"""Optional field → stage that it comes from."""

_SIGNALS = ("attribution", "fidelity", "entailment", "specificity")


def figures_of(report: dpe_pb2.Report) -> ReportFigures:
    """Return the figures of a report."""
    return ReportFigures(
        described=ScoredChoice(report.choice_index, report.composite_score, report.risk_level),
        choices=[ScoredChoice(one.choice_index, one.composite_score, one.risk_level) for one in report.choices],
        scores=dict(_scores(report)),
        stages=[(stage.number, stage.status == dpe_pb2.STAGE_STATUS_RAN) for stage in report.stages],
        counts=_counts(report),
        results={name: stage for name, stage in _RESULTS.items() if report.HasField(name)},  # type: ignore[arg-type]
    )


def _scores(report: dpe_pb2.Report) -> Iterator[tuple[str, float]]:
    """Yield every number of the report's own level and its signals; claims are not decided upon."""
    for field, held in report.ListFields():
        if isinstance(held, float):
            yield field.name, held
    for name in _SIGNALS:
        yield name, getattr(report.signals, name)


def _counts(report: dpe_pb2.Report) -> dict[str, tuple[int, int]]:
    """Return what the report counts beside what it lists. A sum by kind is left out where an engine does not give it."""
    claims, attributed = report.claims, sum(claim.attribution != 0 for claim in report.claims)
    types, bases, omitted = report.claims_by_type, report.attribution_breakdown, report.omission_summary
    return {
        "claims_total": (report.claims_total, len(claims)),
        "claims_by_type": (sum(types.values()) if types else len(claims), len(claims)),
        "attribution_breakdown": (sum(bases.values()) if bases else attributed, attributed),
        "fabrication_count": (report.fabrication_count, len(report.fabricated_entities)),
        "distortion_count": (report.distortion_count, sum(bool(claim.distortions) for claim in claims)),
        "contradiction_count": (report.contradiction_count, len(report.contradictions)),
        "omission_summary": (sum(omitted.values()) if omitted else len(report.omissions), len(report.omissions)),
        "cannot_tell_count": (report.cannot_tell_count, sum(claim.cannot_tell for claim in claims)),
    }
