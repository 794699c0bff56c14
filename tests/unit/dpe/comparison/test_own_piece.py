"""Values of lists: what a later piece of a sentence leaves out it shares with the first one (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from bench.everyday import is_clean
from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from tests.support.dpe import pipeline

pytestmark = pytest.mark.req("DPE-3")

GLUES = "Of the four glues tested, Fixol held for 9 weeks, Bondex for 5 and wallpaper paste for 2."
ROUNDS = "In the first round 64 % of the members voted, in the second 41 %."
PUPILS = "Of the thirty pupils examined in Riga, twenty passed, seven must repeat one subject and three were absent."
CRATES = "The lorry can take 14 of the 20 crates on Friday. The rest goes by rail."
FUNDS = "The club spent 12 million euros on players in the season and ended May with 31 million in the bank."
LINES = "Every tram on line 4 has a lift, and on line 9 about half do. Ask at the depot."
RECORD = "Comics in: 120, sold: 95, returned: 7"
ORDER = "Order terms: from five boxes 8 percent off tiles, from fifteen 12 percent; samples are excluded. The school has ordered 22 boxes."
VOTES = "The council approved the plan by 41 votes to 12 on Monday."
TARGET = "The hunters shot 214 deer, 30 fewer than the plan required."


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        (GLUES, "Bondex held for 5 weeks.", "Bondex held for 2 weeks."),
        (GLUES, "Fixol held for 9 weeks.", "Fixol held for 5 weeks."),
        (ROUNDS, "In the second round 41 % of the members voted.", "In the first round 41 % of the members voted."),
        (ROUNDS, "In the first round 64 % of the members voted.", "In the second round 64 % of the members voted."),
        (PUPILS, "Seven pupils must repeat one subject.", "Twenty pupils must repeat one subject."),
        ("Of the 30 swans, 18 left in March and 12 stayed.", "Eighteen swans left in March, and 12 stayed.", "Twelve swans left in March, and 18 stayed."),
        (CRATES, "Fourteen crates can be taken on Friday.", "Sixteen crates can be taken on Friday."),
        (FUNDS, "It had 31 million euros in the bank when May ended.", "The club spent 31 million euros on players in the season."),
        (LINES, "Some trams on line 9 have a lift.", "Every tram on line 9 has a lift."),
        (RECORD, "95 comics were sold.", "7 comics were sold."),
        (ORDER, "The school gets 12 percent off tiles.", "The school gets 14 percent off tiles."),
        (VOTES, "The plan was approved by 41 votes to 12.", "The plan was approved by 21 votes to 12."),
        (TARGET, "The hunters shot 214 deer.", "The hunters shot 30 deer more than the plan required."),
    ],
)  # fmt: skip
async def test_the_value_of_its_own_piece_is_no_changed_one_and_that_of_another_is(source, right, wrong):
    """The faithful claim is LOW without a finding, and its bent twin is not."""
    judge, facts = pipeline(), (Fact("f", source, 0.5),)
    reports = [await judge.analyse(Request(outputs=(Output(0, text),), facts=facts)) for text in (right, wrong)]

    assert [is_clean(report) for report in reports] == [True, False]


@pytest.mark.parametrize(
    ("source", "text", "clean"),
    [
        ("The Vela tariff is only available to homes with a smart meter.", "Yes, you can choose Vela with any type of meter.", False),
        ("Never boil more than two kilograms of fruit at a time, because the mixture may otherwise boil over.", "Four kilos at the most, since the pot may boil over with more than that.", False),
    ],
)  # fmt: skip
async def test_a_limit_lifted_for_a_name_and_a_bound_of_its_own_are_found(source, text, clean):
    """*Any type* drops the limit of what it names, and a bound that a claim states is no example."""
    report = await pipeline().analyse(Request(outputs=(Output(0, text),), facts=(Fact("f", source, 0.5),)))

    assert is_clean(report) is clean
