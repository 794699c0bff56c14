"""Strictness: from which finding on an answer is acted upon, and how well each setting does on labelled answers (SPEC-014).

Each setting acts on all that the one before acts on. It names what an operator sets: ``dpe_cannot_tell`` and the level of the policy's
``halt-on``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from interlock.domain.risk.risk import RiskLevel

LEAST_OF_EACH = 30
"""Answers of each label below which nothing is recommended: the interval of a share would span a third of the scale."""
MOST_FALSE_ALARMS = 0.10
_Z = 1.959964
"""95 %, two-sided."""


class Strictness(Enum):
    """A setting, with what to set for it."""

    LENIENT = "lenient"
    BALANCED = "balanced"
    STRICT = "strict"

    @property
    def settings(self) -> str:
        """What an operator sets."""
        level = "HIGH" if self is Strictness.LENIENT else "MEDIUM"
        doubt = "medium" if self is Strictness.STRICT else "free"
        return f"halt-on {level}, dpe_cannot_tell={doubt}"

    def acts(self, level: RiskLevel, *, cannot_tell: bool) -> bool:
        """Whether the setting acts on an answer of this level. *cannot_tell*: the evidence says nothing of one of its claims."""
        if self is Strictness.LENIENT:
            return level >= RiskLevel.HIGH
        return level >= RiskLevel.MEDIUM or (self is Strictness.STRICT and cannot_tell)


@dataclass(frozen=True)
class Share:
    """A share of *n* answers with its 95 % interval, by Wilson."""

    value: float
    low: float
    high: float
    n: int

    @staticmethod
    def of(hits: int, n: int) -> Share:
        """Return the share of *hits* among *n* answers; NaN of none."""
        if n == 0:
            return Share(math.nan, 0.0, 1.0, 0)
        found, square = hits / n, _Z * _Z
        middle = (found + square / (2 * n)) / (1 + square / n)
        half = _Z * math.sqrt(found * (1 - found) / n + square / (4 * n * n)) / (1 + square / n)
        return Share(found, max(0.0, middle - half), min(1.0, middle + half), n)


@dataclass(frozen=True)
class LabelledVerdict:
    """What the engine says of one labelled answer."""

    faithful: bool
    level: RiskLevel
    cannot_tell: bool


@dataclass(frozen=True)
class OperatingPoint:
    """How a setting does: the share of unfaithful answers that it acts on, and of faithful ones."""

    strictness: Strictness
    recall: Share
    false_alarms: Share


def operating_points(verdicts: Sequence[LabelledVerdict]) -> tuple[OperatingPoint, ...]:
    """Return the operating point of each setting, the most lenient first."""
    return tuple(_point(each, verdicts) for each in Strictness)


def _point(strictness: Strictness, verdicts: Sequence[LabelledVerdict]) -> OperatingPoint:
    acted = [(one.faithful, strictness.acts(one.level, cannot_tell=one.cannot_tell)) for one in verdicts]
    faithful, unfaithful = ([hit for label, hit in acted if label is wanted] for wanted in (True, False))
    return OperatingPoint(
        strictness, Share.of(sum(unfaithful), len(unfaithful)), Share.of(sum(faithful), len(faithful))
    )


def recommended(
    points: Sequence[OperatingPoint], most_false_alarms: float = MOST_FALSE_ALARMS
) -> OperatingPoint | None:
    """Return the point with the most recall among those with few enough false alarms, the more lenient of two equal ones.

    ``None`` where none has. The measured share counts, not the end of its interval: with few answers that end is far off.
    """
    fit = [one for one in points if one.false_alarms.value <= most_false_alarms]
    return max(fit, key=lambda one: one.recall.value) if fit else None


def too_few(verdicts: Sequence[LabelledVerdict]) -> str:
    """Return which label has too few answers, in words; empty where both have enough."""
    counts = {
        "faithful": sum(one.faithful for one in verdicts),
        "unfaithful": sum(not one.faithful for one in verdicts),
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count < LEAST_OF_EACH)
