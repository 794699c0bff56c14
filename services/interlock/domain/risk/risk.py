"""Risk classes of a response (SPEC-005 §7.4)."""

from __future__ import annotations

import math
from enum import IntEnum


class RiskLevel(IntEnum):
    """Risk of a response, in rising order. The numbers equal ``interlock.api.common.v1.RiskLevel``."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4


MEDIUM_FROM = 0.20
HIGH_FROM = 0.45
CRITICAL_FROM = 0.70


def classify(composite: float) -> RiskLevel:
    """Return the class of a composite score, 0.0 to 1.0. NaN is CRITICAL (reliability.md A-40)."""
    if math.isnan(composite) or composite >= CRITICAL_FROM:
        return RiskLevel.CRITICAL
    if composite >= HIGH_FROM:
        return RiskLevel.HIGH
    return RiskLevel.MEDIUM if composite >= MEDIUM_FROM else RiskLevel.LOW
