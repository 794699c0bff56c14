"""Partners: who is put in another's place, and what a source may say of him in words that stand for others (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.pairings.partners import _parties, partnered
from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


def partners(source: str, claim: str) -> bool:
    return partnered(passages(claim)[0], Evidence(passages(source, "f0"))) is not None


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # a pronoun that is not the subject
        ("Mount Orla is a hill in the south of Varn. Bear caves lie 12 km north of it on the estate Rugholm.", "The bear caves lie north of Mount Orla.", ""),
        ("From 3 May paper tickets are dropped for pupils, since many were lost; adults can keep them.", "Adults can go on using paper tickets.", ""),
        # what is said of the other is denied of the party
        ("Buses calling at Skive must use the new ramp. Vans are exempt.", "Vans need not use the new ramp.", "Vans must use the new ramp."),
        # the claim names the other by the last of his names
        ("Petra Holm, who was to lead both walks, will lead only the last. The first will be taken over by Li-na Voss, at her wish.", "Holm proposed Voss for the first walk.", ""),
        # a relative clause does not repeat what stands before it
        ("Cheese maker Alba gets milk from Tyrol through dealer Rost, except for its organic line, which uses milk from Friuli.", "Organic cheese is made with milk from Friuli.", ""),
    ],
)  # fmt: skip
def test_what_may_be_said_of_a_party_itself_is_no_exchange(source: str, faithful: str, bent: str) -> None:
    """And its twin, which says of the party what holds of the other, is one."""
    assert not partners(source, faithful)
    assert not bent or found((source,), bent)


def test_who_wrote_what_follows_says_it() -> None:
    """*Memo by Larsen:* stands before what Larsen notes, and before nothing that Larsen orders."""
    sources = ("Memo by Larsen:", "Marta Weber ordered 60 lamps, half now, for the hall.")

    assert not found(sources, "Larsen notes an order of 60 lamps for the hall.")
    assert found(sources, "Larsen ordered 60 lamps for the hall.")


@pytest.mark.parametrize(
    ("source", "bent"),
    [
        ("Copper sank to 80 a tonne. Analyst Eva Lim sees it below 70; her colleague Tom Ray does not.", "Tom Ray predicts a price below 70."),
        ("Jelle passed the inspector's questions to Osman, who had written the safety plan.", "The safety plan was drawn up by Jelle."),
    ],
)  # fmt: skip
def test_what_is_said_of_another_is_not_said_of_a_party(source: str, bent: str) -> None:
    """The party is known for something else, and no word may stand for it."""
    assert partners(source, bent)


_TENOR = (
    "The tenor Jan Holub, who was to have sung the part of the miller, fell ill, and the understudy, Petra Lane, will take his place.",
    "Conductor Mira Sand praised the choir.",
)
_SURCHARGE = (
    "Finance officer Lena Moss said that the surcharge of £3 per parcel, introduced in May, had had little effect.",
    "The traders' club Fairmarket criticised the surcharge as a burden on small shops.",
)
_DOGS = (
    "Among the 70 dogs over ten, the recovery rate looked lower with the shorter course.",
    "Vomiting was seen in 12 dogs of the six-day group.",
)


@pytest.mark.parametrize(
    ("sources", "faithful", "bent"),
    [
        # who takes another's place does what that one was to do
        (_TENOR, "Petra Lane will sing the part of the miller in his stead.", "Mira Sand will sing the part of the miller in his stead."),
        # which surcharge is meant, of which the party says something else
        (_SURCHARGE, "The traders' club Fairmarket has spoken out against the parcel surcharge of £3.", "The traders' club Fairmarket said that the surcharge had had little effect."),
        # two things under one circumstance
        (_DOGS, "Vomiting was less common with the shorter course.", "Vomiting looked lower with the shorter course in the dogs over ten."),
    ],
)  # fmt: skip
def test_what_only_tells_which_or_when_makes_no_partner(sources: tuple[str, ...], faithful: str, bent: str) -> None:
    """The circumstances and the things that two parties share say nothing of who did what."""
    assert not found(sources, faithful)
    assert not bent or [each.slot for each in found(sources, bent)] == ["partner"]


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # one place lies in the other
        (
            "Hundreds of workers have fallen sick and many have been taken to hospital in Peru's port city of Callao in recent months. Since then, hundreds of workers in Callao, mostly men, have fallen ill with like symptoms in a number of factories. Lima sent doctors.",
            "Hundreds of men have fallen ill in factories in Peru this month.",
            "Hundreds of men have fallen ill in factories in Lima this month.",
        ),
        # where it happened, and with whom
        (
            "Lazio rested five players. Ajax had a goalless draw at San Siro on Tuesday in the second leg of the cup.",
            "Ajax had a goalless draw with Lazio on Tuesday in the second leg.",
            "",
        ),
        # who finds, and what is found
        (
            "The remains lay on the farm. The county jury found her guilty of feeding them to animals at her farm.",
            "The remains were found at her farm, half fed to animals.",
            "",
        ),
    ],
)  # fmt: skip
def test_what_may_not_stand_in_a_place_is_no_rival(source: str, faithful: str, bent: str) -> None:
    """Another city than the one that the source ties to a country is one."""
    assert not partners(source, faithful)
    assert not bent or partners(source, bent)


def test_an_amount_of_money_and_a_phrase_that_holds_a_verb_are_nobody() -> None:
    """*Fifty Euros* is written as a name, and *blogs* is read as a noun; a firm and a short noun phrase are parties."""

    def parties(text: str) -> set[str]:
        return {party.text for clause in passages(text)[0].clauses for party in _parties(clause)}

    assert parties("The dealer at Bosch said that fifty Euros was fair for a kettle.") == {
        "The dealer at Bosch",
        "Bosch",
    }
    assert not parties("The 31-year-old blogs about her life with her dog kept by her side.")
