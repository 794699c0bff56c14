"""Groupings and rankings through the whole engine: its report has the slot of what a claim turned (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.support.dpe import pipeline, request

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3", "ATT-5")]


@pytest.mark.parametrize(
    ("source", "faithful", "bent", "slot"),
    [
        ("Cabin: coats, laptops\nHold: knives, ladders", "Knives go into the hold.", "Knives go into the cabin.", "group"),
        ("Meat dishes:\n- stew\n- roast\nVegetarian dishes:\n- risotto", "The stew is a meat dish.", "The stew is a vegetarian dish.", "group"),
        ("Ticket A costs 18 euros, ticket B 24 euros and ticket C 15 euros.", "Ticket C is the cheapest.", "Ticket A is the cheapest.", "ranking"),
        ("The lamp weighs 900 g, the stand 2 kg.", "The stand is heavier than the lamp.", "The lamp is heavier than the stand.", "ranking"),
    ],
)  # fmt: skip
async def test_the_report_names_the_slot_of_the_bent_answer_alone(source, faithful, bent, slot):
    """The faithful twin has no such finding."""
    slots = []
    for answer in (faithful, bent):
        report = await pipeline().analyse(request(answer, source, query="How is it?"))
        slots.append({each.slot for claim in report.claims for each in claim.distortions})

    assert slot not in slots[0]
    assert slot in slots[1]
