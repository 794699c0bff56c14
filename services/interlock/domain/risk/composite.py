"""The composite hallucination risk: four signals, weighed, amplified, floored and classified (SPEC-005 §7, §16, §17).

Weights and factors are this deployment's calibration (§16.3). Their constructors check them: the weights sum to 1.0 and
follow the order of §16.2, the factors follow the order of §17. Thresholds are normative and are in ``risk``.

Floors answer reliability.md section 7, row 25: an average over claims hides one bad claim among many, and is undefined for a
text without claims. So each finding below prevents LOW. A floor of a text is MEDIUM and not more: it costs budget and is visible,
while policies that stop such an answer (block-fabrication, require-grounding) act on the findings themselves. The number of
bad claims still decides whether the risk is HIGH or CRITICAL. Three findings weigh more by themselves. A claim that binds the
source's own words otherwise (the tenant repairs what the landlord must) is HIGH: it reads as if it were the source. On everyday answers
that were held back its finding stands six times as often on a bent answer as on a faithful one. A claim that a rule finds bent and
that the model or a calculation contradicts is HIGH: two witnesses agree. A tool call acts, and one wrong amount is enough: an argument
that nothing shows is HIGH, a function that was not declared CRITICAL, whatever else the answer says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import Enum
from itertools import pairwise

from interlock.domain.risk.risk import CRITICAL_FROM, HIGH_FROM, MEDIUM_FROM, RiskLevel, classify

_SLACK = 1e-9
_LOW_AT_MOST = MEDIUM_FROM - 0.01


class Amplifier(Enum):
    """A condition that raises the stakes (§17)."""

    GDPR_PII = "GDPR_PII"
    EU_AI_ACT_HIGH_RISK = "EU_AI_ACT_HIGH_RISK"
    FINANCIAL_OR_MEDICAL = "FINANCIAL_OR_MEDICAL"
    LOOP_DEPTH = "LOOP_DEPTH"
    CROSS_WINDOW_CONTRADICTION = "CROSS_WINDOW_CONTRADICTION"
    SEVERE_REPETITION = "SEVERE_REPETITION"


_RANKS = (
    (Amplifier.GDPR_PII,),
    (Amplifier.EU_AI_ACT_HIGH_RISK,),
    (Amplifier.FINANCIAL_OR_MEDICAL, Amplifier.LOOP_DEPTH, Amplifier.CROSS_WINDOW_CONTRADICTION),
    (Amplifier.SEVERE_REPETITION,),
)


class Floor(Enum):
    """A finding that prevents the class LOW."""

    EMPTY_RESPONSE = "EMPTY_RESPONSE"
    NO_CHECKABLE_CLAIM = "NO_CHECKABLE_CLAIM"
    HIDDEN_CHARACTERS = "HIDDEN_CHARACTERS"
    FABRICATION_FOUND = "FABRICATION_FOUND"
    DISTORTION_FOUND = "DISTORTION_FOUND"
    MISBINDING_FOUND = "MISBINDING_FOUND"
    FINDING_CONFIRMED = "FINDING_CONFIRMED"
    CONTRADICTION_FOUND = "CONTRADICTION_FOUND"
    ADDRESSES_JUDGE = "ADDRESSES_JUDGE"
    MISATTRIBUTION_FOUND = "MISATTRIBUTION_FOUND"
    PARAMETRIC_CONTENT = "PARAMETRIC_CONTENT"
    CANNOT_TELL = "CANNOT_TELL"
    UNREAD_LANGUAGE = "UNREAD_LANGUAGE"
    UNDECLARED_TOOL = "UNDECLARED_TOOL"
    UNGROUNDED_ARGUMENT = "UNGROUNDED_ARGUMENT"
    UNUSUAL_ARGUMENT = "UNUSUAL_ARGUMENT"
    UNSAID_TOOL_VALUE = "UNSAID_TOOL_VALUE"
    CONSUMED_RISK = "CONSUMED_RISK"


_SEVERE = {
    Floor.MISBINDING_FOUND: HIGH_FROM,
    Floor.FINDING_CONFIRMED: HIGH_FROM,
    Floor.UNDECLARED_TOOL: CRITICAL_FROM,
    Floor.UNGROUNDED_ARGUMENT: HIGH_FROM,
    Floor.UNSAID_TOOL_VALUE: HIGH_FROM,
}
"""Least score of an answer with such a finding; the other floors are the calibration's."""


@dataclass(frozen=True)
class RiskSignals:
    """The four inputs, 0.0 best, 1.0 worst (§7.2). ``None``: not measured, because there is nothing to measure against."""

    attribution: float | None
    fidelity: float
    entailment: float | None
    specificity: float | None


