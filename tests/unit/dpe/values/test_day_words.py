"""Days told by others, days without their month, and holidays (SPEC-005 §5.2)."""

from __future__ import annotations

import pytest

from interlock.dpe.values.extraction import read
from interlock.dpe.values.reckoning.day_words import days_meant, holidays
from interlock.dpe.values.reckoning.told_days import told_days

pytestmark = pytest.mark.req("DPE-3")


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Sown on 30 April and watered the next day.", [(5, 1)]),
        ("It froze the day before 2 March 2024.", [(3, 1)]),
        ("The tide rose on 9 May 2025; the previous evening had been calm.", [(5, 8)]),
        ("The show is on Sunday 18 May 2025, and tickets go on sale on the preceding Friday.", [(5, 16)]),
        ("It broke on Monday 2 March and was mended the Thursday after.", [(3, 5)]),
        ("It began on 28 February and ended the following day.", []),  # of a year that nobody knows
        ("The next day it rained.", []),
    ],
)
def test_days_that_are_told_by_another_one(text, days):
    """The words name the step and the side, and the date is the one before them."""
    assert [(moment.months[0], moment.day) for _, moment in told_days(text)] == days


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("From 3 March until the 14th.", [(3, 14)]),
        ("From 28 March until the 2nd.", [(3, 2), (4, 2)]),
        ("Back on the 9th.", [(None, 9)]),
        ("On 3 March the 14th floor was closed.", []),
        ("For the 40th time since 3 March.", []),
    ],
)
def test_days_without_their_month(text, days):
    """That of a date beside them, or the next one; what counts a noun is no day."""
    reading = read(text)
    found = [day for value in reading.values for day in days_meant(value, reading)]

    assert [(each.moment.months and each.moment.months[0], each.moment.day) for each in found] == days


def test_holidays_are_the_days_on_which_they_fall():
    """With either apostrophe, and in any case."""
    found = list(holidays("Closed on New Year’s Day, on christmas eve and on Shrove Tuesday."))

    assert [(each.text, each.moment.months[0], each.moment.day) for each in found] == [
        ("New Year’s Day", 1, 1),
        ("christmas eve", 12, 24),
    ]
