"""Contrasts of an answer that its source has the other way round (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.pairings.contrasted import contrasted
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


def found(source: str, claim: str) -> bool:
    """Whether a claim sets apart what its source states."""
    evidence = Evidence(passages(source))
    return any(contrasted(told, evidence) is not None for told in passages(claim))


@pytest.mark.parametrize(
    ("source", "claim", "is_found"),
    [
        ("Mr Hall sold the house to Ms Ito.", "Mr Hall sold the house to the bank, not to Ms Ito.", True),
        ("Mr Hall sold the house to Ms Ito.", "Mr Hall sold the house to Ms Ito, not to the bank.", False),
        ("The nurse keeps the key.", "The doctor keeps the key, not the nurse.", True),
        ("Anna leads the team. Ben is in the team.", "Anna leads the team, not Ben.", False),
        ("Room 3 has a shower. Room 1 has a bath.", "Room 3 has a shower, not a bath.", False),
        ("Sales rose in May. Sales fell in June.", "Sales rose in May, not in June.", False),
        ("Parking costs 5 EUR. Parking costs 3 EUR for residents.", "Parking costs 5 EUR, not 3 EUR.", False),
        ("The shop does not sell coffee.", "The shop sells tea, not coffee.", False),
    ],
)
def test_what_is_set_apart_is_found_where_the_source_states_it(source, claim, is_found):
    """Another sentence about the word that is set apart says nothing against it."""
    assert found(source, claim) is is_found
