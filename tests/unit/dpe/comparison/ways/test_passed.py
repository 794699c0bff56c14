"""Who gives and who gets, told with converse verbs (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.ways.passed import passed
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
VASE = "The gallery borrowed the vase from a private collector."
SONG = "Lark Music sold the film rights to the song to Pell Studios in 2019."
SHIPS = "Norrland bought six tugs from Brake and sold two of its ferries to the port of Ystad."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source, "f0"))
    return next((each for claim in passages(answer) if (each := passed(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (VASE, "The vase was lent to the gallery by a private collector.", "The vase was lent to a private collector by the gallery."),
        (VASE, "A private collector lent the vase to the gallery.", "The gallery lent the vase to a private collector."),
        (SONG, "Pell Studios bought the film rights from Lark Music.", "Lark Music bought the film rights to the song from Pell Studios."),
        (SHIPS, "Two ferries went from Norrland to Ystad.", "Two ferries went from Ystad to Norrland."),
        (SHIPS, "Brake sold six tugs to Norrland.", "Norrland sold six tugs to Brake."),
        ("Kern leases its tractors to Holm Farm.", "Holm Farm leases its tractors from Kern.", "Kern leases its tractors from Holm Farm."),
        ("Peru exports copper to Japan.", "Japan imports copper from Peru.", "Peru imports copper from Japan."),
        ("The sale of the mill by Orsk to Lund Paper was completed.", "Lund Paper bought the mill from Orsk.", "Orsk bought the mill from Lund Paper."),
    ],
)  # fmt: skip
def test_the_other_direction_is_found(source: str, faithful: str, bent: str) -> None:
    """Active and passive, verbs and nouns, with a phrase of the thing between verb and receiver."""
    told = found(source, bent)

    assert found(source, faithful) is None
    assert told is not None and (told.type, told.slot) == (ENTITY_SUBSTITUTED, "direction")


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        (VASE, "The gallery gave the vase back to the collector."),
        (VASE, "The gallery did not lend the vase to a private collector."),
        ("Holm sold a barn to Ode. Ode later sold the barn to Holm.", "Ode sold the barn to Holm."),
        ("The mail goes from Umea to Lulea. It returns from Lulea at night.", "At night the mail goes from Lulea to Umea."),
        (VASE, "The gallery lent a carpet to a private collector."),
    ],
)  # fmt: skip
def test_a_return_a_denial_and_another_thing_are_left_alone(source: str, answer: str) -> None:
    """What goes back, what is denied, what a source tells both ways, and another thing."""
    assert found(source, answer) is None
