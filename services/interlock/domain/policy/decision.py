"""The decision about an analysed response, as a pure function (SPEC-006 §3 and §4, SPEC-012 §2.3 and §5)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from interlock.domain.breaker import BreakerState, breaker_state
from interlock.domain.budget import EXHAUSTED_AT, FULL, Micros, charge
from interlock.domain.errors import invalid
from interlock.domain.policy.directives import Oversight, Policy, Tier
from interlock.domain.policy.enforcement import Action, Breach, breaches, not_good_enough
from interlock.domain.policy.findings import Findings
from interlock.domain.policy.improvement import Axis
from interlock.domain.policy.remedies import REDISPATCH_STRATEGY, SPENT, Progress, Remedy, Treatment, treatment
from interlock.domain.risk.risk import RiskLevel

BUDGET_DEPLETED = "BUDGET_DEPLETED"
SAFETY_HALT = "SAFETY_HALT"
HELD_FOR_REVIEW = "HELD_FOR_REVIEW"
RISK_NOT_ACCEPTED = "RISK_NOT_ACCEPTED"
SIGNAL_NOT_AVAILABLE = "SIGNAL_NOT_AVAILABLE"
QUALITY_NOT_AVAILABLE = "QUALITY_NOT_AVAILABLE"
HUMAN_REVIEW_UNAVAILABLE = "HUMAN_REVIEW_UNAVAILABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The inputs of a decision besides the findings. An empty ``accept_quality`` accepts every tier."""

    policy: Policy
    report_only: Policy
    breaker: BreakerState
    budget: Micros
    charge: Micros
    accept_risk: RiskLevel | None
    accept_quality: frozenset[Tier]
    no_store: bool
    progress: Progress = field(default=SPENT)
    reviewed: bool = True
    """Whether a reviewer is registered who may release: without one, what would be held is halted, and no halt has a way out."""
    observed: bool = False
    """Whether the response is delivered in any case, and the decision only tells what would have been done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOutcome:
    """What happens and why. ``reason`` and ``halt_reason`` are constants, and empty when the response is delivered.

    ``halt_reason`` is a reason of SPEC-002 §13.2, HIGH_ or MEDIUM_HALLUCINATION_RISK, or the type of the breach.
    ``cause`` is the directive, header, budget or eu-ai-act that led to it, or none.
    """

    action: Action
    cause: str
    reason: str = ""
    halt_reason: str = ""
    oversight_required: bool = False
    """Whether a registered reviewer may release the response; never true where nobody could."""
    remedies: tuple[Remedy, ...] = ()
    """The remedies of a re-dispatch; empty for every other action."""
    strategy: str = ""
    """Strategy of a re-dispatch; empty for every other action."""
    axes: frozenset[Axis] = frozenset()
    """What called for a remedy; empty for every other action."""


_DELIVERED = PolicyOutcome(action=Action.DELIVER, cause="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one decision."""

    outcome: PolicyOutcome
    oversight: Oversight
    warned: bool
    broken: tuple[Breach, ...]
    reported: tuple[Breach, ...]
    """Breaches of the report-only policy. They change nothing else (I13)."""
    unprotected_pii: bool
    """Personal data was found and the caller did not declare no-store; this is logged (SPEC-002 §7.3)."""
    would: PolicyOutcome | None = None
    """What would have been done to an observed response; ``None`` when it would have been delivered."""


def decide(situation: Situation, findings: Findings) -> Verdict:
    """Return what happens to the response. The order is HALT, HOLD, REJECT_QUALITY, DELIVER.

    A remedy comes before all of them, as long as one is left that could lead to the delivery of a better answer.
    An observed response is delivered whatever was found; the rest of the verdict then says what would have been.
    Refused with BUDGET_OUT_OF_RANGE when the budget or the charge is out of range.
    """
    verdict = _enforced(situation, findings)
    return _observed(verdict) if situation.observed else verdict


