"""Test vectors of SPEC-014 about policies and budgets, through the domain that the mesh itself uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.domain.breaker import breaker_state
from interlock.domain.budget import DEFAULT_DECREMENTS, FULL, as_decimal, budget_warning, charge, micros
from interlock.domain.errors import Refused
from interlock.domain.policy.decision import Situation, decide
from interlock.domain.policy.directives import NOTHING, Oversight, Tier, canonical, directives
from interlock.domain.policy.enforcement import Action
from interlock.domain.policy.findings import ClaimBasis, Findings
from interlock.domain.policy.policy_layers import Layers, resolve
from interlock.domain.policy.policy_text import parse
from interlock.domain.risk.risk import RiskLevel
from interlock.sidecar.fronts.responses import status_of

Vector = Mapping[str, Any]


class Expectations:
    """Collects the failed expectations of a vector, and its notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.broken: list[str] = []

    def note(self, text: str) -> None:
        """Note a substitute for a part that the printed vector leaves open."""
        self.notes.append(text)

    def hold(self, met: object, what: str) -> None:
        """Record *what*, the expected and the actual value, unless the expectation is *met*."""
        if not met:
            self.broken.append(what)


def _header(vector: Vector) -> str:
    value: str = vector["input"]["header"].partition(": ")[2]
    return value


def policy_parses(vector: Vector, expect: Expectations) -> None:
    """TV-020."""
    found = dict(directives(parse(_header(vector))))
    for each in vector["assertions"]:
        name, wanted = each["parsed_directive"], each["value"]
        values = found.get(name)
        said: Any = None if values is None else list(values) if isinstance(wanted, list) else " ".join(values)
        if wanted is True:
            said = values == ()
        elif isinstance(wanted, float) and values:
            said = float(values[0])
        expect.hold(said == wanted, f"{name} is {said!r}, expected {wanted!r}")


def policy_is_rejected(vector: Vector, expect: Expectations) -> None:
    """TV-021."""
    refused = _refused(lambda: parse(_header(vector)))
    expect.hold(refused and status_of(refused) == 400, f"expected 400, got {_told(refused)}")
    wanted = vector["assertions"][1]["body_contains"]
    expect.hold(refused and wanted in refused.message.lower(), f"expected {wanted!r} in {_told(refused)}")


def _layers(vector: Vector) -> Layers:
    given = vector["input"]
    return Layers(
        default=NOTHING, base=parse(given["parent_policy"]), lines=(given["child_policy"],), mode="", oversight="",
        report_only_lines=(), accept_risk="", accept_quality=(),
    )  # fmt: skip


def tightening_is_accepted(vector: Vector, expect: Expectations) -> None:
    """TV-022."""
    applied = canonical(resolve(_layers(vector))[0])
    wanted = vector["assertions"][1]["contains"]
    expect.hold(wanted in applied, f"expected {wanted!r} in CRP-Safety-Policy-Applied, got {applied!r}")


def relaxation_is_rejected(vector: Vector, expect: Expectations) -> None:
    """TV-023."""
    refused = _refused(lambda: resolve(_layers(vector)))
    expect.hold(refused and status_of(refused) == 403, f"expected 403, got {_told(refused)}")
    wanted = vector["assertions"][1]["value"]
    expect.hold(refused and refused.reason.lower() == wanted, f"expected {wanted}, got {_told(refused)}")
    expect.note("the error's name is in the body's reason, and in lower case in error.code, as OpenAI clients expect")


def budget_falls(vector: Vector, expect: Expectations) -> None:
    """TV-050."""
    left = FULL
    for number, call in enumerate(vector["input"]["calls"], 1):
        left = charge(left, DEFAULT_DECREMENTS.of(RiskLevel[call["risk_level"]]))
        wanted = micros(call["expected_budget_after"])
        expect.hold(left == wanted, f"call {number}: {as_decimal(left)}, expected {as_decimal(wanted)}")
    most, warning = vector["assertions"][0]["value_lte"], vector["assertions"][1]["value"]
    expect.hold(left <= micros(most), f"expected at most {most}, got {as_decimal(left)}")
    expect.hold(budget_warning(left) == warning, f"expected the warning {warning}, got {budget_warning(left)}")
    verdict = decide(_situation(left, charged="LOW"), _findings("LOW"))
    expect.note(
        f"oversight is {verdict.oversight.name} here: SPEC-012 §5.1 requires review from the half-open breaker (0.50) on, "
        "which is stricter than the note of this vector"
    )
    expect.hold(verdict.oversight is Oversight.HUMAN_REVIEW, f"oversight is {verdict.oversight.name}")


def budget_halts(vector: Vector, expect: Expectations) -> None:
    """TV-051."""
    given = vector["input"]
    before, risk = micros(given["budget_before_call"]), given["call_risk_level"]
    outcome = decide(_situation(before, charged=risk), _findings(risk)).outcome
    wanted = vector["assertions"][1]["value"]
    expect.hold(outcome.action is Action.HALT, f"expected a halt (451), got {outcome.action.name}")
    expect.hold(outcome.halt_reason == wanted, f"expected {wanted}, got {outcome.halt_reason}")
    left = charge(before, DEFAULT_DECREMENTS.of(RiskLevel[risk]))
    expect.note(f"the budget ends at {as_decimal(left)}: it is never below 0, so it is not -0.03")


def _situation(budget: Any, *, charged: str) -> Situation:
    return Situation(
        policy=NOTHING, report_only=NOTHING, breaker=breaker_state(budget), budget=budget,
        charge=DEFAULT_DECREMENTS.of(RiskLevel[charged]), accept_risk=None, accept_quality=frozenset(), no_store=True,
    )  # fmt: skip


def _findings(risk: str) -> Findings:
    return Findings(
        risk=RiskLevel[risk], attributions=frozenset({ClaimBasis.CONTEXT_GROUNDED}), grounding=1.0, entailment=1.0,
        flow=None, completeness=None, undefined=frozenset(), fabrications=0, repetition=None, pii=False, tier=Tier.A,
        prohibited=False,
    )  # fmt: skip


def _refused(act: Any) -> Refused | None:
    try:
        act()
    except Refused as refused:
        return refused
    return None


def _told(refused: Refused | None) -> str:
    return "no refusal" if refused is None else f"{status_of(refused)} {refused.reason}: {refused.message}"
