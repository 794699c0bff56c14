"""Where a text that is still being written may be cut: only behind what is whole, and never where what follows decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.sidecar.streaming.units import whole_until

pytestmark = pytest.mark.req("API-4")

CASES = {
    "nothing yet": ("The sky is", 0),
    "a mark at the end is in doubt": ("The sky is blue.", 0),
    "a number may go on": ("It costs 3.", 0),
    "a sentence and the next": ("The sky is blue. The", len("The sky is blue.")),
    "a decimal": ("It costs 3.50 euros and mo", 0),
    "an abbreviation": ("Ask Dr. Smith about", 0),
    "an initial": ("J. Smith wrote it", 0),
    "two letters with dots": ("See e.g. Paris for", 0),
    "lower case goes on": ("It is approx. five of them", 0),
    "a year ends a sentence": ("It was in 1998. Then", len("It was in 1998.")),
    "a question in quotes": ('He asked "why?" Then he', len('He asked "why?"')),
    "an exclamation": ("Stop! Now", len("Stop!")),
    "Chinese": ("天空是蓝色的。海", len("天空是蓝色的。")),
    "a line inside a sentence": ("The sky\nis blue", 0),
    "a paragraph": ("The sky is blue\n\nThe", len("The sky is blue\n\n")),
    "a list item": ("- one\n- tw", len("- one\n")),
    "a numbered item": ("1. one\n2. tw", len("1. one\n")),
    "a table row": ("| a | b |\n| 1 ", len("| a | b |\n")),
    "an open code block": ("```py\nx = 1. Y\n", 0),
    "a code block": ("```py\nx = 1\n```\nThe", len("```py\nx = 1\n```\n")),
    "a shorter fence inside": ("````\n```\n", 0),
    "a sentence before an open block": ("It is so.\n```\nx", len("It is so.\n")),
    "a heading": ("# Sky\nThe sky", len("# Sky\n")),
}


@pytest.mark.parametrize("case", CASES)
def test_the_end_of_the_last_whole_unit(case):
    """One text, and how much of it is whole."""
    text, end = CASES[case]

    assert whole_until(text) == end


TEXTS = st.lists(st.sampled_from(
    ["The sky is blue.", " ", "\n", "- item", "| a |", "```", "x. Y", "3.5", "天。", "Dr.", "why?", '"', "ends"]
), max_size=25).map("".join)  # fmt: skip


@given(text=TEXTS, cut=st.integers(0, 300))
def test_what_was_whole_stays_whole(text, cut):
    """More text never takes a unit back, and going on from a known end finds what starting over finds, or less."""
    before = whole_until(text[:cut])

    assert before <= len(text[:cut])
    assert whole_until(text, before) >= before
    assert whole_until(text, before) <= len(text)


@given(text=TEXTS)
def test_going_on_piece_by_piece_ends_no_further_than_the_text(text):
    """Fed one character at a time, ends only grow."""
    end = 0
    for size in range(len(text) + 1):
        grown = whole_until(text[:size], end)
        assert end <= grown <= size
        end = grown
