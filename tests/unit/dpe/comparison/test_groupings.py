"""What a source keeps apart under labels, headings, states or by *respectively*, and claims that put it elsewhere (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.comparison.groupings.listed import listed
from interlock.dpe.comparison.groupings.paired import paired
from interlock.dpe.comparison.pairings.grouped import grouped
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
BAGGAGE = "Cabin: coats, laptops\nHold: knives, ladders"
PRICES = "## Grown-ups\n12 euros\n## Pupils\n5 euros"
STATES = "Alpha: active\nBeta: paused\nGamma: active\nDelta: paused"
MENU = "Meat dishes:\n- stew\n- roast\nVegetarian dishes:\n- risotto"
LEASE = "Included: towels, linen. Not included: cleaning, breakfast."
RULES = "## Dogs\nAllowed at a fee of 20 euros a night.\n## Smoking\nNot allowed anywhere."


def found(source: str, answer: str) -> Misbinding | None:
    evidence = Evidence(passages(source), (), (*listed(source, "f0"), *paired(source, "f0")))
    return next((each for claim in passages(answer) if (each := grouped(claim, evidence)) is not None), None)


@pytest.mark.parametrize(
    ("source", "faithful", "bent"),
    [
        (BAGGAGE, "Knives go into the hold.", "Knives go into the cabin."),
        (BAGGAGE, "Coats and laptops go into the cabin, knives into the hold.", "Coats and knives go into the cabin."),
        (PRICES, "Pupils pay 5 euros.", "Pupils pay 12 euros."),
        (PRICES, "Pupils pay 5 euros, 7 less than grown-ups, who pay 12.", "Grown-ups pay 5 euros."),
        (STATES, "Beta and Delta are paused.", "Gamma and Delta are paused."),
        (MENU, "The stew is a meat dish.", "The stew is a vegetarian dish."),
        (MENU, "The stew is not vegetarian.", "The risotto is a meat dish."),
        (LEASE, "Breakfast is not included.", "Breakfast is included."),
        (LEASE, "Towels are included, but cleaning isn't included.", "Towels are not included."),
        (RULES, "Smoking is not allowed.", "Smoking is allowed at a fee of 20 euros a night."),
        ("Copper and zinc cost 9 and 3 euros respectively.", "Zinc costs 3 euros.", "Zinc costs 9 euros."),
        ("Dr. Amsel and Dr. Fink head the eye and the ear ward respectively.", "Dr. Fink heads the ear ward.", "Dr. Fink heads the eye ward."),
        ("Pump A and pump B were tested. The former leaked; the latter did not.", "In the test pump A leaked.", "In the test pump B leaked."),
        ("Vera and Will applied. The latter was hired.", "It was Will who was hired.", "It was Vera who was hired."),
    ],
)  # fmt: skip
def test_a_thing_under_another_label_is_found(source: str, faithful: str, bent: str) -> None:
    """Lines with labels, lists, sections, states, and two lists that belong together item by item."""
    assert found(source, faithful) is None
    assert found(source, bent) is not None


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("Name: Ida Moss\nRole: nurse\nWard: surgery, intensive care", "The role of Ida Moss is nurse in training."),
        (BAGGAGE, "Do knives go into the cabin?"),
        (BAGGAGE, "Knives never go into the cabin."),
        (MENU, "Some guests who like vegetarian food also order our famous stew now and then."),
        ("Meet Ann and Bea. The former mayor spoke.", "Bea spoke."),
    ],
)
def test_a_claim_that_states_no_membership_is_left_alone(source: str, answer: str) -> None:
    """Fields of a record, questions, denials, sentences that say more, and *former* before a noun."""
    assert found(source, answer) is None


def test_another_sentence_may_say_so() -> None:
    """What a sentence of the sources says of the thing itself is no wrong label."""
    source = f"{MENU}\n\nOur stew can be had as a vegetarian dish on request."

    assert found(source, "The stew is a vegetarian dish.") is None


def test_a_finding_names_both_labels() -> None:
    """The group that the source gives, and the one that the claim does; a label that is only denied is turned."""
    moved, turned = found(MENU, "The stew is a vegetarian dish."), found(LEASE, "Breakfast is included.")

    assert moved is not None and (moved.type, moved.slot, moved.fact_id) == (ENTITY_SUBSTITUTED, "group", "f0")
    assert (moved.source_value, moved.claim_value) == ("dish meat", "dish vegetarian")
    assert turned is not None and (turned.type, turned.source_value) == (NEGATION_FLIP, "not included")


def test_words_are_told_by_their_stems() -> None:
    """Number words are digits, full hours have no minutes, and a single capital tells two of a series apart."""
    assert words_of("The pumps A and B cost five euros at 7:00") == {"pump", "A", "B", "cost", "5", "euro", "7"}


def test_the_keys_of_an_object_are_no_labels() -> None:
    """Objects are read by key and cell; a line of one groups nothing."""
    boats = '"boats": {"rowing": 8, "sailing": 4},\n"closed": {"rowing": "rot, leak", "sailing": "paint, rust"}'

    assert not listed(f"{{\n{boats}\n}}", "f0")
    assert listed(BAGGAGE, "f0")
