"""What a row that failed comes to once it was played again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.runner import Row, judged_again

FAILED = Row(
    "session", "slow", "FC", "nothing", held=False, settles=1, calls=1, back_s=0.1, seed=7, wrong=("I3: lost",)
)
HELD = replace(FAILED, held=True, wrong=(), seed=8)


@pytest.mark.parametrize(
    ("replays", "held"),
    [((HELD, HELD), True), ((HELD, replace(FAILED, wrong=("I1: rose",))), False), ((), False)],
    ids=["held each time", "failed again", "not played again"],
)
def test_what_breaks_twice_is_broken(replays, held):
    """Every replay has to hold; what was wrong the first time stays on record either way."""
    row = judged_again(FAILED, replays)

    assert row.held is held
    assert "I3: lost" in (row.seen if held else row.wrong)
