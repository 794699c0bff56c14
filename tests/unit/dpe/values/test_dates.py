"""Reading dates and telling whether two of them agree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.dpe.comparison.value_conflicts import extract
from interlock.dpe.values.moments import Moment, agree, comparable, covers

MAY_25 = Moment(years=(2026, 2026), months=(5, 5), day=25)
DATES = {
    "09/2021": Moment((2021, 2021), (9, 9)),
    "25 May 2026": MAY_25,
    "May 25, 2026": MAY_25,
    "May 25th, 2026": MAY_25,
    "the 25th of May 2026": MAY_25,
    "the twenty-fifth of May 2026": MAY_25,
    "25-May-2026": MAY_25,
    "25/05/2026": MAY_25,
    "05/25/2026": MAY_25,
    "25.05.2026": MAY_25,
    "2026-05-25": MAY_25,
    "2026-05-25T10:00:00Z": replace(MAY_25, minute=600),
    "2026-05-25T00:00:00Z": MAY_25,
    "2026/05/25": MAY_25,
    "Monday, 25 May 2026": Moment(years=(2026, 2026), months=(5, 5), day=25, weekday=0),
    "May 2026": Moment(years=(2026, 2026), months=(5, 5)),
    "Sept. 2026": Moment(years=(2026, 2026), months=(9, 9)),
    "May 25": Moment(months=(5, 5), day=25),
    "Q3 2025": Moment(years=(2025, 2025), months=(7, 9)),
    "3Q25": Moment(years=(2025, 2025), months=(7, 9)),
    "the third quarter of 2025": Moment(years=(2025, 2025), months=(7, 9)),
    "third-quarter": Moment(months=(7, 9)),
    "H1 2024": Moment(years=(2024, 2024), months=(1, 6)),
    "the first half of 2024": Moment(years=(2024, 2024), months=(1, 6)),
    "the 1990s": Moment(years=(1990, 1999)),
    "the '90s": Moment(years=(1990, 1999)),
    "the nineties": Moment(years=(1990, 1999)),
    "the 19th century": Moment(years=(1800, 1900)),
    "the nineteenth century": Moment(years=(1800, 1900)),
    "44 BC": Moment(years=(-44, -44)),
    "nineteen eighty-four": Moment(years=(1984, 1984)),
    "10:30 am": Moment(minute=630),
    "10:30 p.m.": Moment(minute=1350),
    "5 pm": Moment(minute=1020),
    "17:00": Moment(minute=1020),
    "noon": Moment(minute=720),
    "half past two": Moment(minute=150, either_half=True),
    "quarter to seven in the morning": Moment(minute=405),
    "ten past eight at night": Moment(minute=1210),
    "3 o'clock": Moment(minute=180, either_half=True),
    "6:30 in the evening": Moment(minute=1110),
    "Thursday": Moment(weekday=3),
}
NO_DATES = [
    "rule 09/3000",
    "version 9/2021",
    "he may march on",
    "yesterday",
    "last year",
    "Theresa May spoke",
    "a 3:2 ratio",
    "two tablets, one in the morning",
    "five in the evening",
    "from ten to twelve people",
    "at ten to twelve degrees",
    "a quarter to half",
    "the final quarter of an hour",
    "1500 people",
    "$2024",
    "2,024 votes",
    "2024%",
]


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("text", "moment"), DATES.items())
def test_a_date_is_read_in_every_form(text, moment):
    """A date states the same in every form of writing."""
    (value,) = extract(f"it began on {text}, they say")

    assert (value.kind, value.moment) == ("DATE", moment)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize("text", NO_DATES)
def test_what_is_no_date_is_not_read_as_one(text):
    """Modal verbs, names, counts, prices and words that depend on today are no dates."""
    assert [value for value in extract(text) if value.moment] == []


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "minute"), [("at ten to eight.", 470), ("until ten in the evening", 1320), ("by 11 in the morning", 660)]
)
def test_an_hour_is_read_behind_a_word_of_time(text, minute):
    """*At*, *until* and *by* tell that a number is an hour."""
    (value,) = extract(f"it began {text}")

    assert value.moment.minute == minute


@pytest.mark.req("DPE-3")
def test_a_time_without_a_half_of_the_day_may_be_of_either():
    """Half past two agrees with 2:30 and with 14:30, and with no other time."""
    (value,) = extract("it begins at half past two")

    assert all(agree(value.moment, Moment(minute=minute)) for minute in (150, 870))
    assert not agree(value.moment, Moment(minute=160))


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "years"),
    [("In 2019-21 it", [2019, 2021]), ("the 1914-1918 war", [1914, 1918]), ("from 1999 to 2004", [1999, 2004])],
)
def test_both_years_of_a_span_are_read(text, years):
    """A span of years states its first and its last."""
    assert [value.moment.years for value in extract(text)] == [(year, year) for year in years]


@pytest.mark.req("DPE-3")
def test_a_quarter_behind_its_year_is_read_with_it():
    """2025 Q3 is read as the year and as the third quarter of it."""
    assert [value.moment for value in extract("it began in 2025 Q3, they say")] == [
        Moment(years=(2025, 2025)), DATES["Q3 2025"],
    ]  # fmt: skip


@pytest.mark.req("DPE-3")
def test_an_ambiguous_date_agrees_with_both_readings():
    """05/06/2026 may be in May or in June, and is held to neither."""
    (value,) = extract("on 05/06/2026 there")

    assert agree(value.moment, Moment((2026, 2026), (6, 6), 5))
    assert agree(value.moment, Moment((2026, 2026), (5, 5), 6))
    assert not agree(value.moment, Moment((2026, 2026), (7, 7), 5))


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("May 2026", "25 May 2026"),
        ("2026", "May 2026"),
        ("the 1990s", "1995"),
        ("Q3 2025", "August 2025"),
        ("the 19th century", "1850"),
    ],
)
def test_a_coarse_date_agrees_with_a_finer_one_and_does_not_cover_it(first, second):
    """May 2026 does not contradict 25 May 2026, and does not support it either."""
    (coarse,), (fine,) = extract(f"in {first} x"), extract(f"in {second} x")

    assert agree(coarse.moment, fine.moment)
    assert covers(fine.moment, coarse.moment)
    assert not covers(coarse.moment, fine.moment)


@pytest.mark.req("DPE-3")
def test_dates_that_state_different_things_cannot_differ():
    """A weekday and a year are not comparable."""
    assert not comparable(Moment(weekday=0), Moment(years=(2024, 2024)))
