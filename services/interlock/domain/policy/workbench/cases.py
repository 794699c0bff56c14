"""Cases of a policy: an answer's figures in, the expected decision out. Read from a document of plain values, and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from interlock.domain.breaker import BreakerState
from interlock.domain.budget import FULL, Micros
from interlock.domain.errors import Refused, invalid
from interlock.domain.policy.decision import Verdict
from interlock.domain.policy.directives import Policy, Repetition, Tier
from interlock.domain.policy.enforcement import Action
from interlock.domain.policy.findings import ClaimBasis, Findings
from interlock.domain.policy.policy_text import parse
from interlock.domain.policy.policy_values import near_miss, shown
from interlock.domain.policy.remedies import SPENT, Progress
from interlock.domain.policy.workbench.trial import CLEAN, FRESH, Acceptance, Trial, tried, word
from interlock.domain.risk.risk import RiskLevel

OUTCOMES = ("delivered", "held", "halted", "refused", "retried")
UNDEFINED = "undefined"
"""Value of a score that has none for this answer although its stage ran, such as the flow of a first answer."""

MOST_CASES = 10_000

E = TypeVar("E", bound=Enum)


@dataclass(frozen=True)
class Case:
    """One case. ``expect`` holds the expected values by the names of ``decided``; what is not named is not looked at."""

    name: str
    policy: Policy
    trial: Trial
    progress: Progress
    expect: Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """What a case came to: the decided values, and the names of those that differ from what was expected."""

    case: Case
    decided: Mapping[str, Any]
    wrong: tuple[str, ...]


def run(case: Case) -> Result:
    """Decide a case as a call is decided, and compare."""
    found = decided(tried(case.policy, case.trial, case.progress))
    wrong = tuple(name for name, value in case.expect.items() if found[name] != value)
    return Result(case, found, wrong)


def decided(verdict: Verdict) -> dict[str, Any]:
    """Return what a case may expect of a decision."""
    outcome = verdict.outcome
    return {
        "outcome": word(outcome),
        "cause": outcome.cause,
        "reason": outcome.halt_reason,
        "releasable": outcome.oversight_required,
        "warned": verdict.warned,
        "broken": sorted({one.name for one in verdict.broken if one.action is not Action.DELIVER}),
    }


def read_cases(document: object, policy: Policy | None = None) -> list[Case]:
    """Return the cases in a document; *policy* takes the place of the document's own.

    Refused with CASES_INVALID, which names the place, and like ``parse`` for a malformed policy.
    """
    whole = _mapping(document, "the file", {"policy", "cases"})
    own = _policy(whole["policy"], "policy") if "policy" in whole else None
    cases = whole.get("cases")
    if not isinstance(cases, list) or not cases or len(cases) > MOST_CASES:
        raise _bad("cases", f"a list of 1 to {MOST_CASES} cases")
    return [_case(one, number, policy or own) for number, one in enumerate(cases, 1)]


def _case(given: object, number: int, policy: Policy | None) -> Case:
    at = f"case {number}"
    found = _mapping(given, at, {"name", "policy", "report", "session", "accept", "reviewer", "remedies", "expect"})
    own = _policy(found["policy"], f"{at}: policy") if "policy" in found else policy
    if own is None:
        raise _bad(f"{at}: policy", "a policy, here, for the whole file or on the command line")
    if "expect" not in found:
        raise _bad(f"{at}: expect", "what is to be decided")
    session = _mapping(found.get("session", {}), f"{at}: session", {"budget", "breaker", "charge"})
    trial = Trial(
        findings=read_findings(found.get("report", {}), f"{at}: report"),
        breaker=_member(BreakerState)(session.get("breaker", "CLOSED"), f"{at}: session.breaker"),
        budget=_money(session.get("budget", 1), f"{at}: session.budget"),
        charge=_money(session.get("charge", 0), f"{at}: session.charge"),
        accepts=_accepts(found.get("accept", {}), f"{at}: accept"),
        reviewed=_flag(found.get("reviewer", True), f"{at}: reviewer"),
    )
    progress = FRESH if _flag(found.get("remedies", False), f"{at}: remedies") else SPENT
    return Case(str(found.get("name") or at), own, trial, progress, _expected(found["expect"], f"{at}: expect"))


def read_findings(given: object, at: str) -> Findings:
    """Return the findings of a report's figures; what is not given was looked for and not found.

    ``null`` is a figure whose stage did not run.
    """
    figures = _mapping(given, at, set(_FIGURES))
    undefined = frozenset(name for name, value in figures.items() if value == UNDEFINED and name in _SCORES)
    read: dict[str, Any] = {
        name: None if value is None or name in undefined else _FIGURES[name](value, f"{at}.{name}")
        for name, value in figures.items()
    }
    for name in ("risk", "prohibited", "contradicted"):
        if name in read and read[name] is None:
            raise _bad(f"{at}.{name}", "a value")
    return replace(CLEAN, undefined=undefined, **read)


def _accepts(given: object, at: str) -> Acceptance:
    found = _mapping(given, at, {"risk", "quality"})
    risk = _member(RiskLevel)(found["risk"], f"{at}.risk") if "risk" in found else None
    return Acceptance(risk, _several(Tier)(found.get("quality", []), f"{at}.quality"))


def _expected(given: object, at: str) -> dict[str, Any]:
    found = {"outcome": given} if isinstance(given, str) else _mapping(given, at, set(_EXPECTED))
    if not found:
        raise _bad(at, "one of " + " ".join(OUTCOMES))
    return {name: _EXPECTED[name](value, f"{at}.{name}") for name, value in found.items()}


def _mapping(given: object, at: str, known: set[str]) -> dict[str, Any]:
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise _bad(at, "names with values")
    for name in given.keys() - known:
        raise _bad(f"{at}: {shown(name)}", "one of " + " ".join(sorted(known)), **near_miss(name, known))
    return given


def _policy(given: object, at: str) -> Policy:
    if not isinstance(given, str):
        raise _bad(at, "a policy text")
    try:
        return parse(given)
    except Refused as refused:
        refused.message = f"{at}: {refused.message}"
        refused.metadata["text"] = given
        raise


def _number(low: float, high: float) -> Callable[[object, str], float]:
    def read(given: object, at: str) -> float:
        if isinstance(given, bool) or not isinstance(given, int | float) or not low <= given <= high:
            raise _bad(at, f"a number from {low:g} to {high:g}")
        return float(given)

    return read


def _count(given: object, at: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise _bad(at, "a whole number from 0 up")
    return given


def _money(given: object, at: str) -> Micros:
    return Micros(round(_number(0, 1)(given, at) * FULL))


def _flag(given: object, at: str) -> bool:
    if not isinstance(given, bool):
        raise _bad(at, "true or false")
    return given


def _text(given: object, at: str) -> str:
    if not isinstance(given, str):
        raise _bad(at, "a text")
    return given


def _outcome(given: object, at: str) -> str:
    if given not in OUTCOMES:
        raise _bad(at, "one of " + " ".join(OUTCOMES), **near_miss(str(given), OUTCOMES))
    return str(given)


def _names(given: object, at: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise _bad(at, "a list of names of directives")
    return sorted(set(given))


def _member(kind: type[E]) -> Callable[[object, str], E]:
    names = {one.name: one for one in kind}

    def read(given: object, at: str) -> E:
        if str(given).upper() not in names:
            raise _bad(at, "one of " + " ".join(names), **near_miss(str(given), names))
        return names[str(given).upper()]

    return read


def _several(kind: type[E]) -> Callable[[object, str], frozenset[E]]:
    def read(given: object, at: str) -> frozenset[E]:
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise _bad(at, "a list")
        return frozenset(_member(kind)(one, at) for one in given)

    return read


def _bad(at: str, expected: str, **details: str) -> Refused:
    near = f"; did you mean {details['did_you_mean']}?" if "did_you_mean" in details else ""
    return invalid("CASES_INVALID", f"{at}: expected {expected}{near}", place=at, expected=expected, **details)


_SCORES = frozenset({"grounding", "entailment", "flow", "completeness"})
_FIGURES: Mapping[str, Callable[[Any, str], Any]] = {
    "risk": _member(RiskLevel),
    "attributions": _several(ClaimBasis),
    **dict.fromkeys(_SCORES, _number(0, 1)),
    "fabrications": _count,
    "repetition": _member(Repetition),
    "pii": _flag,
    "tier": _member(Tier),
    "prohibited": _flag,
    "contradicted": _flag,
    "cannot_tell": _number(0, 1),
    "refused_actions": _count,
}

_EXPECTED: Mapping[str, Callable[[Any, str], Any]] = {
    "outcome": _outcome,
    "cause": _text,
    "reason": _text,
    "releasable": _flag,
    "warned": _flag,
    "broken": _names,
}
