"""On which side of a figure something holds (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.ways.thresholds import tells_the_other_side, turned_threshold
from tests.unit.dpe.comparison.bindings.reading import found as all_found
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
DOGS = "Dogs over 10 kg must travel in the hold."
SWIM = "Children under 6 swim free of charge."
PAY = "Payments above 500 euros need two signatures."
WALLS = "Walls higher than 2 metres are braced; lower ones are not."
LATE = "Guests who arrive after 10 p.m. must call ahead."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := turned_threshold(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "bent"),
    [
        (DOGS, "Dogs under 10 kg must travel in the hold."),
        (SWIM, "Children over 6 swim free of charge."),
        (PAY, "Payments below 500 euros need two signatures."),
        (WALLS, "Walls lower than 2 metres are now braced."),
        (DOGS, "Dogs must travel in the hold regardless of their weight."),
        (SWIM, "Children swim free whatever their age."),
        (PAY, "Two signatures are needed for payments of any amount."),
        (LATE, "Guests must call ahead whatever time they arrive."),
    ],
)
def test_the_other_side_and_any_size_are_found(source: str, bent: str) -> None:
    """The case turned round, and the case lifted, named with both texts."""
    told = found(source, bent)

    assert told is not None and told.slot == "condition" and told.source_value and told.claim_value


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (DOGS, "Dogs under 10 kg may travel in the cabin."),
        (DOGS, "Dogs weighing 10 kg or less need not travel in the hold."),
        (SWIM, "Children aged 6 and over pay for swimming."),
        (PAY, "One signature is enough for payments up to 500 euros."),
        (WALLS, "Walls lower than 2 metres are not braced."),
        ("Those who had applied by 1 June could move.", "After 1 June those who had applied could move."),
        (PAY, "Payments need two signatures whatever their colour."),
    ],
)
def test_the_other_case_told_rightly_is_left_alone(source: str, answer: str) -> None:
    """Another outcome, a denial, another measure, and a time after which what was so by then goes on."""
    assert found(source, answer) is None


def test_a_denial_of_the_other_side_turns_nothing() -> None:
    """*Under 18 must not* goes with *18 or over may*, whatever rule sees a *not* that is gone."""
    source, claim = (
        "Apprentices under 18 must not work night shifts.",
        "Apprentices aged 18 or over may work night shifts.",
    )

    assert tells_the_other_side(claim, source)
    assert all_found((source,), claim) == []
    assert all_found((source,), "Apprentices under 18 may work night shifts.")
