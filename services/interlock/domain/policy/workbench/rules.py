"""What in a policy is legal and hardly meant: directives without effect, bounds that nothing breaks, and traps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

from interlock.domain.policy.directives import NOTHING, Oversight, Policy, Repetition, Source, Strategy, Tier, kebab
from interlock.domain.policy.enforcement import NEEDED
from interlock.domain.policy.findings import ClaimBasis
from interlock.domain.risk.risk import RiskLevel


class Gravity(StrEnum):
    """How surely a remark is about a mistake."""

    WARNING = "warning"
    NOTE = "note"


class Trap(NamedTuple):
    """A remark about one directive, or about the whole policy where ``directive`` is empty."""

    code: str
    weight: Gravity
    directive: str
    says: str


MOOT, VACUOUS = "MOOT", "VACUOUS"
"""Codes of directives without effect: another one does all that it does, or no answer breaks it once its stage ran."""

_EVERYTHING = {
    "require_grounding": "every grounding is at least 0.00",
    "require_entailment": "every entailment is at least 0.00",
    "require_flow": "every flow is at least 0.00",
}
_WITHOUT_SOURCE = frozenset({ClaimBasis.PARAMETRIC, ClaimBasis.UNVERIFIABLE})
_NOT_ONLY_CONTEXT = frozenset(ClaimBasis) - {ClaimBasis.CONTEXT_GROUNDED}
_STOPPING = ("halt_on", "require_", "block_", "max_repetition", "max_cannot_tell", "max_spend", "halt_on_action")


def refused_by(trusted: frozenset[Source] | None) -> frozenset[ClaimBasis]:
    """Return the claims that a ``default-src`` refuses; none where it is absent."""
    if trusted is None:
        return frozenset()
    return frozenset(basis for basis, needed in NEEDED.items() if not needed <= trusted)


def remarks(policy: Policy) -> list[Trap]:
    """Return the remarks about a policy, in the order of its directives' subjects."""
    return [found for rule in _RULES for found in rule(policy)]


def _risk(policy: Policy) -> Iterator[Trap]:
    halt, warn = policy.halt_on, policy.warn_on
    if halt and warn and warn >= halt and not (policy.upgrade_on_risk is not None and warn is RiskLevel.MEDIUM):
        yield _moot("warn-on", f"halt-on {halt.name} stops all that it would warn of")
    if halt is RiskLevel.CRITICAL and policy.oversight is Oversight.HALT:
        yield _moot("halt-on", "oversight halt stops CRITICAL already")


def _oversight(policy: Policy) -> Iterator[Trap]:
    mode, halt = policy.oversight, policy.halt_on
    if mode is Oversight.LOG_ONLY:
        yield _moot("oversight", "log-only lets nothing through that another directive stops; it equals leaving it out")
    if mode is Oversight.AUTO:
        yield Trap(MOOT, Gravity.NOTE, "oversight", "auto is what leaving it out means")
    if mode is Oversight.HUMAN_REVIEW and halt and halt <= RiskLevel.HIGH:
        yield _moot("oversight", f"halt-on {halt.name} halts what a reviewer would have been asked about")
    if mode is Oversight.HALT and halt and halt <= RiskLevel.HIGH:
        yield Trap(
            "NO_WAY_OUT", Gravity.WARNING, "oversight",
            f"what halt-on {halt.name} stops, no reviewer can release; human-review leaves that way out",
        )  # fmt: skip


def _sources(policy: Policy) -> Iterator[Trap]:
    trusted, refused = policy.default_src, refused_by(policy.default_src)
    if trusted is not None:
        yield from _trusted(policy, trusted, refused)
    for name, blocked, blocks in (
        ("block-ungrounded", _WITHOUT_SOURCE, policy.block_ungrounded),
        ("block-parametric", _NOT_ONLY_CONTEXT, policy.block_parametric),
    ):
        if blocks and trusted is not None and blocked <= refused:
            yield _moot(name, "default-src refuses the same claims")
    if policy.block_ungrounded and policy.block_parametric and not refused >= _WITHOUT_SOURCE:
        yield _moot("block-ungrounded", "block-parametric refuses the same claims, and more")


