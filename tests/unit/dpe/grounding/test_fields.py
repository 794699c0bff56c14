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
