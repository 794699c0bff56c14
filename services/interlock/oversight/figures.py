"""A report without content: what a viewer may see of a window.

It is made by a list of what may be shown, so that a field which a later version adds stays hidden until somebody decides.
"""

from __future__ import annotations

from typing import Any

from interlock.api.dpe.v1 import dpe_pb2

_FIGURES = (
    "claims_total", "fabrication_count", "distortion_count", "contradiction_count", "grounding_pct", "quality_score", "composite_score",
    "base_composite", "risk_level", "amplifiers_applied", "floors", "meaning", "cannot_tell_count", "window_number",
)  # fmt: skip
"""Numbers, enums, and words of our own."""
_OF_A_CLAIM = ("claim_id", "attribution", "entailment", "contradiction", "cannot_tell")


def figures_of(report: dpe_pb2.Report) -> dpe_pb2.Report:
    """Return the figures of a report: no text, name or value of a question, an answer or a source."""
    bare = dpe_pb2.Report(claims=map(_claim, report.claims))
    _copy(report, bare, _FIGURES)
    bare.omissions.extend(dpe_pb2.Omission() for _ in report.omissions)
    bare.pii.extend(dpe_pb2.PiiFinding(type=one.type) for one in report.pii)
    bare.stages.extend(dpe_pb2.Stage(number=one.number, name=one.name, status=one.status) for one in report.stages)
    for one in report.contradictions:
        bare.contradictions.add(claim_id=one.claim_id, other_claim_id=one.other_claim_id, severity=one.severity)
    return bare


def _claim(claim: dpe_pb2.Claim) -> dpe_pb2.Claim:
    bare = dpe_pb2.Claim(fabrications=["" for _ in claim.fabrications])
    bare.distortions.extend(dpe_pb2.Distortion(type=one.type) for one in claim.distortions)
    _copy(claim, bare, _OF_A_CLAIM)
    return bare


def _copy(full: Any, bare: Any, names: tuple[str, ...]) -> None:
    for name in names:
        field = full.DESCRIPTOR.fields_by_name[name]
        if field.is_repeated:
            getattr(bare, name).extend(getattr(full, name))
        elif not field.has_presence or full.HasField(name):
            setattr(bare, name, getattr(full, name))
