"""Verbs that say with a preposition what another says without, and nouns that say what a verb does."""

from __future__ import annotations

import pytest

from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        ("Drill noise disturbs the sonar.", "The sonar interferes with drill noise.", "Drill noise interferes with the sonar."),
        ("Orla Finn requested the audit from Max Reed.", "Max Reed asked for the audit; Orla Finn wrote it.", "Orla Finn asked for the audit."),
        ("Nora Pell opposed the plan of Jon Vark.", "Jon Vark objected to the plan of Nora Pell.", "Nora Pell objected to the plan of Jon Vark."),
        ("The tailor rents a loom from the weaver.", "The weaver rents a loom from the tailor.", "The weaver rents the tailor's loom to the tailor."),
    ],
)  # fmt: skip
def test_a_verb_with_its_preposition_is_compared_with_the_verb_that_says_the_same(
    source: str, bent: str, faithful: str
) -> None:
    """What the preposition governs is the object, or the party at the other end."""
    assert found((source,), bent)
    assert not found((source,), faithful)
