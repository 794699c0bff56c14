"""Limits told by their other case, and words that only seem turned: *otherwise*, *not any more*, *the youngest* (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from bench.everyday import is_clean
from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from tests.support.dpe import pipeline

pytestmark = pytest.mark.req("DPE-3", "ATT-5")

POOL = "The hotel used to have a pool, but it was turned into a gym in 2021. There is a sauna on the roof."
HOUSE = "The former owner, Mr Hall, sold the house to Ms Ito in 2015."
AGES = "Sven is older than Kim, and Kim is older than Liv."
CONTRACT = "The contract renews automatically unless it is cancelled three months before the end of the year."
PRINTER = "If the printer is offline, jobs are kept in the queue."
LIGHTS = "Lights turn off after 10 minutes unless someone moves."
ROOMS = "Room 3 has a shower. Room 1 has a bath."
OFFLINE = "Schedules run on the lamp itself and work without the internet."


@pytest.mark.parametrize(
    ("source", "query", "right", "wrong"),
    [
        (POOL, "Is there a pool?", "Not any more: the pool became a gym in 2021.", "Not any more: there is no sauna on the roof."),
        (HOUSE, "Who owns the house?", "Ms Ito does; she bought it from Mr Hall in 2015.", "The owner, Mr Hall, sold the house to Ms Ito in 2015."),
        (AGES, "Who is the youngest?", "Liv is the youngest of the three.", "Sven is the youngest of the three."),
        (CONTRACT, "How do I stop it?", "Cancel it three months before the year ends; otherwise the contract renews automatically.",
         "The contract renews automatically."),
        (PRINTER, "Do I lose my jobs?", "No, your jobs are kept even if the printer is offline.", "No, jobs are kept even if the printer is not offline."),
        (LIGHTS, "Do they turn off when I sit still?", "Yes, they turn off after 10 minutes even if you are in the room but do not move.",
         "Yes, lights turn off after 10 minutes even if someone moves."),
        (ROOMS, "What is in room 3?", "Room 3 has a shower, not a bath.", "Room 3 has a bath, not a shower."),
        (OFFLINE, "Does it need the internet?", "Schedules run on the lamp, so they keep working even when the internet is down.",
         "Schedules run on the lamp and do not work without the internet."),
    ],
)  # fmt: skip
async def test_what_holds_in_the_other_case_is_left_and_what_is_turned_is_found(source, query, right, wrong):
    """The faithful answer is LOW without a finding, and its wrong twin is not."""
    judge, facts = pipeline(), (Fact("f", source, 0.5),)
    reports = [
        await judge.analyse(Request(outputs=(Output(0, text),), facts=facts, query=query)) for text in (right, wrong)
    ]

    assert [is_clean(report) for report in reports] == [True, False]
