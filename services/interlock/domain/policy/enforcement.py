"""The directives that a response breaks, and the action for each breach (SPEC-006 §3).

A directive whose signal is absent is broken: a detector that did not run never passes a response (I10).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from interlock.domain.policy.directives import Oversight, Policy, Repetition, Source, Tier, kebab, written
from interlock.domain.policy.findings import ClaimBasis, Findings
from interlock.domain.risk.risk import RiskLevel


class Action(IntEnum):
    """What happens to a response. The numbers equal ``interlock.api.policy.v1.Action``."""

    DELIVER = 1
    REDISPATCH = 2
    CONTINUE = 3
    HOLD = 4
    HALT = 5
    REJECT_QUALITY = 6
    STITCH = 7


@dataclass(frozen=True, slots=True)
class Breach:
    """A directive that a response broke, and the action that this breach alone would cause."""

    directive: str
    type: str
    found: str
    action: Action
    missing: bool = False

    @property
    def name(self) -> str:
        """Name of the directive without its value."""
        return self.directive.partition(" ")[0]


NEEDED: dict[ClaimBasis, frozenset[Source]] = {
    ClaimBasis.CONTEXT_GROUNDED: frozenset({Source.CONTEXT}),
    ClaimBasis.PARAMETRIC: frozenset({Source.PARAMETRIC}),
    ClaimBasis.UNVERIFIABLE: frozenset({Source.PARAMETRIC}),
    ClaimBasis.MIXED: frozenset({Source.CONTEXT, Source.PARAMETRIC}),
}
"""Sources that ``default-src`` must list for a claim of each attribution (SPEC-006 §3.1, SPEC-005 §4.2).

