"""Names of a claim that its source calls otherwise, and values that a question only asks with (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.cues import DATE_SHIFTED, ENTITY_SUBSTITUTED
from interlock.dpe.comparison.direct import cues
from interlock.dpe.values.frames import frame

pytestmark = pytest.mark.req("DPE-3")

_REFUSAL = "In 2024 the theatre declined a request from the Norbury Film Club to borrow the organ."
_ROW = "train 4E11, origin Seaforth, destination Doncaster, departs 02:15, wagons 30, load containers"


def _types(source: str, claim: str) -> set[str]:
    told, fact = frame(claim), frame(source)
    return {cue.type for each in told.sentences for cue in cues(each, told, fact)}


def test_the_theatre_may_be_the_one_that_a_claim_names() -> None:
    """A name whose last word the source has as a plain noun; a name of another sort of thing is a stranger."""
    assert ENTITY_SUBSTITUTED not in _types(
        _REFUSAL, "The Orpheum Theatre therefore declined the club's request in 2024."
    )
    assert ENTITY_SUBSTITUTED in _types(
        _REFUSAL, "In 2024 the theatre declined a request from the Weston Choir to borrow the organ."
    )


def test_the_end_of_a_code_is_no_name() -> None:
    """*4L89* is one word."""
    assert ENTITY_SUBSTITUTED not in _types(_ROW, "Two of them, 4E11 and 4L89, carry containers.")


def test_a_question_states_no_value() -> None:
    """The time that a guest asks with is not what the desk answers."""
    assert DATE_SHIFTED not in _types("Guests land at 23:50, is the desk open?", "The desk is open until midnight.")
    assert DATE_SHIFTED in _types("The desk is open until 23:50.", "The desk is open until midnight.")
