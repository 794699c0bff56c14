"""What a claim says that a value is not, and times within a span of the source (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.direct import cues
from interlock.dpe.values.frames import frame

pytestmark = pytest.mark.req("DPE-3")
DEPOSIT, COURSE = "The deposit is 300 euros.", "The course begins on 4 October."
OPEN, DATES = "The bar is open until midnight on weekdays.", "Applications are accepted from 1 March to 30 April."


def found(source: str, answer: str) -> set[str]:
    claim, fact = frame(answer), frame(source)
    return {cue.type for sentence in claim.sentences for cue in cues(sentence, claim, fact) if cue.certain}


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (DEPOSIT, "The deposit is not 500 euros but 300 euros.", "The deposit is not 300 euros but 500 euros."),
        (DEPOSIT, "The deposit is not 500 euros, it is 300 euros.", "The deposit is not 300 euros, it is 500 euros."),
        (DEPOSIT, "The deposit is 300 euros rather than 500 euros.", "The deposit is 500 euros rather than 300 euros."),
        (DEPOSIT, "The deposit isn't 500 euros.", "The deposit is 500 euros."),
        (COURSE, "The course doesn't begin on 4 November.", "The course begins on 4 November."),
        (COURSE, "The course begins on 4 October, not on 4 November.", "The course begins on 4 November, not on 4 October."),
        ("The bolt is 12 mm long.", "The bolt is not 10 mm long, it is 12 mm.", "The bolt is not 12 mm long, it is 10 mm."),
        ("Hall 7 is on the second floor.", "Hall 7 isn't on the third floor.", "Hall 7 is on the third floor."),
    ],
)  # fmt: skip
def test_a_denied_value_is_no_changed_one(source: str, faithful: str, bent: str) -> None:
    """To deny what a source does not state bends nothing; to put another value in the place of the source's does."""
    assert found(source, faithful) == set()
    assert found(source, bent)


def test_a_denied_limit_is_compared() -> None:
    """What is denied of a limit is not the limit's value."""
    source = "The pass is valid within 30 days."

    assert found(source, "The pass is not valid within 60 days.")


def test_a_source_that_denies_is_compared() -> None:
    """Two denials of two values are two values."""
    assert found("The pass does not cover trips of 40 km.", "The pass does not cover trips of 80 km.")


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (OPEN, "The bar is open at 11 pm on weekdays.", "The bar is open until 11 pm on weekdays."),
        (DATES, "Applications are accepted on 12 April.", "Applications are accepted on 12 May."),
        ("Samples are taken between 8 am and 11 am.", "Samples are taken at 10 am.", "Samples are taken at noon."),
        ("The park is closed from 9 pm until 6 am.", "The park is closed at midnight.", "The park is closed at 8 am."),
        ("No bus runs after midnight.", "No bus runs at 1 am.", "No bus runs at 11 am."),
        ("Shops open from 9 am to 6 pm.", "Shops are open at 10 am.", "Shops open at 10 am."),
        ("The desk is staffed from 2 pm.", "The desk is staffed at 4 pm.", "The desk is staffed at 1 pm."),
    ],
)  # fmt: skip
def test_a_time_within_a_span_is_not_shifted(source: str, faithful: str, bent: str) -> None:
    """What holds from one time to another holds between them, but begins and ends at those."""
    assert found(source, faithful) == set()
    assert found(source, bent)
