"""Rates that a claim puts over another time than its sources (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.comparison.replaced.rated import rated
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
LOCKER = "A locker costs 6 euros a month; the gym is open daily."
GRANT = "Interns are paid 14 euros an hour for up to 20 hours per week."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := rated(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (LOCKER, "The locker is 6 euros per month.", "The locker is 6 euros per year."),
        (GRANT, "Interns work at most 20 hours weekly.", "Interns work at most 20 hours a month."),
        (GRANT, "Each hour, interns earn 14 euros.", "Each day, interns earn 14 euros."),
        ("The pump moves 300 l/min.", "The pump moves 300 litres every minute.", "The pump moves 300 litres every hour."),
        ("Rinse the filter twice a week.", "The filter is rinsed two times per week.", "The filter is rinsed twice a day."),
        ("Late returns cost 0.30 per day and book.", "Late books cost 0.30 a day each.", "Late books cost 0.30 a week each."),
        ("Overdrafts cost 1.5% per quarter.", "An overdraft costs 1.5 percent each quarter.", "An overdraft costs 1.5% a year."),
        ("A bed is 35 francs a night.", "A bed costs 35 francs per day.", "A bed costs 35 francs per week."),
        ("The server sends three alerts an hour at most.", "No more than three alerts per hour are sent.", "No more than three alerts a day are sent."),
    ],
)  # fmt: skip
def test_a_figure_over_another_time_is_found(source: str, faithful: str, bent: str) -> None:
    """Prices, amounts and times, however the time is worded."""
    told = found(source, bent)

    assert found(source, faithful) is None
    assert told is not None and (told.type, told.slot, told.fact_id) == (NUMBER_CHANGED, "rate", "f0")


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("The monthly fee is 9 euros.", "It costs 9 euros a month."),
        ("The fee of 9 euros is due every month; the archive costs 9 euros a year.", "The archive is 9 euros a year."),
        ("Water the fern once a day. Feed it weekly.", "Feed the fern once a week."),
        ("The bus runs once an hour.", "The bus runs 24 times a day."),
        ("Members pay 20 euros a month.", "Over a year, members pay 240 euros."),
        ("The shop sells 30 loaves a day.", "The average of 30 loaves a week is too low for a loan."),
        ("Two nurses work per shift.", "The ward is open two hours a day."),
    ],
)
def test_what_may_be_the_sources_is_left_alone(source: str, answer: str) -> None:
    """A figure that stands without a time, another figure over another time, another thing, and what is reckoned."""
    assert found(source, answer) is None


def test_both_rates_are_shown() -> None:
    """The finding has both figures with their times."""
    told = found(LOCKER, "The locker is 6 euros per year.")

    assert told is not None and (told.source_value, told.claim_value) == ("6 euros a month", "6 euros per year")
