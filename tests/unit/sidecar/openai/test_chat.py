"""What a chat request may hold, and what is forwarded of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.domain.errors import Refused
from interlock.runtime.settings.model import Settings
from interlock.sidecar.openai import chat

SETTINGS = Settings()
USER = {"role": "user", "content": "What is it?"}


def request(**more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [USER], **more}


def refusal(value: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        chat.read(value, SETTINGS)
    return caught.value


@pytest.mark.req("SVC-2")
def test_what_was_checked_is_what_is_forwarded():
    """Every parameter of the list passes as it is, streaming and our own object stay behind."""
    parameters = {
        "temperature": 0.2, "top_p": 1, "n": 2, "stop": ["a"], "max_tokens": 5, "max_completion_tokens": 6,
        "presence_penalty": -1, "frequency_penalty": 0.5, "logit_bias": {"50256": -100}, "user": "u", "seed": 7,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": False,
        "response_format": {"type": "json_schema", "json_schema": {"name": "s"}}, "reasoning_effort": "low",
        "logprobs": True, "top_logprobs": 0, "metadata": {"k": "v"}, "service_tier": "auto", "store": False,
        "modalities": ["text"],
    }  # fmt: skip
    checked = chat.read(
        request(**parameters, stream=True, stream_options={"include_usage": True}, interlock={"query": "q"}), SETTINGS
    )

    assert checked.body == request(**parameters)
    assert (checked.stream, checked.include_usage, checked.interlock) == (True, True, {"query": "q"})


@pytest.mark.req("ATT-1", "SVC-2")
def test_a_providers_own_parameters_are_passed_where_the_setting_names_them():
    """Those of sampling by default; a name in the setting opens none of what is refused by name or checked."""
    own = {"top_k": 40, "min_p": 0.1, "repetition_penalty": 1.1, "top_a": 0.2}
    named = Settings(provider_parameters="chat_template_kwargs,audio,web_search_options,n,stream,interlock")
    wanted = {"chat_template_kwargs": {"enable_thinking": False}}

    assert chat.read(request(**own), SETTINGS).body == request(**own)
    assert chat.read(request(**wanted), named).body == request(**wanted)
    for value, reason in (
        (own, "UNKNOWN_PARAMETER"),
        ({"audio": {"voice": "alloy"}}, "UNSUPPORTED_CONTENT"),
        ({"web_search_options": {}}, "UNSUPPORTED_CONTENT"),
        ({"n": 100}, "INVALID_PARAMETER"),
        ({"stream": "yes"}, "INVALID_PARAMETER"),
    ):
        with pytest.raises(Refused, match=reason):
            chat.read(request(**value), named)


@pytest.mark.parametrize("api", ["messages", "responses"])
def test_a_provider_with_another_api_gets_none_of_them(api):
    """Its requests are made anew, and have no place for them."""
    with pytest.raises(Refused, match="UNKNOWN_PARAMETER"):
        chat.read(request(top_k=40), Settings(upstream_api=api))


def test_a_refusal_of_an_unknown_parameter_names_the_setting():
    """An operator whose provider knows it can let it through."""
    assert "provider_parameters" in refusal(request(made_up=1)).message


def test_nulls_say_nothing():
    """A client that sends a null for every field it knows has asked for nothing."""
    echoed = {"role": "assistant", "content": "x", "refusal": None, "audio": None, "annotations": None}
    checked = chat.read(request(messages=[USER, echoed], temperature=None, audio=None), SETTINGS)

    assert checked.body == {"model": "m", "messages": [USER, {"role": "assistant", "content": "x"}]}


@pytest.mark.parametrize(
    ("value", "reason", "param"),
    [
        ([], "INVALID_REQUEST", None),
        ("text", "INVALID_REQUEST", None),
        ({"messages": [USER]}, "INVALID_PARAMETER", "model"),
        ({"model": "m"}, "INVALID_PARAMETER", "messages"),
        (request(Temperature=1), "UNKNOWN_PARAMETER", "Temperature"),
        (request(MESSAGES=[]), "UNKNOWN_PARAMETER", "MESSAGES"),
        (request(functions={}), "INVALID_PARAMETER", "functions"),
        (request(**{"x\r\ny": 1}), "UNKNOWN_PARAMETER", "?"),
        (request(messages=None), "INVALID_PARAMETER", "messages"),
        (request(model=None), "INVALID_PARAMETER", "model"),
        (request(model=3), "INVALID_PARAMETER", "model"),
        (request(model=""), "INVALID_PARAMETER", "model"),
        (request(model="m\u241f"), "INVALID_PARAMETER", "model"),
        (request(messages=[]), "INVALID_PARAMETER", "messages"),
        (request(messages="hi"), "INVALID_PARAMETER", "messages"),
        (request(messages=[{"role": "root", "content": "x"}]), "INVALID_PARAMETER", "messages[0].role"),
        (request(messages=[{"role": "user"}]), "INVALID_PARAMETER", "messages[0].content"),
        (request(messages=[{"role": "user", "content": 3}]), "INVALID_PARAMETER", "messages[0].content"),
        (request(messages=[{"role": "user", "content": "x", "tool_calls": [1]}]), "UNKNOWN_PARAMETER",
         "messages[0].tool_calls"),
        (request(messages=[{"role": "tool", "content": "x"}]), "INVALID_PARAMETER", "messages[0].tool_call_id"),
        (request(temperature="hot"), "INVALID_PARAMETER", "temperature"),
        (request(logprobs=True, top_logprobs=3), "UNSUPPORTED_CONTENT", "top_logprobs"),
        (request(top_logprobs=21), "INVALID_PARAMETER", "top_logprobs"),
        (request(temperature=True), "INVALID_PARAMETER", "temperature"),
        (request(temperature=2.1), "INVALID_PARAMETER", "temperature"),
        (request(temperature=float("nan")), "INVALID_PARAMETER", "temperature"),
        (request(n=0), "INVALID_PARAMETER", "n"),
        (request(n=9), "INVALID_PARAMETER", "n"),
        (request(n=1.0), "INVALID_PARAMETER", "n"),
        (request(max_tokens=-1), "INVALID_PARAMETER", "max_tokens"),
        (request(stream="yes"), "INVALID_PARAMETER", "stream"),
        (request(stream_options={"include_usage": True}), "INVALID_PARAMETER", "stream_options"),
        (request(logit_bias={"a": 1}), "INVALID_PARAMETER", "logit_bias"),
        (request(metadata={"k": 1}), "INVALID_PARAMETER", "metadata"),
        (request(seed=2**63), "INVALID_PARAMETER", "seed"),
        (request(tools=[{"type": "function", "function": {"name": "no spaces"}}]), "INVALID_PARAMETER",
         "tools[0].function.name"),
        (request(interlock=[1]), "INVALID_PARAMETER", "interlock"),
    ],
)  # fmt: skip
def test_a_wrong_parameter_is_refused_by_name(value, reason, param):
    """The refusal names the parameter, and repeats nothing else of the request."""
    refused = refusal(value)

    assert (refused.reason, refused.metadata.get("param")) == (reason, param)


@pytest.mark.parametrize(
    "more",
    [
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {}}]}]},
        {"modalities": ["text", "audio"]},
        {"tools": [{"type": "custom", "custom": {"name": "f"}}]},
    ],
)
def test_what_cannot_be_analysed_is_refused(more):
    """Images, audio, files and free-form tools would pass unscanned."""
    assert refusal(request(**more)).reason == "UNSUPPORTED_CONTENT"


def test_text_parts_and_tool_messages_pass():
    """A conversation with parts, tool calls and their results is forwarded as it was."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
    ]

    assert chat.read(request(messages=messages), SETTINGS).body["messages"] == messages


