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
    assert hypothesis("Done, settle is scaling") == "Settle is scaling."
