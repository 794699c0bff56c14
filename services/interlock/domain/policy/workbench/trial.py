"""One decision tried by itself: what a policy does to an answer with given findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from interlock.domain.breaker import BreakerState, breaker_state
from interlock.domain.budget import EXHAUSTED_AT, FULL, Micros
from interlock.domain.policy.decision import PolicyOutcome, Situation, Verdict, decide
from interlock.domain.policy.directives import NOTHING, Policy, Repetition, Tier
from interlock.domain.policy.enforcement import Action
from interlock.domain.policy.findings import ClaimBasis, Findings
from interlock.domain.policy.remedies import SPENT, Progress
from interlock.domain.risk.risk import RiskLevel

CLEAN = Findings(
    risk=RiskLevel.LOW,
    attributions=frozenset({ClaimBasis.CONTEXT_GROUNDED}),
    grounding=1.0,
    entailment=1.0,
    flow=1.0,
    completeness=1.0,
    undefined=frozenset(),
    fabrications=0,
    repetition=Repetition.NONE,
    pii=False,
    tier=Tier.S,
    prohibited=False,
    cannot_tell=0.0,
    refused_actions=0,
)
"""An answer in which every stage ran and none found anything."""

FRESH = Progress(remediable=True, redispatches=0, continuations=0, stitched=False, windows_left=1, no_cache=False)
"""The progress of a first answer, with no remedy switched on but those that the policy names."""

WORDS = {
    Action.DELIVER: "delivered",
    Action.HOLD: "held",
    Action.HALT: "halted",
    Action.REJECT_QUALITY: "refused",
}
"""What happens to an answer when it is decided at last, in one word."""


class Acceptance(NamedTuple):
    """What the caller accepts for one call: CRP-Accept-Risk and CRP-Accept-Quality; without them, everything."""

    risk: RiskLevel | None = None
    quality: frozenset[Tier] = frozenset()


EVERYTHING = Acceptance()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An answer, and the state of its session when it is decided."""

    findings: Findings = CLEAN
    breaker: BreakerState = BreakerState.CLOSED
    budget: Micros = FULL
    charge: Micros = EXHAUSTED_AT
    accepts: Acceptance = EVERYTHING
    reviewed: bool = True
    """Whether a reviewer is registered who may release."""


def tried(policy: Policy, trial: Trial, progress: Progress = SPENT) -> Verdict:
    """Return what *policy* decides about an answer. By default no remedy is left, so that the decision is the last one."""
    return decide(
        Situation(
            policy=policy,
            report_only=NOTHING,
            breaker=max(trial.breaker, breaker_state(trial.budget)),
            budget=trial.budget,
            charge=trial.charge,
            accept_risk=trial.accepts.risk,
            accept_quality=trial.accepts.quality,
            no_store=True,
            progress=progress,
            reviewed=trial.reviewed,
        ),
        trial.findings,
    )


def word(outcome: PolicyOutcome) -> str:
    """Return what happens to an answer: delivered, held, halted, refused, or retried where a remedy is tried first."""
    return WORDS.get(outcome.action, "retried")
