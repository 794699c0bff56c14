"""Objects of an answer compared with the record that they copy, key by key (SPEC-005 §5.3)."""

from __future__ import annotations

import numpy as np
import pytest

from interlock.dpe.document import Fact
from interlock.dpe.grounding.envelope import Cut, Envelope
from interlock.dpe.grounding.placing.fields import moved_fields
from interlock.dpe.grounding.placing.scopes import scopes
from interlock.dpe.grounding.tables import records
from tests.support.dpe import claim

pytestmark = pytest.mark.req("DPE-3")
TICKET = (
    '{"ticket": "T-40917", "device": "RX-2", "firmware": "4.0.3", "contact": "Ida Lunde", "owner": "Paul Voss", '
    '"speed_mbps": {"contracted": 300, "measured": 85}, "flags": {"priority": false, "billing": true}}'
)
TABLE = "| Room | Seats | Floor |\n|---|---|---|\n| Aspen | 12 | 2 |\n| Birch | 40 | 3 |"


def found(source: str, *answers: str) -> list[tuple[str, str, str]]:
    """What differs between an answer's claims and one source: type, the record's value and the answer's."""
    cut = Cut((Fact("f1", source, 0.5),), (source,), (), tuple((0, one) for one in records.read(source).records))
    known = scopes(Envelope(cut, np.zeros((0, 1)), np.zeros((0, 1))))
    told = moved_fields([claim(text, number) for number, text in enumerate(answers, 1)], known)
    return [(one.type, one.source_value, one.claim_value) for each in told.values() for one in each]


@pytest.mark.parametrize(
    ("answer", "bent"),
    [
        (
            '{"ticket": "T-40917", "firmware": "4.0.3", "contracted_mbps": 85, "measured_mbps": 300}',
            [("NUMBER_CHANGED", "300", "85"), ("NUMBER_CHANGED", "85", "300")],
        ),
        ('{"ticket": "T-40917", "device": "RX-2", "contact": "Paul Voss"}', [("ENTITY_SUBSTITUTED", "Ida Lunde", "Paul Voss")]),
        ("ticket: T-40917 device: RX-2 priority: true billing: true", [("NEGATION_FLIP", "no", "yes")]),
    ],
)  # fmt: skip
def test_a_value_under_another_key_is_found(answer, bent):
    """Every value stands in the source, under another key; or the field is denied there."""
    assert found(TICKET, answer) == bent


def test_lines_of_one_field_each_are_one_object():
    """A list of fields is compared as the object that it is."""
    assert found(TICKET, "Ticket: T-40917", "Device: RX-2", "Contact: Paul Voss") == [
        ("ENTITY_SUBSTITUTED", "Ida Lunde", "Paul Voss")
    ]


def test_the_row_is_the_one_that_the_object_names():
    """A sibling's value in a named row is found; a row that nothing names is not guessed."""
    assert found(TABLE, '{"room": "Aspen", "floor": 2, "seats": 40}') == [("NUMBER_CHANGED", "12", "40")]
    assert found(TABLE, '{"floor": 2, "seats": 40}') == []


@pytest.mark.parametrize(
    "answer",
    [
        '{"ticket": "T-40917", "firmware": "4.0.3", "contracted_mbps": 300, "measured_mbps": 85}',
        '{"ticket": "T-40917", "device": "RX-2", "contact": "Ida Lunde", "missing_mbps": 215}',
        '{"ticket": "T-40917", "device": "RX-2", "contact": "Lunde"}',
        '{"device": "ZZ-9", "contact": "Paul Voss"}',
        "ticket: T-40917 device: RX-2 priority: false billing: true",
    ],
)
def test_a_faithful_object_is_left_alone(answer):
    """Copied under the same keys, computed under a new one, shortened; or of another thing."""
    assert found(TICKET, answer) == []


ROOMS = (
    '{"bookings": [{"ref": "K1", "guest": "Ana Ruiz", "room": "Fern", "crew": ["Ole", "Mia"], "paid": true}, '
    '{"ref": "K2", "guest": "Ben Oduya", "room": null, "crew": ["Ole", "Tess"], "paid": false}, '
    '{"ref": "K3", "guest": "Cleo Park", "room": "Moss", "crew": ["Mia", "Ravi"], "paid": true}]}'
)


def test_fields_of_several_objects_are_those_of_each():
    """A run of fields is cut where other names stand before the same keys; a neighbour's value is found, its own is not."""
    run = (
        "K1 guest: Ana Ruiz",
        "K1 room: Fern",
        "K1 paid: true",
        "K3 guest: Cleo Park",
        "K3 room: {}",
        "K3 paid: true",
    )

    assert found(ROOMS, *(each.format("Moss") for each in run)) == []
    assert found(ROOMS, *(each.format("Fern") for each in run)) == [("ENTITY_SUBSTITUTED", "Moss", "Fern")]


def test_a_record_without_one_value_is_a_sibling_too():
    """An object copies the record that it names, not another one that only lacks a value; members of a list are its own."""
    run = ("ref: K3", "guest: Cleo Park", "room: Moss", "crew: Mia", "crew: Ravi")

    assert found(ROOMS, *run) == []
    assert found(ROOMS, *run[:-1], "crew: Tess") == [("ENTITY_SUBSTITUTED", "Mia and Ravi", "Tess")]


def test_keys_of_one_object_that_end_alike_are_no_two_objects():
    """*gross kg* and *net kg* are two fields of one load."""
    load = '{"load": "L-5", "site": "Quay", "gross_kg": 900, "net_kg": 640}'

    assert found(load, "load: L-5", "site: Quay", "gross kg: 900", "net kg: 640") == []
    assert len(found(load, "load: L-5", "site: Quay", "gross kg: 640", "net kg: 900")) == 2


def test_another_figure_under_the_very_key_is_found():
    """A figure that the sources have elsewhere is no figure of this key; where a text speaks of the key, nothing is said."""
    source = "app:\n  POOL_SIZE: 20\n  LOG_LEVEL: info\n  PORT: 80\n  MAX_OPEN: 64"
    run = ("LOG LEVEL: info", "PORT: 80", "POOL SIZE: {}")

    assert found(source, *(each.format(20) for each in run)) == []
    assert found(source, *(each.format(64) for each in run)) == [("NUMBER_CHANGED", "20", "64")]
