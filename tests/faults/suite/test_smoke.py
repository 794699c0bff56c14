"""One run of the fault suite in the default tests: it is whole, and a drawn run is the same run again."""

from __future__ import annotations

import pytest

from tests.faults.randomised import draw
from tests.faults.runner import Stage


@pytest.mark.req("SVC-9", "BUD-4", "AUD-3")
async def test_one_randomised_run_holds_every_invariant():
    """A mesh over a real store that loses most of its sessions under load: nothing rises, nothing is lost."""
    drawn = next(one for one in map(draw, range(1000, 1100)) if one.shape.light and "evict" in one.faults[0].name)
    stage = Stage()
    try:
        run = await stage.play(drawn.shape, drawn.faults, drawn.plan)
    finally:
        await stage.close()

    assert run.violations == []
    assert run.released and run.settles


def test_a_seed_draws_the_same_run_again():
    """Shape, faults and plan come from the seed alone."""
    first, again = draw(4711), draw(4711)

    assert [fault.name for fault in first.faults] == [fault.name for fault in again.faults]
    assert (first.shape, first.plan) == (again.shape, again.plan)
