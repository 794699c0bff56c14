"""Cases under a rule of the source: an example value is no invention where the rule decides on it as the claim does (SPEC-005 §5.2)."""

from __future__ import annotations

import pytest

from bench.everyday import is_clean
from interlock.dpe.comparison.cases.bounds import bounds
from interlock.dpe.comparison.cases.cases import is_case
from interlock.dpe.comparison.cases.verdicts import verdicts
from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from interlock.dpe.values.frames import frame
from tests.support.dpe import pipeline

pytestmark = pytest.mark.req("DPE-3")

TROUT = "Trout of less than 25 cm must be put back into the lake. Anglers may keep three a day."
PARCELS = "Parcels heavier than 20 kg are refused at the counter; lighter ones are taken at any time."
LORRIES = "Vehicles above 12 tonnes are turned back at the bridge all year."
BOATS = "Boats under 8 metres may enter the harbour without a pilot. Larger ones must wait."
PERMIT = "A permit is obligatory for all stoves older than six years. Open fires need one too."
DISTANCE = "Suppliers have to deliver in crates, and the distance must not exceed 150 km."
TYRES = "Tyre chains are mandatory on the pass from November to April."
BERTH = "Berth 4 will be closed for repairs from 5 to 19 October."
BIKE = "The bike may be returned within 30 days provided that it has been ridden less than 100 km."
TAXIS = "Only residents may drive through the gate, and taxis may do so after 9 p.m."
BATCH = "The contract lets the buyer reject any batch in which more than 4% of the screws are faulty."
CLASS = "The puppy class accepts dogs from 10 to 22 weeks. Papers are checked on the first day."
LABEL = "Streaming services must show the label for at least six seconds."
FEE = "If either firm calls off the merger before 30 September, it owes the other 9 million euros."


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        (TROUT, "A trout of 22 cm has to be returned to the lake.", "A trout of 28 cm has to be returned to the lake."),
        (TROUT, "A trout of 28 cm does not have to be put back into the lake.", "A trout of 22 cm does not have to be put back into the lake."),
        (PARCELS, "A parcel of 23 kg cannot be handed in at the counter.", "A parcel of 17 kg cannot be handed in at the counter."),
        (LORRIES, "A lorry of 15 tonnes cannot use the bridge.", "A lorry of 9 tonnes cannot use the bridge."),
        (BOATS, "A boat of 7 metres needs no pilot.", "A boat of 9 metres needs no pilot."),
        (PERMIT, "Any seven-year-old stove has to have a permit.", "Any five-year-old stove has to have a permit."),
        (DISTANCE, "Pears from a farm 180 km away cannot be supplied.", "Pears from a farm 90 km away cannot be supplied."),
        (TYRES, "Chains have to be used on the pass in January.", "Chains have to be used on the pass in June."),
        (BERTH, "Berth 4 cannot be used on 10 October.", "Berth 4 cannot be used on 24 October."),
        (TAXIS, "At ten in the evening taxis can pass the gate.", "At seven in the evening taxis can pass the gate."),
        (BATCH, "If 6% of the screws are faulty, the buyer may reject the batch.", "If 3% of the screws are faulty, the buyer may reject the batch."),
        (CLASS, "A puppy of eight months is too old for the class.", "A puppy of four months is too old for the class."),
        (LABEL, "Showing the label for two seconds would not be enough.", "Showing the label for ten seconds would not be enough."),
        (FEE, "Walking away in June would cost 9 million euros.", "Walking away in November would cost 9 million euros."),
    ],
)  # fmt: skip
async def test_an_example_on_the_side_of_its_rule_is_no_invention_and_one_on_the_other_side_is(source, right, wrong):
    """The faithful case is LOW without a finding, and the case on the other side of the bound is not."""
    judge, facts = pipeline(), (Fact("f", source, 0.5),)
    reports = [await judge.analyse(Request(outputs=(Output(0, text),), facts=facts)) for text in (right, wrong)]

    assert [is_clean(report) for report in reports] == [True, False]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (TROUT, "The trout measured 22 cm."),  # a definite event
        (TROUT, "The trout of 22 cm must be put back."),
        (TROUT, "A trout needs 22 cm of water."),  # no measure of the trout
        (TROUT, "A trout must be 3 cm longer than a perch."),
        (PARCELS, "A parcel of 23 kg was refused at the counter."),
        (TYRES, "The pass will be opened in January."),
        (BIKE, "A bike of 140 cm may be returned."),  # nothing bounds its length
        ("For tickets under 20 euros only cash is accepted.", "A ticket of 10 euros can be paid by card."),
        ("Skip the dose if the next is due in less than six hours unless a doctor objects.", "A dose of four hours must be skipped."),
    ],
)  # fmt: skip
def test_a_value_that_is_no_case_under_a_rule(source, text):
    """A definite value, one without a bound, and one of a rule that turns is not let through."""
    claim = frame(text)

    assert not any(is_case(value, claim, frame(source)) for value in claim.values)


@pytest.mark.parametrize(
    ("source", "text", "is_example"),
    [
        (TROUT, "A trout of 22 cm is thrown in again.", True),
        ("The trial starts on 1 September and lasts a year.", "It would end on 15 October.", False),
    ],
)
def test_a_size_is_an_example_where_the_verdict_is_on_another_scale_and_a_date_is_not(source, text, is_example):
    """*Put back* and *thrown in* are for the model to compare; a date may be of another event than the one that the source bounds."""
    assert any(is_case(value, frame(text), frame(source)) for value in frame(text).values) is is_example


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("cracks longer than 10 cm", 0.1, None),
        ("tanks of 500 kg or more", 500.0, None),
        ("from week 28", 28.0, None),
        ("must not be older than 30 days", None, 2592000.0),
        ("must not exceed 200 kg", None, 200.0),
        ("up to two hours before the start", 7200.0, None),
        ("after 9 p.m.", 1260.0, None),
        ("from 10:00 to 19:00", 600.0, 1140.0),
        ("a plank of 3 kg", None, None),
    ],
)
def test_the_side_on_which_a_rule_holds(text, low, high):
    """Comparisons, endings, ranges and denied comparisons each bound one side; a plain figure bounds none."""
    read = frame(text)
    found = [bound for sentence in read.sentences for _, bound in bounds(sentence, read)]

    assert [(each.low, each.high) for each in found] == ([(low, high)] if (low, high) != (None, None) else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It has to be returned.", {("must", True)}),
        ("It need not be registered.", {("must", False)}),
        ("Boards are thrown away.", {("may", False)}),
        ("They have to be discarded.", {("may", False)}),
        ("No vessel can use the berth.", {("may", False)}),
        ("The buyer may refuse the batch.", {("may", True)}),
        ("Tankers are exempt.", {("must", False)}),
        ("It is not too late.", {("may", True)}),
        ("Boards have no label.", {("is", False)}),
        ("It is paid in May.", {("is", True)}),
    ],
)
def test_what_a_sentence_says_of_its_case(text, expected):
    """Modals, words of refusal and release, and what denies them, each on its scale."""
    assert verdicts(frame(text).tokens) == expected
