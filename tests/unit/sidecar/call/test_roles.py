"""The messages of a request in their roles."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.sidecar.call import roles

QUESTION = {"role": "user", "content": "And now?"}


def read(*messages: dict[str, Any], most: int = 512) -> roles.Roles:
    return roles.read(messages, most_facts=most)


def facts(found: roles.Roles) -> list[tuple[str, str]]:
    return [(fact.id, fact.content) for fact in found.facts]


def said(found: roles.Roles) -> list[tuple[str, str, str]]:
    return [(one.id, one.kind, one.text) for one in found.said]


@pytest.mark.req("ATT-5")
def test_a_user_gives_sources_and_words():
    """The retrieved text is a source, the rest is what the user said; both turns count."""
    found = read(
        {"role": "user", "content": "Context: Grass is green. Snow is white.\n\nQuestion: What is red?"},
        {"role": "assistant", "content": "Roses are."},
        QUESTION,
    )

    assert facts(found) == [("m0s0", "Grass is green."), ("m0s1", "Snow is white.")]
    assert said(found) == [
        ("m0u0", "user", "What is red?"), ("m1a0", "answered", "Roses are."), ("m2u0", "user", "And now?"),
    ]  # fmt: skip
    assert found.question == "And now?"


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("text", "is_source"),
    [
        ("You are a helpful assistant.", False),
        ("You are Ada, the travel assistant of Globetrotter Ltd.", False),
        ("Answer in one sentence.", False),
        ("Never invent facts.", False),
        ("If the user asks for a price, call the tool.", False),
        ("Only answer from the context.", False),
        ("The office closes early on Fridays.", True),
        ("Our support line is open from 9 to 5.", True),
        ("Never refund more than 500 euros.", True),
        ("Use the account of Acme for payments.", True),
        ("Today is 2026-06-03.", True),
    ],
)
def test_an_order_of_the_system_states_nothing(text, is_source):
    """With a figure or a name in it an order states something, too."""
    found = read({"role": "system", "content": text}, QUESTION)

    assert facts(found) == ([("m0s0", text)] if is_source else [])
    assert ("m0i0", "instruction", text) in said(found) or is_source


@pytest.mark.req("ATT-5")
def test_results_of_tools_are_sources_and_stay_whole():
    """Pretty-printed JSON is one fact; prose is cut into sentences; what the model called with is neither."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"city": "Rome"}'}}
    data = json.dumps({"city": "Oslo", "temperature": 3}, indent=2)
    found = read(
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": data},
        {"role": "tool", "tool_call_id": "c", "content": "It rains. It is cold."},
        {"role": "function", "name": "f", "content": "Wind: 5 m/s"},
    )  # fmt: skip

    assert facts(found) == [("m1s0", data), ("m2s0", "It rains."), ("m2s1", "It is cold."), ("m3s0", "Wind: 5 m/s")]
    assert said(found) == []


@pytest.mark.req("ATT-5")
def test_the_answer_before_a_tool_result_is_not_answered():
    """Only what a user replied to was seen by the user."""
    found = read(
        QUESTION, {"role": "assistant", "content": "I look."}, {"role": "tool", "content": "18", "tool_call_id": "c"}
    )

    assert [kind for _, kind, _ in said(found)] == ["user"]


@pytest.mark.req("ATT-5")
def test_a_message_of_nothing_but_a_source_is_its_own_question():
    """There is nothing else to hold an answer against."""
    text = "<doc>Grass is green.</doc>"

    assert read({"role": "user", "content": text}).question == text


def test_no_more_is_searched_than_the_bound_allows():
    """The newest messages come first; the words of older ones are still the user's."""
    long = {"role": "user", "content": "Context: Grass is green.\n\n" + "x " * (roles.MOST_READ // 2)}
    found = read({"role": "user", "content": "Context: Snow is white.\n\nWhat?"}, long)

    assert facts(found) == []
    assert [name for name, _, _ in said(found)][:1] == ["m0u0"]


def test_declared_functions_of_both_forms_are_read():
    """Tools, and functions of older clients."""
    body = {
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
        ],
        "functions": [{"name": "g"}],
    }

    assert [(one.name, one.description, one.parameters_json) for one in roles.declared(body)] == [
        ("f", "d", '{"type": "object"}'), ("g", "", ""),
    ]  # fmt: skip


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("name", "description", "forced", "returns"),
    [
        ("final_result", "", "", True),
        ("final_answer", "", "", True),
        ("output", "The final response which ends this conversation", "", True),
        ("record", "The final response which ends this conversation", "", True),
        ("Recipe", "", "Recipe", True),
        ("Recipe", "", "", False),
        ("transfer", "", "transfer", False),
        ("answer_ticket", "", "", False),
        ("pay", "", "", False),
    ],
)
def test_a_function_may_be_the_form_of_the_answer(name, description, forced, returns):
    """How frameworks ask for structured answers; one that acts is not taken for one, forced or not."""
    body: dict[str, Any] = {"tools": [{"type": "function", "function": {"name": name, "description": description}}]}
    if forced:
        body["tool_choice"] = {"type": "function", "function": {"name": forced}}

    assert [one.returns_answer for one in roles.declared(body)] == [returns]


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("name", "description", "parameters", "returns"),
    [
        ("submit", "", {"answer": {"type": "string"}}, True),
        ("attempt_completion", "", {"result": {"type": "string"}}, True),
        ("finalize", "Gives the final answer to the user.", {"answer": {"type": "any"}}, True),
        ("submit", "", {"answer": {"type": "string"}, "amount": {"type": "number"}}, False),
        ("submit", "", {"order": {"type": "string"}}, False),
        ("send_mail", "Sends a reply to the customer.", {"to": {"type": "string"}, "text": {"type": "string"}}, False),
    ],
)
def test_a_function_that_takes_one_text_for_the_user_returns_the_answer(name, description, parameters, returns):
    """By its name or by what it is declared to do; one that takes anything beside the answer acts."""
    function = {"name": name, "description": description, "parameters": {"type": "object", "properties": parameters}}

    assert [one.returns_answer for one in roles.declared({"functions": [function]})] == [returns]


@pytest.mark.req("ATT-8")
def test_sources_from_before_the_last_words_are_told_apart():
    """What a tool found for the question is new; what it found for an earlier one, and the context of the system, is not."""
    looked_up = [
        {"role": "system", "content": "The depot in Leeds opens at eight."},
        {"role": "user", "content": "When does the ferry leave?"},
        {"role": "assistant", "content": None},
        {"role": "tool", "content": "The ferry leaves at nine."},
    ]
    first = roles.read(looked_up, most_facts=100)
    asked = [*looked_up, {"role": "assistant", "content": "At nine."}, {"role": "user", "content": "And the bus?"}]
    second = roles.read([*asked, {"role": "tool", "content": "The bus leaves at ten."}], most_facts=100)

    assert first.earlier == ()
    assert second.earlier == ("m0s0", "m3s0")
    assert [fact.id for fact in second.facts] == ["m0s0", "m3s0", "m6s0"]
