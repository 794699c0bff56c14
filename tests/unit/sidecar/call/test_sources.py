"""Given text inside a message, apart from the words of the one who writes."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.sidecar.call import sources

TALL, BUILT = "The tower is 330 m tall.", "It opened in 1889."
LLAMA_INDEX = (
    "Context information is below.\n---------------------\n{0}\n{1}\n---------------------\n"
    "Given the context information and not prior knowledge, answer the query.\nQuery: How tall is it?\nAnswer: "
)
LANGCHAIN = (
    "You are an assistant for question-answering tasks. Use the following pieces of retrieved context to answer the question. "
    "If you don't know the answer, just say that you don't know.\nQuestion: How tall is it? \nContext: {0}\n\n{1} \nAnswer:"
)
STUFFED = (
    "Use the following pieces of context to answer the question at the end. If you don't know the answer, say so.\n\n"
    "{0}\n\n{1}\n\nQuestion: How tall is it?\nHelpful Answer:"
)
GIVEN = {
    "a section and a question": "Context: {0} {1}\n\nHow tall is it?",
    "a section that ends in the question": "Context: {0} {1} How tall is it?",
    "LlamaIndex": LLAMA_INDEX,
    "LangChain": LANGCHAIN,
    "LangChain, stuffed": STUFFED,
    "elements": '<doc id="1">{0}</doc><doc id="2">{1}</doc> How tall is it?',
    "a list of elements": "<documents><document>{0}</document>\n<document>{1}</document></documents>\nHow tall is it?",
    "an element and a question in one": "<context>\n{0} {1}\n</context>\n<question>How tall is it?</question>",
    "a fenced block": "```\n{0}\n{1}\n```\nHow tall is it?",
    "a fenced block without an end": "How tall is it?\n~~~text\n{0}\n{1}",
    "triple quotes": 'How tall is it?\n"""{0} {1}"""',
    "quoted lines": "> {0}\n> {1}\n\nHow tall is it?",
    "a long quotation": "She wrote “{0} {1}” on the card. How tall is it?",
    "numbered passages": "[1] {0}\n[2] {1}\n\nHow tall is it?",
    "other numbers": "【1】 {0}\n【2】 {1}\n\nHow tall is it?",
    "passages by name": "Documents:\nDocument 1:\n{0}\n\nDocument 2:\n{1}\n\nQuestion: How tall is it?",
    "headings": "## Context\n{0}\n{1}\n\n## Question\nHow tall is it?",
    "JSON": 'How tall is it? [{{"text": "{0}"}}, {{"text": "{1}"}}]',
    "a table": "| what | said |\n| --- | --- |\n| height | {0} |\n| year | {1} |\n\nHow tall is it?",
    "CSV": "what,said\nheight,{0}\nyear,{1}\n\nHow tall is it?",
    "an article": "How tall is it? Here is the article:\n\n{0}\n\n{1}",
}


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize("template", GIVEN.values(), ids=GIVEN)
def test_given_text_is_a_source_and_the_question_is_not(template):
    """Every common form of a prompt with its documents."""
    csv = template.startswith("what,said")
    first, second = (TALL.rstrip("."), BUILT.rstrip(".")) if csv else (TALL, BUILT)
    parts = sources.read(template.format(first, second))
    given_text = "\n".join(source.text for source in parts.sources)

    assert first in given_text
    assert second in given_text
    assert "How tall is it?" in parts.own
    assert "How tall" not in given_text
    assert "330" not in parts.own
    assert "1889" not in parts.own


PAGES = {
    "a tag without an end": "<br> {0} {1}",
    "an empty element": "<x></x> {0} {1}",
    "a page of the web": "<html><head><title>t</title></head>\n{0} {1}</html>",
    "a note before the text": "<note><to>Ann</to></note>\n{0} {1}",
    "what looks like an order": "<x></x><instructions>{0} {1}</instructions>",
    "letters that grow in lower case": "İİİİİİİİİİİİİİİİİİİİİİİİİİİİİİİİİİİİ {0} {1}",
}
AROUND = [
    "<document>{}</document>",
    "<doc id='1'>{}</doc>",
    "<search_result-2>{}</search_result-2>",
    "<documents><document>{}</document></documents>",
]


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_document_is_given_text_whatever_it_begins_with(page, around):
    """A page may begin with a tag of its own; its text is a source all the same, and so is that of the one behind it."""
    parts = sources.read(
        f"{around.format(page.format(TALL, BUILT))}\n{around.format('Snow is white.')}\nHow tall is it?"
    )
    given_text = "\n".join(source.text for source in parts.sources)

    assert [one for one in (TALL, BUILT, "Snow is white.") if one not in given_text] == []
    assert parts.own.strip() == "How tall is it?"


def test_text_beside_the_elements_of_a_context_is_given_too():
    """A list of elements is one where nothing stands beside them; what a writer puts around a question stays the writer's."""
    beside = sources.read(f"<context><page>{TALL}</page> {BUILT}</context>\nHow tall is it?")
    asked = sources.read(f"<input><doc>{TALL}</doc> How tall is it?</input>")

    assert BUILT in "\n".join(source.text for source in beside.sources)
    assert beside.own == asked.own == "How tall is it?"


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    "text",
    [
        "What is the weather in Paris?",
        "Book a table for 4: tomorrow at 7pm at Luigi's.",
        "Please send an email to bob@acme.com with subject: Hello. Tell him that the report is late.",
        "I have two questions: what is X? and what is Y?",
        "This is my report: can you check it?",
        "Translate 'good morning' to French",
        "Is x < 3 and y > 5?",
        "Buy milk, eggs, and bread",
        "Ping me at 5 - or 6.",
        "We sold 340 units in March and 410 in April.",
    ],
)
def test_own_words_are_no_source(text):
    """What a person asks or tells without any sign of given text stays the person's word."""
    assert sources.read(text) == sources.Parts((), text)


