"""Where an event is that the sources tell of once, whoever or whatever it is done to."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.worded.stood import stood
from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

_DIAL = "The clock face was late because a foundry in Lyon had shut; it is now engraved in Basel."
_COACH = "Coaches wait in Quarry Street until the porter waves them in."
_SITE = "The hotel stands in Mill Lane."


@pytest.mark.parametrize(
    ("sources", "bent", "faithful"),
    [
        ((_DIAL,), "The clock face is engraved in Lyon these days.", "The clock face is engraved in Basel these days."),
        ((_COACH, _SITE), "The driver has to wait in Mill Lane until the porter waves.", "The driver has to wait in Quarry Street until the porter waves."),
        ((_COACH, _SITE), "Mill Lane is home to a hotel. The coach has to wait in Mill Lane.", "The coach has to wait in Quarry Street."),
    ],
)  # fmt: skip
def test_an_event_is_where_the_sources_have_it(sources: tuple[str, ...], bent: str, faithful: str) -> None:
    """The source may say *it* of what the claim names, and another word for who does it."""
    assert [("place", True)] == [(f.slot, f.claim_value in bent) for f in found(sources, bent)]
    assert not found(sources, faithful)


@pytest.mark.parametrize(
    ("sources", "answer"),
    [
        ((_COACH, "Vans wait in Mill Lane."), "The van driver waits in Mill Lane."),
        ((_COACH, "The driver knows the porter of Mill Lane, who waves."), "The driver waits in Mill Lane until the porter waves."),
        ((_COACH, _SITE), "Coaches do not wait in Mill Lane."),
        ((_COACH,), "Coaches wait in Portugal."),
        ((_COACH, _SITE), "Coaches wait in Quarry Street, not far from Mill Lane."),
        (("Coaches wait in Bath, Avon.", "Avon has a river."), "Coaches wait in Avon."),
    ],
)  # fmt: skip
def test_a_place_that_may_be_meant_is_left_alone(sources: tuple[str, ...], answer: str) -> None:
    """One that the sources have for it too, that they do not know, or that is around the one that they give."""
    assert not [f for f in found(sources, answer) if f.slot == "place"]


def test_a_street_is_not_told_from_its_town() -> None:
    """A name of another sort may be the place around the one that the sources give."""
    evidence = Evidence(tuple(p for fact in (_COACH, "Bath has a river.") for p in passages(fact)))
    (claim,) = passages("Coaches wait in Bath until the porter waves.")

    assert stood(claim, evidence) is None
