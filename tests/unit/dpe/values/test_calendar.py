"""Dates and periods: what a calendar makes of them is right, anything else is not (SPEC-005 §5.2)."""

import pytest

from interlock.dpe.values.extraction import read
from interlock.dpe.values.reckoning.calendar import relates
from interlock.dpe.values.reckoning.derived import Operand, derives, words_of
from interlock.dpe.values.reckoning.spans import misnamed_weekdays, wrong_spans

pytestmark = pytest.mark.req("ATT-5")


def follows(claim, *sources):
    """Whether the last date or period of a claim follows from its sources and from what the claim states before it."""
    reading = read(claim)
    *stated, target = reading.values
    operands = [Operand(value, scope=-1) for value in stated]
    for number, text in enumerate(sources):
        source = read(text)
        near = words_of(source.tokens)
        operands += [
            Operand(v, frozenset({"x"}), number, near=near, follows=source.tokens[v.last].low) for v in source.values
        ]
    return derives(target, words_of(reading.tokens), operands)


@pytest.mark.parametrize(
    ("claim", "right", "wrong", "sources"),
    [
        ("the lease ends on {}", "31 August 2025", "31 October 2025", ["It starts on 1 March 2024 and runs for 18 months."]),
        ("the lease ends on {}", "1 September 2025", "1 August 2025", ["It starts on 1 March 2024 and runs for 18 months."]),
        ("it ends at the end of {}", "August 2025", "September 2025", ["It starts on 1 March 2024 and runs for 18 months."]),
        ("the loan is over on {}", "28 February 2025", "28 March 2025", ["It began on 31 August 2024 and lasts six months."]),
        ("the pass expires on {}", "30 August 2025", "30 September 2025", ["It is valid for 90 days from 1 June 2025."]),
        ("the deadline is {}", "21 April 2025", "2 June 2025", ["It is three weeks before the opening on 12 May 2025."]),
        ("the booster is due on {}", "20 March 2025", "6 February 2025", ["He was vaccinated on 20 February 2025; again four weeks later."]),
        ("the answer comes by {}", "21 March 2025", "17 March 2025", ["They decide within 10 working days after 7 March 2025."]),
        ("the bridge is ready by the end of {}", "November 2026", "August 2026", ["Work starts in October 2025 and takes 14 months."]),
        ("it took {}", "15 months", "25 months", ["from March 2022 to June 2023."]),
        ("it is open for {}", "78 days", "80 days", ["from 10 January 2025 to 28 March 2025."]),
        ("the last one is on {}", "23 December 2025", "9 December 2025", ["There are 12 weekly sessions from 7 October 2025."]),
        ("the last is due on {}", "15 June 2025", "15 August 2025", ["They make 6 monthly payments from 15 January 2025."]),
        ("she is 67 on {}", "30 September 2037", "30 September 2035", ["She was born on 30 September 1970."]),
        ("it is shut for nearly {}", "ten weeks", "six weeks", ["from 6 January to 14 March 2025, days and weeks."]),
        ("the agreement lasted {}", "six months", "eight months", ["from 1 March 2024 to 31 August 2024."]),
    ],
)  # fmt: skip
def test_a_date_or_period_follows_only_where_the_calendar_makes_it(claim, right, wrong, sources):
    """The words of the claim, or those beside the period in its source, say from where it runs."""
    assert follows(claim.format(right), *sources)
    assert not follows(claim.format(wrong), *sources)


def test_a_term_includes_its_first_day_and_a_delay_does_not():
    """What lasts ten days from 3 March ends on the 12th; what comes ten days after it comes on the 13th."""
    lasting, coming = "It lasts ten days, from 3 March 2025.", "It comes ten days after 3 March 2025."

    assert follows("the last day is until 12 March 2025", lasting)
    assert not follows("it arrives on 12 March 2025", coming)
    assert follows("it arrives on 13 March 2025", coming)


def test_a_period_without_a_relation_leads_nowhere():
    """A price per month is no term."""
    assert not relates(frozenset({"a", "fee", "per", "month"}))
    assert not follows("the shop has been here, June 2024", "The fee of one month is due, May 2024.")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The renovation took 25 months, from March 2022 to June 2023.", ["25 months"]),
        ("The renovation took 15 months, from March 2022 to June 2023.", []),
        ("The show runs for 78 days, from 10 January 2025 to 28 March 2025.", []),
        ("The show runs for 47 days, from 10 January 2025 to 28 March 2025.", ["47 days"]),
        ("The show ran every 3 days from 10 January 2025 to 28 March 2025.", []),
    ],
)
def test_a_period_that_its_own_dates_refute_is_found(text, found):
    """Both ways of counting the last day are right."""
    assert [value.text for _, value in wrong_spans(read(text))] == found


def test_a_date_that_names_another_weekday_is_found():
    """14 February 2025 was a Friday."""
    assert [right for right, _ in misnamed_weekdays(read("It was on 14 February 2025, a Monday."))] == ["Friday"]
    assert not list(misnamed_weekdays(read("It was on 14 February 2025, a Friday, and on 3 March 2025, Monday aside.")))
    assert [right for right, _ in misnamed_weekdays(read("It was on Monday, 14 February 2025."))] == ["Friday"]
    assert not list(misnamed_weekdays(read("It was on Friday, 14 February 2025, and on Monday 14 February.")))
