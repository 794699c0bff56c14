"""Which of two places a text puts into the other (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.lying_in import lies_in

pytestmark = pytest.mark.req("DPE-3")


@pytest.mark.parametrize(
    "text",
    ["Peru's port of Callao was shut.", "A ship left Callao, Peru.", "He lives in Callao, the capital of Peru.", "It is in Callao in Peru."],
)  # fmt: skip
def test_a_place_lies_in_the_one_whose_it_is(text: str) -> None:
    """Whichever of them is asked for first."""
    assert lies_in(text, "Peru", "Callao")
    assert lies_in(text, "Callao", "the Peru")


@pytest.mark.parametrize(
    "text",
    [
        "Callao was shut. Peru sent ships.", "Peru's ministry, far from the coast, said that Callao was shut.", "Callao and Peru signed.",
        "Peru's president thanked the people and the mayor of Callao.",
    ],
)  # fmt: skip
def test_places_that_are_only_told_together_may_be_two(text: str) -> None:
    """A few words may stand between an owner and what it owns, and no clause."""
    assert not lies_in(text, "Peru", "Callao")
