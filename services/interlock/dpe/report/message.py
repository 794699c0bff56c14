"""Stage 13, report: the findings of all stages as the protobuf message that is sealed (SPEC-005 §15.2, DPE-20).

A stage that did not run leaves its fields absent; it never reports a good value. With several choices, the report
describes the choice with the highest risk. Contradictions and repeated sentences are those of all choices, and each
quality value is the worst of any choice, so that no choice hides behind another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.policy.directives import Tier
from interlock.domain.policy.quality import capped
from interlock.domain.risk.grounding import Basis, GroundingMode, meaning
from interlock.domain.risk.regulatory import Controls
from interlock.dpe.comparison.contradiction import Contradiction
from interlock.dpe.document import Claim, ClaimType, Distortion, NliScores, PiiFinding
from interlock.dpe.grounding.attribution import Attribution, ClaimEvidence, Method
from interlock.dpe.grounding.citations import Misattribution
from interlock.dpe.grounding.omission import Omission
from interlock.dpe.grounding.tools.calls import JudgedCall
from interlock.dpe.inference.port import ModelInfo
from interlock.dpe.quality.coherence import CrossWindow
from interlock.dpe.quality.cross_agent import Between, CrossAgent
from interlock.dpe.quality.quality import Quality, Query
from interlock.dpe.regulatory import Classification
from interlock.dpe.request import USER, LinkedResult, Request
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
    """Findings of all stages in one choice."""

    index: int
    claims: Sequence[Claim]
    evidence: Mapping[str, ClaimEvidence]
    attributions: Mapping[str, Attribution]
    fabrications: Mapping[str, tuple[str, ...]]
    distortions: Mapping[str, tuple[Distortion, ...]]
    contradictions: Sequence[Contradiction]
    omissions: Sequence[Omission]
    weakest: NliScores | None
    risk: Risk
    misattributed: Sequence[Misattribution] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    """What each grounded claim rests on: source, user, instruction, answered or declaration."""
    calls: tuple[JudgedCall, ...] = ()
    cannot_tell: frozenset[str] = frozenset()
    """Claims that the evidence neither shows nor speaks against, by id."""
    mode: GroundingMode = GroundingMode.PREFERRED
    """The grounding mode that the choice was judged in: ``open`` where no source is about it."""


@dataclass(frozen=True)
class Context:
    """The parts of the report that belong to no single choice."""

    facts: int
    tier: str
    etag: str
    envelope_tokens: int
    pii: Sequence[PiiFinding]
    models: Sequence[ModelInfo]
    method: str
    ran: Mapping[str, str]
    """Stage number to a description of how the stage ran."""
    not_run: Mapping[str, str]
    """Stage number to the reason why the stage did not run."""
    classification: Classification
    controls: Callable[[bool], Controls]
    """Return the controls that this call evidences, given whether the quality was scored."""
    flow_remediation: str
    linked: Sequence[LinkedResult] = ()
    basis: Basis = Basis.SOURCES
    mode: GroundingMode = GroundingMode.PREFERRED


def report(
    choices: Sequence[Choice], qualities: Sequence[Quality], context: Context, cross_agent: CrossAgent | None = None
) -> dpe_pb2.Report:
    """Return the report: the worst choice in full, the risk of every choice, and the worst value of each quality stage.

    Contradictions between merged answers belong to no choice. They follow those of the choices.
    """
    worst = max(choices, key=lambda choice: (choice.risk.composite.score, -choice.index))
    score = _lowest(quality.score for quality in qualities)
    message = dpe_pb2.Report(
        **_claim_fields(worst, context.method),
        **_finding_fields(worst),
        misattributions=[_misattribution(each) for each in worst.misattributed],
        **_contradiction_fields(choices, cross_agent.between if cross_agent else ()),
        **_quality_fields(qualities),
        **_compliance_fields(context, scored=score is not None),
        **_risk_fields(worst.risk),
        gdpr_pii_detected=bool(context.pii),
        pii=[_pii(finding) for finding in context.pii],
        stages=list(_stages(context)),
        models=[dpe_pb2.Model(slot=m.slot, name=m.name, hash=m.hash, runtime=m.runtime) for m in context.models],
        quality_tier=capped(Tier(context.tier), score).value,
        envelope_tier=context.tier,
        envelope_etag=context.etag,
        facts_total=context.facts,
        envelope_tokens=context.envelope_tokens,
        basis=context.basis.value,
        grounding_mode=worst.mode.value,
        meaning=meaning(worst.risk.composite.level, worst.mode, context.basis, cannot_tell=len(worst.cannot_tell)),
        choice_index=worst.index,
        choices=[
            dpe_pb2.ChoiceRisk(
                choice_index=c.index,
                composite_score=c.risk.composite.score,
                risk_level=common_pb2.RiskLevel.ValueType(int(c.risk.composite.level)),
            )
            for c in choices
        ],
    )
    if cross_agent:
        message.cross_agent.CopyFrom(_cross_agent(cross_agent))
    message.tool_calls.extend(_tool_call(call) for choice in choices for call in choice.calls)
    message.linked_results.extend(dpe_pb2.LinkedResult(**asdict(one)) for one in context.linked)
    if worst.weakest:
        message.entailment_score = worst.weakest.entailment
        message.contradiction_probability = worst.weakest.contradiction
        message.neutral_probability = worst.weakest.neutral
    return message


def _claim_fields(choice: Choice, method: str) -> dict[str, Any]:
    counts = Counter(choice.attributions.values())
    types = Counter(claim.claim_type for claim in choice.claims)
    return {
        "claims_total": len(choice.claims),
        "claims_by_type": {kind.name: types[kind] for kind in ClaimType},
        "claims": [_claim(choice, claim, method) for claim in choice.claims],
        "attribution_dominant": int(choice.risk.dominant or 0),
        "attribution_breakdown": {kind.name: counts[kind] for kind in Attribution},
        "grounding_pct": choice.risk.grounding,
        "user_grounding_pct": _user_share(choice),
        "cannot_tell_count": len(choice.cannot_tell),
    }


def _user_share(choice: Choice) -> float:
    """Return the share of the checked claims that rest on the user's words."""
    return sum(kind == USER for kind in choice.kinds.values()) / max(1, len(choice.attributions))


