"""Things that a claim takes and its source refuses (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.widened.refused import refused
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
CATS = "Cats may live in the flat; dogs are not allowed."
PASS = "The pass is valid on buses and trams, but not on ferries."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := refused(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "bent"),
    [
        (CATS, "Cats and dogs may live in the flat."),
        (CATS, "Cats may live in the flat, and so may dogs."),
        (PASS, "The pass is valid on buses, trams and ferries."),
        (PASS, "The pass also works on ferries."),
        ("The kiosk takes notes, but neither cheques nor cards.", "You can pay at the kiosk with notes or cards."),
        ("Entry needs a passport; a driving licence is not accepted.", "For entry, a passport or a driving licence will do."),
        ("Pickers get a bonus of 5 %; drivers receive no bonus.", "Pickers get a bonus of 5 %, and the same goes for drivers."),
        ("The policy covers theft but not damage caused by hail.", "The policy covers theft and hail damage."),
    ],
)  # fmt: skip
def test_what_the_source_rules_out_is_found(source: str, bent: str) -> None:
    """The finding names the slot, both texts and the fact."""
    told = found(source, bent)

    assert (
        told is not None and (told.slot, told.fact_id) == ("condition", "f0") and told.source_value and told.claim_value
    )


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (CATS, "Cats are allowed in the flat, but not dogs."),
        (PASS, "The pass covers buses and trams."),
        (PASS, "On ferries the pass is not valid."),
        ("The carrier must answer within a week and may not charge for it.", "It must answer within a week and may not charge you."),
        ("Nuts are not allowed on board.", "Snacks on board cost 4 euros and are nut-free."),
        ("Beer is not allowed in the tent.", "The tent costs 4 euros and is beer-free."),
    ],
)  # fmt: skip
def test_what_the_source_leaves_open_or_says_is_left_alone(source: str, answer: str) -> None:
    """The same in other words, another thing, and what another sentence says."""
    assert found(source, answer) is None
