"""The Responses request: which fields are accepted, what each becomes in the chat request that is governed, and what is refused by name.

Values are checked by the chat request's own checks. A test compares the fields with the types of the ``openai`` package (docs/adr/0016).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.domain.errors import Refused
from interlock.runtime.settings.model import Settings
from interlock.sidecar.apis.api import ApiRequest
from interlock.sidecar.apis.responses import items
from interlock.sidecar.apis.responses.checks import (
    fault,
    flag,
    kind_of,
    listed,
    only,
    required_object,
    shown,
    text,
    unknown,
    unsupported,
    word,
)
from interlock.sidecar.apis.responses.places import GivenPlaces
from interlock.sidecar.openai import chat, tools

MAX_INCLUDED = 32
_OF_A_TOOL = ("type", "name", "description", "parameters", "strict")
LOGPROBS = "message.output_text.logprobs"
INCLUDABLE = (
    LOGPROBS, "reasoning.encrypted_content", "code_interpreter_call.outputs", "computer_call_output.output.image_url",
    "file_search_call.results", "message.input_image.image_url", "web_search_call.action.sources", "web_search_call.results",
)  # fmt: skip
"""What an answer may be asked to hold besides. Of tools that run at the provider there is nothing to hold."""

REFUSED: Mapping[str, str] = {
    "access_programs": "it changes what the provider's own safeguards let through",
    "background_options": "nothing runs in the background",
    "context_management": "what the provider leaves out of a context is not what was analysed",
    "conversation": "conversations are not kept here; use previous_response_id",
    "image": "images cannot be analysed",
    "moderation": "policies decide here, not the provider's",
    "prompt": "a template that the provider keeps cannot be analysed; send its text as instructions",
}
"""Fields that the vendor has and this front does not, and why."""

_AS_THEY_ARE = (
    "model", "temperature", "top_p", "user", "safety_identifier", "prompt_cache_key", "service_tier",
    "parallel_tool_calls", "top_logprobs", "stream", "interlock",
)  # fmt: skip
_OWN = (
    "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "tools", "tool_choice", "text", "reasoning",
    "include", "truncation", "background", "store", "previous_response_id", "stream_options", "prompt_cache_options",
    "prompt_cache_retention",
)  # fmt: skip
NAMES = frozenset(_AS_THEY_ARE) | frozenset(_OWN)
"""Every field that is accepted."""


@dataclass(frozen=True)
class Earlier:
    """An answer that a request goes on from, with everything before it."""

    answer_id: str
    """Its id in the words of the chat front, by which its session is found."""
    items: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ResponsesRequest(ApiRequest):
    """A checked Responses request."""

    items: Sequence[Mapping[str, Any]] = ()
    """Its own input, with references resolved."""
    keeps: bool = True
    """Whether what a later request needs of it is kept."""


Parts = tuple[dict[str, Any], dict[str, Any]]
"""Fields of the chat request, and what the answer says again."""


def own_items(value: Any) -> list[dict[str, Any]]:
    """Return the checked items of the field ``input``; a text is one message."""
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    given = listed("input", value, items.MAX_ITEMS)
    return [items.checked(f"input[{number}]", one) for number, one in enumerate(given)]


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a request without its nulls. Refused by name: one that is unknown or not supported here."""
    given = required_object("the body", value)
    found = {name: one for name, one in given.items() if one is not None}
    for name in found:
        if name in REFUSED:
            raise unsupported(name, REFUSED[name])
        if name not in NAMES:
            raise unknown(shown(name))
    for required in ("model", "input"):
        if required not in found:
            raise fault(required, "is required")
    if flag("background", found.get("background", False)):
        raise unsupported("background", "an answer is analysed before it is released, while its caller waits")
    word("truncation", found.get("truncation", "disabled"), ("disabled",))
    return found


