"""What is demanded of one, and of both (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.widened.both import one_for_both
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
BOTH = "The contract may be ended if both parties agree in writing."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := one_for_both(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "bent"),
    [
        (BOTH, "The contract may be ended once one of the sides agrees."),
        ("Both owners have to sign loans above 9,000 pounds.", "Loans above 9,000 pounds need the signature of one owner."),
        ("One of the parents must sign the form.", "Both parents must sign the form."),
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
        (BOTH, "The contract may be ended once the two sides agree."),
        (BOTH, "One of the parties wrote the contract."),
        ("Both parents may vote.", "One parent brings a cake."),
    ],
)  # fmt: skip
def test_what_the_source_leaves_open_or_says_is_left_alone(source: str, answer: str) -> None:
    """The same in other words, another thing, and what another sentence says."""
    assert found(source, answer) is None