def test_a_seed_header_reaches_the_provider():
    """CRP-LLM-Reproducibility-Seed becomes the seed (SPEC-002 §11.3)."""
    checked = chat.read(request(), SETTINGS)

    assert chat.steered(checked, grounding_mode=None, seed=42)["seed"] == 42
    assert "seed" not in checked.body


def test_two_seeds_are_refused():
    """A seed in the body that differs from the header's would make the record untrue."""
    checked = chat.read(request(seed=1), SETTINGS)

    with pytest.raises(Refused, match="seed"):
        chat.steered(checked, grounding_mode=None, seed=2)


@pytest.mark.parametrize(("mode", "added"), [("context-strict", 1), ("context-preferred", 1), ("open", 0), (None, 0)])
def test_a_grounding_mode_adds_its_instruction(mode, added):
    """SPEC-002 §11.2: an instruction before the conversation, and none for open or for no header."""
    body = chat.steered(chat.read(request(), SETTINGS), grounding_mode=mode, seed=None)

    assert len(body["messages"]) == 1 + added
    assert body["messages"][-1] == USER


def test_the_refusal_does_not_repeat_what_was_sent():
    """A prompt or key in the wrong place does not come back in an error text or a log."""
    refused = refusal(request(temperature="sk-secret", messages=[{"role": "sk-secret", "content": "sk-secret"}]))

    assert "sk-secret" not in json.dumps([refused.message, refused.metadata])
