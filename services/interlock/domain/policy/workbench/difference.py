"""What changes between two policies, directive by directive, and at each risk level."""

from __future__ import annotations

from typing import NamedTuple

from interlock.domain.policy.directives import Policy
from interlock.domain.policy.policy_order import PolicyChange, Tightness, changes
from interlock.domain.policy.workbench.explain import AtRisk, at_each_risk


class Moved(NamedTuple):
    """A risk level at which something else happens."""

    before: AtRisk
    after: AtRisk


class Difference(NamedTuple):
    """All that differs between two policies."""

    changes: list[PolicyChange]
    moved: list[Moved]

    @property
    def loosens(self) -> bool:
        """Whether anything is looser, or neither looser nor stricter."""
        return any(one.direction in {Tightness.LOOSER, Tightness.MIXED} for one in self.changes)


def difference(before: Policy, after: Policy) -> Difference:
    """Return what differs between *before* and *after*."""
    levels = zip(at_each_risk(before), at_each_risk(after), strict=True)
    return Difference(changes(before, after), [Moved(old, new) for old, new in levels if old != new])
