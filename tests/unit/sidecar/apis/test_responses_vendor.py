"""What the vendor's Responses request may hold and what ours does with it: a new version of the client shows what is new.

Each field, item and part that the installed ``openai`` package declares is either read, or refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args, get_type_hints

import pytest
from openai.types import responses as vendor
from openai.types import shared_params
from openai.types.responses import response_create_params as parameters
from openai.types.responses.response_input_item_param import FunctionCallOutput, ItemReference, Message

from interlock.domain.errors import Refused
from interlock.runtime.settings.model import Settings
from interlock.sidecar.apis.responses import items, request
from interlock.sidecar.openai import chat

pytestmark = pytest.mark.req("API-6")

SETTINGS = Settings()
WRONG = [["of no type that any field has"]]
REFUSED_REASONS = {"UNKNOWN_PARAMETER", "UNSUPPORTED_CONTENT"}

ASKED = {"role": "user", "content": "a"}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": []}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
TOOL = {"type": "function", "name": "f", "parameters": {}, "strict": True}


def outcome(value: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the reason and the place of a refusal; no reason for what is accepted."""
    try:
        fields = request.fields_of({"model": "m", "input": "a", **value})
        own = request.own_items(fields["input"])
        if any(one["type"] == "item_reference" for one in own):
            return "", None  # found where answers are kept
        request.read(fields, own, None, SETTINGS)
    except Refused as refused:
        return refused.reason, refused.metadata.get("param")
    return "", None


def fields_of(*types: Any) -> set[str]:
    return {name for one in types for name in one.__required_keys__ | one.__optional_keys__}


def refused_in(
    build: Callable[[Mapping[str, Any]], Mapping[str, Any]], least: Mapping[str, Any], names: set[str]
) -> set[str]:
    """The fields that are refused by their own name, whatever is in them."""
    found = {name: outcome(build({**least, name: WRONG})) for name in names - {"type"}}
    return {
        name
        for name, (reason, place) in found.items()
        if reason in REFUSED_REASONS and (place or "").rpartition(".")[2] == name
    }


def item(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"input": [ASKED, one]}


SHAPES: Mapping[str, tuple[tuple[Any, ...], Mapping[str, Any], Callable[[Mapping[str, Any]], Mapping[str, Any]], set[str]]] = {
    "request": (
        (parameters.ResponseCreateParamsNonStreaming, parameters.ResponseCreateParamsStreaming), {}, dict, set(request.REFUSED),
    ),
    "stream options": ((parameters.StreamOptions,), {}, lambda one: {"stream": True, "stream_options": one}, set()),
    "reasoning": ((shared_params.Reasoning,), {}, lambda one: {"reasoning": one}, {"context", "mode"}),
    "text": ((vendor.ResponseTextConfigParam,), {}, lambda one: {"text": one}, set()),
    "schema": (
        (vendor.ResponseFormatTextJSONSchemaConfigParam,), {"type": "json_schema", "name": "s", "schema": {}},
        lambda one: {"text": {"format": one}}, set(),
    ),
    "tool": (
        (vendor.FunctionToolParam,), TOOL, lambda one: {"tools": [one]},
        {"allowed_callers", "async", "output_schema"},
    ),
    "choice": (
        (vendor.ToolChoiceFunctionParam,), {"type": "function", "name": "f"},
        lambda one: {"tools": [TOOL], "tool_choice": one}, set(),
    ),
    "question": ((vendor.EasyInputMessageParam, Message), ASKED, item, set()),
    "answer": ((vendor.ResponseOutputMessageParam,), SAID, item, set()),
    "call": ((vendor.ResponseFunctionToolCallParam,), CALL, item, {"async", "caller", "namespace"}),
    "result": (
        (FunctionCallOutput,), {"type": "function_call_output", "call_id": "c1", "output": "a"},
        lambda one: {"input": [CALL, one]}, {"caller", "name", "namespace"},
    ),
    "reasoning item": (
        (vendor.ResponseReasoningItemParam,), {"type": "reasoning", "id": "rs_1", "summary": []}, item, set(),
    ),
    "reference": ((ItemReference,), {"type": "item_reference", "id": "msg_1"}, item, set()),
    "reference without its type": ((ItemReference,), {"id": "msg_1"}, item, set()),
    "input text": (
        (vendor.ResponseInputTextParam,), {"type": "input_text", "text": "a"},
        lambda one: item({**ASKED, "content": [one]}), set(),
    ),
    "output text": (
        (vendor.ResponseOutputTextParam,), {"type": "output_text", "text": "a", "annotations": []},
        lambda one: item({**SAID, "content": [one]}), set(),
    ),
    "refusal": (
        (vendor.ResponseOutputRefusalParam,), {"type": "refusal", "refusal": "a"}, lambda one: item({**SAID, "content": [one]}), set(),
    ),
}  # fmt: skip
"""The vendor's types, the least that is accepted, where it stands, and which of its fields are refused by name."""


@pytest.mark.parametrize("name", SHAPES)
def test_every_field_of_the_vendor_is_read_or_refused_by_name(name):
    """A field that only a newer client knows is in neither list, and this test names it."""
    types, least, build, refused = SHAPES[name]

    assert outcome(build(least)) == ("", None)
    assert refused_in(build, least, fields_of(*types)) == refused


