"""Limits that a claim adds (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.widened.narrowed import narrowed
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
DESK = "The night desk is staffed around the clock."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := narrowed(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "bent"),
    [
        (DESK, "The night desk is staffed except on Sundays."),
        ("Prams may be taken along at all times.", "Prams may be taken along only outside rush hour."),
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
        (DESK, "The night desk is staffed."),
        (DESK, "The day desk is staffed except on Sundays."),
        ("The night desk is staffed around the clock. On Sundays the night desk is staffed only until noon.", "The night desk is staffed except on Sundays."),
    ],
)  # fmt: skip
def test_what_the_source_leaves_open_or_says_is_left_alone(source: str, answer: str) -> None:
    """The same in other words, another thing, and what another sentence says."""
    assert found(source, answer) is None
