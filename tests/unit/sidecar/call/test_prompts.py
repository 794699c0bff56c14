"""Sources in the prompts of frameworks, products and people, as the messages of a call carry them (ATT-5)."""

from __future__ import annotations

import pytest

from interlock.sidecar.call import roles, sources
from tests.support.sidecar import prompts
from tests.support.sidecar.prompts import Prompt

pytestmark = pytest.mark.req("ATT-5")
TRANSLATED = {**prompts.LANGUAGES, **prompts.OTHERS}


def flat(texts) -> str:
    return " ".join(" ".join(texts).split())


def missing(prompt: Prompt) -> list[str]:
    """Return what is not read as a person would read it."""
    found = roles.read(prompt.messages, most_facts=512)
    facts, own = (
        flat(fact.content for fact in found.facts),
        flat(said.text for said in found.said if said.kind == "user"),
    )
    wrong = [f"missed: {document}" for document in prompt.documents if document not in facts]
    wrong += [f"own: {document}" for document in prompt.documents if document in own or document in found.question]
    wrong += [f"evidence: {text}" for text in prompt.never if flat([text]) in facts]
    if prompt.question in prompt.written and prompt.question:
        wrong += [] if prompt.question in own else ["the question is not the user's"]
        wrong += ["the question is a source"] if prompt.question in facts else []
    return wrong


@pytest.mark.parametrize("template", prompts.FRAMEWORKS.values(), ids=prompts.FRAMEWORKS)
def test_the_documents_of_a_framework_are_sources(template):
    """Whatever it puts around them; the question, earlier answers and examples are none."""
    assert missing(prompts.filled(template)) == []


@pytest.mark.parametrize(("template", "question", "documents"), TRANSLATED.values(), ids=TRANSLATED)
def test_labels_are_known_in_any_language(template, question, documents):
    """Labels, leads, headings and marks in the words of their language, or without words."""
    assert missing(prompts.filled(template, documents=documents, question=question)) == []


@pytest.mark.parametrize("template", prompts.NOT_READ.values(), ids=prompts.NOT_READ)
def test_what_is_not_read_is_known(template):
    """A form that is read one day leaves this list."""
    assert missing(prompts.filled(template)) != []


@pytest.mark.parametrize("text", prompts.OWN_WORDS)
def test_what_people_write_is_no_source(text):
    """An order, a list of wishes or a sentence with a colon in it is the user's word in every language."""
    assert sources.read(text).sources == ()


EARLIER = "The tower is 390 m tall."
TOLD_AGAIN = {
    "refine": "We have provided an existing answer: {0}\nWe may refine it with some more context below.\n------------\n{1}\n------------\n"
    "Given the new context, refine it.",
    "history": "Chat history:\nHuman: Hello!\nAI: {0}\n\nContext: {1}\n\nQuestion: How tall?",
    "history behind the context": "Context:\n{1}\n\nChat history:\nAI: {0}\n\nQuestion: How tall?",
    "an element": "<chat_history>\nHuman: Hello!\nAssistant: {0}\n</chat_history>\n<context>{1}</context>\nHow tall?",
    "JSON": '[{{"role": "user", "content": "Hello!"}}, {{"role": "assistant", "content": "{0}"}}]\n\nContext: {1}\n\nHow tall?',
}


@pytest.mark.parametrize("template", TOLD_AGAIN.values(), ids=TOLD_AGAIN)
def test_an_earlier_answer_in_the_user_s_role_is_no_evidence(template):
    """Neither a source nor a word of the user: an agent does not rest on itself."""
    found = roles.read([{"role": "user", "content": template.format(EARLIER, prompts.BUILT)}], most_facts=100)

    assert [fact.content for fact in found.facts] == [prompts.BUILT]
    assert [said.kind for said in found.said if EARLIER in said.text] == ["answered"]


def test_an_earlier_answer_in_a_system_message_is_no_evidence():
    """A conversation that is told there states nothing; a lone label is a text like any other."""
    dialogue = f"The shop is in Leeds.\nHuman: Hello!\nAI: {EARLIER}\nHuman: Thanks."
    found = roles.read([{"role": "system", "content": dialogue}], most_facts=100)
    alone = roles.read([{"role": "system", "content": f"The shop is in Leeds.\nAI: {EARLIER}"}], most_facts=100)

    assert not any(EARLIER in fact.content for fact in found.facts)
    assert any("Leeds" in fact.content for fact in found.facts)
    assert any(EARLIER in fact.content for fact in alone.facts)


def test_an_example_bars_nothing_inside_a_document():
    """A guide may have examples of its own."""
    guide = "# Guide\n\n## Example\n> The tower is 330 m tall.\n\n## End\nIt opened in 1889."
    for text in (f"<doc>\n{guide}\n</doc>\nHow tall?", f"Context:\n{guide}\n\nQuestion: How tall?"):
        given_text = "\n".join(source.text for source in sources.read(text).sources)

        assert prompts.TALL in given_text
        assert "1889" in given_text


def test_a_sentence_about_an_element_opens_none():
    """Instructions name the element that they mean; given text begins where it opens."""
    text = f"Cite when the <source> tag has an id.\n<source id='1'>{prompts.TALL}</source>\nHow tall?"

    assert [source.text for source in sources.read(text).sources] == [prompts.TALL]