def test_nothing_is_read_that_the_vendor_does_not_have():
    """What is ours is listed."""
    known = fields_of(parameters.ResponseCreateParamsNonStreaming, parameters.ResponseCreateParamsStreaming)

    assert request.NAMES - known == {"interlock"}
    assert request.NAMES & request.REFUSED.keys() == set()
    assert known == (request.NAMES | request.REFUSED.keys()) - {"interlock"}


def kinds(union: Any, field: str = "type") -> set[str]:
    """The values of the field by which the members of a union differ; words that are members are none."""
    objects = (one for one in get_args(union) if hasattr(one, "__required_keys__"))
    return {kind for one in objects for kind in words(get_type_hints(one)[field])}


def words(kind: Any) -> set[str]:
    """Return the words of a type, in whatever unions it holds them."""
    return {kind} if isinstance(kind, str) else {word for one in get_args(kind) for word in words(one)}


def test_every_kind_of_item_is_read_or_refused_by_name():
    """What comes from tools that run at the provider is refused."""
    found = {
        kind: outcome(item({"type": kind})) for kind in kinds(vendor.response_input_item_param.ResponseInputItemParam)
    }
    told = {kind for kind, said in found.items() if said == ("UNSUPPORTED_CONTENT", "input[1].type")}

    assert found.keys() - told == items.KINDS


def test_every_kind_of_tool_and_choice_is_read_or_refused_by_name():
    """A function is read; of the choices its name, or a word."""
    tools = {kind: outcome({"tools": [{**TOOL, "type": kind}]}) for kind in kinds(vendor.ToolParam)}
    some = {"mode": "auto", "tools": [{"type": "function", "name": "f"}]}
    choices = {
        kind: outcome(
            {"tools": [TOOL], "tool_choice": {"type": kind, **(some if kind == "allowed_tools" else {"name": "f"})}}
        )
        for kind in kinds(parameters.ToolChoice)
    }

    assert {kind for kind, said in tools.items() if said != ("UNSUPPORTED_CONTENT", "tools[0].type")} == {"function"}
    assert {kind for kind, said in choices.items() if said == ("", None)} == {"function", "allowed_tools"}
    assert {said for said in choices.values() if said[0]} == {("UNSUPPORTED_CONTENT", "tool_choice.type")}


def test_every_kind_of_part_is_read_or_refused_by_name():
    """Text is read; images and files name the setting that will decide about them."""
    union = vendor.response_input_message_content_list_param.ResponseInputContentParam
    found = {kind: outcome(item({**ASKED, "content": [{"type": kind, "text": "a"}]})) for kind in kinds(union)}

    assert {kind for kind, said in found.items() if not said[0]} == {"input_text"}
    assert {said for said in found.values() if said[0]} == {("UNSUPPORTED_CONTENT", "input[1].content[0].type")}


def test_every_word_of_what_may_be_included_is_read():
    """What belongs to tools that run at the provider adds nothing: there are none."""
    included = words(vendor.ResponseIncludable)

    assert {word: outcome({"include": [word]}) for word in included} == dict.fromkeys(included, ("", None))
    assert outcome({"include": ["everything"]})[1] == "include[0]"


EVERYDAY: Mapping[str, Mapping[str, Any]] = {
    "a summary": {"reasoning": {"summary": "detailed"}},
    "how the provider caches": {"prompt_cache_retention": "24h", "prompt_cache_options": {}},
    "no tools": {"tools": []},
    "a tool that is not searched for": {"tools": [{**TOOL, "defer_loading": False, "allowed_callers": ["direct"]}]},
    "a name in another script": {"user": "Jürgen"},
}


@pytest.mark.parametrize("given", EVERYDAY.values(), ids=EVERYDAY)
def test_what_can_carry_nothing_to_the_client_is_accepted(given):
    """What stock clients send and nothing follows from."""
    assert outcome(given) == ("", None)


def test_a_choice_of_some_tools_is_the_chat_requests():
    """Its functions are named where the caller named them."""
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}
    made = request.read(
        {"model": "m", "input": "a", "tools": [TOOL], "tool_choice": choice}, request.own_items("a"), None, SETTINGS
    )
    named = {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]}

    assert made.chat.body["tool_choice"] == {"type": "allowed_tools", "allowed_tools": named}
    assert made.echoed["tool_choice"] == choice
    for bad, place in (
        ({"mode": "never"}, "tool_choice.mode"),
        ({"tools": [{"type": "mcp"}]}, "tool_choice.tools[0].type"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tool_choice.tools[0].name"),
    ):
        assert outcome({"tools": [TOOL], "tool_choice": {**choice, **bad}})[1] == place


def test_every_place_of_the_chat_request_has_one_here():
    """What is passed on is checked as the chat request is, and a refusal names no field that its caller did not send."""
    bad = {
        "model": "", "temperature": 9, "top_p": 9, "user": "\n", "safety_identifier": "\n", "prompt_cache_key": "\n",
        "service_tier": "zebra", "parallel_tool_calls": 1, "top_logprobs": 3, "max_output_tokens": 0, "stream": 1,
        "reasoning": {"effort": "zebra"}, "text": {"verbosity": "zebra"}, "tool_choice": "zebra", "interlock": 7,
    }  # fmt: skip
    places = {"reasoning": "reasoning.effort", "text": "text.verbosity"}

    assert {name: outcome({name: value})[1] for name, value in bad.items()} == {
        name: places.get(name, name) for name in bad
    }
    assert chat.NAMES >= {"reasoning_effort", "verbosity", "max_completion_tokens", "response_format"}
