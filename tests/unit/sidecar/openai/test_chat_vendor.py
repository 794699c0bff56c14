"""What the vendor's request may hold and what ours does with it, field by field: a new version of the client shows what is new.

The reader is written by hand (docs/adr/0016). These tables are what keeps it from drifting: each field, role, kind and value that
the installed ``openai`` package declares is either read, or refused by name with the reason given here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

import pytest
from openai.types import chat as vendor
from openai.types import shared_params
from openai.types.chat import completion_create_params as parameters
from openai.types.chat.chat_completion_message_function_tool_call_param import Function as CalledFunction
from openai.types.chat.chat_completion_named_tool_choice_param import Function as NamedFunction

from interlock.domain.errors import Refused
from interlock.runtime.settings.model import Settings
from interlock.sidecar.openai import chat

SETTINGS = Settings()
WRONG = [["of no type that any field has"]]

USER = {"role": "user", "content": "What is it?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f"}}
ALLOWED = {"mode": "auto", "tools": [TOOL]}

Build = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def request(**more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [USER], **more}


def message(one: Mapping[str, Any]) -> dict[str, Any]:
    return request(messages=[one])


def outcome(value: Any) -> tuple[str, str | None]:
    """Return the reason and the place of a refusal; no reason for what is accepted."""
    try:
        chat.read(value, SETTINGS)
    except Refused as refused:
        return refused.reason, refused.metadata.get("param")
    return "", None


@dataclass(frozen=True)
class Shape:
    """An object of the request: the vendor's type, the least of it that is accepted, where it stands, what is refused in it."""

    types: tuple[Any, ...]
    least: Mapping[str, Any]
    build: Build
    place: str
    refused: Mapping[str, str]

    @property
    def fields(self) -> set[str]:
        return {name for one in self.types for name in one.__required_keys__ | one.__optional_keys__}

    def is_unknown(self, field: str) -> bool:
        reason, place = outcome(self.build({**self.least, field: WRONG}))
        reasons = {"UNKNOWN_PARAMETER", *(["UNSUPPORTED_CONTENT"] if field in self.refused else [])}
        return reason in reasons and place == f"{self.place}{field}"


UNSCANNED = "no text, so that it cannot be analysed"

SHAPES = {
    "request": Shape(
        (parameters.CompletionCreateParamsNonStreaming, parameters.CompletionCreateParamsStreaming),
        request(),
        dict,
        "",
        chat.REFUSED,
    ),
    "stream_options": Shape(
        (vendor.ChatCompletionStreamOptionsParam,), {},
        lambda one: request(stream=True, stream_options=one), "stream_options.", {},
    ),
    "system": Shape(
        (vendor.ChatCompletionSystemMessageParam,), {"role": "system", "content": "x"}, message, "messages[0].", {}
    ),
    "developer": Shape(
        (vendor.ChatCompletionDeveloperMessageParam,), {"role": "developer", "content": "x"}, message, "messages[0].", {}
    ),
    "user": Shape((vendor.ChatCompletionUserMessageParam,), USER, message, "messages[0].", {}),
    "assistant": Shape(
        (vendor.ChatCompletionAssistantMessageParam,), {"role": "assistant", "content": "x"}, message, "messages[0].",
        {"audio": UNSCANNED},
    ),
    "tool": Shape(
        (vendor.ChatCompletionToolMessageParam,), {"role": "tool", "content": "x", "tool_call_id": "c1"}, message,
        "messages[0].", {},
    ),
    "function": Shape(
        (vendor.ChatCompletionFunctionMessageParam,), {"role": "function", "content": "x", "name": "f"}, message,
        "messages[0].", {},
    ),
    "text part": Shape(
        (vendor.ChatCompletionContentPartTextParam,), {"type": "text", "text": "x"},
        lambda one: message({**USER, "content": [one]}), "messages[0].content[0].", {},
    ),
    "refusal part": Shape(
        (vendor.ChatCompletionContentPartRefusalParam,), {"type": "refusal", "refusal": "x"},
        lambda one: message({"role": "assistant", "content": [one]}), "messages[0].content[0].", {},
    ),
    "tool call": Shape(
        (vendor.ChatCompletionMessageFunctionToolCallParam,), CALL,
        lambda one: message({"role": "assistant", "tool_calls": [one]}), "messages[0].tool_calls[0].", {},
    ),
    "function of a tool call": Shape(
        (CalledFunction,), CALL["function"],
        lambda one: message({"role": "assistant", "tool_calls": [{**CALL, "function": one}]}),
        "messages[0].tool_calls[0].function.", {},
    ),
    "function tool": Shape(
        (vendor.ChatCompletionFunctionToolParam,), TOOL, lambda one: request(tools=[one]), "tools[0].", {}
    ),
    "function of a tool": Shape(
        (shared_params.FunctionDefinition,), TOOL["function"],
        lambda one: request(tools=[{**TOOL, "function": one}]), "tools[0].function.", {},
    ),
    "tool choice": Shape(
        (vendor.ChatCompletionNamedToolChoiceParam,), TOOL, lambda one: request(tool_choice=one), "tool_choice.", {}
    ),
    "function of a tool choice": Shape(
        (NamedFunction,), TOOL["function"],
        lambda one: request(tool_choice={**TOOL, "function": one}), "tool_choice.function.", {},
    ),
    "response format": Shape(
        (shared_params.ResponseFormatText, shared_params.ResponseFormatJSONObject, shared_params.ResponseFormatJSONSchema),
        {"type": "text"}, lambda one: request(response_format=one), "response_format.", {},
    ),
}  # fmt: skip

