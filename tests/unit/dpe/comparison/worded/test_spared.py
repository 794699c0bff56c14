"""Those whom a source exempts are not bound, and what it excepts is not counted in (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        ("Goods sent to Åland are exempt from customs checks.", "Even goods sent to Åland have to be checked by customs.", "Goods sent to Åland are not checked by customs."),
        ("The levy applies to raw hides; tanned hides, which fetch more, are exempt.", "The levy covers tanned hides too.", "The levy does not cover tanned hides."),
        ("Firms pay a fee of 40 EUR; charities are excused from the fee.", "Charities are liable for the fee as well.", "Charities are excused from the fee."),
        ("Paper is bought centrally for all schools except Holm, which has a contract of its own.", "Every school, including Holm, gets its paper bought centrally.", "Holm gets its paper under its own contract."),
        ("Skates must be carried in all city halls except the two marked halls.", "Even in the two marked halls skates have to be carried.", "In the two marked halls skates need not be carried."),
    ],
)  # fmt: skip
def test_the_spared_are_not_bound(source: str, bent: str, faithful: str) -> None:
    """The finding is of the condition."""
    assert "condition" in {each.slot for each in found((source,), bent)}
    assert not found((source,), faithful)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("Tugs are exempt until 2030.", "From 2030 tugs have to carry a pilot too."),
        ("Tugs are exempt if they are towed.", "Tugs that are not towed must carry a pilot."),
        ("Residents are exempt from the toll.", "Residents must register their car."),
        ("Students are exempt from the fee.", "Students must show a card to be exempt from the fee."),
        ("All schools except Holm have a bus.", "Holm, too, has a new head."),
        ("All parts except the lamp are covered.", "Even the lamp weighs 2 kg."),
    ],
)  # fmt: skip
def test_an_exemption_that_ends_or_is_of_something_else_is_left(source: str, claim: str) -> None:
    """What holds for a time, in a case or of another duty is nothing to be bound by."""
    assert "condition" not in {each.slot for each in found((source,), claim)}