def _tool_call(call: JudgedCall) -> dpe_pb2.ToolCall:
    return dpe_pb2.ToolCall(
        choice_index=call.choice_index,
        output_index=call.output_index,
        name=call.name,
        declared=call.declared,
        findings=call.findings,
        claim_ids=[each.claim.claim_id for each in call.claims],
    )


def _claim(choice: Choice, claim: Claim, method: str) -> dpe_pb2.Claim:
    message = dpe_pb2.Claim(
        claim_id=claim.claim_id,
        text=claim.text,
        sentence_index=claim.sentence_index,
        claim_type=dpe_pb2.ClaimType.ValueType(int(claim.claim_type)),
        specificity=claim.specificity,
        entities=[dpe_pb2.Entity(text=e.text, label=e.label, start=e.start, end=e.end) for e in claim.entities],
        choice_index=claim.choice_index,
        start=claim.start,
        end=claim.end,
        output_index=claim.output_index,
        fabrications=choice.fabrications.get(claim.claim_id, ()),
        distortions=[_distortion(d) for d in choice.distortions.get(claim.claim_id, ())],
    )
    evidence = choice.evidence.get(claim.claim_id)
    if evidence:
        message.attribution = dpe_pb2.Attribution.ValueType(int(choice.attributions[claim.claim_id]))
        message.fact_id, message.similarity = evidence.fact_id, evidence.similarity
        message.entailment, message.contradiction = evidence.scores.entailment, evidence.scores.contradiction
        message.method = method
        message.evidence_kind = choice.kinds.get(claim.claim_id, "")
        message.cannot_tell = claim.claim_id in choice.cannot_tell
    return message


