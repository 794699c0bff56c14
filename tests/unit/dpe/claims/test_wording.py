"""Wording: the same figure looks the same to the model on both sides (SPEC-005 §6)."""

from __future__ import annotations

import pytest

from interlock.dpe.claims.wording import hypothesis, unanswered, uncut


@pytest.mark.req("DPE-4")
@pytest.mark.parametrize(
    ("premise", "said", "whole"),
    [
        ("There are about 26, 380 of them.", "There are 26,380 of them.", "There are about 26,380 of them."),
        ("It rose to 31. 8 million.", "It rose to 31.8 million.", "It rose to 31.8 million."),
        ("It rose on May 5, 300 firms said.", "It rose.", "It rose on May 5, 300 firms said."),
        ("Some 26,380, or 26, 380.", "There are 26,380.", "Some 26,380, or 26, 380."),
        ("There are 26, 380 of them.", "There are 26,381 of them.", "There are 26, 380 of them."),
    ],
)
def test_a_figure_that_was_cut_is_put_together_where_the_claim_has_it_whole(premise, said, whole):
    """Only then: 5, 300 is two figures for who does not say 5,300."""
    assert uncut(premise, said) == whole


@pytest.mark.req("DPE-4")
@pytest.mark.req("DPE-4")
def test_what_answers_a_question_is_no_part_of_the_assertion():
    """A particle with a comma goes; a determiner stays."""
    assert unanswered("No, deploys go on.") == "deploys go on."
    assert unanswered("No deploys go on.") == "No deploys go on."
    assert unanswered("No, ") == "No, "


@pytest.mark.req("DPE-4")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Not all of them: most voted for it.", "most voted for it."),
        ("Not every member: some abstained.", "some abstained."),
        ("Not 2 eggs - the recipe needs 3.", "the recipe needs 3."),
        ("Not any more: the pool is a gym.", "the pool is a gym."),
        ("Not covered: water damage.", "Not covered: water damage."),
        ("Not all members voted.", "Not all members voted."),
    ],
)
def test_a_denial_before_the_answer_is_left_out(text, left):
    """What only sets the question right denies nothing in the sentence behind it; a label keeps its *not*."""
    assert unanswered(text) == left
    assert hypothesis("Done, settle is scaling") == "Settle is scaling."
