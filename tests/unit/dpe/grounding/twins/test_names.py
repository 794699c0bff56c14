"""A name that stands where its source has another one, in claims that say the rest in other words (SPEC-005 §5.3, ADR 55)."""

from __future__ import annotations

import pytest

from interlock.dpe.grounding.twins.names import SLOT
from tests.support.dpe import pipeline, request

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.models, pytest.mark.req("DPE-3")]

REPORT = (
    "The auditor, Petra Hallam, called the accounts careful and complete.",
    "The treasurer, Iwan Brodie, described the same accounts as hard to read, but said that he would sign them.",
    "Shareholder Bess Okafor had asked for the audit in May.",
)
ROOF = (
    "The grant for the new roof was approved by Lena Voss, the district architect.",
    "Town clerk Abel Quist keeps the minutes.",
)
WALKER = (
    "Rescuers found the missing walker near Ullock after a shepherd had heard him shout.",
    "He had set out from Brant on Sunday.",
)
CASES = [
    (REPORT, "According to {}, the accounts were complete and done with care.", "Petra Hallam", "Bess Okafor"),
    (REPORT, "Complete and careful is what {} thought of the accounts.", "Petra Hallam", "Bess Okafor"),
    (ROOF, "Approval of the roof grant came from {}.", "Lena Voss", "Abel Quist"),
    (WALKER, "The walker was found close to {}.", "Ullock", "Brant"),
]
MEANT = [
    (
        "Mrs Ives came to the ward on 2 June with a broken wrist.",
        "Naproxen was stopped on 9 June because her kidney values had risen; the physician, Dr Abel Quist, believes that the drug caused this.",
        "The naproxen was stopped on 9 June because Mrs Ives's kidney values had gone up.",
    ),
    (
        "Corbel Hotels moved 14 guests to another house on the Sunday.",
        "The van was driven by a clerk of Tarn Catering; Tarn's insurer, Elm Mutual, has to repay the hotel, which in turn pays the guests.",
        "The guests get their money from Corbel Hotels, and Elm Mutual has to reimburse Corbel Hotels.",
    ),
]


async def exchanged(answer: str, facts: tuple[str, ...]) -> list[tuple[str, str]]:
    report = await pipeline().analyse(request(answer, *facts))
    found = [each for claim in report.claims for each in claim.distortions]
    return [(each.source_value, each.claim_value) for each in found if each.slot == SLOT]


@pytest.mark.parametrize(("facts", "answer", "right", "wrong"), CASES)
async def test_the_name_of_another_is_found_and_the_right_one_is_not(facts, answer, right, wrong):
    """The finding names both: who it says it was, and who it was."""
    assert await exchanged(answer.format(wrong), facts) == [(right, wrong)]
    assert await exchanged(answer.format(right), facts) == []


@pytest.mark.parametrize(("first", "second", "answer"), MEANT)
async def test_what_a_source_says_of_her_or_the_hotel_may_be_of_the_name_before_it(first, second, answer):
    """A pronoun and *the hotel* stand for a name of another sentence."""
    assert await exchanged(answer, (first, second)) == []