@dataclass(frozen=True)
class Weights:
    """Weight of each signal. Raises ``ValueError`` for weights that break §16.2 or §16.3."""

    attribution: float = 0.35
    fidelity: float = 0.25
    entailment: float = 0.25
    specificity: float = 0.15

    def __post_init__(self) -> None:
        """Check §16.2 and §16.3: the sum is 1.0; attribution first, then fidelity and entailment with equal weights."""
        if abs(math.fsum(asdict(self).values()) - 1.0) > _SLACK:
            raise ValueError("the weights must sum to 1.0 (SPEC-005 §16.3)")
        middle_is_equal = math.isclose(self.fidelity, self.entailment, abs_tol=_SLACK)
        if not (self.attribution > self.fidelity and middle_is_equal and self.entailment > self.specificity >= 0.0):
            raise ValueError("attribution must weigh most, fidelity and entailment the same, specificity least (§16.2)")


def _factors() -> dict[Amplifier, float]:
    return {
        Amplifier.GDPR_PII: 1.30,
        Amplifier.EU_AI_ACT_HIGH_RISK: 1.25,
        Amplifier.FINANCIAL_OR_MEDICAL: 1.15,
        Amplifier.LOOP_DEPTH: 1.15,
        Amplifier.CROSS_WINDOW_CONTRADICTION: 1.15,
        Amplifier.SEVERE_REPETITION: 1.05,
    }


@dataclass(frozen=True)
class Calibration:
    """Weights, factors and floor in use. Raises ``ValueError`` for values that break an order of the specification."""

    weights: Weights = field(default_factory=Weights)
    factors: dict[Amplifier, float] = field(default_factory=_factors)
    floor: float = MEDIUM_FROM

    def __post_init__(self) -> None:
        """Check §17: substantial over significant over moderate over light over none."""
        if set(self.factors) != set(Amplifier):
            raise ValueError("every amplifier needs a factor (§17)")
        ranks = [[self.factors[a] for a in rank] for rank in _RANKS]
        bounds = [*ranks, [1.0]]
        if any(min(above) <= max(below) for above, below in pairwise(bounds)):
            raise ValueError("amplifier factors must keep the order of SPEC-005 §17 and be above 1.0")
        if not 0.0 <= self.floor <= 1.0:
            raise ValueError("the floor must be from 0.0 to 1.0")


@dataclass(frozen=True)
class Composite:
    """The score, its derivation and its class."""

    base: float
    score: float
    level: RiskLevel
    amplifiers: tuple[Amplifier, ...]
    floors: tuple[Floor, ...]


def compose(
    signals: RiskSignals,
    *,
    amplifiers: Iterable[Amplifier] = (),
    floors: Iterable[Floor] = (),
    calibration: Calibration,
    doubt: float = 0.0,
    at_least: float = 0.0,
) -> Composite:
    """Return the composite of one answer.

    *doubt*, 0.0 to 1.0, is the base that claims of which the evidence says nothing would give. It orders answers of the class LOW
    and raises none above it. *at_least* is the score of the earlier answers that this one rests on (requirements.md, reading 16);
    from MEDIUM up it is a floor like the others, CONSUMED_RISK.

    A signal outside 0.0 to 1.0 is clamped; NaN makes the answer CRITICAL (reliability.md A-40). Amplifiers multiply, so a
    base of 0.0 remains 0.0. A floor raises a score and never lowers it. The weights of signals that were not measured are
    shared out over the others in proportion.
    """
    values = {name: value for name, value in asdict(signals).items() if value is not None}
    weights = asdict(calibration.weights)
    share = math.fsum(weights[name] for name in values) if len(values) < len(weights) else 1.0
    applied = tuple(a for a in Amplifier if a in set(amplifiers))
    consumed = [Floor.CONSUMED_RISK] if at_least >= MEDIUM_FROM else []
    held = tuple(f for f in Floor if f in {*floors, *consumed})
    if any(math.isnan(value) for value in values.values()):
        return Composite(1.0, 1.0, RiskLevel.CRITICAL, applied, held)
    base = math.fsum(weights[name] * _clamped(value) for name, value in values.items()) / share
    amplified = base * math.prod(calibration.factors[a] for a in applied)
    floor = max([_clamped(at_least), *(max(_SEVERE.get(one, 0.0), calibration.floor) for one in held)])
    score = min(1.0, max(amplified, floor))
    score += max(0.0, _LOW_AT_MOST - score) * _clamped(doubt)
    return Composite(base, score, classify(score), applied, held)


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))


def fidelity_score(*, fabrications: int, distortions: int, contradictions: int, claims: int) -> float:
    """Return the fidelity score of §5.5, clamped to 0.0 to 1.0."""
    return _clamped(1.0 - (fabrications * 0.30 + distortions * 0.20 + contradictions * 0.15) / max(1, claims))
