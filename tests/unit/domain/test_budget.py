"""Budgets are integers, costs stay inside their ranges, bands change exactly at their boundaries."""

from __future__ import annotations

from decimal import Decimal

import pytest

from interlock.domain.budget import (
    DEFAULT_DECREMENTS,
    FULL,
    RANGES,
    Band,
    Decrements,
    Micros,
    as_decimal,
    as_fixed,
    budget_band,
    budget_warning,
    charge,
    micros,
)
from interlock.domain.errors import Kind, Refused
from interlock.domain.risk.risk import RiskLevel
from interlock.runtime.settings.model import Settings
from interlock.session.terms import rules_of

DEFAULTS = {"low": 0, "medium": 50_000, "high": 150_000, "critical": 350_000}


def decrements(**changed: int) -> Decrements:
    return Decrements(**{name: Micros(value) for name, value in {**DEFAULTS, **changed}.items()})


@pytest.mark.req("BUD-2")
@pytest.mark.parametrize(
    ("level", "cost"),
    [(RiskLevel.LOW, 0), (RiskLevel.MEDIUM, 50_000), (RiskLevel.HIGH, 150_000), (RiskLevel.CRITICAL, 350_000)],
)
def test_the_default_decrements_are_those_of_the_specification(level, cost):
    """LOW 0, MEDIUM 0.05, HIGH 0.15, CRITICAL 0.35 (SPEC-012 §2.2)."""
    assert DEFAULT_DECREMENTS.of(level) == cost


@pytest.mark.req("BUD-2")
@pytest.mark.parametrize("level", list(RiskLevel))
@pytest.mark.parametrize("end", [0, 1])
def test_a_decrement_at_either_end_of_its_range_is_accepted(level, end):
    """The ranges of SPEC-012 §2.2 include their ends."""
    cost = RANGES[level][end]

    assert decrements(**{level.name.lower(): cost}).of(level) == cost


@pytest.mark.req("BUD-2")
@pytest.mark.parametrize(
    ("name", "cost", "least", "most"),
    [
        ("low", 50_001, "0.00", "0.05"),
        ("low", -1, "0.00", "0.05"),
        ("medium", 19_999, "0.02", "0.10"),
        ("medium", 100_001, "0.02", "0.10"),
        ("high", 99_999, "0.10", "0.25"),
        ("high", 250_001, "0.10", "0.25"),
        ("critical", 249_999, "0.25", "0.50"),
        ("critical", 500_001, "0.25", "0.50"),
    ],
)
def test_a_decrement_outside_its_range_is_refused_and_the_range_is_named(name, cost, least, most):
    """One millionth outside is outside, and the refusal says what is allowed."""
    with pytest.raises(Refused) as refused:
        decrements(**{name: cost})

    assert refused.value.reason == "DECREMENT_OUT_OF_RANGE"
    assert refused.value.metadata == {"level": name.upper(), "least": least, "most": most}
    assert least in refused.value.message
    assert most in refused.value.message


@pytest.mark.req("BUD-2")
def test_the_settings_become_decrements_without_a_rounding_error():
    """0.05 is no binary fraction; as a decrement it is exactly 50,000 millionths."""
    rules = rules_of(Settings(decrement_medium=0.07, decrement_high=0.1, decrement_critical=0.29))

    assert rules.decrements == decrements(medium=70_000, high=100_000, critical=290_000)


@pytest.mark.parametrize("value", [0.1234567, float("nan"), float("inf"), Decimal("1e-7"), "0.00000001"])
def test_a_figure_that_is_no_whole_number_of_millionths_is_refused(value):
    """Nothing is rounded in anyone's favour; what is not a number is no figure."""
    with pytest.raises(Refused) as refused:
        micros(value)

    assert (refused.value.kind, refused.value.reason) == (Kind.INVALID, "NOT_MICROS")


@pytest.mark.req("BUD-3")
@pytest.mark.parametrize(
    ("budget", "band"),
    [
        (1_000_000, Band.HEALTHY),
        (500_001, Band.HEALTHY),
        (500_000, Band.CAUTION),
        (250_000, Band.CAUTION),
        (249_999, Band.LOW),
        (100_001, Band.LOW),
        (100_000, Band.DEPLETED),
        (1, Band.DEPLETED),
        (0, Band.EXHAUSTED),
    ],
)
def test_the_band_changes_exactly_at_its_boundary(budget, band):
    """0.50, 0.25, 0.10 and 0.00, one millionth to either side (requirements.md, reading 1)."""
    assert budget_band(Micros(budget)) is band


@pytest.mark.req("BUD-3", "BRK-2")
@pytest.mark.parametrize(
    ("budget", "warning"),
    [(500_001, None), (500_000, "caution"), (250_000, "caution"), (249_999, "low"), (100_001, "low"), (100_000, None)],
)
def test_the_warning_is_caution_from_a_quarter_up_and_low_below(budget, warning):
    """CRP-Safety-Budget-Warning goes out over the whole of HALF_OPEN and nowhere else."""
    assert budget_warning(Micros(budget)) == warning


@pytest.mark.req("BUD-3")
def test_two_criticals_and_four_mediums_deplete_the_budget():
    """1.0 - 0.35 - 0.35 - 4 x 0.05 is exactly 0.10, which doubles miss (reliability.md, headline 3)."""
    budget = FULL
    for level in [RiskLevel.CRITICAL] * 2 + [RiskLevel.MEDIUM] * 4:
        budget = charge(budget, DEFAULT_DECREMENTS.of(level))

    assert (budget, budget_band(budget)) == (100_000, Band.DEPLETED)


@pytest.mark.req("BUD-4")
def test_a_budget_stops_at_zero():
    """A charge larger than what is left leaves nothing, and no debt that could wrap."""
    assert charge(Micros(40_000), Micros(350_000)) == 0


@pytest.mark.req("BUD-4")
def test_a_negative_charge_is_a_defect():
    """A refund by another name cannot be written."""
    with pytest.raises(ValueError, match="BUD-4"):
        charge(Micros(40_000), Micros(-1))


@pytest.mark.req("BUD-1")
@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (1_000_000, "1.00"),
        (950_000, "0.95"),
        (500_000, "0.50"),
        (123_456, "0.123456"),
        (100_010, "0.10001"),
        (1, "0.000001"),
        (0, "0.00"),
    ],
)
def test_a_header_writes_the_shortest_decimal_with_two_places(budget, text):
    """No digit is lost and none is added."""
    assert as_decimal(Micros(budget)) == text
    assert micros(text) == budget


@pytest.mark.req("BUD-1")
def test_a_token_writes_six_places():
    """The token's number has one spelling."""
    assert [as_fixed(Micros(n)) for n in (1_000_000, 780_000, 7, 0)] == ["1.000000", "0.780000", "0.000007", "0.000000"]
