"""Whether what a remedy brought may take the place of the draft (ATT-10, docs/adr/0019).

A remedy may do no harm: its answer is released only if it is worse on no axis that was judged, and better on one that called
for the remedy. Otherwise the draft stands, with the decision that it has by itself.

Two texts never have the same scores to the last decimal. So a score that stays where the specification finds nothing at
fault, a composite of class LOW and a flow that is no break, is not worse; on what called for the remedy even that counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum

from interlock.domain.risk.risk import MEDIUM_FROM

FLOW_BELOW = 0.50
"""Flow below which a break is remedied: the bound of SPEC-005 §11.5, which includes the 0.30 of §19.1."""

PRECISION = 3
"""Decimals that are compared. The response headers show as many (SPEC-002 §5.2); a smaller difference is noise."""


class Axis(IntEnum):
    """Something that an analysis judges. The numbers equal ``interlock.api.policy.v1.Axis``."""

    RISK = 1
    COMPOSITE = 2
    GROUNDING = 3
    ENTAILMENT = 4
    FIDELITY = 5
    CONTRADICTIONS = 6
    GRAVEST_CONTRADICTION = 7
    FABRICATIONS = 8
    DISTORTIONS = 9
    OMISSIONS = 10
    REPETITION = 11
    COMPLETENESS = 12
    FLOW = 13
    PERSONAL_DATA = 14
    QUALITY_TIER = 15


Judged = Mapping[Axis, float]
"""How bad an answer is on each axis, 0.0 for nothing found. An axis that was not judged is absent."""

_PARTS = frozenset({Axis.ENTAILMENT, Axis.FIDELITY})
"""Inputs of the composite, which is compared (SPEC-005 §7.2); by themselves they count only where one called for the remedy."""


def worse_on(draft: Judged, other: Judged, called: Collection[Axis] = ()) -> frozenset[Axis]:
    """Return the axes on which *other* is worse than *draft*, of those that the draft was judged on.

    An axis that *other* was not judged on counts as worse, and so does a number that is none (reliability.md A-40).
    """
    compared = draft.keys() - (_PARTS - frozenset(called))
    return frozenset(
        axis
        for axis in compared
        if axis not in other
        or not (_told(other[axis]) <= _told(draft[axis]) or (axis not in called and _faultless(axis, other[axis])))
    )


def better_on(draft: Judged, other: Judged, called: Collection[Axis]) -> frozenset[Axis]:
    """Return those of the axes that *called* for a remedy on which *other* is better than *draft*."""
    return frozenset(
        axis for axis in called if axis in draft and axis in other and _told(other[axis]) < _told(draft[axis])
    )


def is_improvement(draft: Judged, other: Judged, called: Collection[Axis]) -> bool:
    """Tell whether *other* may be released in place of *draft*: worse on nothing, and better on what *called* for it."""
    return not worse_on(draft, other, called) and bool(better_on(draft, other, called))


def _faultless(axis: Axis, bad: float) -> bool:
    """Tell whether the specification finds nothing at fault with a score: class LOW (SPEC-005 §7.4), a flow without a break."""
    if axis is Axis.COMPOSITE:
        return 0.0 <= bad < MEDIUM_FROM
    return axis is Axis.FLOW and 0.0 <= bad <= 1.0 - FLOW_BELOW


def _told(bad: float) -> float:
    return round(bad, PRECISION)
