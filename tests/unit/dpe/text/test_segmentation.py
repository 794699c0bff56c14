"""Sentences of an answer, from the real parser (SPEC-005 §3)."""

from __future__ import annotations

import pytest

from interlock.dpe.text.layout import layout
from interlock.dpe.text.segmentation import PIECE_CHARS, RUN_CHARS, fitted, pieces, sentences
from interlock.dpe.text.text import plain
from tests.support.dpe import pipeline


def split(raw: str) -> list[str]:
    found = sentences(layout(raw).blocks, pipeline().language.nlp, choice_index=0, first_index=0)
    return [parsed.sentence.text for parsed in found]


def words(texts) -> list[int]:
    return [len(text.split()) for text in texts]


@pytest.mark.models
@pytest.mark.req("DPE-1")
@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ("One is here. Two is there!", ["One is here.", "Two is there!"]),
        ("Dr. Smith went home. He slept.", ["Dr. Smith went home.", "He slept."]),
        ("No full stop\n\nNext paragraph", ["No full stop", "Next paragraph"]),
        ("東京は首都です。人口は多い。", ["東京は首都です。", "人口は多い。"]),
        ("Zahlbar bis zum 18. Mai ohne Abzug. Danach nicht.", ["Zahlbar bis zum 18. Mai ohne Abzug.", "Danach nicht."]),
        ("Fakturaen skal betales den 3. juni i banken.", ["Fakturaen skal betales den 3. juni i banken."]),
        ("Platí to od 1. července do konce roku.", ["Platí to od 1. července do konce roku."]),
        ("Das gilt z. B. Hunden in Nr. 7 des Vertrags.", ["Das gilt z. B. Hunden in Nr. 7 des Vertrags."]),
        ("SUGAR 450 g", ["SUGAR 450 g"]),
        ("The bill is 12. Many pay it. You pay 5.", ["The bill is 12.", "Many pay it.", "You pay 5."]),
    ],
)
def test_sentences_end_where_readers_end_them(raw, found):
    """Blank lines first, then the parser, and full stops that it does not know."""
    assert split(raw) == found


@pytest.mark.models
@pytest.mark.req("DPE-1")
def test_sentences_point_at_the_text_as_written():
    """Offsets survive markup and hidden characters."""
    raw = "# Title\n\n- The **Eif\u200bfel** Tower is tall. It stands in Paris."
    found = list(sentences(layout(raw).blocks, pipeline().language.nlp, choice_index=2, first_index=5))

    assert [raw[p.sentence.start : p.sentence.end] for p in found] == [
        "Title",
        "The **Eif\u200bfel** Tower is tall.",
        "It stands in Paris.",
    ]
    assert [p.sentence.index for p in found] == [5, 6, 7]


@pytest.mark.models
@pytest.mark.req("DPE-1")
@pytest.mark.parametrize("raw", ["word " * 4000, "a" * (3 * PIECE_CHARS + 1), "a1-" * PIECE_CHARS])
def test_an_endless_line_loses_nothing(raw):
    """Without one full stop, every character is in some sentence, and none is longer than a piece."""
    found = split(raw)

    assert sum(len(s.replace(" ", "")) for s in found) == len(raw.replace(" ", ""))
    assert max(map(len, found)) <= PIECE_CHARS


@pytest.mark.req("DPE-1")
def test_what_is_too_long_comes_in_parts():
    """NumberedParts are cut between words, hold at most the limit, and together hold everything."""
    text = plain(" ".join(f"w{n}" for n in range(50)))
    parts = fitted(text, 12, words)

    assert " ".join(part.chars for part in parts) == text.chars
    assert max(words(part.chars for part in parts)) <= 12


@pytest.mark.req("DPE-1")
def test_a_word_that_is_too_long_is_cut_inside():
    """A word longer than the limit cannot push anything out."""
    parts = fitted(plain("x" * 300), 60, lambda texts: [len(text) for text in texts])

    assert "".join(part.chars for part in parts) == "x" * 300
    assert max(len(part.chars) for part in parts) <= 60


PARAGRAPH = (
    "The lease began on 1 May 2019 and runs for 12 years. Mr. Okafor signed it for the tenant, as agreed with Messrs. Hale and Sons. "
    '"It is fair," he said. The rent is 1,450 a month (approx. Seven hundred for each room). It is due on the first day. Is it high? '
    "The tenant may keep two cats, etc. Dogs are not allowed! A deposit of two months is held until 2031. "
    "Der Vertrag gilt bis zum Ende des Jahres und kostet mind. Zwei Raten. Keys: three."
)


def run(raw: str) -> list[str]:
    return [piece.text.chars for piece in pieces(layout(raw).blocks)]


@pytest.mark.req("DPE-1")
def test_a_paragraph_that_grows_keeps_its_beginning():
    """The models get runs of sentences: with each word more, all runs but the last stay what they were."""
    before = []
    for count in range(1, len(PARAGRAPH.split(" ")) + 1):
        now = run(" ".join(PARAGRAPH.split(" ")[:count]))
        assert now[: len(before) - 1] == before[:-1]
        before = now

    assert len(before) > 3
    assert all(len(each) >= RUN_CHARS for each in before[:-1])
    assert " ".join(before) == PARAGRAPH


@pytest.mark.req("DPE-1")
@pytest.mark.parametrize("short", ["Messrs. Hale", "approx. Seven", "etc. Dogs", "Mr. Okafor", "mind. Zwei"])
def test_no_run_ends_behind_what_may_go_on(short):
    """A full stop behind an abbreviation, an initial or a short number ends no run."""
    assert any(short in each for each in run(PARAGRAPH))


@pytest.mark.req("DPE-1")
def test_a_line_of_a_table_or_of_code_is_not_cut():
    """Runs are of prose: what is one line stays one text."""
    row = "| Paris is the capital of France and has a river. It is large. | Lyon is a city in the south of France. It is old. |"

    assert not any(each.startswith("It is") for each in run(f"| a | b |\n| - | - |\n{row}"))
