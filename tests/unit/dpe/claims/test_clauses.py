"""Compound sentences become claims that can be judged alone (SPEC-005 §3.4, §3.5)."""

from __future__ import annotations

from collections import Counter

import pytest

from interlock.dpe.claims.reading import ChoiceReading, OutputReader
from interlock.dpe.document import ClaimType
from interlock.dpe.request import Output
from interlock.dpe.text.views import viewed
from tests.support.dpe import pipeline

pytestmark = pytest.mark.models


def read(*texts: str) -> ChoiceReading:
    engine = pipeline()
    reader = OutputReader(engine.language, 200, 200, engine.inference.tokens)
    return reader.read(viewed([Output(0, text) for text in texts]), lambda: False)[0]


def claims(text: str) -> list[str]:
    return [claim.text for claim in read(text).claims]


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("X is true and Y happened in 2024.", ["X is true", "Y happened in 2024"]),
        ("X rose 5 % and fell 3 % in May.", ["X rose 5 %", "X fell 3 % in May"]),
        ("Port 443 is open and port 22 is closed.", ["Port 443 is open", "port 22 is closed"]),
        ("Room 12 is empty and room 14 is full.", ["Room 12 is empty", "room 14 is full"]),
        ("Level 2 needs approval and level 3 does not.", ["Level 2 needs approval", "level 3 does not"]),
        ("Tariff 1 costs $5 and includes tariff 2.", ["Tariff 1 costs $5", "Tariff 1 includes tariff 2"]),
        ("In May, Acme rose 5 % and Beta fell 3 %.", ["In May, Acme rose 5 %", "In May, Beta fell 3 %"]),
        (
            "If it rains, the pump stops and the alarm sounds.",
            ["If it rains, the pump stops", "If it rains, the alarm sounds"],
        ),
        (
            "Refined oil loses its aroma, while unrefined oil keeps it.",
            ["Refined oil loses its aroma", "unrefined oil keeps it"],
        ),
        (
            "Although the hotel has no pool, guests praised the spa.",
            ["the hotel has no pool", "guests praised the spa"],
        ),
        ("Deploys are only frozen while the lag is high.", ["Deploys are only frozen while the lag is high."]),
        (
            "All schedules are deleted in a reset, so you have to set them up again.",
            ["All schedules are deleted in a reset", "so you have to set them up again"],
        ),
        ("I'm a model, so I feel nothing.", ["I'm a model, so I feel nothing."]),
        ("The gate was so wide that two cars passed.", ["The gate was so wide that two cars passed."]),
        ("Sales rose while profits fell.", ["Sales rose", "profits fell"]),
        ("The scale is enormous, and the task is daunting.", ["The scale is enormous", "the task is daunting"]),
        ("The market opened, the shops closed; the crowd left.", None),
    ],
)
def test_each_clause_carries_what_it_shares(sentence, found):
    """Subject, setting and condition go with every clause; no clause is left without a subject."""
    said = claims(sentence)

    assert said == found if found else len(said) > 1


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        (
            "Dragon, which was built by SpaceX, docked on Monday.",
            ["Dragon was built by SpaceX", "Dragon docked on Monday"],
        ),
        (
            "Jon Reiter, who survived the avalanche, returned.",
            ["Jon Reiter survived the avalanche", "Jon Reiter returned"],
        ),
        (
            "Anette suggests Marco Mengoni, a popular Italian artist.",
            ["Anette suggests Marco Mengoni", "Marco Mengoni is a popular Italian artist"],
        ),
        (
            "SpaceX, a private company founded by Elon Musk, landed a rocket.",
            ["SpaceX is a private company founded by Elon Musk", "SpaceX landed a rocket"],
        ),
    ],
)
def test_an_aside_is_a_claim_about_its_name(sentence, found):
    """Relative clauses and descriptions that commas set off are checked by themselves."""
    assert sorted(claims(sentence)) == sorted(found)


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        (
            "Tom said that he was ill and that he stayed at home.",
            ["Tom said that he was ill", "Tom said he stayed at home"],
        ),
        (
            "Police said the van was robbed and the men fled.",
            ["Police said the van was robbed", "Police said the men fled"],
        ),
    ],
)
def test_what_is_reported_together_is_reported_one_by_one(sentence, found):
    """Each reported clause keeps who said it."""
    assert [" ".join(text.replace(" that ", " ").split()) for text in claims(sentence)] == [
        text.replace(" that ", " ") for text in found
    ]


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    "sentence",
    [
        "AgriPro offers precise irrigation, crop health monitoring, and yield optimization.",
        "The video which has four million views was posted by a father.",
        "They met in Paris, France, on Monday.",
        "The company fell five percent, which surprised analysts.",
        "Tom did not say that he came and that he saw.",
        "The drug may be approved or rejected.",
        "Success depends on the circumstances and evidence presented.",
        "The girls are Ava, Hazel, Olivia, and Riley.",
    ],
)
def test_what_would_be_no_proposition_stays_whole(sentence):
    """Nouns taken for verbs, clauses that say which thing is meant, places, lists and denials are not cut apart."""
    assert claims(sentence) == [sentence]


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    "sentence",
    [
        "SpaceX, a private company founded by Elon Musk, landed a rocket, which was built in Texas, and sold it.",
        "While the shop is closed, Ann, who owns it, said that it opens in May and that prices rose 5 %.",
        "In 2020, the firm (founded in 1990) moved to Rome; its 300 clerks stayed, but nobody complained.",
        "The smaller part will carry the Dragon into orbit and later burn up, while the Dragon will dock and return.",
    ],
)
def test_no_word_is_lost(sentence):
    """Every word of a sentence is in some claim, but for those that only join."""
    joining = {"and", "but", "while", "which", "who", "that"}
    words = {word.strip(".,;:()") for word in sentence.lower().split()} - joining
    said = {word.strip(".,;:()") for text in claims(sentence) for word in text.lower().split()}

    assert words <= said


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    ("text", "items"),
    [
        (
            "The firm will:\n- open three plants\n- hire 200 people",
            ["The firm will open three plants", "The firm will hire 200 people"],
        ),
        (
            "The plan includes:\n- Dental care\n- A pension",
            ["The plan includes dental care", "The plan includes A pension"],
        ),
        ("Sure! Here are the safe drugs:\n- Drug B", ["the safe drugs: Drug B"]),
        ("Here is how to poach an egg:\n1. Bring the water to a boil.", ["Bring the water to a boil."]),
        ("It is late. The main reasons are:\n- Bad roads", ["The main reasons are bad roads"]),
    ],
)
def test_an_item_says_what_its_line_begins(text, items):
    """A list with a lead-in: each item is a proposition, and a step needs no lead."""
    assert claims(text)[-len(items) :] == items


