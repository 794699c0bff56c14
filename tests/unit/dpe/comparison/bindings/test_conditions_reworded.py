"""Conditions in other words: what is not done, what is denied of all, and what holds in any case (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

_LETTER = "If a landlord does not answer within 20 days, the desk passes the case to the office."
_SPLINT = "The clinic will see Mr Dorn on 15 May and will remove the splint unless a scan that day shows the tendon has not healed."
_DRINKS = "Hot drinks are not allowed in any room; cold drinks are allowed in all rooms except the Green Room."
_DOOR = (
    "We have to repaint the door in any case, which takes two days; if we find rust under it, that adds a few hours."
)
_WAGES = "Overpaid wages must be repaid unless the employee had already spent the money in good faith. A sum of more than 10 percent is so obvious that good faith is excluded."


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # what is left undone is not done
        (_LETTER, "When a landlord leaves a case unanswered beyond 20 days, the desk passes it to the office.", "When a landlord answers within 20 days, the desk passes the case to the office."),
        (_SPLINT, "The clinic only removes the splint if the scan done that day doesn't show that the tendon has failed to heal.", "The clinic will remove the splint only if a scan that day shows the tendon has not healed."),
        # not anywhere
        (_DRINKS, "You could have juice in any of the other rooms, though hot drinks aren't permitted anywhere.", "Cold drinks are allowed anywhere."),
        # the source says in any case itself
        (_DOOR, "The door will have to be repainted whether or not rust turns up under it.", ""),
        # who does a thing, which is no *in any case*
        (_WAGES, "Whoever gets a fifth too much cannot plead that the money was spent in good faith.", ""),
    ],
)  # fmt: skip
def test_a_condition_told_in_other_words_is_kept(source: str, faithful: str, bent: str) -> None:
    """And its twin, which drops it or turns it round, is found."""
    assert not found((source,), faithful)
    assert not bent or found((source,), bent)
