"""Conditions of a source that a claim says make no difference (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.pairings.lifted import lifted
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


def found(source: str, claim: str) -> list[str]:
    """The conditions that a claim lifts."""
    evidence = Evidence(passages(source))
    return [one.source_value for told in passages(claim) if (one := lifted(told, evidence)) is not None]


@pytest.mark.parametrize(
    ("source", "faithful", "bent", "condition"),
    [
        (
            "You may keep a dog if the neighbours agree.",
            "Yes, provided that the neighbours agree.",
            "Yes, whether or not the neighbours agree.",
            "if the neighbours agree",
        ),
        (
            "Unless the weather is bad, the ferry sails daily.",
            "It sails daily, but not if the weather is bad.",
            "It sails daily, even if the weather is bad.",
            "Unless the weather is bad",
        ),
        (
            "The library is open on Saturdays except in August.",
            "The library is open on Saturdays, also in July.",
            "The library is open on Saturdays, also in August.",
            "except in August",
        ),
        (
            "Students who miss three seminars are excluded unless they present a medical certificate.",
            "Students who miss three seminars are excluded, but not with a medical certificate.",
            "Students who miss three seminars are excluded, not even with a medical certificate admitted.",
            "unless they present a medical certificate",
        ),
        (
            "Nobody may enter the lab without a badge.",
            "With a badge you may enter the lab.",
            "You may enter the lab even without a badge.",
            "without a badge",
        ),
    ],
)
def test_a_condition_that_makes_no_difference_any_more_is_found(source, faithful, bent, condition):
    """The condition is found in the source; a claim that keeps it, or lifts another one, is left alone."""
    assert found(source, faithful) == []
    assert found(source, bent) == [condition]


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("Late entries are not accepted, not even with a doctor's note.", "Late entries are refused even with a doctor's note."),
        ("You may keep a dog if the neighbours agree.", "The rent is due even if the neighbours complain about noise."),
        ("Schedules run on the lamp itself and work without the internet.", "Schedules run even when the internet is down."),
        ("If the printer is offline, jobs are kept in the queue.", "No, your jobs are kept even if the printer is offline."),
        ("The fridge keeps food cold for 16 hours if the power fails.", "Even if the power fails, the fridge keeps food cold."),
        ("Dogs may sit on the terrace if they are on a lead.", "Dogs may not come inside, even on a lead."),
        ("Children under 6 travel free if an adult is with them.", "A child of 7 does not travel free, whether or not an adult is there."),
        ("The gate opens before sunrise.", "The gate opens even when it is before sunrise."),
        ("The pass must be shown in June.", "The pass must be shown in July and also in June."),
    ],
)  # fmt: skip
def test_what_the_source_lifts_itself_or_sets_for_something_else_is_left(source, claim):
    """Only the condition of the same thing is lifted."""
    assert found(source, claim) == []


@pytest.mark.parametrize(
    ("source", "bent", "faithful"),
    [
        ("Rinse the filter daily, even when it looks clean.", "Rinse the filter daily only if it looks dirty.", "Rinse the filter daily even if it looks clean."),
        ("Donors should get iron tablets early, even without anaemia.", "Donors get iron tablets only when they have anaemia.", "Donors get iron tablets early, with or without anaemia."),
        ("The rope must be replaced after six years, even when it still holds.", "As long as the rope holds, it may be kept for more than six years.", "The rope must be replaced after six years although it still holds."),
        ("Tenants may extend the lease so long as the rent is paid.", "Tenants may extend the lease whether or not they pay the rent.", "Tenants may extend the lease as long as they pay the rent."),
        ("A repair is possible only with the serial number.", "Devices are repaired even for owners who have no serial number.", "Devices are repaired for owners who have the serial number."),
        ("Children may climb only if they are roped.", "Children may climb, roped or not.", "Roped children may climb."),
        ("Fungi from the wood must not be eaten, not even after cooking.", "Once they have been cooked, fungi from the wood may be eaten.", "Fungi from the wood must not be eaten even if they are cooked."),
        ("No cats on the ferry, not even in baskets.", "Cats are accepted on the ferry as long as they travel in a basket.", "Cats are not accepted on the ferry, in a basket or otherwise."),
    ],
)  # fmt: skip
def test_what_makes_no_difference_is_no_condition(source: str, bent: str, faithful: str) -> None:
    """A claim that sets a condition where its source has none, or lifts the one that it has, is found."""
    assert found(source, bent)
    assert not found(source, faithful)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The lamp never fails, not even in the rain.", "The lamp may be used in the rain."),
        ("The pool is open even when it rains, but only if there is no storm.", "The pool is open only if there is no storm."),
        ("Rinse the filter even when it looks clean. Oil the pump only if it squeaks.", "Oil the pump only if it squeaks."),
        ("No cats on the ferry, not even in baskets.", "Dogs may travel in baskets."),
    ],
)  # fmt: skip
def test_another_condition_of_the_source_is_left(source: str, claim: str) -> None:
    """What the source itself demands, or says of something else, is no difference that a claim makes."""
    assert not found(source, claim)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        ("The school is told only if the parents agree.", "The school is told with the parents' consent.",
         "The school is told with or without the parents' consent."),
        ("Staff who work nights get a bonus.", "Night staff get a bonus.", "Staff get a bonus whether or not they work nights."),
        ("If you feel dizzy, stop the tablets.", "Stop the tablets if you feel dizzy.", "Go on with the tablets even if you feel dizzy."),
        ("Cyclists may use the ramp as long as no walkers are on it.", "Cyclists may use the ramp if it is free of walkers.",
         "Cyclists may use the ramp even when walkers are on it."),
        ("Guests may enter the hall once the alarm is tested.", "Guests may enter the hall after the alarm is tested.",
         "Guests may enter the hall even before the alarm is tested."),
    ],
)  # fmt: skip
def test_a_condition_in_other_words_is_found_lifted(source: str, faithful: str, bent: str) -> None:
    """Consent for agreement, who does something, what is stopped in a case, what must not be so, and what comes first."""
    assert found(source, faithful) == []
    assert len(found(source, bent)) == 1


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The lift works if the mains fail.", "The lift works even if the mains fail."),
        ("If it snows, the ferry runs and the bus does not.", "The ferry runs even if it snows."),
    ],
)
def test_what_holds_in_the_case_itself_is_not_lifted(source: str, claim: str) -> None:
    """*Even if* only stresses a case in which the source says that it holds."""
    assert found(source, claim) == []
