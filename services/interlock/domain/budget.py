"""The safety budget: integers in millionths, the cost of a response, and the bands of the budget (SPEC-012 §2).

A budget is never a float: 1.0 - 0.35 - 0.35 - 4 x 0.05 is 0.10000000000000007 in doubles, which would not be halted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import NewType

from interlock.domain.errors import invalid
from interlock.domain.risk.risk import RiskLevel

Micros = NewType("Micros", int)

FULL = Micros(1_000_000)
HALF_OPEN_AT = Micros(500_000)
CAUTION_FROM = Micros(250_000)
OPEN_AT = Micros(100_000)
EXHAUSTED_AT = Micros(0)

RANGES: Mapping[RiskLevel, tuple[Micros, Micros]] = {
    RiskLevel.LOW: (Micros(0), Micros(50_000)),
    RiskLevel.MEDIUM: (Micros(20_000), Micros(100_000)),
    RiskLevel.HIGH: (Micros(100_000), Micros(250_000)),
    RiskLevel.CRITICAL: (Micros(250_000), Micros(500_000)),
}
"""The range in which a deployment may configure each decrement (SPEC-012 §2.2)."""

LARGEST_CHARGE = RANGES[RiskLevel.CRITICAL][1]


class Band(Enum):
    """The band that a budget is in (SPEC-012 §2.3; requirements.md, reading 1)."""

    HEALTHY = "healthy"
    CAUTION = "caution"
    LOW = "low"
    DEPLETED = "depleted"
    EXHAUSTED = "exhausted"


_BANDS = (
    (EXHAUSTED_AT, Band.EXHAUSTED),
    (OPEN_AT, Band.DEPLETED),
    (Micros(CAUTION_FROM - 1), Band.LOW),
    (HALF_OPEN_AT, Band.CAUTION),
)


def budget_band(budget: Micros) -> Band:
    """Return the band of a budget. Each upper bound belongs to its band, except that 0.25 is still caution."""
    return next((band for upper, band in _BANDS if budget <= upper), Band.HEALTHY)


def budget_warning(budget: Micros) -> str | None:
    """Return the value of ``CRP-Safety-Budget-Warning``; ``None`` where the header is not sent."""
    band = budget_band(budget)
    return band.value if band is Band.CAUTION or band is Band.LOW else None


@dataclass(frozen=True)
class Decrements:
    """The cost of one response for each risk level. Refused with DECREMENT_OUT_OF_RANGE outside the ranges of §2.2 (BUD-2)."""

    low: Micros
    medium: Micros
    high: Micros
    critical: Micros

    def __post_init__(self) -> None:
        for level, (least, most) in RANGES.items():
            cost = self.of(level)
            if not least <= cost <= most:
                raise invalid(
                    "DECREMENT_OUT_OF_RANGE",
                    f"the decrement of {level.name} is {as_decimal(cost)}; SPEC-012 allows {as_decimal(least)} to "
                    f"{as_decimal(most)}",
                    level=level.name,
                    least=as_decimal(least),
                    most=as_decimal(most),
                )

    def of(self, level: RiskLevel) -> Micros:
        """Return the cost of a response of this risk."""
        return (self.low, self.medium, self.high, self.critical)[level - 1]


DEFAULT_DECREMENTS = Decrements(Micros(0), Micros(50_000), Micros(150_000), Micros(350_000))


def charge(budget: Micros, amount: Micros) -> Micros:
    """Return the remaining budget: never below 0, and never more than before."""
    if amount < 0:
        raise ValueError("a charge is never negative: a budget does not rise (BUD-4)")
    return Micros(max(0, budget - amount))


def micros(value: float | str | Decimal) -> Micros:
    """Return a decimal such as 0.05 in millionths. Refused with NOT_MICROS when it is not a finite decimal of up to six places."""
    scaled = Decimal(str(value)) * FULL
    if not scaled.is_finite() or scaled != scaled.to_integral_value():
        raise invalid("NOT_MICROS", "not a finite decimal with at most six places")
    return Micros(int(scaled))


def as_decimal(budget: Micros) -> str:
    """Return a budget in the form of the headers: the shortest decimal with at least two places, such as 0.95."""
    text = as_fixed(budget).rstrip("0")
    return text + "0" * (2 - len(text.partition(".")[2]))


def as_fixed(budget: Micros) -> str:
    """Return a budget with exactly six decimal places, the form of the tokens."""
    sign, size = ("-", -budget) if budget < 0 else ("", budget)
    return f"{sign}{size // FULL}.{size % FULL:06d}"
