"""Limits that a claim drops, and those that it tells in other words (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.alignment import align
from interlock.dpe.comparison.cues import CONTEXT_STRIPPED, Cue
from interlock.dpe.comparison.stripping import stripped
from interlock.dpe.values.frames import frame

pytestmark = pytest.mark.req("DPE-3")
CONTRACT = "The contract renews automatically unless it is cancelled in time."


def cues(source: str, answer: str) -> list[Cue]:
    claim, fact = frame(answer), frame(source)
    return [cue for each in claim.sentences for cue in stripped(each, align(each, claim, fact), claim, fact)]


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (CONTRACT, "Otherwise the contract renews automatically."),
        ("Entries are deleted unless somebody claims them.", "Entries are otherwise deleted."),
        ("Entries are deleted if nobody claims them.", "Claim them, or else entries are deleted."),
    ],
)
def test_a_condition_told_by_its_other_case_is_kept(source: str, answer: str) -> None:
    """*Otherwise* and *or else* tell the case in which the condition is not met."""
    assert cues(source, answer) == []


@pytest.mark.parametrize(
    ("source", "answer", "bent"),
    [
        (
            "The archive lends the globe if we insure it for 9,000.",
            "The globe must be insured for 9,000.",
            "The archive lends the globe.",
        ),
    ],
)
def test_a_condition_told_as_a_duty_is_kept(source: str, answer: str, bent: str) -> None:
    """What is done if something is, is done once that is required. A *must* of the source itself is not the condition."""
    assert cues(source, answer) == []
    assert cues(source, bent) != []
    assert cues("Guests must pay for the room if they cancel late.", "Guests must pay for the room.") != []


def test_a_condition_that_is_not_told_is_dropped() -> None:
    """The same claim without *otherwise* drops its condition."""
    (cue,) = cues(CONTRACT, "The contract renews automatically.")

    assert (cue.type, cue.certain) == (CONTEXT_STRIPPED, True)


def test_an_end_tells_until_when() -> None:
    """What closes at nine is open until nine."""
    source = "The shop is open until 9 pm in winter."

    assert cues(source, "In winter the shop closes at 9 pm, so it is open at 8 pm.") == []
    assert cues(source, "In winter the shop is open, so it is open at 8 pm.") != []
