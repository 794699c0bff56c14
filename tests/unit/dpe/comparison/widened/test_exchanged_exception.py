"""Exceptions told for the rule, and the rule for the exception (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.widened.exchanged_exception import exchanged_exception
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
BUS = "The night bus stops at every stop except Mill Lane."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next(
        (each for claim in passages(answer) if (each := exchanged_exception(claim, evidence)) is not None), None
    )


@pytest.mark.parametrize(
    ("source", "bent"),
    [
        (BUS, "The night bus stops only at Mill Lane."),
        ("The market is held on Saturdays.", "The market is held every day except Saturday."),
    ],
)  # fmt: skip
def test_what_the_source_rules_out_is_found(source: str, bent: str) -> None:
    """The finding names the slot, both texts and the fact."""
    told = found(source, bent)

    assert (
        told is not None and (told.slot, told.fact_id) == ("exception", "f0") and told.source_value and told.claim_value
    )


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (BUS, "The night bus stops everywhere but at Mill Lane."),
        (BUS, "The day bus turns only at Mill Lane."),
        ("On Mondays the baths are closed.", "The baths are open every day except Monday."),
    ],
)  # fmt: skip
def test_what_the_source_leaves_open_or_says_is_left_alone(source: str, answer: str) -> None:
    """The same in other words, another thing, and what another sentence says."""
    assert found(source, answer) is None