def read(
    fields: Mapping[str, Any], own: Sequence[Mapping[str, Any]], earlier: Earlier | None, settings: Settings
) -> ResponsesRequest:
    """Return the checked request of its *fields*, its *own* items and what it goes on from.

    Refused as a chat request is; ``param`` names the place in this request.
    """
    places = GivenPlaces({"messages": "input", "max_completion_tokens": "max_output_tokens"})
    body: dict[str, Any] = {name: fields[name] for name in _AS_THEY_ARE if name in fields}
    echoed: dict[str, Any] = {name: body[name] for name in _AS_THEY_ARE if name in body and name not in _NOT_ECHOED}
    for name, part in _PARTS.items():
        if name in fields:
            asked, said = part(fields[name], places)
            body |= asked
            echoed |= said
    made = _messages(fields, own, earlier, items.MessagesMaker(places, media_pass=settings.unjudged_media == "pass"))
    try:
        read_chat = chat.read({**body, "messages": made.made}, settings)
    except Refused as refused:
        raise places.told(refused) from None
    continues = {**({"previous_response_id": earlier.answer_id} if earlier else {})}
    about = {"metadata": echoed["metadata"]} if "metadata" in echoed else {}
    if earlier:
        echoed["previous_response_id"] = fields["previous_response_id"]
    keeps = flag("store", fields.get("store", True)) and settings.kept_answers_days > 0
    return ResponsesRequest(
        replace(read_chat, continues={**continues, **about}), {**echoed, "store": keeps}, own, keeps
    )


def _messages(
    fields: Mapping[str, Any],
    own: Sequence[Mapping[str, Any]],
    earlier: Earlier | None,
    made: items.MessagesMaker,
) -> items.MessagesMaker:
    if "instructions" in fields:
        made.instruct(text("instructions", fields["instructions"]))
    if earlier:
        made.add(earlier.items, "previous_response_id")
    if isinstance(fields["input"], str):
        made.say(fields["input"])
    else:
        made.add(own, "input")
    return made


def _instructions(value: Any, _places: GivenPlaces) -> Parts:
    return {}, {"instructions": text("instructions", value)}


def _max_output_tokens(value: Any, _places: GivenPlaces) -> Parts:
    return {"max_completion_tokens": value}, {"max_output_tokens": value}


def _max_tool_calls(value: Any, _places: GivenPlaces) -> Parts:
    """Accept the bound of the calls of tools that run at the provider: there are none."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10_000:
        raise fault("max_tool_calls", "must be an integer from 1 to 10000")
    return {}, {"max_tool_calls": value}


def _metadata(value: Any, _places: GivenPlaces) -> Parts:
    """Check the metadata. It stays here: the vendor's chat completions take it only with a store of their own."""
    return {}, {"metadata": chat.metadata("metadata", value)}


def _tools(value: Any, places: GivenPlaces) -> Parts:
    declared = [_tool(f"tools[{number}]", one) for number, one in enumerate(listed("tools", value, tools.MAX_TOOLS))]
    for number in range(len(declared)):
        places.note(f"tools[{number}].function", f"tools[{number}]")
    asked = [{"type": "function", "function": {k: v for k, v in one.items() if k != "type"}} for one in declared]
    said = [{"description": None, "parameters": None, "strict": None, **one} for one in declared]
    return ({"tools": asked} if asked else {}), {"tools": said}


def _tool(place: str, value: Any) -> dict[str, Any]:
    kind = kind_of(required_object(place, value))
    if kind == "custom":
        raise unsupported(
            f"{place}.type", "a custom tool takes a text of no known form; give the agent a function tool"
        )
    if kind != "function":
        why = f"a tool of type {kind} runs at the provider, and nobody judges what it brings; give the agent a function tool"
        raise unsupported(f"{place}.type", why)
    given = only(place, value, (*_OF_A_TOOL, "defer_loading", "allowed_callers"))
    if flag(f"{place}.defer_loading", given.get("defer_loading", False)):
        raise unsupported(f"{place}.defer_loading", "the search for tools runs at the provider")
    if given.get("allowed_callers", ["direct"]) != ["direct"]:
        raise unsupported(f"{place}.allowed_callers", "calls that code at the provider makes are not seen here")
    return {name: given[name] for name in _OF_A_TOOL if name in given}


