"""Blocks of an output: nothing escapes by where it stands (SPEC-005 §3)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.dpe.text.layout import BlockKind, layout


def texts(raw: str) -> list[str]:
    return [block.text.chars for block in layout(raw).blocks]


@pytest.mark.req("DPE-1")
def test_blank_lines_end_a_block():
    """A paragraph without a full stop does not run into the next one."""
    assert texts("One claim\n\nAnother claim") == ["One claim", "Another claim"]


@pytest.mark.req("DPE-1")
def test_a_wrapped_line_is_joined():
    """A line break inside a sentence is no end."""
    wrapped = "The tower in Paris was completed in the year 1889 by the company\nof Gustave Eiffel."

    assert texts(wrapped) == [wrapped.replace("\n", " ")]


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ("# Heading", ["Heading"]),
        ("- first\n- second", ["first", "second"]),
        ("1. first\n2) second", ["first", "second"]),
        ("> quoted", ["quoted"]),
        ("**bold** and `code` and *it*", ["bold and code and it"]),
        ("[site](https://a.example/b)", ["site (https://a.example/b)"]),
        ("<b>loud</b> text", ["loud text"]),
        ("a snake_case_name and 5*3", ["a snake_case_name and 5*3"]),
        ("---\n***\n", []),
    ],
)
def test_markup_is_taken_off(raw, found):
    """The models read what a reader sees."""
    assert texts(raw) == found


@pytest.mark.req("DPE-1")
def test_code_is_text():
    """What stands in a fence is read, closed or not."""
    assert texts("```python\nprint('Paris has 9 million')\n```\nEnd.") == ["print('Paris has 9 million')", "End."]
    assert texts("```\nnever closed") == ["never closed"]


@pytest.mark.req("DPE-1")
def test_rows_of_a_table_carry_their_headings():
    """A cell alone says nothing; with its heading it is a claim."""
    table = "| Country | Population |\n|---|---|\n| France | 68 million |"

    assert texts(table) == ["Country; Population", "France; Population: 68 million"]


@pytest.mark.req("DPE-1")
def test_an_item_knows_the_line_it_stands_under():
    """What a list says depends on the line with the colon above it."""
    blocks = layout("Safe drugs:\n- Drug B\n\nAnother text.\n- Drug C").blocks

    assert [block.lead for block in blocks] == ["", "Safe drugs:", "", ""]


@pytest.mark.req("DPE-1")
def test_json_becomes_lines_of_key_and_value():
    """A tool call's arguments are read as text."""
    raw = '{"orderId": 123, "ship_to": {"city": "Paris"}, "tags": ["a", "b"], "rush": true, "none": null}'

    assert texts(raw) == ["order Id: 123", "ship to city: Paris", "tags: a", "tags: b", "rush: true", "none: null"]


@pytest.mark.req("DPE-1")
def test_a_key_given_twice_hides_nothing():
    """A parser that keeps the last value would never see the first."""
    assert texts('{"dose": "900 mg", "dose": "90 mg"}') == ["dose: 900 mg", "dose: 90 mg"]


@pytest.mark.req("DPE-1")
def test_text_in_keys_and_empty_values_is_read():
    """What stands in a key is said as well, even over nothing."""
    assert texts('{"the drug is safe": {}, "a": []}') == ["the drug is safe: ", "a: "]


@pytest.mark.req("DPE-1")
def test_prose_in_json_is_prose_with_its_places():
    """Escapes are resolved, and a span still points at the document."""
    raw = json.dumps({"note": "First line is here.\nSecond “line” says été."})
    block = layout(raw).blocks[-1]
    start, end = block.text.origin

    assert block.text.chars == "Second “line” says été."
    assert json.loads(f'"{raw[start:end]}"') == "Second “line” says été."


@pytest.mark.parametrize("raw", ['{"a": ', "[1, 2", "[" * 5000, '{"a": 1} and more', "{not json}"])
def test_what_is_not_json_is_prose(raw):
    """Broken or hostile JSON is read as it stands."""
    found = "".join(texts(raw))

    assert all(character in found for character in raw if character.isalnum())


@given(st.text(alphabet="ab1 .,:;!?|-*_#>`~[](){}\"'\n\t", max_size=80))
@settings(max_examples=300, deadline=None)
def test_no_letter_or_digit_is_lost(raw):
    """Every letter and digit outside markup stands in some block.

    List numbers and letters, and the language behind a fence, are markup.
    """
    prose = raw.replace("`", " ").replace("~", " ").replace("<", " ")
    lines = [line.strip() for line in prose.splitlines()]
    if any(line[:1] in "(ab1>#-*+" for line in lines if line):
        return
    found = "".join(texts(prose))
    assert sum(c.isalnum() for c in found) >= sum(c.isalnum() for c in prose)


def test_kinds():
    """Titles, prose, code and data are told apart."""
    kinds = [block.kind for block in layout("# T\nText here.\n```\nx = 1\n```\n| a | b |\n|--|--|\n| 1 | 2 |").blocks]

    assert kinds == [BlockKind.TITLE, BlockKind.PROSE, BlockKind.PROGRAM, BlockKind.TITLE, BlockKind.DATA]


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ("```The tower is 390 m tall\nx = 1\n``` and it is red", ["The tower is 390 m tall", "x = 1", "and it is red"]),
        ("```python\nx = 1\n```", ["x = 1"]),
        ('See <a title="The tower is 390 m tall" href=x>this</a>.', ["See The tower is 390 m tallthis."]),
        ("<x The tower is 390 m tall>", ["<x The tower is 390 m tall>"]),
        ('<br class="big"/>One <b>bold</b> word', ["One bold word"]),
    ],
)
def test_no_claim_hides_in_markup(raw, found):
    """What stands on a fence's line, in an attribute or in a tag that is none is read (reliability.md A-25)."""
    assert texts(raw) == found


@pytest.mark.req("DPE-1")
def test_an_item_stands_under_the_last_sentence_of_its_line():
    """A greeting before the colon is no part of what the item says."""
    assert [block.lead for block in layout("Sure! The drugs are:\n- Drug B").blocks] == ["", "The drugs are:"]
