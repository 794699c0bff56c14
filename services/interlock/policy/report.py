"""Read a DPE report into findings. A value that is absent, contradictory or out of range counts as the worst (A-40)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar

from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.policy.directives import Repetition, Tier
from interlock.domain.policy.findings import ClaimBasis, Findings
from interlock.domain.risk.risk import RiskLevel, classify

ATTRIBUTION, FABRICATION, ENTAILMENT = "2", "3a", "4"
REPETITION, COMPLETENESS, FLOW, PII = "7", "8", "9", "11"
"""Numbers of the stages that a policy's signals come from (SPEC-005 §2)."""

_UNCHECKED = frozenset({dpe_pb2.CLAIM_TYPE_OPINION, dpe_pb2.CLAIM_TYPE_PROCEDURAL, dpe_pb2.CLAIM_TYPE_META})
_UNACCEPTABLE, _GRAVEST, _INTRA = "UNACCEPTABLE", "CRITICAL", "intra"

E = TypeVar("E", bound=Enum)


def member(kind: type[E], value: int | str) -> E | None:
    """Return the member of *kind* with that value; ``None`` for an unknown value, including a proto's zero."""
    return _members(kind).get(value)


@lru_cache(maxsize=64)
def _members(kind: Any) -> Mapping[int | str, Any]:
    """Return the members by value: calling an enum takes three calls, and raises for an unknown value."""
    return {one.value: one for one in kind}


def read_findings(report: dpe_pb2.Report, *, window_number: int = 0, user_words_ground: bool = True) -> Findings:
    """Return the findings of *report*. A value is absent unless its stage is reported as run.

    Without *user_words_ground* a claim that rests on the user's words alone does not count as grounded.

    Flow is not defined in window 1 (SPEC-005 §11.3); with window number 0, which is not a position, flow is only absent.
    """
    ran = _stages_run(report.stages)
    attributions = _attributions(report.claims) if ATTRIBUTION in ran else None
    grounding = _score(report, "grounding_pct", ran=ATTRIBUTION in ran)
    if grounding is not None and not user_words_ground:
        grounding -= report.user_grounding_pct if 0.0 <= report.user_grounding_pct <= grounding else grounding
    entailment = _score(report, "entailment_score", ran=ENTAILMENT in ran)
    flow = _score(report, "flow_score", ran=FLOW in ran)
    undefined = set()
    if grounding is None and attributions == frozenset():
        undefined.add("grounding")
    if entailment is None and attributions == frozenset() and ENTAILMENT in ran:
        undefined.add("entailment")
    if flow is None and (FLOW in ran or window_number == 1):
        undefined.add("flow")
    completeness = _score(report, "completeness_score", ran=COMPLETENESS in ran)
    if completeness is None and COMPLETENESS in ran and report.tool_calls:
        undefined.add("completeness")  # the answer is still to come: the model called a tool and said nothing yet
    return Findings(
        risk=_risk(report),
        attributions=attributions,
        grounding=grounding,
        entailment=entailment,
        flow=flow,
        completeness=completeness,
        undefined=frozenset(undefined),
        fabrications=_fabrications(report) if FABRICATION in ran else None,
        repetition=_repetition(report) if REPETITION in ran else None,
        pii=_pii(report, ran=PII in ran),
        tier=member(Tier, report.quality_tier),
        prohibited=report.eu_ai_act_class == _UNACCEPTABLE,
        contradicted=any(one.scope != _INTRA and one.severity == _GRAVEST for one in report.contradictions),
        envelope_tier=member(Tier, report.envelope_tier),
        cannot_tell=_cannot_tell(report) if ATTRIBUTION in ran else None,
        refused_actions=_refused_actions(report),
    )


def _refused_actions(report: dpe_pb2.Report) -> int | None:
    """Return how many tool calls the kernel would reject; ``None`` where it rejects none and one of them was not tried."""
    if report.HasField("actions"):
        return len(report.actions.refused) or (None if report.actions.untried else 0)
    return None if report.tool_calls else 0


def _cannot_tell(report: dpe_pb2.Report) -> float:
    """Return the share of the checked claims of which one cannot tell; NaN, which meets no maximum, when it cannot be one."""
    checked = sum(claim.attribution != dpe_pb2.ATTRIBUTION_UNSPECIFIED for claim in report.claims)
    count = max(report.cannot_tell_count, sum(claim.cannot_tell for claim in report.claims))
    if not count and report.cannot_tell_count == 0:
        return 0.0
    return count / checked if 0 < count <= checked and report.cannot_tell_count >= 0 else math.nan


def _stages_run(stages: Iterable[dpe_pb2.Stage]) -> frozenset[str]:
    """Return the stages whose every entry has the status RAN."""
    listed = [(stage.number, stage.status) for stage in stages]
    not_run = {number for number, status in listed if status != dpe_pb2.STAGE_STATUS_RAN}
    return frozenset({number for number, _ in listed} - not_run)


def _risk(report: dpe_pb2.Report) -> RiskLevel:
    """Return the highest risk that the report states anywhere; a level may lie above its score, never below."""
    stated = [(report.risk_level, report.composite_score)]
    stated += [(choice.risk_level, choice.composite_score) for choice in report.choices]
    return max(max(_level(level), _class(score)) for level, score in stated)


def _level(number: int) -> RiskLevel:
    return member(RiskLevel, number) or RiskLevel.CRITICAL


def _class(score: float) -> RiskLevel:
    return classify(score) if 0.0 <= score <= 1.0 else RiskLevel.CRITICAL


def _score(report: dpe_pb2.Report, field: str, *, ran: bool) -> float | None:
    """Return a score; ``None`` when it is absent, and NaN, which reaches no threshold, when it cannot be one."""
    if not ran or not report.HasField(field):  # type: ignore[arg-type]
        return None
    value: float = getattr(report, field)
    return value if 0.0 <= value <= 1.0 else math.nan


def _attributions(claims: Iterable[dpe_pb2.Claim]) -> frozenset[ClaimBasis]:
    """Return the attributions of the checked claims; a factual claim without one counts as unverifiable."""
    return frozenset(
        member(ClaimBasis, claim.attribution) or ClaimBasis.UNVERIFIABLE
        for claim in claims
        if claim.attribution != dpe_pb2.ATTRIBUTION_UNSPECIFIED or claim.claim_type not in _UNCHECKED
    )


def _fabrications(report: dpe_pb2.Report) -> int:
    """Return the number of fabricated entities; a negative count counts as one."""
    count = report.fabrication_count if report.fabrication_count >= 0 else 1
    return max(count, len(report.fabricated_entities))


def _repetition(report: dpe_pb2.Report) -> Repetition | None:
    if not report.HasField("repetition_level"):
        return None
    level = report.repetition_level
    return Repetition[level] if level in Repetition.__members__ else Repetition.SEVERE


def _pii(report: dpe_pb2.Report, *, ran: bool) -> bool | None:
    if report.pii or report.gdpr_pii_detected:
        return True
    return False if ran and report.HasField("gdpr_pii_detected") else None