def _distortion(distortion: Distortion) -> dpe_pb2.Distortion:
    return dpe_pb2.Distortion(
        type=distortion.type,
        source_value=distortion.source_value,
        claim_value=distortion.claim_value,
        fact_id=distortion.fact_id,
        slot=distortion.slot,
    )


def _misattribution(found: Misattribution) -> dpe_pb2.Misattribution:
    return dpe_pb2.Misattribution(
        claim_id=found.claim_id,
        mark=found.mark.written,
        kind=found.kind,
        cited_fact_ids=found.cited,
        held_by=found.held_by,
        start=found.mark.start,
        end=found.mark.end,
        output_index=found.mark.output_index,
    )


def _finding_fields(choice: Choice) -> dict[str, Any]:
    fabricated = list(dict.fromkeys(text for texts in choice.fabrications.values() for text in texts))
    distorted = {name: found for name, found in choice.distortions.items() if found}
    severities = Counter(omission.severity for omission in choice.omissions)
    return {
        "fabrication_count": len(fabricated),
        "fabricated_entities": fabricated,
        "distortion_count": len(distorted),
        "distortion_types": sorted({d.type for found in distorted.values() for d in found}),
        "omission_summary": {name: severities[name] for name in ("CRITICAL", "HIGH", "MEDIUM")},
        "omissions": [
            dpe_pb2.Omission(fact_id=o.fact_id, severity=o.severity, similarity=o.similarity) for o in choice.omissions
        ],
    }


def _contradiction_fields(choices: Sequence[Choice], between: Sequence[Between]) -> dict[str, Any]:
    found = [each for choice in choices for each in choice.contradictions]
    found += [replace(each.found, claim_id=f"{each.source_b}:{each.found.claim_id}") for each in between]
    scopes = {_scope(each) for each in found}
    return {
        "contradiction_count": len(found),
        "contradiction_scope": "both" if len(scopes) == 2 else "".join(scopes),
        "contradictions": [
            dpe_pb2.Contradiction(
                claim_id=each.claim_id,
                other_claim_id=each.other_claim_id,
                probability=each.probability,
                scope=_scope(each),
                severity=each.severity,
                method=each.method,
                other_text=each.other_text,
                window_id=each.window_id if isinstance(each, CrossWindow) else "",
            )
            for each in found
        ],
    }


def _cross_agent(cross_agent: CrossAgent) -> dpe_pb2.CrossAgent:
    return dpe_pb2.CrossAgent(
        merged=cross_agent.merged,
        contradictions=[
            dpe_pb2.CrossAgentContradiction(
                source_a=each.source_a, claim_a=each.claim_a, source_b=each.source_b, claim_b=each.claim_b,
                type=each.type, severity=each.found.severity,
            )
            for each in cross_agent.between
        ],
        coverage=[
            dpe_pb2.SubQueryCoverage(
                sub_query=each.sub_query, credit=each.credit, source_id=each.source_id, uncovered=each.uncovered
            )
            for each in cross_agent.coverage
        ],
        completeness=cross_agent.completeness,
        flow=cross_agent.flow,
    )  # fmt: skip


def _scope(contradiction: Contradiction) -> str:
    return "cross-window" if isinstance(contradiction, CrossWindow) else "intra"


