"""Distinct items of one answer are not held against each other; two claims on one thing are (SPEC-005 §5.4)."""

import pytest

from interlock.dpe.comparison.distinct import distinct


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Harbour tariff costs €10 a day.", "The Night tariff costs €25 a day."),
        ("The Harbour tariff costs €10 a day.", "The Night tariff is €25."),
        ("Buy: 80 g flour", "Buy: 150 g fresh peas"),
        ("gross weight kg: 480", "net weight kg: 60"),
        ("Sales ($m); 2023: 412; 2024: 480", "Staff; 2023: 44; 2024: 60"),
        ("BX 19: sails at 07:53", "BX 13: sails at 11:53"),
        ("In Plan A you pay $5 for 2 users.", "In Plan B you pay $9 for 2 users."),
        ("Room 12 holds 20 people", "Room 14 holds 30 people"),
        (
            "Side effects, which affect up to 1 in 10 of all people: heartburn",
            "Side effects, which affect up to 1 in 10 of all people: nausea",
        ),
        ("The north gate is closed", "the south gate is open"),
        ("Port 443 is open", "port 22 is closed"),
    ],
)
def test_different_things(one, other):
    """Another label, row, item or member is another thing."""
    assert distinct(one, other)
    assert distinct(other, one)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Harbour tariff costs €10 a day.", "The Harbour tariff costs €15 a day."),
        ("Revenue was $5 million.", "Revenue was $7 million."),
        ("weight kg: 5", "weight kg: 6"),
        ("Buy: 80 g flour", "Buy: 100 g flour"),
        ("Note: the lamp weighs 2 kg.", "Summary: the lamp weighs 3 kg."),
        ("The risk is Level 3.", "The risk is Level 4."),
        ("The north gate is closed", "The north gate is open"),
        ("Port 22 is open", "Port 22 is closed"),
        ("The team has 5 members.", "The team has 7 members."),
        ("In 2024 revenue was $5 million", "In 2024 revenue was $6 million"),
    ],
)
def test_one_thing(one, other):
    """Two statements on one subject and attribute are compared."""
    assert not distinct(one, other)
