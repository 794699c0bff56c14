"""Who acts towards whom: the giver of a source that a claim makes the one who is given to (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        ("Brewer Kalt-Rauch donated 300 crates.", "The school donated 300 crates to Kalt-Rauch.", "Kalt-Rauch donated 300 crates to the school."),
        ("The museum in Vaduz lent the clock to Graz until 2022.", "Graz had lent the clock to Vaduz.", "Vaduz had lent the clock to Graz."),
    ],
)  # fmt: skip
def test_the_giver_is_not_given_to(source: str, bent: str, faithful: str) -> None:
    """The finding names who acts in the source."""
    assert "agent" in {each.slot for each in found((source,), bent)}
    assert not found((source,), faithful)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("Mora sent the shop 20 EUR. The shop sent 20 EUR back.", "The shop sent 20 EUR to Mora."),
        ("He paid the fee for Ms Lind. Ms Lind paid the fee for her son.", "Tom paid the fee to Ms Lind."),
        ("Tartu met Riga in the final.", "Riga met Tartu in the final."),
    ],
)  # fmt: skip
def test_what_another_frame_may_tell_is_left(source: str, claim: str) -> None:
    """A source that tells the way back, or of one who is not named, may say what the claim says."""
    assert "agent" not in {each.slot for each in found((source,), claim)}
