"""Plans that an answer tells as facts, and answers that leave them plans (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from bench.everyday import is_clean
from tests.support.dpe import pipeline, request

pytestmark = pytest.mark.req("DPE-3", "ATT-5")

MERGER = "The merger still needs the approval of the regulator."
FIX = "A fix is planned for version 4.3."
BAN = "The council discussed a ban on fireworks."
VOTE = "Minutes: Ana proposed a vote on the budget. The vote took place and passed 7 to 2."
HIRING = "The firm plans to hire 20 people. Last year it hired 12."
APPEAL = "The court has yet to rule on the appeal."
BRIDGE = "The bridge is expected to be finished in May."
WING = "The hospital intends to build a new wing."


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (MERGER, "The regulator hasn't approved the merger yet."),
        (FIX, "It will be fixed in version 4.3."),
        (BAN, "A ban on fireworks was discussed by the council."),
        (VOTE, "The board voted on the budget and passed it by 7 to 2."),
        (HIRING, "Last year the firm hired 12 people; it plans to hire 20 more."),
        (APPEAL, "The court still has to rule on the appeal."),
        (BRIDGE, "The bridge should be finished in May."),
        (WING, "The hospital wants to build a new wing."),
    ],
)
async def test_what_stays_a_plan_or_is_told_as_done_elsewhere_is_left(source, answer):
    """The answer is LOW without a finding."""
    assert is_clean(await _judged(source, answer))


@pytest.mark.parametrize(
    ("source", "answer", "planned"),
    [
        (MERGER, "The regulator approved the merger.", "approval"),
        (FIX, "It was fixed in version 4.3.", "fix"),
        (BAN, "The council banned fireworks.", "ban"),
        (APPEAL, "The court ruled on the appeal.", "to rule"),
        (WING, "The hospital has built a new wing.", "to build"),
        ("Parliament will vote on the law in autumn.", "Parliament voted on the law in autumn.", "will vote"),
        ("The lease still requires the signature of the landlord.", "The landlord signed the lease.", "signature"),
        ("He offered to pay 500 EUR for the damage.", "He paid 500 EUR for the damage.", "to pay"),
    ],
)
async def test_a_plan_that_is_told_as_a_fact_is_found(source, answer, planned):
    """The finding names what the source only plans, awaits or asks for."""
    report = await _judged(source, answer)

    assert not is_clean(report)
    assert planned in {each.source_value for claim in report.claims for each in claim.distortions}


async def _judged(source: str, answer: str):
    return await pipeline().analyse(request(answer, source, query="What is the state?"))


@pytest.mark.parametrize(
    ("answer", "accused"),
    [
        ("The mill is to close, it has been announced.", False),
        ("The owner has announced on Monday that the mill closes.", True),
    ],
)
async def test_that_it_has_been_announced_is_no_event(answer, accused):
    """Whoever is to announce something has not done it; that a report says so is told of no such event."""
    report = await _judged(
        "According to the Courier, the owner will announce on Monday that the mill will close in June.", answer
    )
    slots = [each.slot for claim in report.claims for each in claim.distortions]

    assert ("certainty" in slots) is accused