def _trusted(policy: Policy, trusted: frozenset[Source], refused: frozenset[ClaimBasis]) -> Iterator[Trap]:
    unheard = sorted(trusted - {Source.CONTEXT, Source.PARAMETRIC})
    if not trusted:
        yield Trap("HALTS_ALL", Gravity.WARNING, "default-src", "'none' halts every answer, one without a claim too")
    elif refused == frozenset(ClaimBasis):
        yield Trap("HALTS_ALL", Gravity.WARNING, "default-src", f"no claim is told to come from {' or '.join(unheard)}: every claim is refused")  # fmt: skip
    elif Source.CONTEXT not in trusted:
        yield Trap("REFUSES_GROUNDED", Gravity.WARNING, "default-src", "without context, a claim that the sources show is refused")  # fmt: skip
    elif unheard:
        yield Trap("UNHEARD", Gravity.NOTE, "default-src", f"{' and '.join(unheard)} adds nothing: no claim is told to come from there")  # fmt: skip
    if trusted and not refused:
        blocked = policy.block_ungrounded or policy.block_parametric
        code, says = (
            (MOOT, "a block-directive refuses more")
            if blocked
            else (VACUOUS, "it admits every claim, as leaving it out does")
        )
        yield Trap(code, Gravity.NOTE, "default-src", says)


def _scores(policy: Policy) -> Iterator[Trap]:
    for field, says in _EVERYTHING.items():
        name, bound = field.replace("_", "-"), getattr(policy, field)
        if bound == 0:
            yield Trap(VACUOUS, Gravity.WARNING, name, f"{says}: it halts only where the stage did not run")
        if bound == 100 and field in {"require_entailment", "require_flow"}:
            yield Trap("ONLY_PERFECT", Gravity.WARNING, name, "hardly any answer scores 1.00 here")
    if policy.require_completeness == 0:
        says = "it halts no answer that was analysed; it only has what is left open asked for"
        yield Trap("ASKS_ONLY", Gravity.NOTE, "require-completeness", says)
    if policy.max_cannot_tell == 100:
        yield Trap(VACUOUS, Gravity.WARNING, "max-cannot-tell", "no share is above 1.00")


def _quality(policy: Policy) -> Iterator[Trap]:
    accepted, order = policy.require_quality, list(Tier)
    if accepted is None:
        return
    worst = max(order.index(tier) for tier in accepted)
    missing = [tier.value for tier in order[:worst] if tier not in accepted]
    if missing:
        yield Trap("GAP", Gravity.WARNING, "require-quality", f"it refuses {' '.join(missing)}, better than {order[worst].value}, which it accepts")  # fmt: skip
    elif worst == len(order) - 1:
        yield Trap(VACUOUS, Gravity.WARNING, "require-quality", "it accepts every tier")


def _repetition(policy: Policy) -> Iterator[Trap]:
    if policy.block_repetition and policy.max_repetition is Repetition.SIGNIFICANT:
        yield _moot("max-repetition", "block-repetition stops what is above SIGNIFICANT")


def _remedies(policy: Policy) -> Iterator[Trap]:
    strategy = policy.upgrade_on_risk
    if strategy is not None and strategy is not Strategy.REFLEXIVE:
        yield Trap("STRATEGY", Gravity.NOTE, "upgrade-on-risk", f"the answer is asked for again by reflexive, not by {kebab(strategy)}")  # fmt: skip


def _spending(policy: Policy) -> Iterator[Trap]:
    for name, most in (("max-spend-usd", policy.max_spend_usd), ("max-spend-tokens", policy.max_spend_tokens)):
        if most == 0:
            yield Trap("NO_CALLS", Gravity.WARNING, name, "0 allows no model call at all")


def _whole(policy: Policy) -> Iterator[Trap]:
    if policy._replace(report_uri=frozenset(), report_to=frozenset()) == NOTHING:
        if policy != NOTHING:
            yield Trap("REPORTS_NOTHING", Gravity.WARNING, "", "no directive can be broken, so nothing is reported")
        return
    if not _stops(policy):
        yield Trap("STOPS_NOTHING", Gravity.WARNING, "", "no directive stops an answer; it only watches")
    elif policy.halt_on is None and (policy.oversight or Oversight.AUTO) < Oversight.HUMAN_REVIEW:
        yield Trap("RISK_DELIVERED", Gravity.NOTE, "", "an answer of CRITICAL risk is delivered: there is neither halt-on nor oversight human-review")  # fmt: skip


def _stops(policy: Policy) -> bool:
    if policy.default_src is not None and refused_by(policy.default_src):
        return True
    if policy.oversight is not None and policy.oversight >= Oversight.HUMAN_REVIEW:
        return True
    return any(
        value is not None and value is not False
        for name, value in policy._asdict().items()
        if name.startswith(_STOPPING)
    )


_RULES: tuple[Callable[[Policy], Iterator[Trap]], ...] = (
    _sources, _risk, _scores, _quality, _repetition, _spending, _remedies, _oversight, _whole,
)  # fmt: skip


def _moot(directive: str, why: str) -> Trap:
    return Trap(MOOT, Gravity.WARNING, directive, f"it changes nothing: {why}")
