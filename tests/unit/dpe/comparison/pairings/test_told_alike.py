"""What a claim tells in its own words and as its source does, which rules that compare words took for the opposite (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.limits import is_undone
from interlock.dpe.comparison.worded.asserted import asserted
from tests.unit.dpe.comparison.bindings.reading import found, passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


def _turned(source: str, answer: str) -> bool:
    return any(asserted(passages(answer), Evidence(passages(source, "f1")), ()))


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # opposite phases are of one time only, which months tell as days do
        ("Entry closes on 30 June.", "Entry stays open on 30 September.", "Entry opens on 30 June."),
        # the claim says the opposite word of the same thing itself
        ("The mayor objected, saying that the last bus leaves older residents little time.", "The mayor is against the new hours: older residents would have little time.", ""),
        # what is waited for is not there
        ("The keeper waits for the gate to be unlocked.", "The keeper locks the gate.", ""),
        # less of the opposite
        ("A new boiler saves the town 7,000 kroner a year.", "A new boiler lets the town spend 7,000 kroner less a year.", "The town spends 7,000 kroner a year on a new boiler."),
        # a norm of others, and one of nobody
        ("Women with a weak heart cannot join the course, those with a mild cold can.", "Women with a mild cold can join the course.", "Women with a weak heart can join the course."),
        ("The pool must not be filled until the lining has been inspected.", "No pool may be filled before the lining has been inspected.", "The pool may be filled."),
        ("The pool must not be filled until the lining has been inspected.", "Before the pool may be filled, the lining has to be inspected.", "The pool may be filled."),
        ("The museum may lend the vase once the crack has been filled.", "Until the crack has been filled, the museum may not lend the vase.", "The museum may not lend the vase."),
        # not until ten, at ten
        ("The bakery opens at 10 am on Sundays.", "The bakery doesn't open until 10 am on Sundays.", "The bakery doesn't open at 10 am on Sundays."),
        # those with, those without
        ("Runners without a number cannot start the race.", "Runners with a number can start the race.", "Runners without a number can start the race."),
        ("Only members who have paid by June can vote.", "Members who have not paid by June cannot vote.", "Members who have paid by June cannot vote."),
        # a day is no event, and neither is a measured time
        ("Either side may end the lease early by giving notice, but not so that it ends before 1 March.", "The lease cannot be brought to an end before 1 March.", ""),
        ("The slow lines reopened at 21:15 on 13 March, while the goods loop remained closed until 28 March.", "The loop stayed closed until 28 March, 15 days after the slow lines had reopened on 13 March.", ""),
        # to come from a place is no effect of it
        ("Because the singers would have missed their train, a replacement choir was brought in from Leith.", "Since the singers' train would have been missed, others came from Leith to sing.", ""),
        # left out is not in
        ("The board approved the roof, but not the $9,000 meant for the gutters.", "The $9,000 for the gutters was left out.", "The $9,000 for the gutters was approved."),
        # unanswered is not answered
        ("If a member does not answer within ten days, the clerk closes the file.", "When a member leaves a letter unanswered for ten days, the clerk closes the file.", "If a member answers within ten days, the clerk closes the file."),
    ],
)  # fmt: skip
def test_the_same_in_other_words_is_not_turned(source: str, faithful: str, bent: str) -> None:
    """And its bent twin is found."""
    assert not found((source,), faithful)
    assert not bent or found((source,), bent) or _turned(source, bent)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        # what says nothing more of whom
        ("Nobody was injured, but two cranes and a shed were damaged.", "There were no injuries; two cranes and a shed were damaged.", ""),
        # a thing that a clause only asks for, or denies of its own verb
        ("The insurer offered it, without a net, for people who fall less than two metres.", "The insurer asked for a net.", "The insurer offered it with a net."),
        # not yet, but later
        ("Bashir has not reviewed any code yet.", "Bashir will review code from July on.", "Bashir has reviewed code."),
        # instead of another figure of the same unit
        ("She entered 6.2 m instead of 5.5 m.", "She entered 6.2 m.", "She did not enter 6.2 m."),
        # with and without of one thing that is named once
        ("Walking speed rose by 0.11 m with music and by 0.10 m without.", "Walking speed rose by 0.10 m without music.", ""),
        # this, not that
        ("Without rain, the ban on cars cleaned the air.", "The ban on cars, not rain, cleaned the air.", "The ban on cars did not clean the air."),
        # too few to do it
        ("The night bus could not be run because there were not enough drivers.", "There were too few drivers to run the night bus.", "The night bus was run."),
    ],
)  # fmt: skip
def test_what_is_not_denied_is_not_asserted_either(source: str, faithful: str, bent: str) -> None:
    """And its bent twin is found."""
    assert not _turned(source, faithful)
    assert not bent or _turned(source, bent) or found((source,), bent)


def test_a_word_that_says_that_nothing_was_done():
    """*Unpaid* is not paid; what is united is."""
    assert all(map(is_undone, ("unpaid", "unanswered", "undelivered")))
    assert not any(map(is_undone, ("united", "under", "paid", "unit")))
