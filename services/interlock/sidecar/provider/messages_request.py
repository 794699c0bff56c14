"""A chat request as a request of Anthropic's Messages API, for a provider that is asked by it (API-2).

What that API has no word for is refused by name before anything is begun. What only concerns the provider's records and its cache
(``metadata``, ``store``, ``prompt_cache_key``) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from interlock.domain.errors import Refused, invalid
from interlock.sidecar.openai import media, strictjson
from interlock.sidecar.openai.tools import ALLOWED

MOST_TOKENS = 4096
"""Tokens of an answer to a request that sets no limit: this API demands one."""

_ID = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)
_DEEPEST = 64
_NO_WORD = (
    "seed", "logit_bias", "logprobs", "presence_penalty", "frequency_penalty", "verbosity", "functions", "function_call",
)  # fmt: skip
_TIERS: Mapping[str, str] = {"auto": "auto", "default": "standard_only"}
_CHOICES: Mapping[str, str] = {"auto": "auto", "required": "any", "none": "none"}
_EFFORTS: Mapping[str, str] = {"minimal": "low", **{word: word for word in ("low", "medium", "high", "xhigh", "max")}}
_PASSED = ("model", "temperature", "top_p", "top_k")

Blocks = list[dict[str, Any]]


def check(body: Mapping[str, Any]) -> None:
    """Refuse a chat request that this API has no words for, with INVALID_PARAMETER; ``param`` names the place."""
    for name in _NO_WORD:
        if body.get(name):
            raise _refused(name, f"{name} is not known to the provider's API")
    if (body.get("n") or 1) > 1:
        raise _refused("n", "n must be 1: the provider's API gives one answer")
    if (body.get("temperature") or 0) > 1:
        raise _refused("temperature", "temperature must be at most 1 for the provider's API")
    if body.get("service_tier", "auto") not in _TIERS:
        raise _refused("service_tier", "service_tier must be auto or default for the provider's API")
    if body.get("response_format", {}).get("type") == "json_object":
        raise _refused("response_format", "the provider's API has no json_object: give a json_schema")
    for number, message in enumerate(body["messages"]):
        if message["role"] == "function" or "function_call" in message:
            raise _refused(f"messages[{number}]", "functions are not known to the provider's API: use tools")
    _check_media(body)


def _check_media(body: Mapping[str, Any]) -> None:
    if place := media.place_of(body["messages"], media.AUDIO):
        raise _refused(place, "the provider's API takes no sound")
    if place := media.place_of(body["messages"], media.FILE, without="data:application/pdf;"):
        raise _refused(place, "the provider's API takes PDF alone, as data:application/pdf;base64,BYTES")
    for name in ("modalities", "audio"):
        if body.get(name, ["text"]) != ["text"]:
            raise _refused(name, "the provider's API answers in text")


def made(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request for a checked chat request."""
    asked = {name: body[name] for name in _PASSED if name in body}
    asked["max_tokens"] = body.get("max_completion_tokens") or body.get("max_tokens") or MOST_TOKENS
    told = [text for one in body["messages"] if one["role"] in {"system", "developer"} for text in _texts(one)]
    if told:
        asked["system"] = "\n\n".join(told)
    asked["messages"] = _turns(body["messages"])
    if "stop" in body:
        asked["stop_sequences"] = [body["stop"]] if isinstance(body["stop"], str) else list(body["stop"])
    if user := body.get("user") or body.get("safety_identifier"):
        asked["metadata"] = {"user_id": user}
    if "service_tier" in body:
        asked["service_tier"] = _TIERS[body["service_tier"]]
    if "tools" in body:
        asked["tools"] = [_tool(one["function"]) for one in _offered(body)]
        asked |= _choice(body)
    return asked | _output(body) | _thinking(body)


