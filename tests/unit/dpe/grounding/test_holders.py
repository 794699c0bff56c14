"""Who a record says did something, and claims that name another one of it (SPEC-005 §5.3)."""

from __future__ import annotations

import numpy as np
import pytest

from interlock.dpe.document import Fact
from interlock.dpe.grounding.envelope import Cut, Envelope
from interlock.dpe.grounding.placing.holders import exchanged_holders
from interlock.dpe.grounding.placing.scopes import scopes
from interlock.dpe.grounding.tables import records
from tests.support.dpe import claim, pipeline, request

pytestmark = pytest.mark.req("DPE-3")
PAINTING = (
    '{"painting": "Blue Harbour", "lent_by": "Villa Rosen", "restored_by": "Emil Krag", "sold_to": "Ora Bank", '
    '"insurer": "Nordlys", "year": 1911}'
)
TABLE = '[{"room": "A", "cleaned_by": "Ida Berg"}, {"room": "B", "cleaned_by": "Tom Wahl"}]'
OTHER = "In 1998 Villa Rosen restored the frame."


def found(answer: str, *sources: str) -> list[tuple[str, str, str]]:
    """What a claim gives to another name: the slot, the record's name and the claim's."""
    facts = tuple(Fact(f"f{n}", source, 0.5) for n, source in enumerate(sources, 1))
    listed = tuple((n, one) for n, source in enumerate(sources) for one in records.read(source).records)
    envelope = Envelope(Cut(facts, sources, (), listed), np.zeros((0, 1)), np.zeros((0, 1)))
    told = exchanged_holders(claim(answer), scopes(envelope))
    return [(one.slot, one.source_value, one.claim_value) for one in told]


@pytest.mark.parametrize(
    ("bent", "faithful", "slot"),
    [
        ("The painting was restored by Villa Rosen.", "The painting was restored by Emil Krag.", ("restored by", "Emil Krag", "Villa Rosen")),
        ("Villa Rosen restored it.", "Emil Krag restored it.", ("restored by", "Emil Krag", "Villa Rosen")),
        ("Emil Krag has lent the painting.", "Villa Rosen has lent the painting.", ("lent by", "Villa Rosen", "Emil Krag")),
        ("It was sold to Nordlys.", "It was sold to Ora Bank.", ("sold to", "Ora Bank", "Nordlys")),
        ("The insurer is Ora Bank.", "The insurer is Nordlys.", ("insurer", "Nordlys", "Ora Bank")),
        ("Ora Bank is the insurer.", "Nordlys is the insurer.", ("insurer", "Nordlys", "Ora Bank")),
    ],
)  # fmt: skip
def test_a_name_of_one_field_is_not_that_of_another(bent: str, faithful: str, slot: tuple[str, str, str]) -> None:
    """Passive, active and as a role; the slot is the key."""
    assert found(bent, PAINTING) == [slot]
    assert found(faithful, PAINTING) == []


@pytest.mark.parametrize(
    ("answer", "sources"),
    [
        ("Room A was cleaned by Tom Wahl.", (TABLE,)),  # siblings are compared as cells
        ("The painting was not restored by Villa Rosen.", (PAINTING,)),
        ("The painting was restored by Emil Krag, the insurer, Nordlys, said.", (PAINTING,)),
        ("Emil Krag and Nordlys met; Villa Rosen, the owner, lent it.", (PAINTING,)),
    ],
)
def test_what_is_not_surely_another_holder_is_left_alone(answer: str, sources: tuple[str, ...]) -> None:
    """Denials, appositions, and rows beside each other."""
    assert found(answer, *sources) == []


@pytest.mark.models
async def test_the_parts_of_a_record_are_not_those_of_a_sentence():
    """Fields stand beside each other without being told apart, and a swap among them is found by their keys."""
    right = await pipeline().analyse(
        request("Blue Harbour was lent by Villa Rosen and restored by Emil Krag.", PAINTING, OTHER)
    )
    wrong = await pipeline().analyse(
        request("Blue Harbour was lent by Emil Krag and sold to Nordlys.", PAINTING, "The frame is of oak.")
    )

    assert right.distortion_count == 0
    assert {each.slot for claim in wrong.claims for each in claim.distortions} >= {"lent by", "sold to"}
