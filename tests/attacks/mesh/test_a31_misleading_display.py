"""A-31: a held text that is written to be misread shows everything that is in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.oversight.markup import FOLD, quoted, said
from interlock.oversight.visible import segments, visible

SPOOFS = {
    "\u202e": "U+202E", "\u2066": "U+2066", "\u200b": "U+200B", "\u200d": "U+200D", "\ufeff": "U+FEFF",
    "\u00ad": "U+00AD", "\x1b": "U+001B", "\x00": "U+0000", "\u2028": "U+2028", "\U000e0041": "U+E0041",
    "\ufe0f": "U+FE0F", "\u3164": "U+3164", "\u115f": "U+115F", "\u2800": "U+2800", "\r": "U+000D", "\ue000": "U+E000",
}  # fmt: skip


@pytest.mark.parametrize(("char", "code"), SPOOFS.items())
def test_a31_what_cannot_be_seen_is_shown_by_its_code(char, code):
    """Direction marks, no-width characters, tags, fillers, controls, private use: each is marked where it stands."""
    assert visible(f"pay{char}me") == f"pay⟦{code}⟧me"
    assert f">{code}</mark>me" in said(f"pay{char}me")


def test_a31_piled_up_accents_do_not_hide_the_line_above():
    """Three are a language's; the fourth and those after it are shown beside the letter."""
    assert visible("a" + "\u0301" * 3) == "a" + "\u0301" * 3
    assert visible("a" + "\u0301" * 5) == "a" + "\u0301" * 3 + "⟦U+0301⟧⟦U+0301⟧"


def test_a31_plain_texts_are_left_alone():
    """Other alphabets, line breaks and emoji are read as they were written."""
    text = "Größe: 5 µm\n\tمرحبا שלום 漢字 🙂 é"

    assert visible(text) == text


@given(st.text(max_size=200))
def test_a31_nothing_is_lost_and_nothing_runs(text):
    """The parts give back the text, and no character of it can end the element that it stands in."""
    back = "".join(chr(int(part.removeprefix("U+"), 16)) if hidden else part for part, hidden in segments(text))
    html = said(text)

    assert back == text
    assert re.sub(r'<mark class="hidden" title="[^"<>]*">U\+[0-9A-F]{4,6}</mark>', "", html).count("<") == 0


def test_a31_a_long_text_is_folded_and_never_cut():
    """The end of it is on the page, and the summary tells how much is folded."""
    html = quoted("x" * FOLD + "END OF IT", "answer")

    assert "9 more characters of 4,009 are folded here" in html
    assert "END OF IT" in html


def test_a31_an_empty_answer_says_so():
    """A block that shows nothing could be anything."""
    assert "answer: empty" in quoted("", "answer")
