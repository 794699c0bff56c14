"""Short answers to questions of yes or no, put in full (SPEC-005 §3.4)."""

from __future__ import annotations

import pytest

from interlock.dpe.claims.answered import asked, is_affirmed, stated
from tests.support.dpe import pipeline

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


@pytest.mark.parametrize(
    ("answer", "affirmed"),
    [
        ("It does; nothing has to be done.", True),
        ("She wasn't, because she cancelled in time.", False),
        ("**Yes**, on Sundays too.", True),
        ("No, the museum has no plans for it.", False),
        ("They have not.", False),
        ("Yes, but only on Sundays.", None),
        ("No, unless it rains.", None),
        ("It does so by hand.", None),
        ("The museum is open.", None),
    ],
)
def test_an_answer_affirms_denies_or_does_neither(answer, affirmed):
    """An answer with a limit, or in a sentence of its own, is neither a plain yes nor a plain no."""
    assert is_affirmed(answer) is affirmed


@pytest.mark.parametrize(
    ("query", "question"),
    [
        ("I have a ticket. Is the museum open on Monday?", "Is the museum open on Monday?"),
        ("Isn't the museum open on Monday?", ""),
        ("Is it open on Monday or on Tuesday?", ""),
        ("When is the museum open?", ""),
        ("Is it open? Is it free?", ""),
    ],
)
def test_one_plain_question_of_yes_or_no_is_taken(query, question):
    """Negative questions, choices, open questions and several questions are left."""
    assert asked(query) == question


@pytest.mark.parametrize(
    ("question", "affirmed", "statement"),
    [
        ("Does the old heater switch itself off?", True, "The old heater does switch itself off."),
        ("Was Elena charged a fee?", False, "Elena was not charged a fee."),
        ("Do I have to tell my bank?", False, "You do not have to tell your bank."),
        ("Is it?", True, ""),
    ],
)
def test_a_question_is_put_as_a_statement(question, affirmed, statement):
    """The subject goes first, and *my* becomes *your*."""
    assert stated(pipeline().language.nlp(question), affirmed=affirmed) == statement
