"""A route that is turned round is found, whichever verb tells it, and one that is told as it is is not (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        ("The clinic moved its records from the cellar to the attic.", "The files were shifted from the attic to the cellar.", "The files were shifted from the cellar to the attic."),
        ("Shipment 9\nFrom: Porto\nTo: Dakar\nCrates: 12", "The crates were sent from Dakar to Porto.", "The crates were sent from Porto to Dakar."),
        ("The lecture was postponed from Tuesday to Friday.", "The lecture was brought forward from Friday to Tuesday.", "The lecture was put off from Tuesday to Friday."),
        ("The term was raised from four to nine months in May.", "In May the term went from nine months to four.", "In May the term went from four months to nine."),
        ('{"ferry": "Alba", "from": "Oban", "to": "Craignure", "km": 18}', "The ferry runs from Craignure to Oban.", "The ferry runs from Oban to Craignure."),
        ("Samples from the northern huts go first to Bodo by sledge.", "Sledges bring the samples from Bodo to the huts.", "Sledges bring the samples from the huts to Bodo."),
    ],
)  # fmt: skip
def test_a_route_turned_round_is_found_and_the_route_itself_is_not(source: str, bent: str, faithful: str) -> None:
    """The finding is of the direction."""
    assert "direction" in {each.slot for each in found((source,), bent)}
    assert not found((source,), faithful)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The bus goes from Lund to Ystad. It returns in the evening from Ystad.", "In the evening the bus goes from Ystad to Lund."),
        ("From Lund to Ystad it is 60 km.", "It is 60 km from Ystad to Lund."),
        ("The shuttle runs from the hotel to the port. Another one runs from the port to the hotel.", "A shuttle runs from the port to the hotel."),
        ("The mail was moved from the old server to the new server.", "The mail was not moved from the new server to the old server."),
        ("The path leads from the mill to the chapel.", "The path leads from the mill to the inn and from there to the chapel."),
    ],
)  # fmt: skip
def test_the_way_back_and_the_distance_are_left(source: str, claim: str) -> None:
    """A source that tells the way back, or how far it is, tells both directions."""
    assert "direction" not in {each.slot for each in found((source,), claim)}
