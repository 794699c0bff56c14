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
        ("1; Club: Oakham; W: 3; Pts: 9", "2; Club: Selby; W: 2; Pts: 6"),
        ("Tent; Size: small; Price: 40", "Tent; Size: large; Price: 70"),
        ("9:45 court: 1", "11:30 court: 3"),
        ("7702: 2025-02-03", "7705: 2025-02-09"),
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
        ("Tent; Price: 40", "Tent; Price: 70"),
        ("2: it is open", "3: it is shut"),
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


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the metric amounts: Flour: 250 g (2 cups)", "the metric amounts: Sugar: 300 g (1 1/2 cups)"),
        (
            "Class 8B has 5 maths lessons in all each week: Monday: 8:15",
            "Class 8B has 5 maths lessons in all each week: Friday: 9:10",
        ),
        ("FLOUR 375 g", "BUTTER 170 g"),
        ("3 × 7 = 21", "7 × 7 = 49"),
        ("WED 6 MAY - 2 ml with food", "THU 7 MAY - 1 ml with food"),
    ],
)
def test_lines_of_everyday_lists_are_of_different_things(one, other):
    """Items below a long lead, terse lines, equations, days of a plan."""
    assert distinct(one, other)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("FLOUR 375 g", "FLOUR 425 g"),
        ("3 × 7 = 21", "3 × 7 = 24"),
        ("WED 6 MAY - 2 ml with food", "WED 6 MAY - 4 ml with food"),
        ("the metric amounts: Flour: 250 g", "the metric amounts: Flour: 350 g"),
    ],
)
def test_lines_of_one_thing_are_not(one, other):
    """The same name, a wrong equation, the same day."""
    assert not distinct(one, other)