No signal distinguishes a fact of the cross-session graph from a fact of the session, so ``ckf`` and ``cross-session`` alone
admit nothing.
"""

_UNGROUNDED = frozenset({ClaimBasis.PARAMETRIC, ClaimBasis.UNVERIFIABLE})
_NOT_ONLY_CONTEXT = frozenset(ClaimBasis) - {ClaimBasis.CONTEXT_GROUNDED}
_SCORES = ("grounding", "entailment", "flow", "completeness")


def requires_grounding(policy: Policy) -> bool:
    """Whether *policy* admits no factual content without a source.

    True for a ``default-src`` without ``parametric``, thresholds of grounding and entailment, and the two blocks of content
    without a source (SPEC-006 §3.1, §3.4, §3.5, §3.9, §3.10).
    """
    untrusted = policy.default_src is not None and Source.PARAMETRIC not in policy.default_src
    thresholds = (policy.require_grounding, policy.require_entailment)
    return untrusted or policy.block_ungrounded or policy.block_parametric or any(thresholds)


def breaches(policy: Policy, findings: Findings) -> list[Breach]:
    """Return every directive of *policy* that the response breaks, the gravest first."""
    return [
        *_risk(policy, findings.risk),
        *_sources(policy, findings.attributions),
        *_scores(policy, findings),
        *_contents(policy, findings),
        *_quality(policy, findings.tier),
    ]


def _risk(policy: Policy, risk: RiskLevel) -> Iterator[Breach]:
    if policy.halt_on is not None and risk >= policy.halt_on:
        yield Breach(f"halt-on {policy.halt_on.name}", f"HALT_ON_{policy.halt_on.name}", risk.name, Action.HALT)
    if policy.oversight is not None:
        yield from _oversight(policy.oversight, risk)
    if policy.warn_on is not None and risk >= policy.warn_on:
        yield Breach(f"warn-on {policy.warn_on.name}", f"WARN_ON_{policy.warn_on.name}", risk.name, Action.DELIVER)


def _oversight(mode: Oversight, risk: RiskLevel) -> Iterator[Breach]:
    """Apply SPEC-002 §5.10. ``halt`` also holds what ``human-review`` holds; otherwise a stricter policy would release HIGH risk.

    ``auto`` leaves the decision to the other directives. ``log-only`` overrides none of them: the most restrictive wins
    (SPEC-006 §4.1).
    """
    directive = f"oversight {kebab(mode)}"
    if mode is Oversight.HALT and risk is RiskLevel.CRITICAL:
        yield Breach(directive, "OVERSIGHT_HALT", risk.name, Action.HALT)
    elif mode >= Oversight.HUMAN_REVIEW and risk >= RiskLevel.HIGH:
        yield Breach(directive, "OVERSIGHT_REQUIRED", risk.name, Action.HOLD)


def _sources(policy: Policy, attributions: frozenset[ClaimBasis] | None) -> Iterator[Breach]:
    rules = (
        ("default-src", "SOURCE_NOT_TRUSTED", _untrusted(policy.default_src)),
        ("block-ungrounded", "UNGROUNDED_CLAIM", _UNGROUNDED if policy.block_ungrounded else None),
        ("block-parametric", "PARAMETRIC_CONTENT", _NOT_ONLY_CONTEXT if policy.block_parametric else None),
    )
    for name, kind, refused in rules:
        if refused is None:
            continue
        directive = f"{name} {written(name, policy.default_src)}" if name == "default-src" else name
        if attributions is None:
            yield Breach(directive, kind, "", Action.HALT, missing=True)
        elif refused & attributions or directive == "default-src 'none'":  # 'none' also blocks output without a claim
            yield Breach(directive, kind, " ".join(each.name for each in sorted(refused & attributions)), Action.HALT)


def _untrusted(trusted: frozenset[Source] | None) -> frozenset[ClaimBasis] | None:
    if trusted is None:  # means `context parametric`, which admits every attribution
        return None
    return frozenset(attribution for attribution, needed in NEEDED.items() if not needed <= trusted)


def _scores(policy: Policy, findings: Findings) -> Iterator[Breach]:
    for name in _SCORES:
        threshold: int | None = getattr(policy, f"require_{name}")
        score: float | None = getattr(findings, name)
        if threshold is None or (score is None and name in findings.undefined):
            continue
        directive = f"require-{name} {written(f'require-{name}', threshold)}"
        kind = f"{name.upper()}_BELOW_THRESHOLD"
        if score is None:
            yield Breach(directive, kind, "", Action.HALT, missing=True)
        elif not score >= threshold / 100:  # so that NaN is below every threshold
            yield Breach(directive, kind, repr(score), Action.HALT)


def _contents(policy: Policy, findings: Findings) -> Iterator[Breach]:
    if policy.block_pii and findings.pii is not False:
        yield _found("block-pii", "PII_DETECTED", None if findings.pii is None else "true")
    if policy.block_fabrication and findings.fabrications != 0:
        yield _found("block-fabrication", "FABRICATION_DETECTED", findings.fabrications)
    level = findings.repetition
    repetition = None if level is None else level.name
    if policy.block_repetition and (level is None or level is Repetition.SEVERE):
        yield _found("block-repetition", "REPETITION_SEVERE", repetition)
    if policy.max_repetition is not None and (level is None or level > policy.max_repetition):
        yield _found(f"max-repetition {policy.max_repetition.name}", "REPETITION_ABOVE_MAXIMUM", repetition)
    if policy.halt_on_action and findings.refused_actions != 0:
        yield _found("halt-on-action", "ACTION_REFUSED", findings.refused_actions)
    most, share = policy.max_cannot_tell, findings.cannot_tell
    if most is not None and (share is None or not share <= most / 100):  # so that NaN is above every maximum
        directive = f"max-cannot-tell {written('max-cannot-tell', most)}"
        yield _found(directive, "CANNOT_TELL_ABOVE_MAXIMUM", None if share is None else repr(share))


def _found(directive: str, kind: str, found: object) -> Breach:
    return Breach(directive, kind, "" if found is None else str(found), Action.HALT, missing=found is None)


def _quality(policy: Policy, tier: Tier | None) -> Iterator[Breach]:
    if policy.require_quality is not None and tier not in policy.require_quality:
        directive = f"require-quality {written('require-quality', policy.require_quality)}"
        yield not_good_enough(directive, tier)


def not_good_enough(directive: str, tier: Tier | None) -> Breach:
    """Return the breach of a required quality: HTTP 503, also for an unknown tier (SPEC-006 §3.6)."""
    return Breach(directive, "QUALITY_BELOW_TIER", tier or "", Action.REJECT_QUALITY, missing=tier is None)
