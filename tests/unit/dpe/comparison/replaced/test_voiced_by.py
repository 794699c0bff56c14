"""What one says, asks or judges is not another's, whether a verb or a noun tells so (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.replaced.voiced_by import voiced_by
from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
PORT = (
    "Mayor Britt Olsen praised the new ferry timetable and promised two extra sailings on Sundays.",
    "The dockers' union complained that the night shift was too long.",
    "Harbour master Piotr Zan warned that ice could close the port in January.",
    "Engineer Dana Cole judged the old pier safe, but the insurer demanded a second inspection.",
    "The fishermen asked for a later closing time of the ice plant; the port authority refused.",
)
CHIPS = (
    "According to analyst Rui Faria, the chip maker will need two years to recover.",
    "Chief executive Nora Bell announced that the plant in Dresden would be closed, and the works council objected to it.",
    "Finance director Sam Ito expects a loss of 40 million euros this year.",
    "The regulator fined the company 2 million euros for late reporting.",
    "Support lead Lou Hart apologised for the long wait.",
)


def voice(sources: tuple[str, ...], answer: str) -> Misbinding | None:
    evidence = Evidence(tuple(p for n, fact in enumerate(sources) for p in passages(fact, f"f{n}")))
    return next((each for claim in passages(answer) if (each := voiced_by(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("sources", "bent", "speaker"),
    [
        (PORT, "The harbour master praised the new ferry timetable.", "Mayor Britt Olsen"),
        (PORT, "The complaint that the night shift is too long came from the fishermen.", "The dockers' union"),
        (PORT, "According to Mayor Olsen, ice could close the port in January.", "Harbour master Piotr Zan"),
        (PORT, "Much may happen in winter, according to Dana Cole. She said that ice could close the port in January.", "Harbour master Piotr Zan"),
        (PORT, "The warning that ice could close the port came from Dana Cole.", "Harbour master Piotr Zan"),
        (PORT, "The insurer judged the old pier safe.", "Engineer Dana Cole"),
        (PORT, "The dockers' union asked for a later closing time of the ice plant.", "The fishermen"),
        (CHIPS, "According to Sam Ito, the chip maker will need two years to recover.", "analyst Rui Faria"),
        (CHIPS, "An apology for the long wait came from Nora Bell.", "Support lead Lou Hart"),
        (CHIPS, "The works council announced that the plant in Dresden would be closed.", "Chief executive Nora Bell"),
    ],
)  # fmt: skip
def test_another_voice_is_found(sources: tuple[str, ...], bent: str, speaker: str) -> None:
    """The finding names who says so in the source."""
    one = voice(sources, bent)

    assert one is not None
    assert (one.type, one.slot, one.source_value) == (ENTITY_SUBSTITUTED, "said-by", speaker)


@pytest.mark.parametrize(
    ("sources", "faithful"),
    [
        (PORT, "Ms Olsen promised that there would be two more ferries on Sundays."),
        (PORT, "The complaint about the long night shift came from the dockers."),
        (PORT, "In the harbour master's view, the port might have to close because of ice."),
        (PORT, "A second inspection was demanded by the insurer."),
        (PORT, "The request for a later closing time came from the fishermen."),
        (PORT, "The union has complained. It says that the night shift is too long."),
        (PORT, "The pilots complained that the night shift was too long."),
        (CHIPS, "An analyst expects the chip maker to need two years."),
        (CHIPS, "The works council opposes the closure of the Dresden plant."),
        (CHIPS, "The company announced that it would close its plant in Dresden."),
        (CHIPS, "The company expects a loss of 40 million euros this year, according to its finance director."),
        (CHIPS, "The support lead apologised for the long wait."),
    ],
)
def test_the_same_voice_by_another_name_and_a_stranger_are_left_alone(sources: tuple[str, ...], faithful: str) -> None:
    """One whom the sources do not tell of is left to what looks for strange names."""
    assert not found(sources, faithful)


def test_who_says_the_same_elsewhere_may_say_it() -> None:
    """Two may complain of one thing."""
    both = (*PORT, "The fishermen complained about the night shift too.")

    assert voice(PORT, "The fishermen complained that the night shift was too long.") is not None
    assert voice(both, "The fishermen complained that the night shift was too long.") is None


CLINIC = (
    "Doctors have warned against people cutting out whole food groups such as dairy.",
    "Experts praised the new kitchen. Farmers praised the milk price.",
)


@pytest.mark.parametrize(("speaker", "is_another"), [("Experts", False), ("Campaigners", False), ("Farmers", True)])
def test_whoever_warns_is_an_expert_or_a_campaigner(speaker: str, is_another: bool) -> None:
    """These are what a speaker is called for what he says; farmers are others than doctors."""
    claim = f"{speaker} have warned against people cutting out whole food groups such as dairy."

    assert (voice(CLINIC, claim) is not None) is is_another