def _tool_choice(value: Any, places: GivenPlaces) -> Parts:
    if isinstance(value, str):
        return {"tool_choice": value}, {"tool_choice": value}
    if kind_of(required_object("tool_choice", value)) == tools.ALLOWED:
        return _allowed_tools(value, places)
    if kind_of(value) != "function":
        raise unsupported("tool_choice.type", "it is none, auto, required, a function or allowed_tools")
    choice = only("tool_choice", value, ("type", "name"))
    places.note("tool_choice.function", "tool_choice")
    return {"tool_choice": {"type": "function", "function": {"name": choice.get("name")}}}, {"tool_choice": choice}


def _allowed_tools(value: Any, places: GivenPlaces) -> Parts:
    """Take the choice of some of the declared functions."""
    choice = only("tool_choice", value, ("type", "mode", "tools"))
    named = []
    for number, one in enumerate(listed("tool_choice.tools", choice.get("tools"), tools.MAX_TOOLS)):
        place = f"tool_choice.tools[{number}]"
        if kind_of(required_object(place, one)) != "function":
            raise unsupported(f"{place}.type", "only functions can be declared")
        named.append({"type": "function", "function": {"name": only(place, one, _OF_A_TOOL).get("name")}})
        places.note(f"tool_choice.{tools.ALLOWED}.tools[{number}].function", place)
    places.note(f"tool_choice.{tools.ALLOWED}", "tool_choice")
    asked = {"type": tools.ALLOWED, tools.ALLOWED: {"mode": choice.get("mode"), "tools": named}}
    return {"tool_choice": asked}, {"tool_choice": choice}


def _text(value: Any, places: GivenPlaces) -> Parts:
    wanted = only("text", value, ("format", "verbosity"))
    asked: dict[str, Any] = {}
    said: dict[str, Any] = {"format": {"type": "text"}, **wanted}
    places.note("verbosity", "text.verbosity")
    if "verbosity" in wanted:
        asked["verbosity"] = wanted["verbosity"]
    if "format" in wanted:
        place = "text.format"
        given = only(place, wanted["format"], ("type", "name", "schema", "strict", "description"))
        kind = word(f"{place}.type", given.get("type"), ("text", "json_object", "json_schema"))
        schema = {name: one for name, one in given.items() if name != "type"}
        if kind == "json_schema":
            text(f"{place}.name", schema.get("name"))
            required_object(f"{place}.schema", schema.get("schema"))
        elif schema:
            raise unknown(f"{place}.{next(iter(schema))}")
        asked["response_format"] = {"type": kind, **({"json_schema": schema} if schema else {})}
        said["format"] = given
    return asked, {"text": said}


def _reasoning(value: Any, places: GivenPlaces) -> Parts:
    """Take the effort. A summary is not made here: what the provider tells of its reasoning is in the answer's reasoning items."""
    wanted = only("reasoning", value, ("effort", "summary", "generate_summary"))
    for name in ("summary", "generate_summary"):
        if name in wanted:
            word(f"reasoning.{name}", wanted[name], ("auto", "concise", "detailed"))
    places.note("reasoning_effort", "reasoning.effort")
    asked = {"reasoning_effort": wanted["effort"]} if "effort" in wanted else {}
    return asked, {"reasoning": wanted}


def _include(value: Any, _places: GivenPlaces) -> Parts:
    """Take what is to be in the answer. There is no encrypted reasoning in it, since what there is, is readable; and nothing of tools that
    run at the provider.
    """
    asked = {}
    for number, one in enumerate(listed("include", value, MAX_INCLUDED)):
        if word(f"include[{number}]", one, INCLUDABLE) == LOGPROBS:
            asked["logprobs"] = True
    return asked, {}


def _stream_options(value: Any, _places: GivenPlaces) -> Parts:
    options = only("stream_options", value, ("include_obfuscation",))
    return ({"stream_options": options} if options else {}), {}


_NOT_ECHOED = ("model", "stream", "interlock", "service_tier")
_PARTS: Mapping[str, Callable[[Any, GivenPlaces], Parts]] = {
    "instructions": _instructions,
    "max_output_tokens": _max_output_tokens,
    "max_tool_calls": _max_tool_calls,
    "metadata": _metadata,
    "tools": _tools,
    "tool_choice": _tool_choice,
    "text": _text,
    "reasoning": _reasoning,
    "include": _include,
    "stream_options": _stream_options,
}
