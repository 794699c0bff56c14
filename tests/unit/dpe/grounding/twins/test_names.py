"""A name that stands where its source has another one, in claims that say the rest in other words (SPEC-005 §5.3, ADR 55)."""

from __future__ import annotations

import pytest

from interlock.dpe.document import Claim, ClaimType, Entity
from interlock.dpe.grounding.twins.names import (
    SLOT,
    SURE,
    SURE_OF_A_PLACE,
    _Asked,
    _is_governed,
    _Named,
    _telling,
    _twins,
    _Unit,
)
from tests.support.dpe import pipeline, request

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

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


def _weighed(own: str, label: str, answer: str, unit: str, other: str, having: str) -> list[float]:
    """Return how surely each twin has to follow that a name is given in a unit that has another."""
    words = _telling(own)
    named = _Named(own, words, label, False, _is_governed(own, answer), False, (_Unit("f0", having, _telling(having)),))
    told = Claim("c1", answer, 0, 0, 0, len(answer), ClaimType.FACTUAL, 0.5, ())
    source = _Unit("f0", unit, _telling(unit))
    asked = _Asked(told, _telling(answer), (source,), (named,))
    start = unit.index(other)
    return [twin.least for twin in _twins([(asked, source)], [[Entity(other, label, start, start + len(other))]])]


@pytest.mark.parametrize(
    ("own", "label", "answer", "unit", "other", "having", "weighed"),
    [
        # an example
        ("Baltic Union", "ORG", "The Baltic Union bans the game.", "It bans the game beside tools such as Trello.", "Trello", "The Baltic Union met.", []),
        ("Baltic Union", "ORG", "The Baltic Union bans the game.", "The game was banned by Trello.", "Trello", "The Baltic Union met.", [SURE_OF_A_PLACE]),
        # a wider place
        ("Millbrook", "LOC", "Millbrook has to live with fumes.", "Residents of Utah live with fumes.", "Utah", "A tanker burned in Millbrook, Utah.", []),
        ("Millbrook", "LOC", "Millbrook has to live with fumes.", "Residents of Utah live with fumes.", "Utah", "A tanker burned in Millbrook.", [SURE_OF_A_PLACE]),
        # whom a pronoun stands for
        ("Bruno", "PERSON", "They plan a party for Bruno.", "Ines: we plan a party for him.", "Ines", "When does Bruno come?", []),
        ("Bruno", "PERSON", "Bruno plans a party.", "Ines plans a party for him.", "Ines", "When does Bruno come?", [SURE]),
    ],
)  # fmt: skip
def test_an_example_a_wider_place_and_him_take_nobodys_place(own, label, answer, unit, other, having, weighed):
    """A twin is weighed where none of these holds, and that of a place or a body has to follow more surely than a person's."""
    assert _weighed(own, label, answer, unit, other, having) == weighed