@pytest.mark.req("ATT-5")
def test_data_stays_whole():
    """A row without its header and a member without its object mean nothing."""
    found = sources.read('Total?\n```\nname,paid\nAnn,3\n```\nand {"id": 5, "total": [1, 2]}')

    assert [(source.text, source.whole) for source in found.sources] == [
        ("name,paid\nAnn,3", True), ('{"id": 5, "total": [1, 2]}', True),
    ]  # fmt: skip
    assert sources.data('  {"id": 5}\n')
    assert not sources.data('{"id": 5} and more')


@given(
    st.lists(
        st.sampled_from([
            "Context:", "Question:", "word.", "<doc>", "</doc>", "```", "\n", "\n\n", '"""', "> ", "[1] ", "{", "}", '"a"', ":", "|", "?",
            "a,b", "----", "Summarize this:", "the following text:", "fact.",
        ]),
        max_size=30,
    )
)  # fmt: skip
def test_no_word_is_lost_or_read_twice(pieces):
    """Labels with their qualifying word, marks and rules may go; each word is in a source or among the own words, once."""
    pieces = [piece.replace("word", f"word{n}").replace("fact", f"fact{n}") for n, piece in enumerate(pieces)]
    text = " ".join(pieces)
    parts = sources.read(text)
    found = "\n".join([*(source.text for source in parts.sources), parts.own])

    words = re.findall(r"(?:word|fact)\d+", text)
    assert sorted(re.findall(r"(?:word|fact)\d+", found)) == sorted(words)


@pytest.fixture
def known(monkeypatch):
    """What is known of messages: nothing yet."""
    known = {}
    monkeypatch.setattr(sources, "_KNOWN", known)
    return known


@pytest.mark.parametrize("text", [form.format(TALL, BUILT) for form in GIVEN.values()])
def test_a_message_that_comes_again_is_not_searched_again(text, known, monkeypatch):
    """Its parts are the same; where they stand is kept, and none of its words."""
    first = sources.read(text)
    monkeypatch.setattr(sources, "_find", lambda *_: pytest.fail("it was searched again"))

    assert sources.read(text) == first
    assert all(isinstance(place, int) for spans in known.values() for span in spans for place in span)


def test_what_is_known_of_messages_is_bounded(known, monkeypatch):
    """The message read longest ago is searched again, and so is one with very many parts."""
    monkeypatch.setattr(sources, "MOST_KNOWN", 2)
    for text in ("one?", "two?", "one?", "three?"):
        sources.read(text)
    kept = set(known)
    sources.read("\n\n".join(["> quoted words", "own words"] * (sources.MOST_SPANS + 1)))

    assert set(known) == kept
    assert {hashlib.sha256(text).digest() for text in (b"one?", b"three?")} == kept
