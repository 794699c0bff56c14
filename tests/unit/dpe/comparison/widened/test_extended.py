"""Limits to one that a claim extends to another (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.widened.extended import extended
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
ISLAND = "The island can be reached only by boat."
POOL = "The pool is reserved for hotel guests."
CARD = "Refunds are paid to the original card only."
LIFT = "The lift runs in winter only."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := extended(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "bent"),
    [
        (ISLAND, "The island can also be reached by plane."),
        (ISLAND, "The island can be reached by boat and by plane."),
        (ISLAND, "You can reach the island by boat as well as by plane."),
        (POOL, "The pool is open to hotel guests as well as day visitors."),
        (POOL, "Not only hotel guests but also day visitors may use the pool."),
        (CARD, "Refunds go to the original card or to a bank account."),
        (LIFT, "The lift runs in summer as well."),
        ("The gym provides towels for premium members only.", "The gym provides towels for all members."),
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
        (ISLAND, "The island can be reached by boat and is quiet."),
        (ISLAND, "The island is not reached by boat and by plane."),
        (POOL, "The pool is only for hotel guests."),
        (CARD, "Refunds go to the original card."),
        ("The lift runs in winter only. In summer a bus runs.", "In summer a bus runs as well."),
        ("The gym provides towels for premium members only.", "The gym provides lockers for all members."),
    ],
)  # fmt: skip
def test_what_the_source_leaves_open_or_says_is_left_alone(source: str, answer: str) -> None:
    """The same in other words, another thing, and what another sentence says."""
    assert found(source, answer) is None
