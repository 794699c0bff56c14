"""Figures by which a claim lets something go the other way than its sources (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.ways.directed import directed
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
MUSEUM = "Attendance at the museum climbed 12 % to 80,000 visitors."
POSTS = "The council cut 40 posts and added 12 in care."
FARES = "Adult fares will go up by 3 % in May; child fares will fall by 15 % on the same day."
PUPPY = "The puppy lost 400 g in a week."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := directed(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (MUSEUM, "Museum attendance was up 12 %.", "Museum attendance was down 12 %."),
        (MUSEUM, "The museum had 12 % more visitors than the year before.", "The museum had 12 % fewer visitors than the year before."),
        (MUSEUM, "Museum attendance rose to 80,000.", "Museum attendance dropped to 80,000."),
        (MUSEUM, "There was a 12 % increase in museum attendance.", "There was a 12 % decline in museum attendance."),
        (POSTS, "The council added 12 posts in care.", "The council cut 12 posts in care."),
        (FARES, "In May adult fares go up by 3 % and child fares come down by 15 %.", "In May adult fares go up by 3 % and child fares by 15 %."),
        (FARES, "Child fares get 15 % cheaper.", "Child fares get 15 % dearer."),
        (PUPPY, "The puppy is 400 g lighter.", "The puppy put on 400 g."),
        ("The clerk deducted 90 euros from the deposit.", "90 euros were deducted from the deposit.", "The clerk added 90 euros to the deposit."),
        ("Members get 10 % off.", "Members pay 10 % less.", "Members pay 10 % more."),
    ],
)  # fmt: skip
def test_the_other_way_is_found_in_other_words(source: str, faithful: str, bent: str) -> None:
    """Verbs, particles, comparatives and nouns tell a way; two figures may share one verb."""
    told = found(source, bent)

    assert found(source, faithful) is None
    assert told is not None and (told.type, told.slot, told.fact_id) == (NEGATION_FLIP, "direction", "f0")


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (PUPPY, "The puppy had been 400 g heavier before."),
        (PUPPY, "If it ate more, the puppy would gain 400 g."),
        (PUPPY, "Did the puppy gain 400 g?"),
        ("The tunnel is 300 m longer than the bridge.", "The bridge is 300 m shorter than the tunnel."),
        ("Rent rose by 5 %. Elsewhere wages fell by 5 %.", "Wages went down by 5 %."),
        ("The strike cost 5 % of the harvest.", "The harvest was up 5 %."),
        ("Sales grew by 7 %.", "Sales did not shrink by 7 %."),
    ],
)  # fmt: skip
def test_what_looks_back_compares_or_has_no_way_is_left_alone(source: str, answer: str) -> None:
    """A look back, a supposition, a question, the other side of a comparison, a figure that a source has both ways or none."""
    assert found(source, answer) is None
