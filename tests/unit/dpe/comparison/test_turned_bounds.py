"""Limits turned round, and *only* widened to *all* (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.cues import CONTEXT_STRIPPED, NUMBER_CHANGED
from interlock.dpe.comparison.direct import cues
from interlock.dpe.values.frames import frame
from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = pytest.mark.req("DPE-3")


def cued(source: str, answer: str) -> list[tuple[str, str, str]]:
    claim, fact = frame(answer), frame(source)
    return [
        (cue.type, cue.source_value, cue.claim_value)
        for sentence in claim.sentences
        for cue in cues(sentence, claim, fact)
        if cue.type == NUMBER_CHANGED
    ]


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        ("The van carries up to 900 kg.", "The van carries 900 kg at most.", "The van carries at least 900 kg."),
        ("Pilots need at least 40 hours.", "Pilots need no less than 40 hours.", "Pilots need at most 40 hours."),
        ("The hall seats no more than 60 guests.", "The hall seats up to 60 guests.", "The hall seats at least 60 guests."),
        ("Orders over 50 euros ship free.", "Orders of more than 50 euros ship free.", "Orders under 50 euros ship free."),
        ("Orders over 50 euros ship free.", "Orders under 50 euros do not ship free.", "Orders below 50 euros ship free."),
        ("Children under 6 travel free.", "Children of at least 6 pay 3 euros.", "Children over 6 travel free."),
    ],
)  # fmt: skip
def test_a_limit_turned_round_is_found(source: str, faithful: str, bent: str) -> None:
    """An upper bound for a lower one on the same figure of the same thing; what is said beyond the limit is another case."""
    assert cued(source, faithful) == []
    assert cued(source, bent)


def test_a_turned_limit_is_shown_with_its_words() -> None:
    """The finding names both bounds."""
    assert cued("The van carries up to 900 kg.", "The van carries at least 900 kg.") == [
        (NUMBER_CHANGED, "up to 900 kg", "at least 900 kg")
    ]


@pytest.mark.models
@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        ("Only the suites have a kitchen.", "All suites have a kitchen.", "All rooms have a kitchen."),
        ("Only the captain may enter the bridge.", "Not everyone may enter the bridge.", "Everyone may enter the bridge."),
        ("Only residents pay the lower fee.", "Residents pay the lower fee.", "Every visitor pays the lower fee."),
    ],
)  # fmt: skip
def test_only_some_are_not_all(source: str, faithful: str, bent: str) -> None:
    """What only some have, not all have; of those few a claim may say *all*."""
    assert not found((source,), faithful)
    assert [(each.type, each.slot) for each in found((source,), bent)] == [(CONTEXT_STRIPPED, "quantifier")]
