"""Slots, opposites, needs and conditions that a claim tells in another way than its source, and their bent twins (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # *by* tells how much, or by what means
        ("The filter delays mail from strangers by ten minutes.", "Strangers' mail is delayed by ten minutes.", ""),
        ("The clinic informs patients of results by letter.", "Patients are informed of results by letter.", "Patients inform the clinic of results by letter."),
        # the opposite of another word
        ("Slates from the ruined barn were cleaned by pupils and used for the new chapel.", "The pupils cleaned the old slates.", ""),
        ("The pupils cleaned the old slates.", "The old slates were cleaned by pupils.", "The pupils cleaned the new slates."),
        # two cases of which one is denied
        ("We pass your address to the courier when the parcel is open.", "When the parcel is closed, your address is not passed to the courier.", "When the parcel is closed, your address is passed to the courier."),
        # the condition of what is told otherwise, the same case, and *in any case* before the condition itself
        ("The cover lapses if somebody opens the meter, unless the meter leaked more than a litre.", "It survives if the meter leaked more than a litre.", ""),
        ("A second pump is started when the basin is full.", "A second pump is started whenever the basin is full.", ""),
        ("The premium is paid only if sales exceed 5,000 units.", "In any case, the premium is paid only if sales exceed 5,000 units.", "In any case, the premium is paid."),
        # a number that is part of a name
        ("Two-door cabins need a ramp, three-door cabins do not.", "Three-door cabins do not need a ramp.", "Two-door cabins do not need a ramp."),
        # a need with an exception, and a claim of its own case
        ("Permits are required, unless the tent has no floor.", "A tent without a floor sheet needs no permit.", ""),
        ("Every tent needs a permit in the park.", "A tent needs a permit in the park.", "A tent needs no permit in the park."),
        # a comparison with a measure, and the plain word
        ("The certificate must not be older than two months.", "A certificate that is very old is refused.", ""),
        # short of something is lacking it
        ("The hosts, short of beds, insisted on the day trip.", "A lack of beds made the hosts refuse the longer stay.", ""),
    ],
)  # fmt: skip
def test_what_is_told_in_another_way_is_no_contradiction(source: str, faithful: str, bent: str) -> None:
    """And its bent twin is one."""
    assert not found((source,), faithful)
    assert not bent or found((source,), bent)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # of others of its kind, which share no more than the name
        ("The rose turns dark only in wet clay; in sand it stays pale.", "Wild roses keep their leaves in any clay.", "The rose turns dark in any clay."),
        # the very case that the source is about
        ("The effect was also found in miners who drank only filtered water.", "Miners were healthy even if their water was filtered.", ""),
        ("Miners stayed healthy only if their water was filtered.", "Miners stayed healthy if their water was filtered.", "Miners stayed healthy even if their water was not filtered."),
        # a statement of its own, or of another time
        ("The trams start on Friday, and only by night.", "The trams start on Friday.", ""),
        ("Until May, guests can book rooms by letter; afterwards, only at the desk.", "Guests can book rooms by letter until May.", ""),
        ("Guests can book rooms only at the desk.", "Guests can book rooms at the desk.", "Guests can book rooms."),
        # of all but those that it excepts
        ("All cafés on the pier close in May; two, Lido and Sole, reopen at Easter.", "Apart from Lido and Sole, none of the cafés on the pier opens again at Easter.", ""),
    ],
)  # fmt: skip
def test_a_condition_of_something_else_is_not_dropped(source: str, faithful: str, bent: str) -> None:
    """And one of the same is."""
    assert not found((source,), faithful)
    assert not bent or found((source,), bent)
