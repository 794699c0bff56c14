"""A policy in sentences: what each directive does, and what happens to an answer at each risk level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from interlock.domain.breaker import BreakerState
from interlock.domain.budget import HALF_OPEN_AT
from interlock.domain.policy.decision import Verdict
from interlock.domain.policy.directives import DIRECTIVES, Oversight, Policy, Source, written
from interlock.domain.policy.enforcement import Action
from interlock.domain.policy.remedies import upgrades_from
from interlock.domain.policy.workbench.trial import CLEAN, FRESH, Trial, tried, word
from interlock.domain.risk.risk import RiskLevel

WITHOUT_DIRECTIVE = (
    "A budget at 0.10 or below halts every answer, and a use that the EU AI Act prohibits is halted, whatever the policy says.",
    "A figure that a directive asks for and whose stage did not run halts the answer.",
)
"""What holds under every policy."""

MEANING = {
    "releasable": "a registered reviewer may let it out",
    "retried": "a better answer is asked for first; what follows holds where none comes",
}
"""Words of ``AtRisk`` that need one."""


class Explained(NamedTuple):
    """A directive as it is written, and what it does."""

    directive: str
    does: str


class AtRisk(NamedTuple):
    """What happens to an answer in which nothing but its risk is found."""

    risk: RiskLevel
    closed: str
    """While more than 0.50 of the budget is left."""
    half_open: str
    """Below that, where a person has to look."""


def sentences(policy: Policy) -> list[Explained]:
    """Return what each directive of *policy* does, in canonical order."""
    return [
        Explained(f"{name} {written(name, value)}".rstrip(), _SAYS[name](value, policy))
        for name, value in zip(DIRECTIVES, policy, strict=True)
        if value is not None and value is not False and (value or not name.startswith("report-"))
    ]


def at_each_risk(policy: Policy, *, reviewed: bool = True) -> list[AtRisk]:
    """Return what happens at each risk level, the lowest first; *reviewed*: whether a reviewer is registered."""
    return [
        AtRisk(risk, _happens(policy, risk, BreakerState.CLOSED, reviewed), _happens(policy, risk, BreakerState.HALF_OPEN, reviewed))
        for risk in RiskLevel
    ]  # fmt: skip


def _happens(policy: Policy, risk: RiskLevel, breaker: BreakerState, reviewed: bool) -> str:  # noqa: FBT001 - passed on
    trial = Trial(findings=replace(CLEAN, risk=risk), breaker=breaker, reviewed=reviewed)
    if breaker is BreakerState.HALF_OPEN:
        trial = replace(trial, budget=HALF_OPEN_AT)
    verdict = tried(policy, trial)
    retried = tried(policy, trial, FRESH).outcome.action is Action.REDISPATCH
    return ("retried, then " if retried else "") + _said(verdict)


def _said(verdict: Verdict) -> str:
    outcome = verdict.outcome
    if outcome.action is Action.DELIVER:
        return "delivered with a warning" if verdict.warned else "delivered"
    if outcome.action is Action.HOLD:
        return "held for a reviewer"
    releasable = " (releasable)" if outcome.oversight_required else ""
    return f"{word(outcome)} by {outcome.cause}{releasable}"


def _and_above(level: RiskLevel) -> str:
    return level.name if level is RiskLevel.CRITICAL else f"{level.name} or above"


def _share(hundredths: int) -> str:
    return f"{hundredths // 100}.{hundredths % 100:02d}"


def _sources(value: frozenset[Source], _: Policy) -> str:
    if not value:
        return "Halts every answer: no source is trusted."
    claims = {
        Source.CONTEXT: "claims that the sources show",
        Source.PARAMETRIC: "claims from the model's own knowledge",
    }
    admitted = [says for source, says in claims.items() if source in value]
    if not admitted:
        return "Halts an answer with any claim: no claim is told to come from there."
    return (
        f"Admits {' and '.join(admitted)}{'' if len(admitted) > 1 else ' alone; halts an answer with any other claim'}."
    )


def _oversight(value: Oversight, policy: Policy) -> str:
    if value is Oversight.HUMAN_REVIEW:
        return "Holds an answer of HIGH risk or above until a reviewer decides."
    if value is Oversight.HALT:
        released = ", and no reviewer may release what halt-on stops" if policy.halt_on else ""
        return f"Halts an answer of CRITICAL risk, holds one of HIGH risk for a reviewer{released}."
    return "Asks no reviewer by itself; the other directives decide, as without it."


_SAYS: Mapping[str, Callable[[Any, Policy], str]] = {
    "default-src": _sources,
    "halt-on": lambda v, _: f"Halts an answer whose risk is {_and_above(v)}.",
    "warn-on": lambda v, _: f"Warns of an answer whose risk is {_and_above(v)}, and delivers it unless another directive stops it.",
    "require-grounding": lambda v, _: f"Halts an answer of whose claims less than {_share(v)} rest on the sources.",
    "require-entailment": lambda v, _: f"Halts an answer whose claims follow from their sources with less than {_share(v)}.",
    "require-quality": lambda v, _: f"Refuses an answer of any quality tier but {written('require-quality', v)} (503).",
    "require-flow": lambda v, _: f"Halts an answer that follows on from the one before with less than {_share(v)}; it is asked for again first.",
    "require-completeness": lambda v, _: f"Halts an answer that covers less than {_share(v)} of the question; the rest is asked for first.",
    "block-ungrounded": lambda _, __: "Halts an answer with a claim that no source shows.",
    "block-parametric": lambda _, __: "Halts an answer with any claim that does not rest on the sources alone.",
    "block-pii": lambda _, __: "Halts an answer with personal data.",
    "block-fabrication": lambda _, __: "Halts an answer with a name, number or date that no source has.",
    "block-repetition": lambda _, __: "Halts an answer that repeats an earlier one severely; it is asked for again first.",
    "max-repetition": lambda v, _: f"Halts an answer that repeats earlier ones more than {v.name}.",
    "max-cannot-tell": lambda v, _: f"Halts an answer of whose claims the sources leave more than {_share(v)} open.",
    "max-spend-usd": lambda v, _: f"Lets the whole tree of agents spend at most {written('max-spend-usd', v)} US dollars on model calls.",
    "max-spend-tokens": lambda v, _: f"Lets the whole tree of agents spend at most {v} tokens on model calls.",
    "halt-on-action": lambda _, __: "Halts an answer with a tool call that the kernel would reject.",
    "upgrade-on-risk": lambda _, policy: f"Asks again, with a review, for an answer whose risk is {_and_above(upgrades_from(policy))}.",
    "oversight": _oversight,
    "report-uri": lambda v, _: f"Reports what is broken to {' and '.join(sorted(v))}.",
    "report-to": lambda v, _: f"Reports what is broken to the group {' and '.join(sorted(v))}.",
}  # fmt: skip
