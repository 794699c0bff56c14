"""Records of sources: objects and rows as sentences (SPEC-003 §3)."""

import pytest

from interlock.dpe.grounding.tables.records import read
from interlock.dpe.values.cells import cells_of, label_of, restated


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("content", "sentences"),
    [
        ('{"ship": "Aurora", "year": 2021, "cargo_t": 900}', ["ship Aurora, year 2021, cargo t 900."]),
        (
            '{"port": "Oslo", "ships": [{"name": "Aurora", "fee_eur": 5.5}, {"name": "Bore", "fee_eur": 7}]}',
            ["port Oslo.", "port Oslo, name Aurora, fee €5.50.", "port Oslo, name Bore, fee €7."],
        ),
        ('{"plan": {"basic": {"price_usd": 10}}}', ["plan, basic, price $10."]),
        ('{"amount": 5, "unit": "ml"}', ["amount 5 ml."]),
        ('{"seats": [41, 42], "none": null}', ["seats 41 and 42."]),
        ("| | 2023 | 2024 |\n|---|---|---|\n| Sales (€m) | 4 | 5 |", ["sales, 2023 €4 million, 2024 €5 million."]),
        ("name,age_years\nAnn,31\nBob,45", ["name Ann, age 31 years.", "name Bob, age 45 years."]),
        ("area,q1,q2\nNorth,120,150", ["area North, q1 120, q2 150."]),
        ("x;y\n2;4", ["x 2, y 4."]),
        (
            "area,2022,2023\nNorth,120,150\nWest,60,95",
            ["area North, 2022 120, 2023 150.", "area West, 2022 60, 2023 95."],
        ),
    ],
)
def test_objects_and_rows_become_sentences(content, sentences):
    """Each has its subject and its units."""
    found = read(content)
    assert [record.sentence for record in found.records] == sentences
    assert found.rest == ""


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    "content",
    [
        "The fee is 5 euros.",
        '{"text": "It opened in 1889. It is tall."}',
        "{not json",
        '"word"',
        "Ann, 31, came.\nBob stayed, too.",
        "2022,2023\n120,150",
        "North,120\nSouth,150",
        "Born,1990\nDied,2010",
        f"id,blob\n7,{'x' * 140_000}",
    ],
)
def test_prose_stays_prose(content):
    """What is no record is left as it is."""
    assert read(content).rest == content
    assert read(content).records == ()


@pytest.mark.req("ATT-5")
def test_text_around_a_table_stays():
    """A table inside a text leaves the rest."""
    found = read("Fees.\n| Port | Fee (€) |\n|---|---|\n| Oslo | 5 |\nDue in May.")
    assert [record.sentence for record in found.records] == ["port Oslo, fee €5."]
    assert found.rest == "Fees.\nDue in May."


@pytest.mark.req("ATT-5")
def test_claims_from_objects_and_rows_are_restated():
    """A field and a row of an answer meet the source in its units."""
    assert restated("fee eur: 5.5") == "fee: €5.50"
    assert restated("Sales (€m); 2023: 4; 2024: 5") == "sales; 2023: €4 million; 2024: €5 million"
    assert restated("The fee is 5 euros.") == "The fee is 5 euros."
    assert label_of("fee eur: 5") == "fee eur"
    assert label_of("The ship pays a fee of 5 euros and leaves: now") is None
    assert cells_of("Oslo; Fee: 5") == ("Oslo", (("Fee", "5"),))
    assert cells_of("He came; she left.") is None


def test_what_a_database_prints_is_a_table():
    """Crosses where the line below the head meets the columns, and *t* and *f* for what is true and false."""
    printed = " code | reader  | paid\n------+---------+------\n L-41 | Ida Bo  | t\n L-42 | Jo Lunt | f\n(2 rows)"

    assert [one.sentence for one in read(printed).records] == [
        "code L-41, reader Ida Bo, paid yes.",
        "code L-42, reader Jo Lunt, paid no.",
    ]
