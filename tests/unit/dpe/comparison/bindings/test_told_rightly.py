"""Denials, conditions, exceptions and parties that a claim tells rightly in other words, and their bent twins (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.pairings.swapped import swapped
from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # two that are denied at once
        ("No parcel was opened or stolen.", "The parcels were neither opened nor stolen.", ""),
        ("The letters were neither read nor copied.", "The letters were not copied.", "The letters were read."),
        ("The choir neither rehearsed nor sang.", "The choir did not sing.", ""),
        # one that is denied as a whole
        ("No night bus will be dropped; four day buses will be.", "Not a single night bus will be dropped.", ""),
        ("No guest was ill.", "Not one guest was ill.", "One guest was ill."),
        # listed to be denied
        ("The kiosk accepts vouchers, but neither cheques nor coins.", "With vouchers only: the kiosk refuses cheques as well as coins.", "The kiosk refuses vouchers."),
        # a time around the case that is told
        ("A tenant pays a fine of 80 euros if he leaves during the lease; no fine is due after the lease.", "The fine of 80 euros is due if a tenant leaves while the lease runs.", ""),
        # what has to be done again was undone
        ("The gate has to be opened again by hand after a power cut.", "In a power cut the gate is shut.", ""),
        ("The gate is opened at dusk.", "At dusk the gate is open.", "The gate is shut at dusk."),
        # what another verb governs has an order of its own
        ("Nia voted for the loan because she doubted that the mill could sell its stock before harvest.", "She was not sure that the mill could sell its stock before harvest.", ""),
        # a particle makes another verb, and a day is no particle
        ("The cooks removed it on 4 June.", "On 4 June the cooks took it out.", ""),
        ("The board hired Mr Aune on 4 June.", "Mr Aune was hired by the board on 4 June.", "The board dismissed Mr Aune on 4 June."),
        # started and closed are of two things
        ("Sparks started the Ode Hill blaze. The Ode Hill path remains closed.", "As for the Ode Hill path, it is closed.", ""),
    ],
)  # fmt: skip
def test_what_is_denied_in_other_words_is_no_contradiction(source: str, faithful: str, bent: str) -> None:
    """And its twin, which turns the denial round, is one."""
    assert found((source,), faithful) == []
    assert not bent or found((source,), bent)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # an exception that a claim tells of what is the opposite
        ("The pass lapses if it is lent, unless the ski area is more than 20 km from the border.", "The pass survives if the ski area is more than 20 km from the border.", ""),
        # each time is no more than when
        ("A spare pump starts when the level stays above 3 m for ten minutes.", "Another pump starts whenever the level has been above 3 m for ten minutes.", ""),
        ("A guard opens the gate if the light is green.", "A guard opens the gate whenever the light is green.", "A guard opens the gate whatever the light shows."),
        # in any case, and the condition all the same
        ("The bonus is paid only if output exceeds 900 tonnes.", "In any case, the bonus is paid only if output exceeds 900 tonnes.", "The bonus is paid in any case."),
    ],
)  # fmt: skip
def test_a_condition_told_in_other_words_is_not_turned(source: str, faithful: str, bent: str) -> None:
    """And one that is lifted is found."""
    assert found((source,), faithful) == []
    assert not bent or found((source,), bent)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # *but* joins a clause
        ("The club kept the courts at all halls but cut evening classes from six a week to three.", "The club preserved the courts at all halls and cut evening classes from six a week to three.", ""),
        ("All six of Varn's nurses were kept, but its day ward closed.", "The day ward was closed.", ""),
        ("All stalls but the bakery are open.", "The bakery is not open.", "The bakery is open."),
        ("Everything but fruit is taxed.", "Fruit is not taxed.", "Fruit is taxed."),
        # what a relative clause says of the one alone
        ("Each tenant has its own yard, except Ostra, which shares that of Alma Steel.", "Alma Steel shares its yard with Ostra.", ""),
        ("Each tenant has its own yard, except Ostra, which shares that of Alma Steel.", "Ostra has no yard of its own.", "Ostra has its own yard."),
    ],
)  # fmt: skip
def test_what_stands_behind_but_is_not_always_excepted(source: str, faithful: str, bent: str) -> None:
    """And what is, is no longer counted among the others."""
    assert found((source,), faithful) == []
    assert not bent or found((source,), bent)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # from whom one leases is who leases to one
        ("Dorn Tours leases the nine electric vans from Evolt.", "Evolt leases the nine electric vans to Dorn Tours.", "Dorn Tours leases the nine electric vans to Evolt."),
        # who says that something was done did not do it
        ("Treasurer Ida Moe said that the toll of 4 euros, introduced in May, had had little effect. Sund tested a toll in June.", "Sund introduced the toll in May.", ""),
        ("Treasurer Ida Moe introduced the toll in May. Mayor Ole Dahl tested a toll in June.", "The toll was introduced in May by Ida Moe.", "Ole Dahl introduced the toll in May."),
        # whence what another one did came
        ("In 2021 Orla Zoo released 12 storks into the lower Aar marsh; the birds came from the Belmont station.", "12 storks were brought from the Belmont station to the lower Aar marsh in 2021.", ""),
        # a clause that the parser took for who acts
        ("The first torn sail is mended free of charge; from the second on, the club pays 60 euros for each repair.", "Having a torn sail mended costs the club nothing the first time.", ""),
        # another word for a member of a set
        ("Ada Ros will serve as interim head of the mill, and the permanent post will be advertised.", "Ada Ros will be head of the mill on a temporary basis.", ""),
        ("Ada Ros will serve as interim head of the mill.", "Ada Ros will be head of the mill on a temporary basis.", "Ada Ros will be permanent head of the mill."),
    ],
)  # fmt: skip
def test_a_party_told_rightly_is_not_replaced(source: str, faithful: str, bent: str) -> None:
    """And its twin with another party in its place is found, where it is told."""
    assert found((source,), faithful) == []
    assert not bent or found((source,), bent)


def test_a_repeated_time_is_no_party() -> None:
    """*After every storm* is when something happens, so that nothing can be swapped with it."""
    source = "Ladders are inspected every nine days and after every storm; a white tag means that the ladder is safe to climb."
    answer = "A ladder with a white tag is safe to climb. An inspection takes place every nine days and also after every storm."

    assert list(swapped(passages(answer), Evidence(passages(source, "f0")))) == []
