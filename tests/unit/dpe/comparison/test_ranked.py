"""What a claim ranks against the figures of its source (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.groupings.measured import measures
from interlock.dpe.comparison.pairings.ranked import ranked
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
TOWERS = "The north tower is 84 m high, the south tower 79 m."
TICKETS = "Ticket A costs 18 euros, ticket B 24 euros and ticket C 15 euros."
ROUTES, TABLE = "Route 1: 12 km\nRoute 2: 9 km", "| Model | Weight |\n|---|---|\n| Uno | 2.1 kg |\n| Due | 1.6 kg |"
AGES = "Tom is 12 years old, Una is 9 years old and Vic is 15 years old."
TENTS = "Tents\nLark: sleeps two, 2.2 kg, 180 euros\nWren: sleeps three, 2.9 kg, 240 euros\nKite: sleeps two, 1.7 kg, 310 euros"
POLL = "Poll of readers\n44 % like tea\n31 % like juice\n25 % like neither"
RATES = "Rye costs 210 euros a tonne, oats 180."
CASES = "Cases by year\n2021: 300 opened, 280 closed\n2022: 310 opened, 330 closed"
LIST = "Timber, USD\nOak: list 90, paid 81\nBirch: list 60, paid 58"
BOXES = "The red box weighs 5 kg and the green box weighs 8 kg."


def found(sources: tuple[str, ...], answer: str) -> Misbinding | None:
    known = tuple(each for n, text in enumerate(sources) for each in measures(text, f"f{n}"))
    evidence = Evidence(tuple(p for text in sources for p in passages(text)), (), (), known)
    return next((each for claim in passages(answer) if (each := ranked(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (TOWERS, "The north tower is higher than the south tower.", "The south tower is higher than the north tower."),
        (TOWERS, "The south tower is lower than the north tower.", "The north tower is 5 m lower than the south tower."),
        (TICKETS, "Ticket C is the cheapest.", "Ticket A is the cheapest, followed by C."),
        (TICKETS, "Ticket A is cheaper than ticket B.", "Ticket A is cheaper than ticket C."),
        (ROUTES, "Route 1 is 3 km longer than route 2.", "Route 2 is 3 km longer than route 1."),
        (TABLE, "The Due is lighter than the Uno.", "The Uno is lighter than the Due."),
        (AGES, "Vic is the oldest and Una is the youngest.", "Vic is the oldest and Tom is the youngest."),
        (BOXES, "The green box weighs 3 kg more than the red one.", "The red box weighs 3 kg more than the green one."),
        ("In May 320 guests came, in June 280.", "More guests came in May than in June.", "More guests came in June than in May."),
        (TENTS, "The Kite costs more than the Lark.", "The Lark costs more than the Kite."),
        (TENTS, "The Lark weighs less than the Wren.", "The Wren weighs less than the Lark."),
        (POLL, "Tea is more popular with the readers than juice.", "Juice is more popular with the readers than tea."),
        (RATES, "The price of oats is lower than that of rye.", "The price of rye is lower than that of oats."),
        (CASES, "In 2022 the cases closed exceeded those opened.", "In 2021 the cases closed exceeded those opened."),
        (LIST, "Birch costs less than oak.", "Birch costs more than oak."),
        ("A ferry ticket costs 12 for adults, 7 for children.", "Adults are charged more than children.", "Children are charged more than adults."),
        ("Uno: 40 l, black\nDue: 55 l, grey\nTre: 40 l, grey", "The Due has a larger volume than the Tre.", "The Tre has a larger volume than the Uno."),
        ("The lamp weighs 900 g, the stand 2 kg.", "The stand is heavier than the lamp.", "The lamp is heavier than the stand."),
    ],
)  # fmt: skip
def test_a_ranking_that_the_figures_refute_is_found(source: str, faithful: str, bent: str) -> None:
    """Prose, lines and tables; pairs and superlatives; figures in other units of one measure."""
    told = found((source,), bent)

    assert found((source,), faithful) is None
    assert told is not None and (told.type, told.slot, told.fact_id) == (NEGATION_FLIP, "ranking", "f0")


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (TOWERS, "The south tower is not higher than the north tower."),
        (TOWERS, "Is the south tower higher than the north tower?"),
        (TOWERS, "The south tower is cheaper than the north tower."),
        (TOWERS, "The south tower has more steps than the north tower."),
        (TICKETS, "Ticket A is the second cheapest."),
        (TENTS, "The Lark was sold more often than the Kite."),
        (TENTS, "The Lark is more comfortable than the Kite."),
        (TENTS, "The Kite weighs more than the Lark says on its label."),
        (TENTS, "The Lark was exceeded by the Kite."),
        ("Mill A made 30 t and sold 10, mill B made 20 t and sold 25.", "Mill B sold more than mill A."),
        (AGES, "Una is taller than Vic."),
        ("Kim lives 3 km away, Lee 5 km. Kim is 20 years old, Lee is 18 years old.", "Lee has more time than Kim."),
    ],
)
def test_a_ranking_of_something_else_is_left_alone(source: str, answer: str) -> None:
    """Denials, questions, and comparisons of what the figures do not measure."""
    assert found((source,), answer) is None


def test_two_sources_that_measure_both_are_not_chosen_between() -> None:
    """What two sources measure, each in its way, refutes nothing."""
    assert found((TOWERS, TOWERS), "The south tower is higher than the north tower.") is None


def test_both_figures_are_shown() -> None:
    """The finding has the figures of both things."""
    told = found((BOXES,), "The red box is heavier than the green box.")

    assert told is not None and (told.source_value, told.claim_value) == (
        "5 kg, 8 kg", "The red box is heavier than the green box"
    )  # fmt: skip
