"""Limits that a claim turns round in other words than its sources (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.replaced.bounded import bounded
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
LOANS = "The archive lends slides to clubs for up to three weeks. Film is never lent."
RAFT = "Up to nine people may be on the raft at once, life jackets on, and the door must stay shut."
PARK = "Cars may stand in the yard for up to two hours."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := bounded(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (LOANS, "A club can keep the slides for three weeks at most.", "A club has to keep the slides for at least three weeks."),
        (RAFT, "The raft can take no more than nine people.", "The raft can take no fewer than nine people."),
        (RAFT, "A maximum of nine people may go on the raft.", "A minimum of nine people may go on the raft."),
        ("The subsidy pays 30% of the roof at most.", "The subsidy can reach up to 30% of the roof.", "The subsidy must pay at least 30% of the roof."),
        ("The lift will be back on Friday at the earliest.", "The lift is back no earlier than Friday.", "The lift is back by Friday at the latest."),
        ("Guards rest for at least 11 hours between shifts.", "The rest of guards must last 11 hours or more.", "The rest of guards must last 11 hours at most."),
        ("Growers may sell at most 400 tonnes of rice.", "The rice that is sold may be up to 400 tonnes.", "Growers have to sell no less than 400 tonnes of rice."),
    ],
)  # fmt: skip
def test_a_limit_turned_round_in_other_words_is_found(source: str, faithful: str, bent: str) -> None:
    """Amounts, shares, times and people, the limit before the figure or behind it."""
    told = found(source, bent)

    assert found(source, faithful) is None
    assert told is not None and (told.slot, told.fact_id) == ("limit", "f0")


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (PARK, "Cars that stand for at least two hours are towed."),
        (PARK, "Parking for at least two hours needs a permit from the office."),
        (PARK, "Bikes must stay for at least two hours."),
        (PARK, "Cars may not stand there for at least two hours."),
        ("Orders are taken up to 24 hours before the flight.", "Orders have to be placed at least 24 hours in advance."),
        ("The hall seats up to 60. The choir has at least 60 singers in the hall.", "The hall is filled by at least 60 singers."),
        ("Clubs with up to ten members pay 5 euros.", "Clubs of at least ten members pay 9 euros."),
    ],
)  # fmt: skip
def test_what_is_beyond_a_limit_is_left_alone(source: str, answer: str) -> None:
    """Another case, another thing, a denial, a time that is counted back, and a figure with both limits."""
    assert found(source, answer) is None


def test_both_limits_are_shown() -> None:
    """The finding has both limits as they are written."""
    told = found(LOANS, "A club has to keep the slides for at least three weeks.")

    assert told is not None and (told.source_value, told.claim_value) == ("up to three weeks", "at least three weeks")
