"""The choice of a remedy before an answer is delivered or refused (SPEC-005 §9.3, §10.3, §11.5, §19; docs/adr/0006, 0019).

A remedy is tried only when a better answer could be delivered, and only where somebody asked for it: the operator by a
setting, or the policy by a directive that names it. Each window has at most two re-dispatches, one continuation and one
bridge, so that no call can loop for ever (reliability.md section 7, row 23). Whether what a remedy brought takes the place
of the draft is decided in ``improvement``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from interlock.domain.policy.directives import Policy, Repetition
from interlock.domain.policy.enforcement import Action, Breach
from interlock.domain.policy.findings import Findings
from interlock.domain.policy.improvement import FLOW_BELOW, Axis
from interlock.domain.risk.risk import RiskLevel

MOST_REDISPATCHES = 2
"""Maximum re-dispatches of one window (§19.2)."""

MOST_CONTINUATIONS = 1
"""Maximum automatic continuations of one window (docs/adr/0006)."""

COMPLETE_FROM = 0.70
"""Completeness below which an answer is PARTIAL or INCOMPLETE (§10.2)."""

REDISPATCH_STRATEGY = "reflexive"
"""Strategy of every re-dispatch (§19.2). It also replaces ``hierarchical`` and ``batch`` (docs/adr/0006)."""


class RemedyKind(StrEnum):
    """A remedy that an operator may switch on (setting ``remedies``). Each is off until then (ATT-10)."""

    REDISPATCH = "redispatch"
    CONTINUE = "continue"
    STITCH = "stitch"


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
    """The caller continues an earlier answer. Only then is a break in the flow a fault and no change of subject, and a
    repetition a fault and no answer to the same question asked again."""
    enabled: frozenset[RemedyKind] = frozenset()
    """The remedies that the operator switched on."""


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
    axes: frozenset[Axis] = frozenset()
    """What called for it: the axes of which one at least must become better."""


_QUALITY = frozenset({"require-quality", "CRP-Accept-Quality"})
_GROUND = {"require-grounding": Axis.GROUNDING, "require-entailment": Axis.ENTAILMENT}
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
    again = dict(_wanted(policy, findings, names, progress))
    if again and progress.redispatches < MOST_REDISPATCHES:
        return Treatment(action=Action.REDISPATCH, remedies=tuple(again), axes=frozenset().union(*again.values()))
    if _may_continue(policy, progress) and _incomplete(findings, names) and names <= _CURED_BY_MORE:
        return Treatment(action=Action.CONTINUE, axes=frozenset({Axis.COMPLETENESS}))
    if _may_stitch(progress) and _jumps(findings, names, progress) and names <= _CURED_BY_STITCH:
        return Treatment(action=Action.STITCH, axes=frozenset({Axis.FLOW}))
    return None


def _hopeless(breach: Breach, lasting: Collection[str]) -> bool:
    """Tell whether another attempt is useless: a stage did not run, personal data was found, or no answer can comply."""
    return breach.missing or breach.name == "block-pii" or breach.directive in lasting


def _wanted(
    policy: Policy, findings: Findings, names: frozenset[str], progress: Progress
) -> Iterator[tuple[Remedy, frozenset[Axis]]]:
    """Yield what a re-dispatch is to improve, each with its axes.

    A directive that names a remedy switches it on for the calls under that policy: ``upgrade-on-risk`` every re-dispatch
    (SPEC-006 §3.14, SPEC-005 §9.3), ``require-flow`` and ``block-repetition`` the one that they describe (§3.7, §3.12).
    """
    redispatches = RemedyKind.REDISPATCH in progress.enabled or policy.upgrade_on_risk is not None
    if policy.upgrade_on_risk is not None and (missed := _missed(policy, findings, names)):
        yield Remedy.UPGRADE, missed
    if redispatches and findings.contradicted:
        yield Remedy.CONTEXT_CORRECTION, frozenset({Axis.CONTRADICTIONS, Axis.GRAVEST_CONTRADICTION})
    repeats = findings.repetition is Repetition.SEVERE and progress.continues
    if "block-repetition" in names or (redispatches and (repeats or names & _REPEATS)):
        yield Remedy.ANTI_REPETITION, frozenset({Axis.REPETITION})
    if "require-flow" in names or (redispatches and _jumps(findings, names, progress)):
        yield Remedy.FLOW_AUGMENTATION, frozenset({Axis.FLOW})


def _missed(policy: Policy, findings: Findings, names: frozenset[str]) -> frozenset[Axis]:
    """Return the axes that call for an upgrade: the risk, and the demands that were missed."""
    risk = {Axis.RISK, Axis.COMPOSITE} if findings.risk >= upgrades_from(policy) else set()
    return frozenset(risk | {_GROUND[name] for name in names & _GROUND.keys()})


def _jumps(findings: Findings, names: frozenset[str], progress: Progress) -> bool:
    """Tell whether the flow breaks where it should not."""
    return "require-flow" in names or (progress.continues and _below(findings.flow, FLOW_BELOW))


def upgrades_from(policy: Policy) -> RiskLevel:
    """Return the lowest risk at which ``upgrade-on-risk`` acts: HIGH, or ``warn-on`` if that is stricter (SPEC-006 §3.14)."""
    return RiskLevel.HIGH if policy.warn_on is None else min(RiskLevel.HIGH, policy.warn_on)


def _may_continue(policy: Policy, progress: Progress) -> bool:
    """Tell whether a continuation is switched on, by the operator or by ``require-completeness`` (SPEC-006 §3.8), and left."""
    wanted = RemedyKind.CONTINUE in progress.enabled or policy.require_completeness is not None
    left = progress.windows_left > 0 and progress.continuations < MOST_CONTINUATIONS
    return wanted and left and not progress.no_cache


def _may_stitch(progress: Progress) -> bool:
    return RemedyKind.STITCH in progress.enabled and not progress.stitched


def _incomplete(findings: Findings, names: frozenset[str]) -> bool:
    return _below(findings.completeness, COMPLETE_FROM) or "require-completeness" in names


def _below(score: float | None, bound: float) -> bool:
    """Tell whether a known score is below *bound*. NaN is below every bound."""
    return score is not None and not score >= bound
