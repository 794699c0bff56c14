"""What is cut off, what adds to an answer, and how both become one text."""

from __future__ import annotations

import pytest

from interlock.domain.policy.continuation import adds, is_cut_off, joined

GREETING = "Hello! How can I help you today?"
TOWER = "The Eiffel Tower is 330 metres tall and stands in Paris."

FINISHED = [
    "Yes.", "Yes", "No", "Paris", "4.", "42 km", "b)", "Option A", "The grade is A", "https://example.com/a/", "return x;", "I use C++",
    GREETING, TOWER, "Der Turm ist 330 Meter hoch.", "La tour mesure 330 mètres.", "塔の高さは330メートルです。", "1. Cook.\n2. Eat.",
    "- bread\n- milk", "| a | b |\n|---|---|\n| 1 | 2 |", "```python\nprint(1)\n```", '{"a": [1, 2]}', '[1] A 12" pipe fits.',
    "Dear Bob,\nall is well.\nBest regards,\nAnna", "The author is Dr. Smith", "Use a tool, e.g. grep", 'He said "stop."', "Done! 🎉", "",
]  # fmt: skip
CUT = [
    "The tower was built in", "The sources say that revenue grew and", "Der Turm steht auf dem", "La tour a été construite par",
    "It is 330 metres tall. It was completed", "First, open the file,", "The steps are:", "1. Cook.\n2.", "- bread\n- milk\n-",
    "```python\nfor x in y:", '{"a": [1, 2', '{"name": "Par', "The price (without",
]  # fmt: skip


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize("text", FINISHED)
def test_a_short_answer_is_a_finished_one(text):
    """Words, lists, tables, code, JSON, signatures: nothing of it waits for more."""
    assert not is_cut_off(text, "stop")


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize("text", CUT)
def test_what_ends_within_something_is_cut_off(text):
    """A sentence, a list, a code block, a JSON value."""
    assert is_cut_off(text, "stop")


@pytest.mark.req("ATT-10")
def test_the_provider_tells_that_a_limit_ended_the_answer():
    """finish_reason length is a fact, whatever the text looks like; an empty text has nothing to go on from."""
    assert is_cut_off(TOWER, "length")
    assert not is_cut_off("", "length")
    assert not is_cut_off(TOWER, "content_filter")


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize(
    ("before", "more"),
    [
        ("Yes.", "Yes."), (TOWER, GREETING), (TOWER, TOWER), (TOWER, f"{TOWER} {TOWER}"), (TOWER, ""), (TOWER, "..."),
        (TOWER, "The Eiffel Tower is 330 metres tall and it stands in Paris."), (TOWER, "Is there anything else? Let me know if so."),
        (TOWER, "It shines. It shines. It shines. It shines."), (TOWER, "Hola. ¿En qué puedo ayudarte?"),
        (TOWER, f"{TOWER} {TOWER} It shines."),
    ],
)  # fmt: skip
def test_what_was_said_already_adds_nothing(before, more):
    """A copy, a near copy, a loop, a greeting, an offer of help."""
    assert not adds(before, more)


@pytest.mark.req("ATT-10")
@pytest.mark.parametrize(
    "more", ["It was completed in 1889.", "Hi-res pictures were taken in 2022.", "1889 by the company of Gustave Eiffel.", f"{TOWER} It was painted in 2022 by fifty painters from Lyon, who came for it by train."]
)  # fmt: skip
def test_what_is_new_adds(more):
    """Half of the words at least."""
    assert adds(TOWER, more)


@pytest.mark.parametrize(
    ("before", "more", "text"),
    [
        ("It was built in", "1889.", "It was built in 1889."),
        ("It was built in ", "1889.", "It was built in 1889."),
        ("It was built in", " 1889.", "It was built in 1889."),
        ("The tower was built in", "was built in 1889.", "The tower was built in 1889."),
        ("It is tall.", "It is old.", "It is tall.\n\nIt is old."),
        ("```py\nfor x in y:", "    print(x)\n```", "```py\nfor x in y:    print(x)\n```"),
        ("```py\na = 1", "b = 2\n```", "```py\na = 1\nb = 2\n```"),
    ],
)
def test_a_cut_sentence_goes_on_in_its_line(before, more, text):
    """A finished one is followed by a paragraph, and what is repeated of the end stands once."""
    assert joined(before, more) == text
