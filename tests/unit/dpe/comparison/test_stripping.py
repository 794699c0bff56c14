"""Limits that a claim drops, and those that it tells in other words (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.alignment import align
from interlock.dpe.comparison.cues import CONTEXT_STRIPPED, Cue
from interlock.dpe.comparison.direct import cues as all_cues
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


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("Loans are subject to a credit check, and a pupil who moves may not apply for one in the first month.", "You will be credit checked."),
        ("The night train was discussed but could not be introduced because there were too few qualified drivers.", "There were too few qualified drivers to introduce the night train."),
        ("Digging must not start until a bird survey carried out between May and August has been approved.", "Birds: no digging can begin before a survey done between May and August has been approved."),
        ("If a family moves out of the county during the school year, the child may stay enrolled until the end of that year, but bus transport ends on the day of the move.", "The bus stops being available to him on the day you move."),
        ("Cold drinks are allowed in all rooms except the Green Room.", "The Green Room is the one room where even cold drinks are ruled out."),
    ],
)  # fmt: skip
def test_a_limit_told_from_its_other_side_is_kept(source: str, answer: str) -> None:
    """The claim tells the condition itself, the time before it, or the exception."""
    claim, fact = frame(answer), frame(source)
    assert not [c for each in claim.sentences for c in all_cues(each, claim, fact) if c.type == CONTEXT_STRIPPED]


def test_a_limit_of_which_a_claim_tells_nothing_is_dropped() -> None:
    """The same sources, and claims that tell neither the other side nor the condition."""
    assert cues(
        "The night train could be introduced because there are enough drivers.",
        "The night train is introduced because there are enough drivers.",
    )
    assert cues("Digging must not start until a bird survey has been approved.", "Digging must not start.")
