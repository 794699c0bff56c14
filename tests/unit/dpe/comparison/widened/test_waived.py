"""Demands that a claim waives (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.widened.waived import waived
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
ARCHIVE = "Visitors may enter the archive only with a reader’s card."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := waived(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "bent"),
    [
        (ARCHIVE, "Visitors may enter the archive without a reader’s card."),
        (ARCHIVE, "Visitors do not need a reader’s card for the archive."),
        ("Divers must show a medical certificate.", "Divers do not have to show a medical certificate."),
        ("Those who join in spring may start at once; those who join after 1 July may start only if they pass a fitness test.", "Those who join after 1 July need not take the fitness test."),
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
        (ARCHIVE, "Visitors need not queue at the archive."),
        ("Cyclists must wear a helmet; walkers need none.", "Walkers do not need a helmet."),
        ("Those who join in spring may start at once; those who join after 1 July may start only if they pass a fitness test.", "Those who join in spring may start without a fitness test."),
    ],
)  # fmt: skip
def test_what_the_source_leaves_open_or_says_is_left_alone(source: str, answer: str) -> None:
    """The same in other words, another thing, and what another sentence says."""
    assert found(source, answer) is None
