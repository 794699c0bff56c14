"""Answers of yes or no that the sources give the other way, as the whole engine judges them (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from bench.everyday import is_clean
from interlock.dpe.document import Fact
from interlock.dpe.grounding.given.answered import SLOT
from interlock.dpe.request import Output, Request
from tests.support.dpe import pipeline

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]
CASES = (
    (
        "The heater does not switch itself off at night; it has to be switched off by hand.",
        "Does the heater switch itself off at night?",
        "It doesn't; you have to switch it off by hand.",
        "It does; you don't have to switch it off by hand.",
    ),
    (
        "Elena was not charged a fee, because she cancelled in time.",
        "Was Elena charged a fee?",
        "She wasn't, because she cancelled in time.",
        "She was, because she cancelled in time.",
    ),
    (
        "The guarantee covers the motor. It does not cover the battery.",
        "Is the battery covered?",
        "No, the motor is covered and the battery is not.",
        "Yes, both the battery and the motor are.",
    ),
)


async def _judged(source, query, text):
    return await pipeline().analyse(Request(outputs=(Output(0, text),), facts=(Fact("f1", source, 0.5),), query=query))


@pytest.mark.parametrize(("source", "query", "faithful", "bent"), CASES)
async def test_a_turned_answer_is_found_and_its_faithful_twin_is_not(source, query, faithful, bent):
    """The question that the answer leaves out is what tells the two apart."""
    assert is_clean(await _judged(source, query, faithful))
    report = await _judged(source, query, bent)
    found = [(one.type, one.slot) for claim in report.claims for one in claim.distortions]
    assert ("NEGATION_FLIP", SLOT) in found


async def test_without_the_question_nothing_is_known_of_the_answer():
    """The same words under another question say something else."""
    source, _, _, bent = CASES[1]
    report = await _judged(source, "What did Elena do?", bent)
    assert not [one for claim in report.claims for one in claim.distortions if one.slot == SLOT]
