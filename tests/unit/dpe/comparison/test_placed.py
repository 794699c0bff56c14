"""Places that an answer turns round, and those that it only words otherwise (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from bench.everyday import is_clean
from tests.support.dpe import pipeline, request

pytestmark = pytest.mark.req("DPE-3", "ATT-5")


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        ("Parking is only available behind the warehouse.", "You can park behind the warehouse.", "You can park in front of the warehouse."),
        ("The first-aid kit hangs above the sink.", "The first-aid kit is over the sink.", "The first-aid kit is under the sink."),
        ("The bus stop is opposite the school.", "The bus stops across from the school.", "The bus stop is next to the school."),
        ("The toilets are to the left of the entrance.", "The toilets are left of the entrance.", "The toilets are on the right of the entrance."),
        ("The emergency exit is at the back of the hall.", "You find the emergency exit at the back of the hall.",
         "The emergency exit is at the front of the hall."),
        ("The mill lies upstream of the bridge.", "The mill stands above the bridge.", "The mill stands below the bridge."),
        ("The hotel is far from the harbour.", "The hotel is a long way from the harbour.", "The hotel is close to the harbour."),
    ],
)  # fmt: skip
async def test_the_other_side_of_a_thing_is_found_and_another_word_for_the_same_is_left(source, right, wrong):
    """The right answer is LOW; its twin names both places."""
    assert is_clean(await _judged(source, right))
    report = await _judged(source, wrong)

    assert [each.slot for claim in report.claims for each in claim.distortions] == ["place"]


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("The bike rack is behind the gym, and the bins are in front of the gym.", "The bins are in front of the gym."),
        ("Wires run under the floor. Pipes run above the floor.", "The pipes run above the floor."),
        ("The scanner stands to the left of the screen.", "The scanner is not to the right of the screen."),
        (
            "He worked under the old director and now stands above the new director.",
            "He worked under the old director.",
        ),
    ],
)
async def test_a_thing_with_two_sides_told_and_a_denied_side_are_left(source, answer):
    """One sentence of the sources that has the claim's side is enough."""
    report = await _judged(source, answer)

    assert "place" not in {each.slot for claim in report.claims for each in claim.distortions}


async def _judged(source: str, answer: str):
    return await pipeline().analyse(request(answer, source, query="Where is it?"))
