"""What goes from a window to the next: the 0.60 rule, the size of a summary, the conclusion of an answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.dag import transfer
from interlock.domain.dag.transfer import Transfer, conclusion, fits, is_faithful, select, summary_size, tokens

SIZES = st.integers(min_value=0, max_value=2_000_000)


@pytest.mark.req("DAG-5")
@pytest.mark.parametrize(
    ("response", "deferred", "summary", "kind"),
    [
        (500, 100, 100, Transfer.FULL_CONTEXT),  # 600 of 1000: exactly 0.60
        (501, 100, 100, Transfer.SUMMARY),
        (9_000, 500, 100, Transfer.SUMMARY),  # 600
        (9_000, 501, 100, Transfer.FACTS_ONLY),
        (9_000, 600, 100, Transfer.FACTS_ONLY),  # 600
        (9_000, 601, 100, Transfer.RESULT_ONLY),
        (600, 0, 0, Transfer.FULL_CONTEXT),
        (601, 0, 0, Transfer.FACTS_ONLY),  # no summary can be made
    ],
)
def test_the_type_is_chosen_by_the_room_that_is_left(response, deferred, summary, kind):
    """SPEC-004 §8.2 at each of its boundaries, for an available budget of 1,000 tokens."""
    chosen = select(response=response, deferred=deferred, summary=summary, available_budget=1_000)

    assert chosen is kind


@pytest.mark.req("DAG-5")
@given(SIZES, SIZES)
def test_the_share_is_exact_in_whole_numbers(needed, available):
    """0.60 of a budget has no rounding: the same as the fraction 3/5, for every size."""
    assert fits(needed, available) is (5 * needed <= 3 * available)


@pytest.mark.req("DAG-5")
@given(SIZES, SIZES, SIZES)
def test_what_is_chosen_fits(response, deferred, available):
    """Whole, summary and facts leave 0.40 of the budget to the child; a smaller parent never gets less across."""
    summary = summary_size(response, available)
    kind = select(response=response, deferred=deferred, summary=summary, available_budget=available)
    sizes = {
        Transfer.FULL_CONTEXT: response + deferred,
        Transfer.SUMMARY: summary + deferred,
        Transfer.FACTS_ONLY: deferred,
    }

    assert kind is Transfer.RESULT_ONLY or fits(sizes[kind], available)
    assert select(response=response // 2, deferred=deferred, summary=summary, available_budget=available) <= kind


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize(
    ("response", "available", "size"),
    [(400, 1_000, 100), (4_000, 1_000, 300), (3, 1_000, 0), (4_000, 3, 0), (1203, 10**6, 300)],
)
def test_a_summary_is_a_quarter_of_the_response_and_at_most_three_tenths_of_the_budget(response, available, size):
    """SPEC-004 §12.2; a part of a token is none."""
    assert summary_size(response, available) == size


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize(
    ("fidelity", "faithful"),
    [(0.80, True), (1.0, True), (0.7999, False), (0.0, False), (math.nan, False), (math.inf, False), (-1.0, False)],
)
def test_a_summary_is_used_from_a_fidelity_of_080(fidelity, faithful):
    """Below 0.80 it is not, and neither is one whose fidelity is no number (§12.3)."""
    assert is_faithful(fidelity) is faithful


@given(st.text(max_size=200))
def test_a_budget_is_never_overrun_by_counting_too_little(text):
    """Every three bytes are a token, a rest too; nothing is zero tokens but nothing."""
    assert (
        tokens(text) * transfer.BYTES_PER_TOKEN >= len(text.encode("utf-8", "surrogatepass")) > (tokens(text) - 1) * 3
    )


def test_a_budget_that_is_spent_leaves_nothing():
    """What the query and the system prompt take is not there for context, and never less than nothing is left."""
    assert transfer.available(1_000, query=200, system=300) == 500
    assert transfer.available(100, query=200, system=300) == 0


@pytest.mark.req("DAG-5")
@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (["Paris."], "Paris."),
        (["It fell.", "Then it rose.", "In conclusion, it is up 3%.", "Sales lead."], "In conclusion, it is up 3%. Sales lead."),
        (["It is 4.", "We looked twice.", "It held."], "It is 4. It held."),
        (["Overall it fell.", "Details follow.", "The answer is: 12."], "The answer is: 12."),
        (["It is cold.", "**Answer:** 12.", "It holds."], "**Answer:** 12. It holds."),
        (["It is cold.", "The answers differ.", "Thusly it went."], "It is cold. Thusly it went."),
        (["Same.", "Other.", "Same."], "Same."),
        ([], ""),
    ],
)  # fmt: skip
def test_a_result_is_the_conclusion_in_its_own_sentences(said, kept):
    """What follows the last announcement of one, else the first and the last sentence."""
    assert conclusion(said, 1_000) == kept


def test_a_result_that_is_too_long_loses_sentences_and_never_parts_of_one():
    """A cut sentence could say the opposite; one always stays, however little room there is."""
    said = ["x.", "Overall, it is not allowed.", "That holds for every case.", "It holds always."]

    assert conclusion(said, 20) == "Overall, it is not allowed. That holds for every case."
    assert conclusion(said, 0) == "Overall, it is not allowed."
