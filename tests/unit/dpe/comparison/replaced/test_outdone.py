"""Comparisons that a claim turns round in other words than its sources (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.replaced.outdone import outdone
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
TEAMS = "The red team was faster than the blue team."
PUMPS = "The new pump uses less power than the old one."
BUS = "The night bus is cheaper than the train, and it has more seats."
CATS = "In our photos, cats are confused more often than dogs."
FERRY = "In May the ferry is busier, and on Sundays the bus is slower than the ferry."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := outdone(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (TEAMS, "The blue team was slower than the red team.", "The blue team was quicker than the red team."),
        (TEAMS, "The red team was quicker than the blue one.", "The red team was slower than the blue one."),
        (PUMPS, "The old pump consumes more power than the new one.", "The old pump consumes less power than the new one."),
        (BUS, "The train costs more than the night bus.", "The train costs less than the night bus."),
        (BUS, "The train is more expensive than the night bus.", "The night bus is dearer than the train."),
        (CATS, "Dogs are mixed up less frequently than cats.", "Dogs are mixed up more frequently than cats."),
        (FERRY, "On Sundays the ferry is faster than the bus.", "On Sundays the bus is faster than the ferry."),
        ("Lima made fewer valves than Quito.", "Quito turned out more valves than Lima.", "Quito turned out fewer valves than Lima."),
        ("The oven is older than the hob.", "The hob is newer than the oven.", "The oven is newer than the hob."),
    ],
)  # fmt: skip
def test_a_comparison_turned_round_is_found(source: str, faithful: str, bent: str) -> None:
    """The sides exchanged, or the respect turned into its opposite, with other verbs and other words for it."""
    told = found(source, bent)

    assert found(source, faithful) is None
    assert told is not None and (told.type, told.slot, told.fact_id) == (NEGATION_FLIP, "comparison", "f0")


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (TEAMS, "The blue team was larger than the red team."),
        (TEAMS, "The blue team was not faster than the red team."),
        (TEAMS, "Was the blue team faster than the red team?"),
        (TEAMS, "The blue team was faster than the green team."),
        (PUMPS, "The old pump consumes less water than the new one."),
        (TEAMS, "In 2019 the blue team was faster than the red team."),
        (TEAMS + " On wet days the blue team was faster than the red team.", "The blue team was faster than the red team."),
        ("On Monday tea sells better than coffee; on Friday it is the other way round.", "On Friday coffee sells better than tea."),
        ("If it rains, the bus is faster than the bike.", "In dry weather the bike is faster than the bus."),
    ],
)  # fmt: skip
def test_another_comparison_is_left_alone(source: str, answer: str) -> None:
    """Another respect, another thing, another case, a denial or a question, and what a source also says."""
    assert found(source, answer) is None


def test_both_comparisons_are_shown() -> None:
    """The finding has the source's comparison and the claim's."""
    told = found(BUS, "The train costs less than the night bus.")

    assert told is not None and (told.source_value, told.claim_value) == (
        "The night bus is cheaper than the train", "The train costs less than the night bus"
    )  # fmt: skip