@pytest.mark.req("DPE-1")
def test_the_counts_by_type_of_an_answer():
    """§3.5: an answer's claims by type; an opinion's factual content and a remark's are checked all the same."""
    reading = read(
        "Here is a summary of the report in 80 words:\n\n"
        "Acme opened a plant in Lyon in 2023 and hired 200 people. It sells pumps, which are made of steel.\n"
        "I think the plant is the best in France.\n"
        "As mentioned above, the plant is in Lyon.\n\n"
        "1. Open the valve.\n2. Close the lid and press the red button. (Passage 2)\n\n"
        "I hope this helps!"
    )

    assert Counter(claim.claim_type for claim in reading.claims) == {
        ClaimType.FACTUAL: 4,
        ClaimType.OPINION: 1,
        ClaimType.PROCEDURAL: 3,
        ClaimType.META: 3,
    }
    checked = [claim.text for claim in reading.checked]
    assert {"I think the plant is the best in France.", "As mentioned above, the plant is in Lyon."} <= set(checked)
    assert "I hope this helps!" not in checked
    assert not any("Passage 2" in text for text in checked)


@pytest.mark.req("DPE-1")
def test_a_split_clause_of_somebody_is_no_instruction():
    """A bare verb with a neighbour's subject tells what somebody does."""
    reading = read("The rocket will carry a capsule and then attempt to land on a ship.")

    assert [claim.claim_type for claim in reading.claims] == [ClaimType.FACTUAL] * 2
    assert reading.claims[1].text == "The rocket will then attempt to land on a ship"


@pytest.mark.req("DPE-1")
def test_a_line_that_presents_and_asserts_is_checked():
    """A-25: what only presents is a title; a claim does not hide behind here is."""
    reading = read("Here is a summary of the report:\n\nHere is why: the drug cures cancer:")

    assert reading.claims[0].claim_id in reading.titles | {
        c.claim_id for c in reading.claims if c not in reading.checked
    }
    assert reading.claims[-1] in reading.checked
    assert reading.claims[-1].claim_id not in reading.titles


@pytest.mark.req("DPE-1")
def test_a_claim_knows_its_output():
    """Offsets count in one output of a choice, and the claim says in which."""
    reading = read("The city is Paris.", '{"city": "Berlin"}')

    assert [claim.output_index for claim in reading.claims] == [0, 1]


@pytest.mark.req("DPE-1")
def test_a_quotation_mark_goes_with_its_other_half():
    """A clause keeps no lone quotation mark of its neighbour's."""
    assert all(text.count('"') % 2 == 0 for text in claims('The attack "is a game changer", he said, and "it won".'))


@pytest.mark.req("DPE-1")
def test_what_follows_a_quotation_is_not_put_in_the_speakers_mouth():
    """The verb behind a quotation may be the speaker's own act."""
    assert not any("said I left" in text for text in claims('He said "I won" and left.'))
