"""The recorded conversation that is shipped."""

from __future__ import annotations

from interlock.demo.promises import FEWEST_WINDOWS
from interlock.demo.recording import load


def test_the_shipped_conversation_is_long_enough_and_begins_faithfully():
    """There are at least as many turns as promised, and people labelled the first ones consistent."""
    turns = load().turns

    assert len(turns) >= FEWEST_WINDOWS
    assert turns[0].consistent
    assert not turns[-1].consistent


def test_every_turn_carries_where_it_comes_from():
    """Item, set and licence stand beside every recorded answer."""
    for turn in load().turns:
        assert turn.item.startswith("sales_email_")
        assert turn.source_set == "summedits/sales_email"
        assert turn.licence == "Apache-2.0"


def test_questions_name_their_answers():
    """No two turns share a question, so that a question has one answer."""
    recording = load()

    assert len({turn.question for turn in recording.turns}) == len(recording.turns)
    assert all(recording.answer_to(f"  {turn.question}\n") == turn for turn in recording.turns)


def test_a_question_that_was_not_recorded_has_no_answer():
    """Nothing is made up for an unknown question."""
    assert load().answer_to("What is the capital of France?") is None
