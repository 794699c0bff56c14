"""Citation marks: every common form is cut and kept, and what only looks like one stays (ATT-7)."""

from __future__ import annotations

import pytest

from interlock.dpe.request import Output
from interlock.dpe.text.marks import marks, unmarked
from interlock.dpe.text.text import plain
from interlock.dpe.text.views import viewed


def cut(text: str) -> str:
    return unmarked(plain(text), marks(text).spans).chars


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    ("text", "read", "labels"),
    [
        ("Built in 1889 [1].", "Built in 1889.", [("1",)]),
        ("They are deleted afterwards [KB-101].", "They are deleted afterwards.", [("KB-101",)]),
        ("They are deleted. [KB-101, DOC-2024-17]", "They are deleted.", [("KB-101", "DOC-2024-17")]),
        ("Built in 1889.[1][2]", "Built in 1889.", [("1",), ("2",)]),
        ("Built in 1889 [1, 3].", "Built in 1889.", [("1", "3")]),
        ("Built in 1889 [2-4].", "Built in 1889.", [("2", "3", "4")]),
        ("Revenue rose 15%[1], costs fell.", "Revenue rose 15%, costs fell.", [("1",)]),
        ("It is tall [^2].", "It is tall.", [("2",)]),
        ("It is tall [^note].", "It is tall.", [("note",)]),
        ("It is tall (1).", "It is tall.", [("1",)]),
        ("It is tall (1, 2).", "It is tall.", [("1", "2")]),
        ("It is tall.¹ It is wide.²³", "It is tall. It is wide.", [("1",), ("23",)]),
        ("The tower² is tall.", "The tower is tall.", [("2",)]),
        ("It is tall【4†source】.", "It is tall.", [("4",)]),
        ("It is tall【4:2†report.pdf】.", "It is tall.", [("4",)]),
        ("It is tall (source 1).", "It is tall.", [("1",)]),
        ("It is tall (see sources 1 , 2).", "It is tall.", [("1", "2")]),
        ("It is tall (Source: WHO).", "It is tall.", [("WHO",)]),
        ("It is tall [Doc 3].", "It is tall.", [("3",)]),
        ("It is tall [Quelle: Bericht].", "It is tall.", [("Bericht",)]),
        ("It is tall<sup>1</sup>.", "It is tall.", [("1",)]),
        ("It is tall<sup>[2]</sup>.", "It is tall.", [("2",)]),
        ("It is tall [1](https://a.test/b).", "It is tall.", [("1",)]),
        ("It is tall [[1]](https://a.test/b).", "It is tall.", [("1",)]),
        ("See [the report](https://a.test/b) of May.", "See the report of May.", [()]),
        ("It is tall (https://a.test/b).", "It is tall.", [()]),
        ("According to [2], it is tall.", "According to the source, it is tall.", [("2",)]),
        ("It is tall. [Doc 3] says so.", "It is tall. The source says so.", [("3",)]),
    ],
)
def test_a_mark_is_cut_and_kept(text, read, labels):
    """The sentence is read without it, and what it points to is known."""
    assert cut(text) == read
    assert [mark.labels for mark in marks(text).found] == labels


@pytest.mark.req("ATT-7")
@pytest.mark.parametrize(
    "text",
    [
        "(1) Open the valve, (2) start the pump.",
        "1. Open the valve.\n2. Start the pump.",
        "The value of f(1) is two.",
        "It opened in spring (2024).",
        "Notice is due within thirty (30) days.",
        "There are two (2).",
        "The prices are in Table (2).",
        "It measures 5 m² or 10² steps, and E = mc².",
        "The field is 40 acres² wide.",
        "10<sup>6</sup> and m<sup>2</sup>",
        "The number lies in the interval [1, 5].",
        "Set a[1] to zero.",
        "The first index is [0].",
        "He wrote [sic] and [2024].",
        "Anna Berg (Oslo) disagrees.",
        "As shown before (Smith, 2020), it holds.",
        "`x[1]` is an element.",
        "```\nx[1] = y[2]\n```",
        '{"refs": "[1]"}',
        "[1, 2, 3]",
    ],
)
def test_what_only_looks_like_a_mark_stays(text):
    """List numbers, years, exponents, indexes, intervals, asides, code."""
    assert cut(text) == text
    assert marks(text).found == ()


@pytest.mark.req("ATT-7")
def test_notes_of_the_answer_itself_are_its_own():
    """A note keeps its text; its label is no mark."""
    found = marks("It is tall [^1].\n\n[^1]: Measured without the antenna.")

    assert found.defined == {"1"}
    assert cut("[^1]: Measured without the antenna.") == " Measured without the antenna."


@pytest.mark.req("ATT-7")
def test_what_is_left_keeps_its_place():
    """Offsets refer to the text as the model wrote it."""
    text = "It is tall [1]. It is wide."
    left = unmarked(plain(text), marks(text).spans)

    assert left.span(left.chars.index("It is wide"), len(left.chars)) == (16, len(text))


@pytest.mark.req("ATT-7")
def test_arguments_of_a_tool_have_no_marks():
    """What looks like a mark in them is a value."""
    told = '{"body": "The meeting is on Friday, see the first [1]. Bring the papers."}'
    [view] = viewed([Output(0, told, kind="tool_call")])

    assert "[1]" in view.text.chars
    assert view.marks.found == ()


@pytest.mark.req("ATT-7")
def test_an_answer_in_a_call_has_its_marks():
    """What a framework takes by a call is an answer like any other; each mark keeps its place in the arguments."""
    sent = '{"answer": "It runs for \\"two\\" years (clause 2)."}'
    (written, *_) = viewed([Output(0, sent, "answer", "final_answer")])

    assert written.text.chars == 'It runs for "two" years.'
    assert [sent[mark.start : mark.end] for mark in written.marks.found] == ["clause 2"]
