"""Conditions of a source that a claim says make no difference (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.pairings.lifted import lifted
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


def found(source: str, claim: str) -> list[str]:
    """The conditions that a claim lifts."""
    evidence = Evidence(passages(source))
    return [one.source_value for told in passages(claim) if (one := lifted(told, evidence)) is not None]


@pytest.mark.parametrize(
    ("source", "faithful", "bent", "condition"),
    [
        (
            "You may keep a dog if the neighbours agree.",
            "Yes, provided that the neighbours agree.",
            "Yes, whether or not the neighbours agree.",
            "if the neighbours agree",
        ),
        (
            "Unless the weather is bad, the ferry sails daily.",
            "It sails daily, but not if the weather is bad.",
            "It sails daily, even if the weather is bad.",
            "Unless the weather is bad",
        ),
        (
            "The library is open on Saturdays except in August.",
            "The library is open on Saturdays, also in July.",
            "The library is open on Saturdays, also in August.",
            "except in August",
        ),
    ],
)
def test_a_condition_that_makes_no_difference_any_more_is_found(source, faithful, bent, condition):
    """The condition is found in the source; a claim that keeps it, or lifts another one, is left alone."""
    assert found(source, faithful) == []
    assert found(source, bent) == [condition]


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("Late entries are not accepted, not even with a doctor's note.", "Late entries are refused even with a doctor's note."),
        ("You may keep a dog if the neighbours agree.", "The rent is due even if the neighbours complain about noise."),
        ("The pass must be shown in June.", "The pass must be shown in July and also in June."),
    ],
)  # fmt: skip
def test_what_the_source_lifts_itself_or_sets_for_something_else_is_left(source, claim):
    """Only the condition of the same thing is lifted."""
    assert found(source, claim) == []