def _observed(verdict: Verdict) -> Verdict:
    """Return the verdict about a response that is only watched: its policy reports, and changes nothing."""
    would = None if verdict.outcome.action is Action.DELIVER else verdict.outcome
    return replace(
        verdict,
        outcome=_DELIVERED,
        oversight=Oversight.LOG_ONLY if would else verdict.oversight,
        broken=(),
        reported=(*verdict.broken, *verdict.reported),
        would=would,
    )


def _enforced(situation: Situation, findings: Findings) -> Verdict:
    _check_money(situation)
    state = _state(situation)
    oversight = _oversight(situation.policy, state)
    policy = situation.policy._replace(oversight=oversight)
    broken = (*breaches(policy, findings), *_not_accepted(situation, findings))
    tried = _treatment(situation, policy, findings, broken)
    return Verdict(
        outcome=_treated(tried) if tried else _outcome(broken, state, findings, _release(situation, oversight)),
        oversight=oversight,
        warned=policy.warn_on is not None and findings.risk >= policy.warn_on,
        broken=broken,
        reported=tuple(breaches(situation.report_only, findings)),
        unprotected_pii=findings.pii is True and not situation.no_store,
    )


def _check_money(situation: Situation) -> None:
    for name, amount in (("session_budget", situation.budget), ("charge", situation.charge)):
        if not EXHAUSTED_AT <= amount <= FULL:
            raise invalid("BUDGET_OUT_OF_RANGE", f"{name} must be from 0 to {FULL} millionths", field=name)


def _state(situation: Situation) -> BreakerState:
    """Return the breaker state that applies: the stricter of the states before and after the response's own charge.

    A response is released only after its charge is settled, so the later state is in force by then. A call that takes the
    budget to 0.10 is itself halted (I2), and a call that takes it to 0.50 is itself reviewed. The earlier state may be
    stricter than this budget implies: another branch of the session may have opened the breaker (requirements.md, reading 7).
    """
    return max(situation.breaker, breaker_state(charge(situation.budget, situation.charge)))


def _oversight(policy: Policy, state: BreakerState) -> Oversight:
    """Return the mode that applies: at least human-review unless the breaker is CLOSED (requirements.md, reading 1)."""
    chosen = Oversight.AUTO if policy.oversight is None else policy.oversight
    return chosen if state is BreakerState.CLOSED else max(chosen, Oversight.HUMAN_REVIEW)


def _not_accepted(situation: Situation, findings: Findings) -> list[Breach]:
    """Return the breaches of the caller's own bounds for this call (SPEC-002 §4.13, §5.14).

    CRP-Accept-Quality names minimum tiers: a tier better than the lowest named one is never refused.
    """
    found = []
    risk, tiers = situation.accept_risk, situation.accept_quality
    if risk is not None and findings.risk > risk:
        found.append(Breach(f"CRP-Accept-Risk {risk.name}", RISK_NOT_ACCEPTED, findings.risk.name, Action.HALT))
    if not tiers:
        return found
    ranked = list(Tier)
    lowest = max(ranked.index(tier) for tier in tiers)
    if findings.tier is None or ranked.index(findings.tier) > lowest:
        named = " ".join(tier for tier in ranked if tier in tiers)
        found.append(not_good_enough(f"CRP-Accept-Quality {named}", findings.tier))
    return found


def _treatment(
    situation: Situation, policy: Policy, findings: Findings, broken: tuple[Breach, ...]
) -> Treatment | None:
    """Return the remedy to try; ``None`` where no remedy can help: a spent budget, a prohibited use.

    The budget after this response's own charge does not count: a better answer costs less, and this one is not charged
    when another replaces it (SPEC-005 §19.3).
    """
    if not situation.progress.remediable or findings.prohibited:
        return None
    if max(situation.breaker, breaker_state(situation.budget)) is BreakerState.OPEN:
        return None
    tried = treatment(policy, findings, broken, situation.progress, lasting=_lasting(situation, policy, findings))
    if tried and tried.action is not Action.REDISPATCH and _state(situation) is BreakerState.OPEN:
        return None
    return tried


