"""Judgement of one choice from the findings of the stages: attributions, omissions, weakest claim and risk (SPEC-005).

No model runs here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from interlock.domain.risk.composite import Amplifier, Calibration
from interlock.domain.risk.grounding import GroundingMode
from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.comparison.contradiction import Contradiction, counted
from interlock.dpe.document import Claim
from interlock.dpe.grounding import attribution, entailment, omission
from interlock.dpe.grounding.attribution import Attribution, ClaimEvidence
from interlock.dpe.grounding.citations import WRONG_SOURCE, Misattribution
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.fidelity import Flaws
from interlock.dpe.inference.port import Floats
from interlock.dpe.report import Choice
from interlock.dpe.risk import RiskFindings, assess


def judge_choice(
    reading: ChoiceReading,
    envelope: Envelope,
    evidence: Mapping[str, ClaimEvidence],
    flaws: Flaws,
    contradictions: Sequence[Contradiction],
    *,
    vectors: Floats,
    amplifiers: Sequence[Amplifier],
    method: attribution.Method,
    calibration: Calibration,
    between: int = 0,
    mode: GroundingMode = GroundingMode.PREFERRED,
    misattributed: Sequence[Misattribution] = (),
) -> Choice:
    """Return everything about one choice.

    *vectors* has one row for each sentence and claim of the choice. *between* is the number of contradictions among the
    answers that the choice was made from. In the mode ``open`` entailment is not measured.
    """
    names = [claim.claim_id for claim in reading.checked]
    claim_evidence = {name: evidence[name] if method == "nli" else evidence[name].plain() for name in names}
    fabrications = {name: flaws.fabrications.get(name, ()) for name in names}
    distortions = {name: flaws.distortions.get(name, ()) for name in names}
    attributions = {
        claim.claim_id: attribution.attribute(
            claim, claim_evidence[claim.claim_id], method=method,
            flawed=bool(fabrications[claim.claim_id] or distortions[claim.claim_id]),
        )
        for claim in reading.checked
    }  # fmt: skip
    measured = mode is not GroundingMode.OPEN
    weakest = entailment.weakest([found.scores for found in claim_evidence.values()]) if measured else None
    used = {claim_evidence[name].fact_id for name, kind in attributions.items() if kind is Attribution.CONTEXT_GROUNDED}
    findings = RiskFindings(
        empty=reading.empty,
        attributions=attributions,
        fabrications=len({text for texts in fabrications.values() for text in texts}),
        distortions=sum(map(bool, distortions.values())),
        contradictions=len(counted(contradictions)) + between,
        weakest=weakest,
        hidden_characters=reading.hidden,
        addresses_judge=reading.addressed,
        misattributions=sum(each.kind == WRONG_SOURCE or not each.claim_id for each in misattributed),
        mode=mode,
        wordless=reading.unread,
    )
    return Choice(
        index=reading.index,
        claims=reading.claims,
        evidence=claim_evidence,
        attributions=attributions,
        fabrications=fabrications,
        distortions=distortions,
        contradictions=contradictions,
        omissions=omission.omissions(envelope, vectors, used),
        weakest=weakest,
        risk=assess(findings, amplifiers, calibration),
        misattributed=misattributed,
    )


def worst_views(choices: Sequence[Choice]) -> list[Choice]:
    """Return each choice once: its worst reading, with the findings that only its other readings show."""
    readings: dict[int, list[Choice]] = {}
    for choice in choices:
        readings.setdefault(choice.index, []).append(choice)
    return [_worst(group) for group in readings.values()]


def _worst(readings: Sequence[Choice]) -> Choice:
    worst = kept = max(readings, key=lambda reading: reading.risk.composite.score)
    for reading in readings:
        kept = kept if reading is worst else _with_findings(kept, reading)
    return kept


def _with_findings(kept: Choice, other: Choice) -> Choice:
    """Return *kept* with the flawed and contradicting claims of another reading, and with its floors."""
    flaws, pairs = {_flaw(kept, claim) for claim in kept.claims}, {pair for pair, _ in _contradictions_by_place(kept)}
    found = [each for pair, each in _contradictions_by_place(other) if pair not in pairs]
    named = {name for each in found for name in (each.claim_id, each.other_claim_id)}
    claims = [
        claim
        for claim in other.claims
        if claim.claim_id in named or (any((flaw := _flaw(other, claim))[1:]) and flaw not in flaws)
    ]
    names = [claim.claim_id for claim in claims if claim.claim_id in other.attributions]
    composite = kept.risk.composite
    floors = [*composite.floors, *(floor for floor in other.risk.composite.floors if floor not in composite.floors)]
    return replace(
        kept,
        claims=[*kept.claims, *claims],
        evidence={**kept.evidence, **{name: other.evidence[name] for name in names}},
        attributions={**kept.attributions, **{name: other.attributions[name] for name in names}},
        fabrications={**kept.fabrications, **{name: other.fabrications[name] for name in names}},
        distortions={**kept.distortions, **{name: other.distortions[name] for name in names}},
        contradictions=[*kept.contradictions, *found],
        risk=replace(kept.risk, composite=replace(composite, floors=tuple(floors))),
    )


def _place(claim: Claim) -> tuple[int, int, int]:
    return claim.output_index, claim.start, claim.end


def _flaw(reading: Choice, claim: Claim) -> tuple[tuple[int, int, int], tuple[str, ...], frozenset[str]]:
    """Return the span of a claim, its fabrications and the types of its distortions."""
    distortions = reading.distortions.get(claim.claim_id, ())
    return _place(claim), reading.fabrications.get(claim.claim_id, ()), frozenset(each.type for each in distortions)


def _contradictions_by_place(reading: Choice) -> list[tuple[object, Contradiction]]:
    """Return the contradictions of a reading, each keyed by the spans of its claims.

    A claim of an earlier window has no span; its text is the key.
    """
    places = {claim.claim_id: _place(claim) for claim in reading.claims}
    return [
        ((places[each.claim_id], places.get(each.other_claim_id, each.other_text)), each)
        for each in reading.contradictions
    ]
