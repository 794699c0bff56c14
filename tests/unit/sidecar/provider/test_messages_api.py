"""A provider that is asked by Anthropic's Messages: the request that it gets, and its answer as a completion (API-2, API-6)."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from anthropic.types import MessageCreateParams, StopReason
from pydantic import TypeAdapter

from interlock.domain.errors import Refused
from interlock.sidecar.openai.completion import AnswerAsked, Completion
from interlock.sidecar.provider import messages_answer, messages_request
from interlock.sidecar.provider.provider_api import APIS
from tests.support.servers.provider import anthropic as provided

pytestmark = pytest.mark.req("API-2", "API-6")

USER = {"role": "user", "content": "What is it?"}
FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}, "strict": True}
CALL = {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
REQUEST = TypeAdapter(MessageCreateParams)


def made(**more: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [USER], **more}
    messages_request.check(body)
    found = messages_request.made(body)
    REQUEST.validate_python(
        {name: value for name, value in found.items() if name not in {"temperature", "top_p", "top_k"}}
    )
    return found


def answered(value: Any) -> Completion:
    return messages_answer.read(json.dumps(value).encode(), AnswerAsked("m"), max_depth=64)


def test_the_least_request():
    """This API demands a limit; where none was asked for, one is set."""
    text = [{"type": "text", "text": "What is it?"}]

    assert made() == {"model": "m", "max_tokens": 4096, "messages": [{"role": "user", "content": text}]}


def test_every_parameter_has_its_place():
    """Valid by the vendor's own type."""
    found = made(
        max_tokens=7, stop="END", user="u", service_tier="default", tools=[{"type": "function", "function": FUNCTION}],
        tool_choice="required", parallel_tool_calls=False, temperature=0.5, top_p=0.9, top_k=3, reasoning_effort="minimal",
        response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}},
        metadata={"a": "b"}, store=True, prompt_cache_key="k", logprobs=False, n=1,
    )  # fmt: skip
    del found["messages"]

    assert found == {
        "model": "m", "max_tokens": 7, "stop_sequences": ["END"], "metadata": {"user_id": "u"}, "service_tier": "standard_only",
        "tools": [{"name": "f", "description": "d", "strict": True, "input_schema": FUNCTION["parameters"]}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True}, "temperature": 0.5, "top_p": 0.9, "top_k": 3,
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
    }  # fmt: skip


def test_the_results_of_calls_stand_together_in_the_turn_after_them():
    """And what the user says next stands behind them; the ids of calls are what this API takes."""
    other = {**CALL, "id": "call_2", "function": {"name": "f", "arguments": "no JSON"}}
    messages = [
        {"role": "system", "content": "One."}, USER,
        {"role": "assistant", "content": "Let me see.", "reasoning_content": "Hm.", "tool_calls": [CALL, other]},
        {"role": "tool", "tool_call_id": CALL["id"], "content": "blue"}, {"role": "tool", "tool_call_id": "call_2", "content": ""},
        {"role": "developer", "content": "Two."}, {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
    ]  # fmt: skip
    found = made(messages=messages)
    uses = [("functions_f_0", {"a": 1}), ("call_2", {"unreadable_arguments": "no JSON"})]

    assert found["system"] == "One.\n\nTwo."
    assert [one["role"] for one in found["messages"]] == ["user", "assistant", "user"]
    assert found["messages"][1]["content"] == [
        {"type": "text", "text": "Let me see."},
        *({"type": "tool_use", "id": name, "name": "f", "input": given} for name, given in uses),
    ]
    assert found["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "functions_f_0", "content": "blue"},
        {"type": "tool_result", "tool_use_id": "call_2", "content": ""},
        {"type": "text", "text": "And now?"},
    ]


@pytest.mark.parametrize(
    ("choice", "told"),
    [("auto", {"type": "auto"}), ("none", {"type": "none"}), ("required", {"type": "any"}),
     ({"type": "function", "function": {"name": "f"}}, {"type": "tool", "name": "f"})],
)  # fmt: skip
def test_the_choice_of_a_tool(choice, told):
    """In this API's words."""
    assert made(tools=[{"type": "function", "function": {"name": "f"}}], tool_choice=choice)["tool_choice"] == told


def test_a_choice_of_some_tools_offers_no_other():
    """This API has no word for it: the others are left out, and one of the rest may be demanded."""
    f, g = ({"type": "function", "function": {"name": name}} for name in "fg")
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [g]}}
    found = made(tools=[f, g], tool_choice=choice)

    assert [one["name"] for one in found["tools"]] == ["g"]
    assert found["tool_choice"] == {"type": "any"}