def _lasting(situation: Situation, policy: Policy, findings: Findings) -> frozenset[str]:
    """Return the directives that no answer can satisfy: 'none' as source, and a tier above that of the envelope."""
    best = replace(findings, tier=findings.envelope_tier or findings.tier)
    found = (*breaches(policy, best), *_not_accepted(situation, best))
    return frozenset(
        breach.directive
        for breach in found
        if breach.action is Action.REJECT_QUALITY or breach.directive == "default-src 'none'"
    )


def _treated(tried: Treatment) -> PolicyOutcome:
    again = tried.action is Action.REDISPATCH
    return PolicyOutcome(
        action=tried.action,
        cause="remedy",
        remedies=tried.remedies,
        strategy=REDISPATCH_STRATEGY if again else "",
        axes=tried.axes,
    )


class _Release(NamedTuple):
    """What reviewers may do: release a held response, and one that ``halt-on`` halted (requirements.md, reading 15)."""

    held: bool
    halted: bool


def _release(situation: Situation, oversight: Oversight) -> _Release:
    return _Release(situation.reviewed, situation.reviewed and oversight is not Oversight.HALT)


def _outcome(broken: tuple[Breach, ...], state: BreakerState, findings: Findings, release: _Release) -> PolicyOutcome:
    """Return the outcome, named by its gravest cause.

    The order is: a spent budget, which ends the session; a prohibited use; findings in the response; absent signals.
    """
    if state is BreakerState.OPEN:
        return _halt("budget", BUDGET_DEPLETED, "SAFETY_BUDGET_DEPLETED")
    if findings.prohibited:
        return _halt("eu-ai-act", SAFETY_HALT, "UNACCEPTABLE_EU_AI_ACT")
    halting = [breach for breach in broken if breach.action is Action.HALT]
    if halting:
        # What another directive forbids too, such as block-pii, no approval of the risk lets out.
        releasable = release.halted and all(breach.name == "halt-on" for breach in halting)
        return _halted_by(min(halting, key=lambda each: each.missing), findings.risk, releasable=releasable)
    for action in (Action.HOLD, Action.REJECT_QUALITY):
        first = next((breach for breach in broken if breach.action is action), None)
        if first is not None:
            return _kept_back(first, reviewed=release.held)
    return _DELIVERED


def _halted_by(breach: Breach, risk: RiskLevel, *, releasable: bool) -> PolicyOutcome:
    if breach.missing:
        return _halt(breach.name, SIGNAL_NOT_AVAILABLE, SIGNAL_NOT_AVAILABLE)
    if breach.type == RISK_NOT_ACCEPTED:
        return _halt(breach.name, RISK_NOT_ACCEPTED, RISK_NOT_ACCEPTED)
    if breach.name in {"halt-on", "oversight"}:
        return _halt(breach.name, SAFETY_HALT, f"{risk.name}_HALLUCINATION_RISK", oversight_required=releasable)
    return _halt(breach.name, SAFETY_HALT, breach.type)


def _halt(cause: str, reason: str, halt_reason: str, *, oversight_required: bool = False) -> PolicyOutcome:
    return PolicyOutcome(
        action=Action.HALT, cause=cause, reason=reason, halt_reason=halt_reason, oversight_required=oversight_required
    )


def _kept_back(breach: Breach, *, reviewed: bool) -> PolicyOutcome:
    held = breach.action is Action.HOLD
    if held and not reviewed:  # held for nobody, it would only expire
        return _halt(breach.name, HUMAN_REVIEW_UNAVAILABLE, HUMAN_REVIEW_UNAVAILABLE)
    return PolicyOutcome(
        action=breach.action,
        cause=breach.name,
        reason=HELD_FOR_REVIEW if held else QUALITY_NOT_AVAILABLE,
        halt_reason=HELD_FOR_REVIEW if held else breach.type,
        oversight_required=held,
    )
