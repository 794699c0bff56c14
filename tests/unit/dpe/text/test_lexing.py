"""Texts of ASCII are cut into tokens as all others are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.dpe.text import lexing
from interlock.dpe.text.folding import Folded
from interlock.dpe.text.patterns import pattern

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


# What the expression means, as RE2 has it.
_MEANT = pattern(r"(\d+(?:(?:[.,']|\{,\})\d+)*)|([\p{L}\p{M}]+(?:'[\p{L}\p{M}]+)*)|([^\s\p{L}\p{M}\d])")
KINDS = {1: lexing.NUMBER, 2: lexing.WORD, 3: lexing.SYMBOL}
EVERY = st.text(
    st.one_of(
        st.sampled_from("aé́ñΩжשع中ก\U000e0100'b09²½٣.,{} \u00a0\u200d\u2019—€_"),
        st.characters(exclude_categories=("Cs", "Cn")),
    ),
    max_size=30,
)


@given(EVERY)
def test_letters_and_marks_of_every_script_are_words(text):
    """Python's expressions know no classes of Unicode: the ranges that are written out for them are RE2's."""
    if text.isascii():
        text += "é"

    found = [(each.kind, each.start, each.end) for each in lexed(text) if "@" not in text]
    meant = [(KINDS[next(n for n in KINDS if m.group(n))], *m.span()) for m in _MEANT.finditer(text) if "@" not in text]

    assert found == meant


def test_a_capital_is_the_first_letter_of_a_word():
    """Of any script; a number or a mark has none."""
    assert [each.capital for each in lexed("Älg élan Ωmega 3rd — A")] == [True, False, True, False, False, False, True]