ENABLED = {"type": "enabled", "budget_tokens": 1024}


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ({"thinking": ENABLED}, True),
        ({"thinking": ENABLED, "temperature": 1}, True),
        ({"thinking": ENABLED, "temperature": 0.2}, False),
        ({"thinking": ENABLED, "tool_choice": "required"}, False),
        ({"thinking": ENABLED, "messages": [USER, {"role": "tool", "tool_call_id": "c", "content": "x"}]}, False),
        (
            {
                "thinking": {"type": "adaptive"},
                "messages": [USER, {"role": "tool", "tool_call_id": "c", "content": "x"}],
            },
            True,
        ),
        ({"thinking": {"type": "disabled"}, "tool_choice": "required"}, True),
    ],
)
def test_thinking_is_asked_for_where_the_other_terms_allow_it(more, kept):
    """This API refuses it with another temperature, with a forced tool, and with a budget after a call whose thinking is not sent back."""
    assert ("thinking" in made(**more)) == kept


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"n": 2}, "n"),
        ({"seed": 1}, "seed"),
        ({"logprobs": True}, "logprobs"),
        ({"logit_bias": {"1": 1}}, "logit_bias"),
        ({"presence_penalty": 1}, "presence_penalty"),
        ({"temperature": 1.5}, "temperature"),
        ({"service_tier": "flex"}, "service_tier"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"messages": [USER, {"role": "function", "name": "f", "content": "x"}]}, "messages[1]"),
    ],
)
def test_what_this_api_has_no_word_for_is_refused_by_name(more, param):
    """Before anything is begun, and never left out without a word."""
    with pytest.raises(Refused, match="upstream_api is messages") as caught:
        APIS["messages"]().check({"model": "m", "messages": [USER], **more})

    assert (caught.value.reason, caught.value.metadata) == ("INVALID_PARAMETER", {"param": param})


def test_an_answer_is_a_completion():
    """Text, thinking and calls; usage as chat completions count it."""
    found = answered(
        provided(
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "It is "}, {"type": "text", "text": "blue.", "citations": [{"cited_text": "x"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}, {"type": "redacted_thinking", "data": "x"},
            {"type": "text", "text": "Done."}, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": "x"}},
            stop_reason="tool_use",
            usage={"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 80, "service_tier": "standard",
                   "output_tokens_details": {"thinking_tokens": 2}, "inference_geo": "us"},
        )
    )  # fmt: skip
    choice = found.choices[0]

    assert (choice["message"]["content"], choice["message"]["reasoning_content"]) == ("It is blue.\n\nDone.", "Hm.")
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a":1}'}
    assert choice["message"]["tool_calls"][0]["id"].startswith("call_")
    assert choice["finish_reason"] == "tool_calls"
    assert [(one.kind, one.text) for one in found.outputs] == [
        ("content", "It is blue.\n\nDone."), ("content", "Hm."), ("tool_call", '{"a":1}'),
    ]  # fmt: skip
    assert found.usage == {
        "prompt_tokens": 90, "completion_tokens": 5, "total_tokens": 95,
        "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 2},
    }  # fmt: skip
    assert found.completion["service_tier"] == "default"
    assert found.dropped == ("citations", "other", "redacted_thinking", "signature", "usage")


@pytest.mark.parametrize("reason", sorted({*get_args(StopReason), "because"}))
def test_every_end_of_the_vendor_is_known(reason):
    """In a word of chat completions; an unknown one is left out and counted."""
    found = answered(provided({"type": "text", "text": "x"}, stop_reason=reason))
    ends = {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "because": "stop",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    }

    assert found.choices[0]["finish_reason"] == ends.get(reason, "length")
    assert (found.dropped == ("finish_reason",)) == (reason == "because")


BROKEN = {
    "no JSON": b"{",
    "no object": b"[]",
    "no content": b'{"type": "message"}',
    "an error": b'{"type": "error", "content": []}',
    "another role": json.dumps(provided(role="user")).encode(),
    "no block": json.dumps({**provided(), "content": ["x"]}).encode(),
    "a text that is none": json.dumps(provided({"type": "text", "text": 1})).encode(),
    "an input that is none": json.dumps(provided({"type": "tool_use", "id": "t", "name": "f", "input": "x"})).encode(),
    "a name that is none": json.dumps(provided({"type": "tool_use", "id": "t", "name": "a b", "input": {}})).encode(),
    "an id that is none": json.dumps(provided({"type": "tool_use", "id": 1, "name": "f", "input": {}})).encode(),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_message_is_no_answer(name):
    """Refused whole, as a chat completion that is none."""
    with pytest.raises(Refused) as caught:
        messages_answer.read(BROKEN[name], AnswerAsked("m"), max_depth=64)

    assert caught.value.reason == "UPSTREAM_INVALID_RESPONSE"


def test_the_key_goes_where_this_api_wants_it():
    """With the version that it demands; a caller without a key sends none."""
    assert APIS["messages"]().headers("k") == {"anthropic-version": "2023-06-01", "x-api-key": "k"}
    assert APIS["messages"]().headers(None) == {"anthropic-version": "2023-06-01"}
    assert APIS["chat"]().headers("k") == {"authorization": "Bearer k"}
