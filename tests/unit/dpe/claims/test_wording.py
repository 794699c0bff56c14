"""Wording: the same figure looks the same to the model on both sides (SPEC-005 §6)."""

from __future__ import annotations

import pytest

from interlock.dpe.claims.wording import hypothesis, plain_figures, unanswered, uncut


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
@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("A loan of 75 million dollars.", "A loan of $75 million."),
        ("It costs 10 euros, or 0.40 dollars a day.", "It costs €10, or $0.40 a day."),
        ("Sales of 2,600 US dollars and 15 percent.", "Sales of $2600 and 15%."),
        ("A bill of $5 dollars; dollars in 2025.", "A bill of $5 dollars; dollars in 2025."),
    ],
)
def test_money_has_one_notation(text, plain):
    """The model takes $22 million and 22 million dollars for two figures."""
    assert plain_figures(text) == plain


@pytest.mark.req("DPE-4")
def test_what_answers_a_question_is_no_part_of_the_assertion():
    """A particle with a comma goes; a determiner stays."""
    assert unanswered("No, deploys go on.") == "deploys go on."
    assert unanswered("No deploys go on.") == "No deploys go on."
    assert unanswered("No, ") == "No, "
    assert hypothesis("Done, settle is scaling") == "Settle is scaling."