def _turns(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the turns. Neighbours of one role are one turn: results of tools stand together in the turn after their calls."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] in {"system", "developer"}:
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = _result(message) if message["role"] == "tool" else [*_said(message), *_calls(message)]
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content") or ""
    parts = [content] if isinstance(content, str) else [one.get("text") or one.get("refusal") or "" for one in content]
    yield from (text for text in (*parts, message.get("refusal") or "") if text)


def _said(message: Mapping[str, Any]) -> Blocks:
    """Return what a message says. Earlier reasoning is left out: without the provider's signature it would be refused."""
    content = message.get("content")
    if not isinstance(content, list) or message["role"] != "user":
        return [{"type": "text", "text": text} for text in _texts(message)]
    return [_shown(part) if part["type"] in media.PARTS else {"type": "text", "text": part["text"]} for part in content if part.get("text") != ""]  # fmt: skip


def _shown(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return an image or a file of the user as a block."""
    if part["type"] == "image_url":
        return {"type": "image", "source": _source(part["image_url"]["url"])}
    file = part["file"]
    titled = {"title": file["filename"]} if "filename" in file else {}
    return {"type": "document", "source": _source(file["file_data"]), **titled}


def _source(url: str) -> dict[str, str]:
    if url[:5].lower() != "data:":
        return {"type": "url", "url": url}
    kind, _, data = url[5:].partition(";base64,")
    return {"type": "base64", "media_type": kind, "data": data}


def _calls(message: Mapping[str, Any]) -> Blocks:
    return [
        {
            "type": "tool_use",
            "id": _call_id(call["id"]),
            "name": function["name"],
            "input": _input(function["arguments"]),
        }
        for call in message.get("tool_calls", ())
        for function in [call["function"]]
    ]


def _result(message: Mapping[str, Any]) -> Blocks:
    content = "\n\n".join(_texts(message))
    return [{"type": "tool_result", "tool_use_id": _call_id(message["tool_call_id"]), "content": content}]


def _call_id(given: str) -> str:
    return _ID.sub("_", given)


def _input(arguments: str) -> Mapping[str, Any]:
    try:
        value = strictjson.loads((arguments or "{}").encode("utf-8", "surrogatepass"), max_depth=_DEEPEST)
    except Refused:
        value = None
    return value if isinstance(value, dict) else {"unreadable_arguments": arguments}


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    kept = {name: function[name] for name in ("description", "strict") if name in function}
    return {"name": function["name"], **kept, "input_schema": schema}


def _offered(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tools that the model may call: this API has no choice of some of them."""
    choice, tools = body.get("tool_choice"), body["tools"]
    if not isinstance(choice, Mapping) or choice["type"] != ALLOWED:
        return list(tools)
    names = {one["function"]["name"] for one in choice[ALLOWED]["tools"]}
    return [one for one in tools if one["function"]["name"] in names] or list(tools)


def _choice(body: Mapping[str, Any]) -> dict[str, Any]:
    given, alone = body.get("tool_choice"), body.get("parallel_tool_calls") is False
    if given is None and not alone:
        return {}
    if isinstance(given, Mapping) and given["type"] == ALLOWED:
        given = given[ALLOWED]["mode"]
    if isinstance(given, Mapping):
        choice: dict[str, Any] = {"type": "tool", "name": given["function"]["name"]}
    else:
        choice = {"type": _CHOICES[given or "auto"]}
    if alone and choice["type"] != "none":
        choice["disable_parallel_tool_use"] = True
    return {"tool_choice": choice}


def _output(body: Mapping[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if effort := _EFFORTS.get(body.get("reasoning_effort", "")):
        config["effort"] = effort
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is not None:
        config["format"] = {"type": "json_schema", "schema": schema}
    return {"output_config": config} if config else {}


def _thinking(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return how much the model is to think, where the request's other terms allow it.

    With a budget of its own it must be given its own thinking again after a tool call, which has no signature here.
    """
    wanted = body.get("thinking")
    if not wanted or body.get("temperature", 1) != 1:
        return {}
    forced = _choice(body).get("tool_choice", {}).get("type") in {"any", "tool"}
    if wanted["type"] != "disabled" and (
        forced or (wanted["type"] == "enabled" and body["messages"][-1]["role"] == "tool")
    ):
        return {}
    return {"thinking": wanted}


def _refused(param: str, why: str) -> Refused:
    return invalid("INVALID_PARAMETER", f"{why} (upstream_api is messages)", param=param)
