"""Amounts on lines of lists: another list may give another one (SPEC-005 §8.2)."""

from __future__ import annotations

import pytest

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.document import Claim, ClaimType
from interlock.dpe.grounding.placing.listed_amounts import without_other_lists
from interlock.dpe.quality.coherence import CrossWindow


def kept(claim: str, other: str, *, method: str = "numbers", left: tuple[str, ...] = ()) -> bool:
    """Whether the contradiction of a claim with an earlier text is kept."""
    told = Claim("c1", claim, 0, 0, 0, 1, ClaimType.FACTUAL, 0.5, ())
    found = CrossWindow("c1", "", other, 0.9, "CRITICAL", method, "", "w1")
    return bool(without_other_lists([[found]], [ChoiceReading(0, claims=[told], checked=[told])], {"c1": left})[0])


@pytest.mark.req("DPE-6")
@pytest.mark.parametrize(
    ("claim", "other", "stays"),
    [
        ("MILK - 1 litre", "MILK 270 ml", False),
        ("BAKING POWDER 3 tsp", "Baking powder: 10 ml (2 tsp)", False),
        ("sugar g: 304", "SUGAR 450 g", False),
        ("210 miles is about 338 km", "The trip is 400 miles.", False),
        ("The cake needs 304 g of sugar.", "The cake needs 450 g of sugar.", True),
        ("Rent: £1,150", "Rent: £1,250", True),
        ("Max. dose: 4 g", "Max. dose: 2 g", True),
        ("Due: 4 May", "Due: 9 May", True),
    ],
)
def test_the_lines_of_two_lists_do_not_deny_each_other(claim, other, stays):
    """A sentence, a price, a limit and a date do."""
    assert kept(claim, other) is stays


@pytest.mark.req("DPE-6")
def test_an_amount_without_a_basis_stays_in_contradiction():
    """Nothing accounts for it."""
    assert kept("SUGAR 950 g", "SUGAR 450 g", left=("950 g",))
    assert kept("SUGAR 450 g", "SUGAR 300 g", method="negation")
