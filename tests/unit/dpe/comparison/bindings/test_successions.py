"""Who takes whose place is one thing, in whichever words it is told."""

from __future__ import annotations

from itertools import product

import pytest

from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

_WAYS = (
    "{new} took over from {old} as stage manager.",
    "{new} replaced {old} as stage manager.",
    "{old} was replaced by {new} as stage manager.",
    "The post of stage manager passed from {old} to {new}.",
    "{old}'s successor as stage manager was {new}.",
    "{new} succeeded {old} as stage manager.",
    "{new} took the post of stage manager from {old}.",
)


@pytest.mark.parametrize(("stated", "claimed"), list(product(_WAYS, _WAYS)))
def test_a_succession_is_known_in_all_its_forms(stated: str, claimed: str) -> None:
    """Each way to tell it agrees with each, and with the two exchanged it does not."""
    source = stated.format(new="Rita Sand", old="Omar Lund")

    assert found((source,), claimed.format(new="Omar Lund", old="Rita Sand"))
    assert not found((source,), claimed.format(new="Rita Sand", old="Omar Lund"))


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        ("Nora Diaz stood in for Elias Wolf on tour.", "Elias Wolf filled in for Nora Diaz.", "Nora Diaz filled in for Elias Wolf."),
        ("The council replaced the tram with a bus.", "The council replaced the bus with a tram.", "The tram was replaced with a bus."),
        ("The shepherd handed the flock over to his niece.", "The niece handed the flock over to the shepherd.", "The flock passed from the shepherd to his niece."),
    ],
)  # fmt: skip
def test_who_stands_in_for_whom(source: str, bent: str, faithful: str) -> None:
    """Deputies, things put in the place of others, and what is handed on."""
    assert found((source,), bent)
    assert not found((source,), faithful)
