"""What sentences say of the rows and fields of records: sides, counts, absent values, exceptions (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.unit.dpe.grounding.records.support import BACKUP, CREW, PLANS, ROOMS, found, judged

pytestmark = pytest.mark.req("DPE-3")


@pytest.mark.parametrize(
    ("source", "faithful", "bent", "slot"),
    [
        (ROOMS, "Gull and Tern have a sea view.", "Gull and Heron have a sea view.", "sea view"),
        (ROOMS, "Neither Osprey nor Tern has a balcony.", "Neither Osprey nor Heron has a balcony.", "balcony"),
        (ROOMS, "Two of the four rooms have a sea view.", "Three of the four rooms have a sea view.", "sea view"),
        (ROOMS, "The only rooms with a balcony are Gull and Heron.", "The only rooms with a balcony are Gull and Osprey.", "balcony"),
        (ROOMS, "Every room except Osprey and Tern has a balcony.", "Every room except Osprey and Gull has a balcony.", "balcony"),
        (ROOMS, "You see no sea from Heron, but Tern has a sea view.", "Gull has a sea view, but Tern does not.", "sea view"),
        (CREW, "Tove Lind and Ola Rud have first aid; Jan Moe does not.", "Tove Lind and Jan Moe have first aid; Ola Rud does not.", "first aid"),
        (CREW, "All of the crew have first aid, with the exception of Jan Moe.", "All three crew members have first aid.", "first aid"),
        (PLANS, "Guest access comes with Team and Company, not with Starter.", "Guest access comes with all three plans.", "Guest access"),
        (PLANS, "All plans but Starter come with guest access.", "All plans but Team come with guest access.", "Guest access"),
        (PLANS, "Single sign-on is missing from Starter and Team.", "Single sign-on is missing from Team and Company.", "Single sign-on"),
        (BACKUP, "Backups are not encrypted.", "Encryption of backups is enabled.", "encryption"),
        (BACKUP, "The public link of the backup is turned off.", "The public link of the backup is turned on.", "public link"),
    ],
)  # fmt: skip
def test_a_side_is_that_of_the_named_rows(source: str, faithful: str, bent: str, slot: str) -> None:
    """Rows, columns and keys that a sentence names are held against their own cells, and the finding names the field."""
    assert found(source, faithful) == []
    assert slot in {each.slot for each in found(source, bent)}


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (CREW, "No cabin is assigned to Tove Lind.", "Tove Lind has been assigned cabin C2."),
        (CREW, "The next inspection has not been scheduled.", "The next inspection is listed for 4 May 2026."),
        (CREW, "No date is given for the next inspection.", "A date is given for the next inspection."),
        (BACKUP, "No proxy is recorded.", "A proxy is recorded."),
        (ROOMS, "Tern offers no breakfast.", "Tern offers breakfast."),
    ],
)
def test_a_key_without_a_value_has_none(source: str, faithful: str, bent: str) -> None:
    """What a record leaves empty is borne out as absent, and a finding where a sentence gives it."""
    assert judged(source, faithful)["c1"].whole
    assert [(each.type, each.source_value) for each in found(source, bent)] == [("NEGATION_FLIP", "none")]


def test_a_nought_is_nothing() -> None:
    """A fee of 0 is no fee."""
    assert judged(BACKUP, "There is no fee.")["c1"].whole


@pytest.mark.parametrize(
    ("query", "faithful", "bent"),
    [
        ("Which rooms have a balcony?", ["Two of the four do: Gull and Heron."], ["Three of the four do: Gull, Heron and Tern."]),
        ("Which rooms have a balcony?", ["Gull and Heron do."], ["Gull and Tern do."]),
        ("Tell me about Tern.", ["It has a sea view but no balcony."], ["It has a balcony but no sea view."]),
        ("", ["Gull and Tern have a sea view.", "The exception is Heron."], ["Gull has a sea view.", "The exception is Tern."]),
        ("", ["Two of the four rooms have a balcony:", "Gull: €140", "Heron: €120"], ["Two of the four rooms have a balcony:", "Gull: €140", "Tern: €98"]),
    ],
)  # fmt: skip
def test_what_a_sentence_leaves_out_is_taken_from_before(query: str, faithful: list[str], bent: list[str]) -> None:
    """The row, the field or both may stand in the question, in the sentence before, or above a list."""
    assert found(ROOMS, *faithful, query=query) == []
    assert found(ROOMS, *bent, query=query)


def test_a_contrast_of_all_keys_needs_no_word_of_theirs() -> None:
    """Which parts of an object are the exception is compared whatever the answer calls what they are."""
    assert found(CREW, "The hull and the engine are fine.", "The mast is not.") == []
    assert {each.slot for each in found(CREW, "The hull and the mast are fine.", "The engine is not.")} == {"engine"}


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (ROOMS, "If you want a sea view, take Gull or Heron."),
        (ROOMS, "Heron has a balcony, unlike Osprey and Tern."),
        (ROOMS, "Apart from Gull, only Tern has a sea view."),
        (ROOMS, "Gull costs more than Heron, which has no sea view."),
        (ROOMS, "Heron will have a sea view."),
        (ROOMS, "Is there a balcony in Tern?"),
        (CREW, "Jan Moe should take a first-aid course."),
        (CREW, "The field for the next inspection is empty."),
        (CREW, "It is not known when the next inspection takes place."),
        (PLANS, "Compared with Team, Company adds single sign-on."),
        (PLANS, "Upgrading from Starter to Team gives you guest access."),
        (PLANS, "Single sign-on is reserved for Company; Team does without it."),
        (BACKUP, "To turn encryption of the backup on, set encryption to true."),
        (BACKUP, "You could switch encryption on."),
    ],
)
def test_what_is_not_surely_said_of_a_row_is_left_alone(source: str, answer: str) -> None:
    """Conditions, wishes, orders, comparisons, and words for a value that is not there."""
    assert found(source, answer) == []


def test_another_text_may_say_otherwise() -> None:
    """Where a text of the sources speaks of the same row and field, nothing is said."""
    assert found(ROOMS, "Heron has a sea view.")
    assert found(ROOMS, "Heron has a sea view.", also="Since the tree fell, Heron has had a sea view.") == []


def test_a_whole_sentence_is_borne_out() -> None:
    """All segments agree: the sentence rests on its records."""
    verdict = judged(CREW, "Of the three crew, two have first aid; Jan Moe is the one who does not.")["c1"]
    assert verdict.whole
    assert not judged(CREW, "Tove Lind and Ola Rud have first aid and are paid well by the owner in Bergen.")[
        "c1"
    ].whole
