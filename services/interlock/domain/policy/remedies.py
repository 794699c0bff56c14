"""The choice of a remedy before an answer is delivered or refused (SPEC-005 §9.3, §10.3, §11.5, §19; docs/adr/0006).

A remedy is tried only when a better answer could be delivered. Each window has at most two re-dispatches, one continuation and
one bridge, so that no call can loop for ever (reliability.md section 7, row 23).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import IntEnum

from interlock.domain.policy.directives import Policy, Repetition
from interlock.domain.policy.enforcement import Action, Breach
from interlock.domain.policy.findings import Findings
from interlock.domain.risk.risk import RiskLevel

MOST_REDISPATCHES = 2
"""Maximum re-dispatches of one window (§19.2)."""

MOST_CONTINUATIONS = 1
"""Maximum automatic continuations of one window (docs/adr/0006)."""

FLOW_BELOW = 0.50
"""Flow below which a break is remedied: the bound of §11.5, which includes the 0.30 of §19.1."""

COMPLETE_FROM = 0.70
"""Completeness below which an answer is PARTIAL or INCOMPLETE (§10.2)."""

REDISPATCH_STRATEGY = "reflexive"
"""Strategy of every re-dispatch (§19.2). It also replaces ``hierarchical`` and ``batch`` (docs/adr/0006)."""


class Remedy(IntEnum):
    """What a re-dispatch must improve. The numbers equal ``interlock.api.policy.v1.Remedy``."""

    UPGRADE = 1
    CONTEXT_CORRECTION = 2
    ANTI_REPETITION = 3
    FLOW_AUGMENTATION = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The remedies tried for the window so far, and the constraints of its call."""

    remediable: bool
    redispatches: int
    continuations: int
    stitched: bool
    windows_left: int
    no_cache: bool
    continues: bool = False
    """The caller continues an earlier answer, so a break in the flow is a fault, not a change of subject."""


SPENT = Progress(
    remediable=False,
    redispatches=MOST_REDISPATCHES,
    continuations=MOST_CONTINUATIONS,
    stitched=True,
    windows_left=0,
    no_cache=True,
)
"""The progress after which no remedy is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Treatment:
    """The next step: REDISPATCH with all remedies at once, CONTINUE, or STITCH."""

    action: Action
    remedies: tuple[Remedy, ...] = ()


_QUALITY = frozenset({"require-quality", "CRP-Accept-Quality"})
_GROUND = frozenset({"require-grounding", "require-entailment"})
_REPEATS = frozenset({"block-repetition", "max-repetition"})
_CURED_BY_STITCH = _QUALITY | {"require-flow"}
_CURED_BY_MORE = _CURED_BY_STITCH | {"require-completeness"}


def treatment(
    policy: Policy, findings: Findings, broken: Collection[Breach], progress: Progress, *, lasting: Collection[str]
) -> Treatment | None:
    """Return the next remedy; ``None`` when the decision is final.

    *broken* are the breaches of the answer, *lasting* the directives that no other answer can satisfy.
    """
    stopping = [breach for breach in broken if breach.action is not Action.DELIVER]
    if not progress.remediable or any(_hopeless(breach, lasting) for breach in stopping):
        return None
    names = frozenset(breach.name for breach in stopping)
    again = tuple(_wanted(policy, findings, names, continues=progress.continues))
    if again and progress.redispatches < MOST_REDISPATCHES:
        return Treatment(action=Action.REDISPATCH, remedies=again)
    if _may_continue(progress) and _incomplete(findings, names) and names <= _CURED_BY_MORE:
        return Treatment(action=Action.CONTINUE)
    if Remedy.FLOW_AUGMENTATION in again and not progress.stitched and names <= _CURED_BY_STITCH:
        return Treatment(action=Action.STITCH)
    return None


def _hopeless(breach: Breach, lasting: Collection[str]) -> bool:
    """Tell whether another attempt is useless: a stage did not run, personal data was found, or no answer can comply."""
    return breach.missing or breach.name == "block-pii" or breach.directive in lasting


def _wanted(policy: Policy, findings: Findings, names: frozenset[str], *, continues: bool) -> Iterator[Remedy]:
    if policy.upgrade_on_risk is not None and (findings.risk >= upgrades_from(policy) or names & _GROUND):
        yield Remedy.UPGRADE
    if findings.contradicted:
        yield Remedy.CONTEXT_CORRECTION
    if findings.repetition is Repetition.SEVERE or names & _REPEATS:
        yield Remedy.ANTI_REPETITION
    if (continues and _below(findings.flow, FLOW_BELOW)) or "require-flow" in names:
        yield Remedy.FLOW_AUGMENTATION


def upgrades_from(policy: Policy) -> RiskLevel:
    """Return the lowest risk at which ``upgrade-on-risk`` acts: HIGH, or ``warn-on`` if that is stricter (SPEC-006 §3.14)."""
    return RiskLevel.HIGH if policy.warn_on is None else min(RiskLevel.HIGH, policy.warn_on)


def _may_continue(progress: Progress) -> bool:
    return progress.windows_left > 0 and not progress.no_cache and progress.continuations < MOST_CONTINUATIONS


def _incomplete(findings: Findings, names: frozenset[str]) -> bool:
    return _below(findings.completeness, COMPLETE_FROM) or "require-completeness" in names


def _below(score: float | None, bound: float) -> bool:
    """Tell whether a known score is below *bound*. NaN is below every bound."""
    return score is not None and not score >= bound
