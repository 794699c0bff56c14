"""Stage 5, risk: the findings of one choice as signals, amplifiers and floors of the composite score (SPEC-005 §7)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from interlock.domain.risk.composite import (
    Amplifier,
    Calibration,
    Composite,
    Floor,
    RiskSignals,
    compose,
    fidelity_score,
)
from interlock.domain.risk.grounding import GroundingMode
from interlock.dpe.document import NliScores
from interlock.dpe.grounding.attribution import Attribution

LOOP_DEPTH_ABOVE = 3
_FROM_MEMORY = frozenset({Attribution.PARAMETRIC, Attribution.UNVERIFIABLE})
_SECTORAL_DOMAINS = frozenset({"financial", "medical"})


@dataclass(frozen=True)
class RiskFindings:
    """Findings of the stages in one choice. ``attributions`` holds the checked claims by id."""

    empty: bool
    attributions: Mapping[str, Attribution]
    fabrications: int
    distortions: int
    contradictions: int
    weakest: NliScores | None
    """Scores of the weakest claim that is measured; ``weakest_of_all`` counts those of which one cannot tell, too."""
    hidden_characters: int
    weakest_of_all: NliScores | None = None
    addresses_judge: int = 0
    misattributions: int = 0
    wordless: bool = False
    mode: GroundingMode = GroundingMode.PREFERRED
    calls: frozenset[str] = frozenset()
    """Findings of tool calls, by the name of their floor."""
    unmeasured: frozenset[str] = frozenset()
    """Claims that are not measured against the sources, by id: none is about them, or they are in another language."""
    misbindings: int = 0
    """Claims that put the source's words into another slot; they are among the distortions."""
    confirmed: int = 0
    """Claims with a finding that the model or a calculation contradicts too."""
    cannot_tell: frozenset[str] = frozenset()
    """Claims that the evidence neither shows nor speaks against, by id (doubt.py)."""
    doubt_raises: bool = False
    """Whether a claim of which one cannot tell prevents LOW."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """How far claims are grounded that rest on an earlier answer: as far as that answer is."""
    consumed_score: float = 0.0
    """The highest composite score of the earlier answers that claims rest on: the least of this one."""
    unread: bool = False
    """Most claims are in another language and have nothing that could be compared."""


@dataclass(frozen=True)
class Risk:
    """The risk of one choice and the values behind it. A value is ``None`` without a checked claim."""

    composite: Composite
    signals: RiskSignals
    grounding: float | None
    fidelity: float | None
    dominant: Attribution | None


def assess(findings: RiskFindings, amplifiers: Sequence[Amplifier], calibration: Calibration) -> Risk:
    """Return the risk of one choice.

    An answer without a checked claim asserts nothing that could be wrong: its signals are 0.0. One of signs alone was not
    read, and a floor keeps it above LOW. Claims of which one cannot tell are not measured; they only order answers of the class
    LOW. In the mode ``open``, and for the claims that no source is about, content
    without a source is expected (SPEC-003 §13.2), so that only the fidelity is measured. In ``context-strict`` it is a
    finding.
    """
    checked = len(findings.attributions)
    counts = Counter(findings.attributions.values())
    fidelity = fidelity_score(
        fabrications=findings.fabrications,
        distortions=findings.distortions + findings.misattributions,
        contradictions=findings.contradictions,
        claims=checked,
    )
    grounding, signals = _signals(findings, findings.unmeasured | findings.cannot_tell, findings.weakest, fidelity)
    _, whole = _signals(findings, findings.unmeasured, findings.weakest_of_all, fidelity)
    doubt = compose(whole, calibration=calibration).base if findings.cannot_tell else 0.0
    composite = compose(
        signals, amplifiers=amplifiers, floors=_floors(findings), calibration=calibration, doubt=doubt,
        at_least=findings.consumed_score,
    )  # fmt: skip
    dominant = max(Attribution, key=lambda kind: (counts[kind], kind)) if checked else None
    return Risk(composite, signals, grounding, fidelity if checked else None, dominant)


def _signals(
    findings: RiskFindings, unmeasured: frozenset[str], weakest: NliScores | None, fidelity: float
) -> tuple[float | None, RiskSignals]:
    """Return the share of grounded claims and the signals, without the claims that are not measured."""
    checked = len(findings.attributions)
    names = [name for name in findings.attributions if name not in unmeasured]
    judged = [findings.attributions[name] for name in names]
    measured = findings.mode is not GroundingMode.OPEN and (bool(judged) or not checked)
    grounding = math.fsum(_share(findings, name) for name in names) / len(judged) if judged and measured else None
    return grounding, RiskSignals(
        attribution=(1.0 - grounding if grounding is not None else 0.0) if measured else None,
        fidelity=1.0 - fidelity,
        entailment=(1.0 - weakest.entailment if weakest else 0.0) if measured else None,
        specificity=judged.count(Attribution.UNVERIFIABLE) / max(1, len(judged)) if measured else None,
    )


def _share(findings: RiskFindings, name: str) -> float:
    """Return how far a claim is grounded."""
    whole = 1.0 if findings.attributions[name] is Attribution.CONTEXT_GROUNDED else 0.0
    return findings.shares.get(name, whole)


def amplifiers_for(*, personal_data: bool, loop_depth: int, domain: str, high_risk: bool) -> list[Amplifier]:
    """Return the amplifiers of the call itself (§17).

    *domain* is a canonical name of ``domain/risk/regulatory.py``; *high_risk* tells whether its class is high-risk.
    """
    conditions = (
        (Amplifier.GDPR_PII, personal_data),
        (Amplifier.EU_AI_ACT_HIGH_RISK, high_risk),
        (Amplifier.FINANCIAL_OR_MEDICAL, domain in _SECTORAL_DOMAINS),
        (Amplifier.LOOP_DEPTH, loop_depth > LOOP_DEPTH_ABOVE),
    )
    return [amplifier for amplifier, holds in conditions if holds]


def _floors(findings: RiskFindings) -> list[Floor]:
    kinds = findings.attributions.values()
    conditions = (
        (Floor.EMPTY_RESPONSE, findings.empty),
        (Floor.NO_CHECKABLE_CLAIM, findings.wordless),
        (Floor.HIDDEN_CHARACTERS, findings.hidden_characters > 0),
        (Floor.ADDRESSES_JUDGE, findings.addresses_judge > 0),
        (Floor.FABRICATION_FOUND, findings.fabrications > 0),
        (Floor.DISTORTION_FOUND, findings.distortions > 0),
        (Floor.MISBINDING_FOUND, findings.misbindings > 0),
        (Floor.FINDING_CONFIRMED, findings.confirmed > 0),
        (Floor.CONTRADICTION_FOUND, findings.contradictions > 0),
        (Floor.UNREAD_LANGUAGE, findings.unread),
        (Floor.CANNOT_TELL, findings.doubt_raises and bool(findings.cannot_tell)),
        (Floor.MISATTRIBUTION_FOUND, findings.misattributions > 0),
        (Floor.PARAMETRIC_CONTENT, findings.mode is GroundingMode.STRICT and not _FROM_MEMORY.isdisjoint(kinds)),
    )
    return [*(floor for floor, holds in conditions if holds), *(Floor(name) for name in sorted(findings.calls))]