OURS = {"request": set(), "assistant": {"reasoning_content", "annotations"}, "tool": {"name"}}
"""What is read and the vendor does not have: clients send back what an answer had, and name the function beside its result."""


@pytest.mark.req("SVC-2")
@pytest.mark.parametrize("name", SHAPES)
def test_every_field_of_the_vendor_is_read_or_refused_by_name(name):
    """A field that only a newer client knows is in neither list, and this test names it."""
    shape = SHAPES[name]
    unknown = {field for field in shape.fields if shape.is_unknown(field)}

    assert outcome(shape.build(shape.least)) == ("", None)
    assert unknown <= shape.refused.keys()
    assert [field for field in shape.refused if not shape.is_unknown(field)] == []


def test_nothing_is_read_that_the_vendor_does_not_have():
    """A field that the vendor took back, or that we misspelt, is found; what is ours is listed."""
    read = {"request": set(chat._PARAMETERS), **{role: set(fields) for role, fields in chat._ROLES.items()}}

    more = {name: fields - SHAPES[name].fields for name, fields in read.items()}
    assert {name: fields for name, fields in more.items() if fields or name in OURS} == OURS


def kinds(union: Any, field: str) -> set[str]:
    """Return the values of the field by which the members of a union differ; words that are members are none."""
    objects = (one for one in get_args(union) if hasattr(one, "__required_keys__"))
    return {kind for one in objects for kind in get_args(get_type_hints(one)[field])}


