"""The order of policies: SPEC-012 §4.2 on every directive, and its join.

Each directive is a semilattice. One function defines it, the join of two present values: the loosest value that is at
least as strict as both. A value is at least as strict as another exactly when joining them changes nothing. An absent
directive is below every present one (requirements.md, reading 6), but never below what its absence means.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from operator import or_
from typing import Any, NamedTuple

from interlock.domain.errors import invalid
from interlock.domain.policy.directives import DIRECTIVES, Oversight, Policy, Source, written

WHEN_ABSENT: dict[str, Any] = {
    # SPEC-006 §3.1: absence means `context parametric`, so adding a wider list is a relaxation.
    "default-src": frozenset({Source.CONTEXT, Source.PARAMETRIC}),
    # SPEC-002 §5.10: absence leaves the decision to the policy and the risk (`auto`), so adding log-only is a relaxation.
    "oversight": Oversight.AUTO,
}
"""What an absent directive means, where its absence is not the loosest value."""

INHERITED = frozenset({"upgrade-on-risk", "report-uri", "report-to"})
"""Directives that no child can relax: a child that omits them has them all the same (requirements.md, reading 6)."""

_JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "default-src": lambda a, b: a & b,
    "halt-on": min,
    "warn-on": min,
    "require-grounding": max,
    "require-entailment": max,
    "require-quality": lambda a, b: a & b,
    "require-flow": max,
    "require-completeness": max,
    "block-ungrounded": or_,
    "block-parametric": or_,
    "block-pii": or_,
    "block-fabrication": or_,
    "block-repetition": or_,
    "max-repetition": min,
    "max-cannot-tell": min,
    "max-spend-usd": min,
    "max-spend-tokens": min,
    "halt-on-action": or_,
    "upgrade-on-risk": max,
    "oversight": max,
    "report-uri": or_,
    "report-to": or_,
}


class _Rule(NamedTuple):
    directive: str
    join: Callable[[Any, Any], Any]
    absent: Any
    compared: bool


_RULES = tuple(_Rule(name, _JOINS[name], WHEN_ABSENT.get(name), name not in INHERITED) for name in DIRECTIVES)


class Relaxation(NamedTuple):
    """A directive in which a child is looser than its parent, with the text of both values."""

    directive: str
    parent_value: str
    child_value: str


def relaxations(parent: Policy, child: Policy) -> list[Relaxation]:
    """Return every directive in which *child* is looser than *parent*, in canonical order; empty when it may inherit.

    A directive that the child omits is a relaxation, whatever its value (requirements.md, reading 6). A flag is shown as
    ``present``, and an absent ``default-src`` or ``oversight`` of the parent as the value that its absence means.
    """
    return [
        _relaxed(rule, before, after)
        for rule, before, after in zip(_RULES, parent, child)  # noqa: B905 - tuples of one length, in the hot path
        if before != after and rule.compared and _looser(rule, before, after)
    ]


def _looser(rule: _Rule, before: Any, after: Any) -> bool:
    if after is None or after is False:
        return True
    least = rule.absent if before is None else before
    return least is not None and bool(rule.join(least, after) != after)


def _relaxed(rule: _Rule, before: Any, after: Any) -> Relaxation:
    name = rule.directive
    return Relaxation(name, _shown(name, rule.absent if before is None else before), _shown(name, after))


@lru_cache(maxsize=1024)
def _shown(directive: str, value: Any) -> str:
    return "present" if value is True else written(directive, value)


class Tightness(StrEnum):
    """Which way a directive moves."""

    STRICTER = "stricter"
    LOOSER = "looser"
    MIXED = "neither"
    """The values admit different things: neither is as strict as the other."""
    SAME = "same"
    """Written otherwise, and the same in effect: a value that equals what absence means."""


class PolicyChange(NamedTuple):
    """A directive that differs between two policies, with the text of both values; empty where it is absent."""

    directive: str
    before: str
    after: str
    direction: Tightness


def changes(before: Policy, after: Policy) -> list[PolicyChange]:
    """Return every directive that differs, in canonical order. Reports to more places are stricter, to fewer looser."""
    return [
        PolicyChange(
            rule.directive, _shown(rule.directive, old), _shown(rule.directive, new), _direction(rule, old, new)
        )
        for rule, old, new in zip(_RULES, before, after, strict=True)
        if old != new
    ]


def _direction(rule: _Rule, before: Any, after: Any) -> Tightness:
    old, new = (rule.absent if value is None else value for value in (before, after))
    if old == new:
        return Tightness.SAME
    if old is None or new is None:
        return Tightness.STRICTER if old is None else Tightness.LOOSER
    joined = rule.join(old, new)
    if joined == new:
        return Tightness.STRICTER
    return Tightness.LOOSER if joined == old else Tightness.MIXED


def merge(one: Policy, other: Policy) -> Policy:
    """Return the loosest policy that is at least as strict as both: it passes exactly what both pass.

    Refused with POLICY_UNSATISFIABLE when the two have no quality tier in common, which no text can express.
    """
    merged = Policy(*(_joined(*each) for each in zip(_RULES, one, other, strict=True)))
    if merged.require_quality == frozenset():
        first, second = (written("require-quality", policy.require_quality) for policy in (one, other))
        raise invalid(
            "POLICY_UNSATISFIABLE", f"require-quality {first} and require-quality {second} accept no tier in common",
            directive="require-quality", first=first, second=second,
        )  # fmt: skip
    return merged


def _joined(rule: _Rule, one: Any, other: Any) -> Any:
    if one is None and other is None:
        return None
    first, second = (rule.absent if value is None else value for value in (one, other))
    if first is None or second is None:
        return second if first is None else first
    return rule.join(first, second)
