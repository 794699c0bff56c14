"""Texts of ASCII are cut into tokens as all others are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.dpe.text import lexing
from interlock.dpe.text.folding import Folded

ASCII = st.text(
    st.one_of(st.sampled_from("aZ'b09.,{}\t\n\v\r\f -$%_@/()"), st.characters(max_codepoint=127)), max_size=40
)


def lexed(text: str) -> list[lexing.Lexeme]:
    return lexing.lex(Folded(text, range(len(text) + 1)))


@given(ASCII)
def test_what_is_no_ascii_behind_a_text_changes_no_token_of_it(text):
    """The quick expression and the one for every script find the same tokens at the same places."""
    assert lexed(text) == lexed(f"{text}\n—")[: len(lexed(text))]
    assert len(lexed(f"{text}\n—")) == len(lexed(text)) + 1