KINDS = {
    "role": (
        vendor.ChatCompletionMessageParam, "role", {},
        lambda kind: message({**USER, "role": kind, **({"tool_call_id": "c1"} if kind == "tool" else {})}),
    ),
    "part": (
        vendor.chat_completion_content_part_param.ChatCompletionContentPartParam, "type",
        dict.fromkeys(("image_url", "input_audio", "file"), ("UNSUPPORTED_CONTENT", "messages[0].content[0]")),
        lambda kind: message({**USER, "content": [{"type": kind, "text": "x"}]}),
    ),
    "tool": (
        vendor.ChatCompletionToolUnionParam, "type", {"custom": ("UNSUPPORTED_CONTENT", "tools[0].type")},
        lambda kind: request(tools=[{**TOOL, "type": kind}]),
    ),
    "tool call": (
        vendor.ChatCompletionMessageToolCallUnionParam, "type",
        {"custom": ("UNSUPPORTED_CONTENT", "messages[0].tool_calls[0]")},
        lambda kind: message({"role": "assistant", "tool_calls": [{**CALL, "type": kind}]}),
    ),
    "tool choice": (
        vendor.ChatCompletionToolChoiceOptionParam, "type",
        {"custom": ("INVALID_PARAMETER", "tool_choice.type")},
        lambda kind: request(tool_choice={"type": kind, **({kind: ALLOWED} if kind == "allowed_tools" else {"function": {"name": "f"}})}),
    ),
    "response format": (
        parameters.ResponseFormat, "type", {},
        lambda kind: request(response_format={"type": kind, "json_schema": {"name": "s"}}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_the_vendor_is_read_or_refused_by_name(name):
    """Roles of messages, kinds of parts, tools and formats."""
    union, field, refused, build = KINDS[name]
    found = {kind: outcome(build(kind)) for kind in kinds(union, field) | refused.keys()}

    assert {kind: said for kind, said in found.items() if said[0]} == refused


VALUES = {
    "reasoning_effort": set(),
    "service_tier": set(),
    "verbosity": set(),
}
"""Words of the vendor that are refused today, by parameter."""


def words(kind: Any) -> set[str]:
    """Return the words of a type, in whatever unions it holds them."""
    return {kind} if isinstance(kind, str) else {word for one in get_args(kind) for word in words(one)}


@pytest.mark.parametrize("name", VALUES)
def test_every_word_of_the_vendor_is_read_or_refused(name):
    """A word that only a newer client knows is refused until it is listed."""
    kind = get_type_hints(parameters.CompletionCreateParamsNonStreaming)[name]
    found = {word: outcome(request(**{name: word})) for word in words(kind) | VALUES[name]}

    assert {word: said for word, said in found.items() if said[0]} == dict.fromkeys(
        VALUES[name], ("INVALID_PARAMETER", name)
    )


EVERYDAY: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "nothing to say": ({"tools": [], "functions": [], "stop": [], "user": "", "safety_identifier": ""}, {}),
    "how the provider caches": ({"prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "explicit"}}, {}),
    "a name in another script": ({"user": "Jürgen 王"}, {"user": "Jürgen 王"}),
    "a prediction": (
        {"prediction": {"type": "content", "content": "x"}}, {"prediction": {"type": "content", "content": "x"}}
    ),
    "some of the tools": (
        {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "allowed_tools": ALLOWED}},
        {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "allowed_tools": ALLOWED}},
    ),
}  # fmt: skip


@pytest.mark.req("API-6")
@pytest.mark.parametrize(("given", "passed"), EVERYDAY.values(), ids=EVERYDAY)
def test_what_can_carry_nothing_to_the_client_is_accepted(given, passed):
    """Empty lists and names, marks in any script, a prediction, a choice of tools; how the provider caches is left out."""
    assert chat.read(request(**given), SETTINGS).body == request(**passed)


@pytest.mark.req("API-6")
def test_messages_come_back_with_what_clients_put_around_them():
    """Annotations, an empty list of calls, places of a stream, the name of a function, marks of a cache, speakers in any script."""
    part = {"type": "text", "text": "x"}
    given = [
        {
            "role": "user",
            "name": "José",
            "content": [{**part, "prompt_cache_breakpoint": {}}, {**part, "cache_control": {}}],
        },
        {"role": "assistant", "content": "x", "annotations": [{"type": "url_citation"}], "tool_calls": []},
        {"role": "assistant", "tool_calls": [{**CALL, "index": 0}]},
        {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "x"},
    ]

    assert chat.read(request(messages=given), SETTINGS).messages == [
        {"role": "user", "name": "José", "content": [part, part]},
        {"role": "assistant", "content": "x"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "x"},
    ]


NOT_EVERYDAY = {
    "a choice in a choice": ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "allowed_tools"}]}}},
        "tool_choice.allowed_tools.tools[0].type"),
    "a choice of nothing": ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}}, "tool_choice.allowed_tools.tools"),
    "another mode": ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "none", "tools": [TOOL]}}}, "tool_choice.allowed_tools.mode"),
    "a prediction of an image": ({"prediction": {"type": "content", "content": [{"type": "image_url"}]}}, "prediction.content[0]"),
    "a mark that no one sees": ({"user": "a\u202eb"}, "user"),
    "an endless mark": ({"prompt_cache_key": "x" * 513}, "prompt_cache_key"),
    "a speaker with a tag": ({"messages": [{**USER, "name": "<b>"}]}, "messages[0].name"),
    "a speaker that no one sees": ({"messages": [{**USER, "name": "a\u200bb"}]}, "messages[0].name"),
    "annotations of no list": ({"messages": [{"role": "assistant", "content": "x", "annotations": "x"}]}, "messages[0].annotations"),
    "nothing said": ({"messages": [{"role": "assistant", "tool_calls": []}]}, "messages[0].content"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "place"), NOT_EVERYDAY.values(), ids=NOT_EVERYDAY)
def test_what_is_accepted_has_its_bounds(given, place):
    """Each is refused at its place."""
    reason, told = outcome(request(**given))

    assert reason in {"INVALID_PARAMETER", "UNSUPPORTED_CONTENT", "UNKNOWN_PARAMETER"}
    assert told == place


def test_schemas_are_passed_as_they_are():
    """What a schema of the client's own may hold is between the client and the provider."""
    schema = dict.fromkeys(shared_params.response_format_json_schema.JSONSchema.__annotations__, WRONG)
    given = request(
        response_format={"type": "json_schema", "json_schema": schema},
        tools=[{"type": "function", "function": {"name": "f", "parameters": {"x": [None, 1.0]}}}],
    )

    assert chat.read(given, SETTINGS).body == given