def _quality_fields(qualities: Sequence[Quality]) -> dict[str, Any]:
    """Return the worst value of each quality stage over all choices. A value that no choice has stays absent."""
    repetitions = [quality.repetitions for quality in qualities]
    values: dict[str, Any] = {
        "repetition_level": max(found.level for found in repetitions).name,
        "repetition_overlap": max(found.overlap for found in repetitions),
        "semantic_repetition": max(found.semantic for found in repetitions),
        "repeated_sentences": [
            dpe_pb2.RepeatedSentence(**asdict(sentence))
            for sentence in dict.fromkeys(each for found in repetitions for each in found.sentences)
        ],  # deduplicated: a masked choice was read more than once
        "coherence_score": min(quality.coherence for quality in qualities),
        "quality_score": _lowest(quality.score for quality in qualities),
    }
    covered = [quality.completeness for quality in qualities if quality.completeness is not None]
    if covered:
        least = min(covered, key=lambda found: found.score)
        values |= {
            "completeness_score": least.score,
            "completeness_level": least.level,
            "uncovered_sub_queries": [each.need.text for each in least.needs if not each.covered],
            "sub_queries": [
                dpe_pb2.SubQuery(
                    text=each.need.text, token=each.need.token, relevance=each.relevance, covered=each.covered
                )
                for each in least.needs
            ],
        }
    flows = [quality.flow for quality in qualities if quality.flow is not None]
    if flows:
        weakest = min(flows, key=lambda found: found.score)
        values |= {"flow_score": weakest.score, "flow_signals": dpe_pb2.FlowSignals(**asdict(weakest.signals))}
    return values


def _lowest(scores: Iterable[float | None]) -> float | None:
    return min((score for score in scores if score is not None), default=None)


def _compliance_fields(context: Context, *, scored: bool) -> dict[str, Any]:
    controls = context.controls(scored)
    return {
        "domain": context.classification.domain,
        "eu_ai_act_class": context.classification.told_class,
        "nist_tier": context.classification.nist_tier,
        "iso_42001_controls": controls.iso_42001,
        "controls_met": len(controls.met),
        "controls_total": controls.total,
        "flow_remediation": context.flow_remediation or None,
    }


def _risk_fields(risk: Risk) -> dict[str, Any]:
    return {
        "fidelity_score": risk.fidelity,
        "signals": dpe_pb2.Signals(
            attribution=risk.signals.attribution or 0.0,
            fidelity=risk.signals.fidelity,
            entailment=risk.signals.entailment or 0.0,
            specificity=risk.signals.specificity or 0.0,
        ),
        "base_composite": risk.composite.base,
        "amplifiers_applied": [a.value for a in risk.composite.amplifiers],
        "composite_score": risk.composite.score,
        "risk_level": int(risk.composite.level),
        "floors": [f.value for f in risk.composite.floors],
    }


def _pii(finding: PiiFinding) -> dpe_pb2.PiiFinding:
    return dpe_pb2.PiiFinding(**asdict(finding))


def _stages(context: Context) -> Iterable[dpe_pb2.Stage]:
    for number, name in STAGES:
        done = number in context.ran
        yield dpe_pb2.Stage(
            number=number,
            name=name,
            status=dpe_pb2.STAGE_STATUS_RAN if done else dpe_pb2.STAGE_STATUS_NOT_RUN,
            detail=context.ran[number] if done else context.not_run.get(number, "not reached"),
        )


def stages_run(
    claims: str, method: Method, query: Query, request: Request, *, followed: bool, mode: GroundingMode
) -> dict[str, str]:
    """Return how each stage ran, by stage number. Stage 8 is absent without a query."""
    windows = f"{len(request.prior)} earlier windows" if request.prior else "no earlier window"
    windows += f", {len(request.merged)} merged answers" if request.merged else ""
    ran = {
        "1": "parser", "2": claims, "3a": "ner+capitals+values", "3b": "values+nli", "3c": "nli+values, five neighbours",
        "4": "nli, weakest claim", "5": "weighted", "6": f"nli+values, {windows}", "7": f"4-grams+cosine, {windows}",
        "9": "cosine+topics+register+markers" if followed else "no earlier answer to flow from", "10": "cosine",
        "11": "presidio", "12": "registered domain", "13": "",
    }  # fmt: skip
    if mode is GroundingMode.OPEN:
        ran |= {"3a": "citations and links, as the mode is open", "4": "not measured, as the mode is open"}
    if query.needs:
        ran["8"] = "cosine" if method == "cosine" else "cosine, nearest need"
    return ran
