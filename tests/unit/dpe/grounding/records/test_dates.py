"""Weekdays of a list and dates of a key (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.unit.dpe.grounding.records.support import found

pytestmark = pytest.mark.req("DPE-3")
HALL = (
    '{"hall": "Linde", "courses": [{"name": "Judo", "days": ["mon", "wed"], "starts": "2026-03-02", "ends": "2026-06-26"}, '
    '{"name": "Fencing", "days": ["tue", "thu", "sat"], "starts": "2026-04-07", "ends": "2026-07-03"}]}'
)


@pytest.mark.parametrize(
    ("faithful", "bent"),
    [
        ("The days of Judo are Monday and Wednesday.", "The days of Judo are Monday to Wednesday."),
        ("The days of Fencing: Tuesday, Thursday and Saturday.", "The days of Fencing: Tuesday, Thursday and Sunday."),
        ("Judo starts on 2 March 2026.", "Judo starts on 7 April 2026."),
        ("Fencing ends on 3 July 2026.", "Fencing ends on 26 June 2026."),
    ],
)
def test_days_and_dates_are_those_of_the_row_and_key(faithful: str, bent: str) -> None:
    """A day outside the list, and the date of another row or key."""
    assert found(HALL, faithful) == []
    assert "DATE_SHIFTED" in {each.type for each in found(HALL, bent)}


@pytest.mark.parametrize(
    "answer",
    ["Judo is taught on Monday.", "Judo ends in the summer of 2026.", "Judo starts on 9 May 2026 in the other hall."],
)
def test_other_days_are_left_alone(answer: str) -> None:
    """Some of the days, a rough time, and a date that stands nowhere."""
    assert found(HALL, answer) == []


def test_a_date_of_one_named_key_is_not_held_against_another() -> None:
    """*Starts on 2 March and ends sixteen weeks later* names both keys, and the date of the first."""
    assert found(HALL, "Judo starts on 2 March 2026 and it ends sixteen weeks later.") == []
    assert found(HALL, "Starting on 2 March 2026, Judo ends sixteen weeks later.") == []
    assert "DATE_SHIFTED" in {each.type for each in found(HALL, "Judo ends on 2 March 2026.")}
