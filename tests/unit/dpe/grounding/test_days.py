"""Days of the week in answers: what a range, a group or a time table holds, and what it leaves out (SPEC-005 §5.2)."""

from __future__ import annotations

import pytest

from bench.everyday import is_clean
from interlock.dpe.document import Fact
from interlock.dpe.grounding.follows import days_told
from tests.support.dpe import claim, pipeline, request

pytestmark = pytest.mark.req("DPE-3", "ATT-5")

LIBRARY = "The library is open Monday to Friday from 9 to 17. On Sundays it is closed."
MARKET = "The market takes place every Tuesday and Friday."
YOGA = "Yoga: Mon and Wed, 18:00."
SHOP = "Opening hours: Mon-Fri 8 am to 6 pm, Sat 9 am to 1 pm."
TOURS = "Guided tours run Friday to Sunday."
PAPER = "Garbage is picked up on Tuesday. Paper is picked up on Fridays."
CLIMBING = "The climbing wall costs 8 EUR a visit. It is free on Sundays."


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        (LIBRARY, "On Wednesday the library is open from 9 to 17.", "On Saturday the library is open from 9 to 17."),
        (LIBRARY, "The library is closed on Saturdays.", "The library is open on Saturdays."),
        (
            MARKET,
            "The market takes place on Tuesdays and Fridays.",
            "The market takes place on Tuesdays and Thursdays.",
        ),
        (
            YOGA,
            "Yoga takes place on Mondays and Wednesdays at 6 pm.",
            "Yoga takes place on Mondays and Thursdays at 6 pm.",
        ),
        (SHOP, "We're open Monday to Friday from 8 am to 6 pm.", "On Sundays we're open from 8 am to 6 pm."),
        (TOURS, "Tours run on Saturdays, for example.", "Tours run on Mondays, for example."),
        (PAPER, "Paper is picked up every Friday.", "Paper is picked up on Tuesdays."),
        (CLIMBING, "The climbing wall is free on Sunday.", "The climbing wall is free on Saturdays."),
    ],
)
async def test_a_day_that_the_sources_hold_is_left_and_another_is_found(source, right, wrong):
    """The right answer is LOW, and its twin with another day is not."""

    async def judged(answer: str):
        return await pipeline().analyse(request(answer, source, query="When?"))

    assert is_clean(await judged(right))
    assert not is_clean(await judged(wrong))


@pytest.mark.parametrize(
    ("sources", "text", "settled", "moved", "rest"),
    [
        ([SHOP], "Open on Thursday.", {"Thursday"}, [], False),
        ([SHOP], "Open on Sunday.", set(), ["Sunday"], False),
        ([SHOP], "Not open on Sunday.", {"Sunday"}, [], True),
        ([SHOP], "Open Monday to Thursday.", set(), [], False),
        (["Free at weekends."], "Free on Saturdays and Sundays.", {"Saturdays", "Sundays"}, [], False),
        (["Free at weekends."], "Free on Mondays.", set(), [], False),
        (["Open daily except Mon."], "Open on Tuesday.", {"Tuesday"}, [], False),
        (["Mon and Wed, except next week."], "Open on Sunday.", set(), [], False),
        (["Fri, 5 May: it is moved to next Monday."], "It is on Sunday.", set(), [], False),
        (["No day at all."], "Open on Sunday.", set(), [], False),
    ],
)
def test_what_is_told_of_a_day(sources, text, settled, moved, rest):
    """Where an exception or a day that is meant from today on stands in the sources, no day is called foreign."""
    facts = [Fact(f"f{number}", source, 0.5) for number, source in enumerate(sources)]
    found = days_told(claim(text), facts, "")

    assert (found.settled, [one.claim_value for one in found.moved], found.rest) == (settled, moved, rest)


def test_a_day_that_the_user_named_is_not_the_answers_own():
    """*Are you open on Sunday?* may be repeated."""
    facts = [Fact("f1", SHOP, 0.5)]

    assert days_told(claim("Sunday is a day of rest here."), facts, "Are you open on Sunday?").moved == ()
