"""Anthropic's request, field by field, as the chat request that is governed for it (API-2, API-6).

This is an allow-list: a field that is not listed is refused by name. What a chat request has no word for is refused with the reason,
and what only concerns the provider's cache is accepted and not passed on. A test compares the lists with the ``anthropic`` package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from interlock.runtime.settings.model import Settings
from interlock.sidecar.apis.api import ApiRequest
from interlock.sidecar.apis.messages import blocks
from interlock.sidecar.openai import chat, strictjson, tools
from interlock.sidecar.openai.checks import (
    bad,
    flag,
    integer,
    items,
    mapping,
    number,
    one_of,
    only,
    shown,
    text,
    unknown,
    unsupported,
)

MOST_STOPS = 4
"""Stop sequences that a chat request takes."""
MEDIUM_FROM, HIGH_FROM = 4096, 16_384
"""Tokens of thinking from which the effort is medium, and high."""

REFUSED: Mapping[str, str] = {
    "billing_policy": "the provider's billing is its own",
    "compaction": "the provider would shorten the conversation that is judged",
    "container": "code runs at the provider: what it wrote cannot be analysed",
    "context_management": "the provider would edit the conversation that is judged",
    "diagnostics": "the provider's own diagnostics are not passed on",
    "fallback_credit_token": "the provider's billing is its own",
    "fallbacks": "the answer of another model is asked for by another request",
    "inference_geo": "where a call runs is demanded with CRP-Compliance-Data-Residency",
    "mcp_servers": "tools that run at the provider are not seen here: declare them as tools of the client",
    "speed": "the provider's serving speed is its own",
    "thread": "a conversation that the provider keeps is not seen here: send its messages",
    "user_profile_id": "profiles of the provider are not passed on",
    "workspace_id": "workspaces of the provider are not passed on",
}
"""Fields of the vendor that are refused by name, and why."""

_Made = Mapping[str, Any]


def read(data: bytes, settings: Settings) -> ApiRequest:
    """Return the checked request of a body.

    Refused with INVALID_REQUEST, INVALID_PARAMETER, UNKNOWN_PARAMETER or UNSUPPORTED_CONTENT; ``param`` names the place.
    """
    value = strictjson.loads_object(data, max_depth=settings.max_json_depth)
    given = {name: one for name, one in value.items() if one is not None}
    for name in given:
        _check_known(name, settings)
    for name in ("model", "max_tokens", "messages"):
        if name not in given:
            raise bad(name, "is required")
    made: dict[str, Any] = {}
    for name, one in given.items():
        if name == "messages":
            made[name] = blocks.chat_messages(one, media_pass=settings.unjudged_media == "pass")
        elif name not in _LEFT_OUT:
            made |= _READERS[name](one)
    system = blocks.told("system", given["system"]) if given.get("system") else ""
    made["messages"] = [*([{"role": "system", "content": system}] if system else []), *made["messages"]]
    own: dict[str, Any] = {name: made.pop(name) for name in ("top_k", "thinking") if name in made}
    if settings.upstream_api != "messages":
        kept = {name: own[name] for name in ("top_k",) if name in own}
        return ApiRequest(chat.read({**_effort(own, made), **kept}, settings))
    checked = chat.read(made, settings)
    return ApiRequest(replace(checked, body={**checked.body, **own}))


def _check_known(name: str, settings: Settings) -> None:
    if name in REFUSED:
        raise unsupported(name, f"{name} is not supported: {REFUSED[name]}")
    if name not in _READERS and name not in _LEFT_OUT:
        raise unknown(shown(name))
    if name == "top_k" and settings.upstream_api != "messages" and name not in chat.of_the_provider(settings):
        raise unsupported(name, "the provider has no top_k, by its API and by provider_parameters")


def _tools(value: Any) -> _Made:
    if value == []:
        return {}
    return {
        "tools": [_tool(f"tools[{place}]", one) for place, one in enumerate(items("tools", value, tools.MAX_TOOLS))]
    }


def _tool(place: str, value: Any) -> dict[str, Any]:
    kind = mapping(place, value).get("type")
    if kind not in (None, "custom"):
        named = shown(kind) if isinstance(kind, str) else "?"
        why = f"{named} is a tool of the provider's: only tools that the client declares with an input_schema are supported"
        raise unsupported(f"{place}.type", why)
    given = only(
        place, value, "type", "name", "description", "input_schema", "strict", "cache_control", "eager_input_streaming",
        "allowed_callers", "defer_loading", "input_examples",
    )  # fmt: skip
    if given.get("allowed_callers", ["direct"]) != ["direct"]:
        raise unsupported(f"{place}.allowed_callers", "calls that code at the provider makes are not seen here")
    if flag(f"{place}.defer_loading", given.get("defer_loading")):
        raise unsupported(f"{place}.defer_loading", "the search for tools runs at the provider")
    function: dict[str, Any] = {
        "name": text(f"{place}.name", given.get("name")),
        "parameters": mapping(f"{place}.input_schema", given.get("input_schema")),
    }
    if "description" in given:
        function["description"] = text(f"{place}.description", given["description"])
    if "strict" in given:
        function["strict"] = flag(f"{place}.strict", given["strict"])
    return {"type": "function", "function": function}


def _tool_choice(value: Any) -> _Made:
    given = only("tool_choice", value, "type", "name", "disable_parallel_tool_use")
    kind = one_of("tool_choice.type", given.get("type"), "auto", "any", "tool", "none")
    made: dict[str, Any] = {"tool_choice": "required" if kind == "any" else kind}
    if kind == "tool":
        name = text("tool_choice.name", given.get("name"))
        made["tool_choice"] = {"type": "function", "function": {"name": name}}
    if flag("tool_choice.disable_parallel_tool_use", given.get("disable_parallel_tool_use")):
        made["parallel_tool_calls"] = False
    return made


def _thinking(value: Any) -> _Made:
    given = only("thinking", value, "type", "budget_tokens", "display")
    kind = one_of("thinking.type", given.get("type"), "enabled", "disabled", "adaptive", "between_tools")
    if kind == "enabled":
        integer("thinking.budget_tokens", given.get("budget_tokens"), 1024, 10_000_000)
    if "display" in given:
        one_of("thinking.display", given["display"], "summarized", "omitted")
    return {"thinking": given}


def _effort(own: _Made, made: dict[str, Any]) -> dict[str, Any]:
    """Return the request with the effort that a budget of thinking stands for: a chat request knows no budget."""
    budget = own.get("thinking", {}).get("budget_tokens")
    if budget is None or "reasoning_effort" in made:
        return made
    effort = "low" if budget < MEDIUM_FROM else "medium" if budget < HIGH_FROM else "high"
    return {**made, "reasoning_effort": effort}


def _output_config(value: Any) -> _Made:
    given = only("output_config", value, "effort", "format")
    made: dict[str, Any] = {}
    if "effort" in given:
        efforts = ("low", "medium", "high", "xhigh", "max")
        made["reasoning_effort"] = one_of("output_config.effort", given["effort"], *efforts)
    if "format" in given:
        wanted = only("output_config.format", given["format"], "type", "schema")
        one_of("output_config.format.type", wanted.get("type"), "json_schema")
        schema = mapping("output_config.format.schema", wanted.get("schema"))
        made["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema, "strict": True},
        }
    return made


def _stops(value: Any) -> _Made:
    if value == []:
        return {}
    listed = items("stop_sequences", value, MOST_STOPS)
    return {"stop": [text(f"stop_sequences[{place}]", one) for place, one in enumerate(listed)]}


def _metadata(value: Any) -> _Made:
    given = only("metadata", value, "user_id")
    return {"user": given["user_id"]} if given else {}


def _tier(value: Any) -> _Made:
    tier = one_of("service_tier", value, "auto", "standard_only")
    return {"service_tier": "auto" if tier == "auto" else "default"}


_READERS: Mapping[str, Callable[[Any], _Made]] = {
    "model": lambda value: {"model": text("model", value)},
    "max_tokens": lambda value: {"max_completion_tokens": integer("max_tokens", value, 1, 10_000_000)},
    "messages": lambda value: {"messages": blocks.chat_messages(value)},
    "tools": _tools,
    "tool_choice": _tool_choice,
    "stop_sequences": _stops,
    "stream": lambda value: {"stream": flag("stream", value)},
    "temperature": lambda value: {"temperature": number("temperature", value, 0, 1)},
    "top_p": lambda value: {"top_p": number("top_p", value, 0, 1)},
    "top_k": lambda value: {"top_k": integer("top_k", value, 0, 1_000_000)},
    "thinking": _thinking,
    "output_config": _output_config,
    "metadata": _metadata,
    "service_tier": _tier,
    "interlock": lambda value: {"interlock": mapping("interlock", value)},
}
_LEFT_OUT = frozenset({"cache_control", "system"})
"""Fields that are not read alone: how the provider caches is not passed on, and the system prompt becomes the first message."""
NAMES = frozenset(_READERS) | _LEFT_OUT
"""Every field that is accepted."""
