"""Stage 13, the report: what the stages found, as the message that is sealed (SPEC-005 §15.2, DPE-20).

What a stage that did not run would have said is absent, never a good value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from interlock.api.dpe.v1 import dpe_pb2
from interlock.dpe.attribution import Attribution, Evidence
from interlock.dpe.contradiction import Contradiction
from interlock.dpe.document import Claim, ClaimType, Distortion, NliScores, PiiFinding
from interlock.dpe.inference import ModelInfo
from interlock.dpe.omission import Omission
from interlock.dpe.risk import Risk

STAGES = (
    ("1", "claim segmentation"),
    ("2", "attribution"),
    ("3a", "fabrication"),
    ("3b", "distortion"),
    ("3c", "contradiction"),
    ("4", "entailment"),
    ("5", "risk"),
    ("6", "cross-window coherence"),
    ("7", "repetition"),
    ("8", "completeness"),
    ("9", "flow"),
    ("10", "omission"),
    ("11", "pii"),
    ("12", "regulatory classification"),
    ("13", "report"),
)


@dataclass(frozen=True)
class Choice:
    """Everything that was found in one choice."""

    index: int
    claims: Sequence[Claim]
    evidence: Mapping[str, Evidence]
    attributions: Mapping[str, Attribution]
    fabrications: Mapping[str, tuple[str, ...]]
    distortions: Mapping[str, tuple[Distortion, ...]]
    contradictions: Sequence[Contradiction]
    omissions: Sequence[Omission]
    weakest: NliScores | None
    risk: Risk


@dataclass(frozen=True)
class Context:
    """What the report says beside the choices."""

    facts: int
    tier: str
    etag: str
    envelope_tokens: int
    pii: Sequence[PiiFinding]
    models: Sequence[ModelInfo]
    method: str
    ran: Mapping[str, str]
    """Stage number → how it ran; one that is not here did not run."""


def report(choices: Sequence[Choice], context: Context) -> dpe_pb2.Report:
    """Return the report: the worst choice in full, the risk of every one."""
    worst = max(choices, key=lambda choice: (choice.risk.composite.score, -choice.index))
    message = dpe_pb2.Report(
        **_claims_of(worst, context.method),
        **_findings_of(worst),
        **_risk_of(worst.risk),
        gdpr_pii_detected=bool(context.pii),
        pii=[_pii(finding) for finding in context.pii],
        stages=list(_stages(context.ran)),
        models=[dpe_pb2.Model(slot=m.slot, name=m.name, hash=m.hash, runtime=m.runtime) for m in context.models],
        quality_tier=context.tier,
        envelope_etag=context.etag,
        facts_total=context.facts,
        envelope_tokens=context.envelope_tokens,
        choice_index=worst.index,
        choices=[
            dpe_pb2.ChoiceRisk(
                choice_index=c.index,
                composite_score=c.risk.composite.score,
                risk_level=cast("Any", int(c.risk.composite.level)),
            )
            for c in choices
        ],
    )
    if worst.weakest:
        message.entailment_score = worst.weakest.entailment
        message.contradiction_probability = worst.weakest.contradiction
        message.neutral_probability = worst.weakest.neutral
    return message


def _claims_of(choice: Choice, method: str) -> dict[str, Any]:
    counts = Counter(choice.attributions.values())
    types = Counter(claim.claim_type for claim in choice.claims)
    return {
        "claims_total": len(choice.claims),
        "claims_by_type": {kind.name: types[kind] for kind in ClaimType},
        "claims": [_claim(choice, claim, method) for claim in choice.claims],
        "attribution_dominant": int(choice.risk.dominant or 0),
        "attribution_breakdown": {kind.name: counts[kind] for kind in Attribution},
        "grounding_pct": choice.risk.grounding,
    }


def _claim(choice: Choice, claim: Claim, method: str) -> dpe_pb2.Claim:
    message = dpe_pb2.Claim(
        claim_id=claim.claim_id,
        text=claim.text,
        sentence_index=claim.sentence_index,
        claim_type=cast("Any", int(claim.claim_type)),
        specificity=claim.specificity,
        entities=[dpe_pb2.Entity(text=e.text, label=e.label, start=e.start, end=e.end) for e in claim.entities],
        choice_index=claim.choice_index,
        start=claim.start,
        end=claim.end,
        fabrications=choice.fabrications.get(claim.claim_id, ()),
        distortions=[_distortion(d) for d in choice.distortions.get(claim.claim_id, ())],
    )
    found = choice.evidence.get(claim.claim_id)
    if found:
        message.attribution = cast("Any", int(choice.attributions[claim.claim_id]))
        message.fact_id, message.similarity = found.fact_id, found.similarity
        message.entailment, message.contradiction = found.scores.entailment, found.scores.contradiction
        message.method = method
    return message


def _distortion(found: Distortion) -> dpe_pb2.Distortion:
    return dpe_pb2.Distortion(
        type=found.type, source_value=found.source_value, claim_value=found.claim_value, fact_id=found.fact_id
    )


def _findings_of(choice: Choice) -> dict[str, Any]:
    made_up = list(dict.fromkeys(text for texts in choice.fabrications.values() for text in texts))
    distorted = {name: found for name, found in choice.distortions.items() if found}
    severities = Counter(omission.severity for omission in choice.omissions)
    return {
        "fabrication_count": len(made_up),
        "fabricated_entities": made_up,
        "distortion_count": len(distorted),
        "distortion_types": sorted({d.type for found in distorted.values() for d in found}),
        "contradiction_count": len(choice.contradictions),
        "contradiction_scope": "intra" if choice.contradictions else "",
        "contradictions": [
            dpe_pb2.Contradiction(
                claim_id=c.claim_id,
                other_claim_id=c.other_claim_id,
                probability=c.probability,
                scope="intra",
                severity=c.severity,
                method=c.method,
                other_text=c.other_text,
            )
            for c in choice.contradictions
        ],
        "omission_summary": {name: severities[name] for name in ("CRITICAL", "HIGH", "MEDIUM")},
        "omissions": [
            dpe_pb2.Omission(fact_id=o.fact_id, severity=o.severity, similarity=o.similarity) for o in choice.omissions
        ],
    }


def _risk_of(risk: Risk) -> dict[str, Any]:
    return {
        "fidelity_score": risk.fidelity,
        "signals": dpe_pb2.Signals(
            attribution=risk.signals.attribution,
            fidelity=risk.signals.fidelity,
            entailment=risk.signals.entailment,
            specificity=risk.signals.specificity,
        ),
        "base_composite": risk.composite.base,
        "amplifiers_applied": [a.value for a in risk.composite.amplifiers],
        "composite_score": risk.composite.score,
        "risk_level": int(risk.composite.level),
        "floors": [f.value for f in risk.composite.floors],
    }


def _pii(found: PiiFinding) -> dpe_pb2.PiiFinding:
    return dpe_pb2.PiiFinding(
        type=found.type, category=found.category, where=found.where, start=found.start, end=found.end, score=found.score
    )


def _stages(ran: Mapping[str, str]) -> Iterable[dpe_pb2.Stage]:
    for number, name in STAGES:
        done = number in ran
        yield dpe_pb2.Stage(
            number=number,
            name=name,
            status=dpe_pb2.STAGE_STATUS_RAN if done else dpe_pb2.STAGE_STATUS_NOT_RUN,
            detail=ran[number] if done else "not in this version",
        )
