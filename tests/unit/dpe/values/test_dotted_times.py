"""Times of day written with a dot: where the sentence is about opening hours or a day, and nowhere else (SPEC-005 §5.2)."""

from __future__ import annotations

import pytest

from interlock.dpe.values.extraction import read

pytestmark = pytest.mark.req("DPE-3")

TIMES = {
    "The baths are open Monday to Friday 7.30 to 21.00.": [450, 1260],
    "On Sundays the kiosk closes at 17.15.": [1035],
    "The gate stays open until 22.00 every day.": [1320],
    "They meet at 10.30 a.m. by the pump.": [630],
    "They meet at 10.30 pm by the pump.": [1350],
}
FIGURES = (
    "The fine went from 9.00 to 13.00 euros.",
    "The pH of the pond rose from 8.30 to 9.00.",
    "The shares closed at 13.20 on Friday.",
    "On Mondays pears sell at 8.30 to 9.40 a kilo.",
    "The baths open early, and a visit costs 9.50.",
    "On Friday the level fell to 12.37.",
)


def minutes(text: str) -> list[int]:
    return [each.moment.minute for each in read(text).values if each.moment and each.moment.minute is not None]


@pytest.mark.parametrize(("text", "expected"), TIMES.items())
def test_opening_hours_are_times(text, expected):
    """Minutes since midnight, so that 21.00 is nine o'clock in the evening."""
    assert minutes(text) == expected


@pytest.mark.parametrize("text", FIGURES)
def test_prices_and_measures_are_none(text):
    """A figure with two decimals stays one."""
    assert minutes(text) == []
