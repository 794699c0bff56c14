"""The right words in the wrong slot are found, and what says the same in other words is not (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, ENTITY_SUBSTITUTED, NEGATION_FLIP
from tests.unit.dpe.comparison.bindings.more_pairs import MORE
from tests.unit.dpe.comparison.bindings.pairs import FAITHFUL, PAIRS
from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = pytest.mark.models

ALL = (*PAIRS, *MORE)
KNOWN_GAPS = frozenset(
    {
        "Every five minutes the standby replicates to the primary database.",  # "replicates" is taken for a noun
        "Training brought in $3.1 million.",  # another predicate than the source's
        "Ian Reid said the company will appeal.",  # what was said is one word, and "we"
        "The API returns deleted records.",  # "deleted" is taken for the verb
        "The lamp needs batteries.",  # works without, needs
        "The storm caused the blackout.",  # due to …, not to …
        "Sam Ode is mentored by Rita Paz.",  # "mentors" is taken for a noun
        "Ned Orr is the ambassador to Chile.",  # gapping: X as … and Y as …
        "The east wing opens on Thursday.",  # gapping
        "The white model is waterproof.",  # ellipsis: … is not
        "Class 7b went to the zoo.",  # gapping
        "Shares of Borealis gained 5%.",  # shares of Altura, and Borealis without them
        "Guests are picked up at the castle.",  # drops them off
        "The visitor exchanged yen for dollars.",  # an exchange is taken for mutual
        "Kim Berg is an auditor in Oslo.",  # keys and values in prose
    }
)
"""Bent answers that are not found yet, each with its cause."""


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("facts", "bent"), [(p[2], p[4]) for p in ALL if p[4] not in KNOWN_GAPS])
def test_words_in_another_slot_are_found(facts, bent):
    """The finding names the slot and both fillers, and says in which fact the source has it."""
    findings = found(facts, bent)

    assert findings
    assert all(each.slot and each.evidence and each.fact_id for each in findings)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("facts", "faithful"), [*((p[2], p[3]) for p in ALL), *FAITHFUL])
def test_the_same_in_other_words_is_no_finding(facts, faithful):
    """Passives, converses, appositions, nominalisations, shortened and merged sentences bind the same."""
    assert found(facts, faithful) == []


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize("fact", [fact for pair in ALL for fact in pair[2]])
def test_a_source_agrees_with_itself(fact):
    """What is copied word for word has no finding."""
    assert found((fact,), fact) == []


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize("bent", sorted(KNOWN_GAPS))
def test_known_gaps_are_still_gaps(bent):
    """A gap that is closed leaves the list."""
    facts = next(pair[2] for pair in ALL if pair[4] == bent)

    assert not found(facts, bent)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("fact", "answer", "kind", "slot", "source", "claim"),
    [
        (
            "The bank sued the broker.",
            "The broker sued the bank.",
            ENTITY_SUBSTITUTED,
            "agent",
            "The bank",
            "The broker",
        ),
        (
            "The jury ruled in favour of the tenant.",
            "The jury ruled in favour of the landlord.",
            ENTITY_SUBSTITUTED,
            "beneficiary",
            "the tenant",
            "the landlord",
        ),
        (
            "The valve releases the gas.",
            "The valve does not release the gas.",
            NEGATION_FLIP,
            "predicate",
            "releases",
            "does not release",
        ),
        ("Most members voted.", "All members voted.", CONTEXT_STRIPPED, "quantifier", "most", "all"),
        (
            "Parking is free unless there is a match.",
            "Parking is free even if there is a match.",
            CONTEXT_STRIPPED,
            "condition",
            "unless there is a match",
            "even if there is a match",
        ),
    ],
)
def test_a_finding_shows_the_slot_and_both_fillers(fact, answer, kind, slot, source, claim):
    """A reader of the report sees what the source has in the slot and what the claim has."""
    (finding,) = found((fact,), answer)

    assert (finding.type, finding.slot, finding.source_value, finding.claim_value) == (kind, slot, source, claim)
    assert (finding.evidence, finding.fact_id) == (fact, "f0")


@pytest.mark.models
@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("fact", "answer", "is_found"),
    [
        ("If the printer is offline, jobs are kept in the queue.", "Your jobs are kept even if the printer is offline.", False),
        ("If you are not at home, the parcel is left with a neighbour.", "Even if you are not at home, the parcel is left.", False),
        ("The fridge keeps food cold for 16 hours if the power fails.", "Even if the power fails, the fridge keeps food cold.", False),
        ("Lights turn off unless someone moves.", "Lights turn off even if you are there but do not move.", False),
        ("Lights turn off unless someone moves.", "Lights turn off even if someone moves.", True),
        ("Jobs are kept if the printer is offline.", "Jobs are kept even if the printer is not offline.", True),
    ],
)  # fmt: skip
def test_a_case_that_is_named_with_even_is_at_odds_with_its_exception_alone(fact, answer, is_found):
    """*Even if* says that something holds in that case too, as a source does that names the case."""
    assert bool(found((fact,), answer)) is is_found


_CARGO = "The seller insures the crates, the hull and the mast. The buyer insures what the buyer has ordered and oils the winches."


@pytest.mark.models
@pytest.mark.req("DPE-3")
def test_a_source_that_says_only_who_acts_bears_out_no_object_of_another():
    """What the buyer insures besides says nothing of the hull, which the source has the seller insure."""
    bent = found((_CARGO,), "The buyer has to insure the hull, the crates and the mast.")

    assert [(each.type, each.slot, each.source_value, each.claim_value) for each in bent] == [
        (ENTITY_SUBSTITUTED, "agent", "The seller", "The buyer")
    ]
    assert not found((_CARGO,), "The seller has to insure the hull, the crates and the mast.")
    assert not found((_CARGO,), "The buyer insures some things as well.")
