"""Joins all layers of policy for a request into its effective policy (SPEC-006 §4 and §5, SPEC-002 §12.1)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

from interlock.domain.errors import Refused, forbidden, invalid
from interlock.domain.policy.directives import MAX_BYTES, NOTHING, Oversight, Policy, Tier, canonical, kebab
from interlock.domain.policy.policy_order import Relaxation, merge, relaxations
from interlock.domain.policy.policy_text import parse
from interlock.domain.policy.policy_values import near_miss, shown
from interlock.domain.risk.risk import RiskLevel

MODES: Mapping[str, Policy] = {
    "strict": parse("halt-on CRITICAL; warn-on HIGH; block-ungrounded; require-grounding 0.75"),
    # SPEC-006 §4.2 writes `warn-on CRITICAL; warn-on HIGH`: HIGH, the tighter one, covers both.
    "warn": parse("warn-on HIGH"),
    "permissive": NOTHING,
}
"""The policy of each CRP-Safety-Mode. Strict follows SPEC-006, which has one directive more than SPEC-002 §5.11."""

POLICY_HEADER = "CRP-Safety-Policy"
REPORT_ONLY_HEADER = "CRP-Safety-Policy-Report-Only"
MAX_LINES = 32
"""Maximum number of field lines of one header, so that one request cannot keep the service busy."""

_OVERSIGHT = {kebab(mode): Policy(oversight=mode) for mode in Oversight}
_RISKS = {level.name: level for level in RiskLevel}
_TIERS = {tier.value: tier for tier in Tier}

T = TypeVar("T")
Parse = Callable[[str], Policy]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The layers of policy of one request. ``base`` is ``None`` for a new root. An empty text or list is an absent layer.

    ``agent`` is the policy of the caller's registered agent type (SPEC-012 §7.1). It tightens the other layers.
    """

    default: Policy
    base: Policy | None
    lines: Sequence[str]
    mode: str
    oversight: str
    report_only_lines: Sequence[str]
    accept_risk: str
    accept_quality: Sequence[str]
    agent: Policy = NOTHING


def resolve(layers: Layers, read: Parse = parse) -> tuple[Policy, Policy]:
    """Return the effective policy and the report-only policy. *read* parses a line; a caller may pass a cached parser.

    For a new root, the deployment's default and all layers of its request apply. Any other window is bound by its base, and
    its request can only tighten the base. Where two layers have the same directive, the tighter value counts. The agent
    type's own policy is joined in both cases: where it is looser than the rest, it changes nothing and is no relaxation.

    Refused like ``parse`` for a malformed line; with SAFETY_MODE_UNKNOWN, OVERSIGHT_MODE_UNKNOWN, ACCEPT_RISK_UNKNOWN or
    ACCEPT_QUALITY_UNKNOWN; with SAFETY_POLICY_INHERITANCE_VIOLATION when the request relaxes its base; with
    POLICY_UNSATISFIABLE or POLICY_TOO_LONG when the layers cannot be joined.
    """
    _check_acceptance(layers)
    lines = _lines(layers.lines, POLICY_HEADER, read)
    mode = _choice("SAFETY_MODE_UNKNOWN", "CRP-Safety-Mode", layers.mode, MODES, NOTHING)
    oversight = _choice("OVERSIGHT_MODE_UNKNOWN", "CRP-Safety-Oversight-Mode", layers.oversight, _OVERSIGHT, NOTHING)
    asked = [*lines, mode, oversight]
    report_only = _joined(_lines(layers.report_only_lines, REPORT_ONLY_HEADER, read))
    effective = _joined([layers.default, layers.agent, *asked])
    if layers.base is not None:
        # A request that repeats the root's gives the same policy and relaxes nothing (SPEC-007 §5.5: equal hashes),
        # although it leaves out the deployment's additions.
        if lines and effective != layers.base:
            _refuse_relaxation(layers.base, _joined(asked))
        added = [layer for layer in (layers.agent, *asked) if layer != NOTHING]
        effective = merge(layers.base, _joined(added)) if added else layers.base
    return _fitting(effective), _fitting(report_only)


def unasked(layers: Layers) -> Policy:
    """Return the policy that holds where a caller asks for nothing: the deployment's and its agent type's, joined."""
    return _joined([layers.default, layers.agent])


def _check_acceptance(layers: Layers) -> None:
    """Refuse values that the decision about this call could not use. They are no part of the policy, which outlives the call."""
    _choice("ACCEPT_RISK_UNKNOWN", "CRP-Accept-Risk", layers.accept_risk, _RISKS, RiskLevel.CRITICAL)
    for tier in layers.accept_quality:
        _choice("ACCEPT_QUALITY_UNKNOWN", "CRP-Accept-Quality", tier or "''", _TIERS, Tier.D)


def _joined(layers: Iterable[Policy]) -> Policy:
    """Return the join of the non-empty layers. An empty layer has no meaning; in particular it is not §3.1's default-src."""
    speaking = [layer for layer in layers if layer != NOTHING]
    return reduce(merge, speaking) if speaking else NOTHING


def _lines(texts: Sequence[str], header: str, read: Parse) -> list[Policy]:
    """Parse every field line of *header*. All lines are enforced (reliability.md A-12)."""
    if len(texts) > MAX_LINES:
        raise invalid(
            "POLICY_TOO_LONG", f"{header} was sent {len(texts)} times, at most {MAX_LINES} are read",
            header=header, expected=f"at most {MAX_LINES} lines", got=f"{len(texts)} lines",
        )  # fmt: skip
    policies = []
    for number, text in enumerate(texts):
        try:
            policies.append(read(text))
        except Refused as refused:
            refused.metadata |= {"header": header, "line": str(number)}
            raise
    return policies


def _choice(reason: str, header: str, value: str, allowed: Mapping[str, T], absent: T) -> T:
    """Return the value of a header's keyword, in any case (SPEC-002 §2.3); *absent* when it is empty."""
    if not value:
        return absent
    for keyword, meaning in allowed.items():
        if keyword.lower() == value.lower():
            return meaning
    expected = "one of " + " ".join(allowed)
    message = f"{header} {shown(value)!r} is not {expected}"
    raise invalid(
        reason, message, header=header, expected=expected, got=shown(value), **near_miss(value, list(allowed))
    )


def _refuse_relaxation(base: Policy, asked: Policy) -> None:
    found = relaxations(base, asked)
    if found:
        first = found[0]
        raise forbidden(
            "SAFETY_POLICY_INHERITANCE_VIOLATION",
            "the policy may only be tightened: " + "; ".join(_told(each) for each in found),
            directive=first.directive, parent=first.parent_value, child=first.child_value,
            relaxations=json.dumps([_named(each) for each in found], separators=(",", ":")),
        )  # fmt: skip


def _told(relaxation: Relaxation) -> str:
    if relaxation.child_value:
        return f"{relaxation.directive} {relaxation.parent_value} is relaxed to {relaxation.child_value}"
    return f"{relaxation.directive} {relaxation.parent_value} is left out"


def _named(relaxation: Relaxation) -> dict[str, str]:
    return {
        "directive": relaxation.directive,
        "parent": relaxation.parent_value,
        "child": relaxation.child_value,
    }


def _fitting(policy: Policy) -> Policy:
    """Refuse a join whose text exceeds the limit of the language: it could not be read back."""
    length = len(canonical(policy))
    if length > MAX_BYTES:
        raise invalid(
            "POLICY_TOO_LONG", f"the policies of all layers together have {length} bytes, at most {MAX_BYTES} may be",
            expected=f"at most {MAX_BYTES} bytes", got=f"{length} bytes",
        )  # fmt: skip
    return policy
