"""Names that the NER model runs together or an answer shortens, and names that nothing has (SPEC-005 §5.2)."""

from __future__ import annotations

import pytest

from interlock.dpe.document import Claim, ClaimType, Entity
from interlock.dpe.grounding.fabrication import EnvelopeIndex, find

pytestmark = pytest.mark.req("DPE-3")

PORT = EnvelopeIndex.of(
    [
        "Ana Ferrar, a keeper of 31 years, moved in May, with her two sons, away from Port Vale. In Genoa, where the consulate of Brazil stands, the GP Lou Marsh saw her.",
        "Rosa, who had come by bus with a friend, laughed at the coat, the hat, and Milo. The NGO Tidewater wrote to the Fenland University Press. TGIF, said Milo.",
    ],
    "",
)


def _fabricated(text: str, *names: str) -> tuple[str, ...]:
    entities = tuple(Entity(name, "ORG", text.index(name), text.index(name) + len(name)) for name in names)
    return find([Claim("c1", text, 0, 0, 0, len(text), ClaimType.FACTUAL, 0.5, entities)], PORT).get("c1", ())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The club signed Port Vale Ferrar.", "Port Vale Ferrar"),
        ("Paint was thrown at the Genoa Brazilian consulate.", "Genoa Brazilian"),
        ("Rosa mocks Milo for it.", "Rosa mocks Milo"),
        ("GPs were asked about it.", "GPs"),
        ("Two NGOs wrote letters.", "NGOs"),
        ("The book came out at Fen Univ Press.", "Fen Univ"),
        ("They met on Friday.", "Friday"),
    ],
)
def test_names_that_stand_side_by_side_or_are_shortened_have_a_basis(text: str, name: str) -> None:
    """Each name has one of its own, and the plural of an abbreviation has that of the abbreviation."""
    assert _fabricated(text, name) == ()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The club signed Port Vale Hollis.", "Port Vale Hollis"),
        ("The club signed Ana Marsh.", "Ana Marsh"),
        ("Paint was thrown at the Turin Brazilian consulate.", "Turin Brazilian"),
        ("Rosa mocks Pavel for it.", "Rosa mocks Pavel"),
        ("MPs were asked about it.", "MPs"),
        ("The book came out at Wex Univ Press.", "Wex Univ"),
    ],
)
def test_a_name_of_which_a_part_stands_nowhere_has_none(text: str, name: str) -> None:
    """Nor has one that is made of the first name of one and the surname of another."""
    assert name in _fabricated(text, name)
