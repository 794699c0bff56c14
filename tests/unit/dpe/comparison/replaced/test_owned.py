"""Figures that a claim takes from another thing (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.comparison.groupings.measured import measures
from interlock.dpe.comparison.replaced.owned import owned
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
TENTS = "Tents\nLark: sleeps two, 2.2 kg, 180 euros\nWren: sleeps three, 2.9 kg, 240 euros\nKite: sleeps two, 1.7 kg, 310 euros"
WATER = "Limits: nitrate 50 mg per litre, fluoride 10 mg per litre"
POOL = "Single swim 4 EUR\nTen-swim card 36 EUR\nSeason ticket 95 EUR"
LUNCH = "The trip costs 40 euros, lunch 12."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"), (), (), measures(source, "f0"))
    return next((each for claim in passages(answer) if (each := owned(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (TENTS, "The Wren weighs 2.9 kilos.", "The Wren weighs 2.2 kilos."),
        (TENTS, "The Kite costs 310 euros.", "The Kite costs 240 euros."),
        (WATER, "The limit for fluoride is 10 mg per litre.", "The limit for fluoride is 50 mg per litre."),
        (POOL, "The card for ten swims is priced at 36 EUR.", "The card for ten swims is priced at 95 EUR."),
        (LUNCH, "Lunch is 12 euros.", "Lunch is 40 euros."),
        ("The oak is 21 m high and the ash 17 m.", "The ash has a height of 17 m.", "The ash has a height of 21 m."),
        ("Duty: tea 6%, coffee 9%", "The duty on tea is 6%.", "The duty on tea is 9%."),
    ],
)  # fmt: skip
def test_the_figure_of_another_thing_is_found(source: str, faithful: str, bent: str) -> None:
    """Records on one line, lists, and figures side by side, some of them without their unit."""
    told = found(source, bent)

    assert found(source, faithful) is None
    assert told is not None and (told.type, told.slot, told.fact_id) == (NUMBER_CHANGED, "figure", "f0")


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (LUNCH, "Lunch is included in the 40 euros."),
        (LUNCH, "Lunch is not 40 euros."),
        (LUNCH, "Is lunch 40 euros?"),
        ("Entry costs 6 euros by card and 8 euros in cash.", "For those who pay in cash, entry costs 8 euros."),
        ("The desk took 612 calls, down from 680 in 2023.", "Calls: 612 (2023: 680)"),
        (LUNCH, "The trip without lunch costs 40 euros."),
        (TENTS, "The Wren is 60 euros more than the Lark."),
        (TENTS, "The Wren weighs more than 2.2 kg."),
        (TENTS, "The Wren and the Kite differ by 1.2 kg."),
        ("Of 74 sprains, 70 healed, 4 needed surgery.", "Surgery was avoided in all but 4 of the sprains."),
        ("The oak is 21 m high and the ash 17 m. The trunk of the ash is 21 m.", "The ash is 21 m."),
        (POOL, "With a season ticket, the first 36 EUR are paid back."),
    ],
)
def test_another_relation_to_a_figure_is_left_alone(source: str, answer: str) -> None:
    """What is part of it, denied, asked, compared with it, or stated of both."""
    assert found(source, answer) is None


def test_both_figures_are_shown() -> None:
    """The finding has the figure of the thing that the claim names."""
    told = found(POOL, "The season ticket costs 4 EUR.")

    assert told is not None and (told.source_value, told.claim_value) == ("95 EUR", "4 EUR")
