"""What records show of a claim, with what its sentence says of rows (SPEC-005 §5.2, §5.3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.dpe.document import Distortion
from interlock.dpe.grounding.attribution import NOTHING
from interlock.dpe.grounding.bound import _without_states
from interlock.dpe.grounding.tables import records
from tests.support.dpe import ruled
from tests.unit.dpe.grounding.records.support import CREW

pytestmark = pytest.mark.req("DPE-3")
COSTS = '{"buyer": {"name": "Ada Vane"}, "seller": {"name": "Lux Holt Ltd"}, "costs": {"buyer_percent": 30, "seller_percent": 70}}'


def test_a_sentence_of_rows_rests_on_its_records() -> None:
    """A right count and exception are supported by calculation, and no *not* of theirs is a turned state."""
    moved, evidence = ruled("Of the three crew, two have first aid; Jan Moe is the one who does not.", CREW)
    assert (moved, evidence.agreed, evidence.calculated) == ([], True, True)
    moved, evidence = ruled("Of the three crew, one has first aid; Jan Moe is the one who does not.", CREW)
    assert [each.type for each in moved] == ["NUMBER_CHANGED"]
    assert not evidence.calculated


def test_a_name_stands_for_the_key_of_its_object() -> None:
    """What a record gives to the buyer is that of the buyer by name."""
    moved, evidence = ruled("Of the costs, Ada Vane bears 30% and Lux Holt Ltd 70%.", COSTS)
    assert (moved, evidence.calculated) == ([], True)
    assert {each.slot for each in ruled("Of the costs, Ada Vane bears 70% and Lux Holt Ltd 30%.", COSTS)[0]} == {
        "costs"
    }


def test_what_records_bear_out_whole_is_bound_right() -> None:
    """Other readers of a sentence are overruled where the records bear out all of it, and of a state alone where they bear out its states."""
    turned = Distortion("NEGATION_FLIP", "", "no", "f1")
    other = Distortion("ENTITY_SUBSTITUTED", "Bo", "Ann", "f1")
    agreed = replace(NOTHING, agreed=True)
    evidence = {"a": NOTHING, "b": agreed, "c": replace(agreed, calculated=True)}
    left = _without_states(dict.fromkeys("abc", (turned, other)), evidence)
    assert left == {"a": (turned, other), "b": (other,), "c": ()}


def test_a_full_stop_behind_a_short_form_ends_no_value() -> None:
    """Initials and titles leave an object a record; two sentences do not."""
    people = '[{"name": "Dr. Ines Rocha", "lead": "C. Vane"}, {"name": "St. Olaf v. Moe", "lead": null}]'
    assert [field.value for field in records.read(people).records[0].fields] == ["Dr. Ines Rocha", "C. Vane"]
    assert not records.read('[{"note": "It rained. We stayed."}]').records


def test_a_record_knows_its_kind_and_its_members() -> None:
    """The key of a list is the kind of its members, and a list of values keeps them apart; the size of a column is no part of its name."""
    crew = records.read(CREW).records
    assert {each.kind for each in crew} == {"", "crew"}
    assert next(each.items for one in crew for each in one.fields if each.key.noun == "languages") == (
        "Norwegian",
        "English",
    )
    table = "| Event | Low dose (n = 20) |\n| --- | --- |\n| Fever | 3% |"
    assert records.read(table).records[0].fields[1].key.noun == "low dose"
