"""Claims of all, where a source tells the others apart (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.widened.others import of_others_too
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
FERRIES = "The morning ferries carry cars; the others do not."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := of_others_too(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "bent"),
    [
        (FERRIES, "All ferries carry cars."),
        ("Fires may be lit at Birch Bay and Elk Point, and not at all at the other three camps.", "Fires may be lit at all five camps."),
        ("If a partner leaves, that partner’s share is sold; the other partner’s share is not affected.", "If a partner leaves, both partners’ shares are sold."),
    ],
)  # fmt: skip
def test_what_the_source_rules_out_is_found(source: str, bent: str) -> None:
    """The finding names the slot, both texts and the fact."""
    told = found(source, bent)

    assert (
        told is not None
        and (told.slot, told.fact_id) == ("quantifier", "f0")
        and told.source_value
        and told.claim_value
    )


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (FERRIES, "All ferries carry passengers."),
        (FERRIES, "The morning ferries carry cars."),
        ("Fires may be lit at Birch Bay and Elk Point, and not at all at the other three camps.", "Both Birch Bay and Elk Point allow fires."),
        (FERRIES, "Not all ferries carry cars, only the morning ferries do."),
    ],
)  # fmt: skip
def test_what_the_source_leaves_open_or_says_is_left_alone(source: str, answer: str) -> None:
    """The same in other words, another thing, and what another sentence says."""
    assert found(source, answer) is None
