"""Values in words, figures, lists, and copied rows and objects held against the cells of records (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.grounding.placing.records.members import strangers
from interlock.dpe.grounding.placing.records.words import tokens
from tests.unit.dpe.grounding.records.support import BACKUP, CREW, PLANS, ROOMS, found

pytestmark = pytest.mark.req("DPE-3")


@pytest.mark.parametrize(
    ("source", "faithful", "bent", "told"),
    [
        (ROOMS, "Osprey is under repair.", "Heron is under repair.", ("free", "under repair")),
        (ROOMS, "Gull and Tern are booked, while Heron is free.", "Gull and Heron are booked.", ("free", "booked")),
        (CREW, "Jan Moe is the cook and Ola Rud the deckhand.", "Ola Rud is the cook and Jan Moe the deckhand.", ("deckhand", "cook")),
        (CREW, "Jan Moe works the day shift.", "Jan Moe works the night shift.", ("day", "night")),
        (PLANS, "Team customers get support by e-mail, Company customers by phone.",
         "Team customers get support by phone, Company customers by e-mail.", ("e-mail", "phone")),
    ],
)  # fmt: skip
def test_a_value_in_words_is_that_of_its_row(source: str, faithful: str, bent: str, told: tuple[str, str]) -> None:
    """A value that another row has is a finding with both values, also where rows and values take turns."""
    assert found(source, faithful) == []
    assert told in {(each.source_value, each.claim_value) for each in found(source, bent)}


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (ROOMS, "Heron has 3 beds.", "Heron has 2 beds."),
        (
            PLANS,
            "Starter has one seat, Team ten seats and Company 50.",
            "Starter has one seat, Team 50 seats and Company ten.",
        ),
        (
            BACKUP,
            "The interval of the backup at night is 60 minutes.",
            "The interval of the backup at night is 15 minutes.",
        ),
        (CREW, "The vessel is Skua.", "Tove Lind has been assigned cabin C4."),
    ],
)
def test_a_figure_is_that_of_its_row_and_key(source: str, faithful: str, bent: str) -> None:
    """The figure of another row, of a key that differs by one word, and of rows that take turns with theirs."""
    assert found(source, faithful) == []
    assert found(source, bent)


@pytest.mark.parametrize(
    ("text", "items", "expected"),
    [
        ("Jan speaks Norwegian, English and German.", ["Norwegian", "German"], ["English"]),
        ("It backs up the laptop, the phone and the tablet.", ["laptop", "phone", "server"], ["tablet"]),
        ("The lift stops on floors 1, 2 and 3.", ["2", "3"], ["1"]),
        ("It is reserved for silver, gold and platinum members.", ["gold", "platinum"], ["silver"]),
        ("It backs up the laptop and the phone.", ["laptop", "phone", "server"], []),
        ("It backs up the laptop, the phone and more.", ["laptop", "phone", "server"], []),
        ("In spring, gold and platinum members pay less.", ["gold", "platinum"], []),
        ("The laptop and the phone are backed up, and the tablet is not.", ["laptop", "phone"], []),
        ("It takes cash, bank cards and cheques.", ["cash", "debit card", "cheque"], []),
        ("Nothing of the kind.", ["laptop", "phone"], []),
    ],
)
def test_a_stranger_among_the_members_of_a_list(text: str, items: list[str], expected: list[str]) -> None:
    """What stands in a row with members and is none of them, nor another word for one that was left out."""
    assert strangers(tokens(text), items) == expected


def test_a_member_too_many() -> None:
    """A finding with the list and the stranger, in a sentence and under a heading."""
    one = found(BACKUP, "The backup covers the laptop, the phone, the server and the tablet.")
    assert [(each.type, each.claim_value) for each in one] == [("ENTITY_SUBSTITUTED", "tablet")]
    items = ("Backup targets", "Laptop", "Phone", "Server")
    assert found(BACKUP, *items, titles=(1,)) == []
    assert [each.claim_value for each in found(BACKUP, *items, "Tablet", titles=(1,))] == ["Tablet"]
    assert (
        found(
            BACKUP,
            "The backup covers the laptop, the phone, the server and the tablet.",
            also="Backups of the tablet too.",
        )
        == []
    )


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (
            CREW,
            '{"name": "Jan Moe", "first_aid": false, "cabin": "C2"}',
            '{"name": "Jan Moe", "first_aid": true, "cabin": "C2"}',
        ),
        (CREW, '{"name": "Tove Lind", "cabin": null}', '{"name": "Tove Lind", "cabin": "C4"}'),
        (CREW, '"people": [{"who": "Ola Rud", "role": "deckhand"}', '"people": [{"who": "Ola Rud", "role": "cook"}'),
        (CREW, '{"cook": "Jan Moe", "deckhand": "Ola Rud"}', '{"cook": "Ola Rud", "deckhand": "Jan Moe"}'),
        (ROOMS, "Gull; Balcony: yes; Status: booked", "Gull; Balcony: no; Status: booked"),
        (ROOMS, "Status; Heron: free; Osprey: under repair", "Status; Heron: booked; Osprey: under repair"),
        (PLANS, "Team; Seats: 10; Audit log: yes", "Team; Seats: 50; Audit log: yes"),
    ],
)
def test_a_copied_row_has_the_cells_of_its_row(source: str, faithful: str, bent: str) -> None:
    """Objects and tables of an answer, with rows as rows or as columns, and with values as keys."""
    assert found(source, faithful) == []
    assert found(source, bent)


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "Jan Moe", "cabin": "lower deck"}',
        '{"name": "Jan Moe", "age": 41}',
        '{"total": 3, "with_first_aid": 2}',
        '{"broken": [{"name": ',
        "Jan Moe; Cabin: C2; Pay: 300",
    ],
)
def test_what_is_named_otherwise_or_reckoned_is_left_alone(answer: str) -> None:
    """A value that no row has, and a key that no record has, are no exchange."""
    assert found(CREW, answer) == []


def test_a_value_in_another_unit_is_no_cell_of_another_row() -> None:
    """What is told in another unit than its own cell has been reckoned."""
    rope = "| Rope | Length |\n| --- | --- |\n| Red | 2 coils |\n| Blue | 80 m |"
    assert found(rope, "Red; Length: 80 m", "Blue; Length: 80 m") == []
    assert found(rope.replace("2 coils", "40 m"), "Red; Length: 80 m", "Blue; Length: 80 m")
