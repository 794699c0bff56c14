"""Which of two things lies on which side of the other (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.replaced.placed import placed
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := placed(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        ("The mill lies upstream of the bridge.", "The bridge lies downstream of the mill.", "The bridge lies upstream of the mill."),
        ("The mill lies upstream of the bridge.", "The mill stands above the bridge.", "The mill stands below the bridge."),
        ("Vaasa lies north of Turku.", "Turku lies south of Vaasa.", "Turku lies north of Vaasa."),
        ("The depot stands north of the canal.", "The depot is to the north of the canal.", "The canal is north of the depot."),
        ("The captain ranks senior to the mate.", "The mate is junior to the captain.", "The mate is senior to the captain."),
    ],
)  # fmt: skip
def test_two_things_that_change_sides_are_found(source: str, faithful: str, bent: str) -> None:
    """The same side of the other thing, and the other side of the same."""
    told = found(source, bent)

    assert found(source, faithful) is None
    assert told is not None and told.slot == "place" and told.source_value != told.claim_value
