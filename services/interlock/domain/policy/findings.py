"""The signals of an analysed response that a safety policy can test: the input of ``enforcement`` and ``decision``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from interlock.domain.policy.directives import Repetition, Tier
from interlock.domain.risk.risk import RiskLevel


class ClaimBasis(IntEnum):
    """The basis of a claim (SPEC-005 §4.2). The numbers equal ``interlock.api.dpe.v1.Attribution``."""

    CONTEXT_GROUNDED = 1
    PARAMETRIC = 2
    MIXED = 3
    UNVERIFIABLE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Signals of one response. ``None`` means that a signal is absent because its stage did not run.

    ``undefined`` names the scores that have no value for this response although their stage ran: ``grounding`` and
    ``entailment`` without a checked claim, ``flow`` in the first window. They break no threshold. ``attributions`` are those of all checked
    claims.
    """

    risk: RiskLevel
    attributions: frozenset[ClaimBasis] | None
    grounding: float | None
    entailment: float | None
    flow: float | None
    completeness: float | None
    undefined: frozenset[str]
    fabrications: int | None
    repetition: Repetition | None
    pii: bool | None
    tier: Tier | None
    prohibited: bool
    """Whether the EU AI Act class is UNACCEPTABLE."""
    contradicted: bool = False
    """Whether the response contradicts an earlier window with severity CRITICAL (SPEC-005 §8.3)."""
    cannot_tell: float | None = None
    """Share of the checked claims that the evidence neither shows nor speaks against, 0.0 to 1.0; 0.0 without a checked claim."""
    refused_actions: int | None = None
    """Tool calls that the caller's kernel would reject; ``None`` where there are some and none was tried (KRN-11)."""
    envelope_tier: Tier | None = None
    """Tier of the envelope alone, before the quality score capped it; ``None`` when no cap is known."""
