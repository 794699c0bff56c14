"""A chat request as a request of a provider's Responses API (``upstream_api: responses``).

The provider keeps nothing of it: what a later request goes on from is kept here. What the API has no words for is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlock.domain.errors import Refused, invalid
from interlock.sidecar.openai import media
from interlock.sidecar.openai.tools import ALLOWED

_UNKNOWN = ("stop", "seed", "logit_bias", "presence_penalty", "frequency_penalty", "functions", "function_call")
_AS_THEY_ARE = (
    "model", "temperature", "top_p", "user", "safety_identifier", "prompt_cache_key", "service_tier", "parallel_tool_calls",
    "metadata",
)  # fmt: skip
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


def check(body: Mapping[str, Any]) -> None:
    """Refuse with INVALID_PARAMETER what this API has no words for."""
    for name in _UNKNOWN:
        if name in body:
            raise _none(name, "the provider's API does not have it")
    if int(body.get("n") or 1) > 1:
        raise _none("n", "the provider's API gives one answer")
    for number, message in enumerate(body["messages"]):
        place = f"messages[{number}]"
        if message["role"] == "function" or "function_call" in message:
            raise _none(place, "the provider's API knows calls of tools only")
        if "name" in message and message["role"] != "tool":
            raise _none(f"{place}.name", "the provider's API does not have it")
    if place := media.place_of(body["messages"], media.AUDIO):
        raise _none(place, "the provider's API takes no sound")
    for name in ("modalities", "audio"):
        if body.get(name, ["text"]) != ["text"]:
            raise _none(name, "the provider's API answers in text")


def made(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request for a checked chat request."""
    request: dict[str, Any] = {name: body[name] for name in _AS_THEY_ARE if name in body}
    request["input"] = [item for message in body["messages"] for item in _items(message)]
    request["store"] = False
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    if limit:
        request["max_output_tokens"] = limit
    if body.get("tools"):
        request["tools"] = [_tool(one["function"]) for one in body["tools"]]
    if "tool_choice" in body:
        request["tool_choice"] = _choice(body["tool_choice"])
    if "reasoning_effort" in body:
        request["reasoning"] = {"effort": body["reasoning_effort"]}
    text = _text(body)
    if text:
        request["text"] = text
    if body.get("logprobs"):
        request["include"] = ["message.output_text.logprobs"]
    return request


def _items(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the items of a message. Reasoning is left out: the provider takes back only what it kept or encrypted itself."""
    role, content = message["role"], message.get("content")
    if role == "tool":
        yield {
            "type": "function_call_output",
            "call_id": message["tool_call_id"],
            "output": _parts(content, "input_text"),
        }
        return
    kind = "output_text" if role == "assistant" else "input_text"
    parts = _parts(content, kind) if content else ""
    if message.get("refusal"):
        said = [{"type": kind, "text": parts}] if isinstance(parts, str) and parts else list(parts)
        parts = [*said, {"type": "refusal", "refusal": message["refusal"]}]
    if parts or role != "assistant":
        yield {"type": "message", "role": role, "content": parts}
    for call in message.get("tool_calls", ()):
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def _parts(content: Any, kind: str) -> Any:
    if isinstance(content, str):
        return content
    return [_part(part, kind) for part in content]


def _part(part: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    if part["type"] == "refusal":
        return part
    if part["type"] == "image_url":
        image = part["image_url"]
        return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}
    if part["type"] == "file":
        return {"type": "input_file", **part["file"]}
    return {"type": kind, "text": part["text"]}


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function. Chat's default is not to be strict, and this API's is: it is always said."""
    return {"type": "function", "parameters": _NO_PARAMETERS, "strict": False, **function}


def _choice(given: Any) -> Any:
    """Return a choice of tools; this API has no object around a function."""
    if isinstance(given, str):
        return given
    if given["type"] == ALLOWED:
        named = given[ALLOWED]
        return {"type": ALLOWED, "mode": named["mode"], "tools": [_choice(one) for one in named["tools"]]}
    return {"type": "function", **given["function"]}


def _text(body: Mapping[str, Any]) -> dict[str, Any]:
    text: dict[str, Any] = {"verbosity": body["verbosity"]} if "verbosity" in body else {}
    wanted = body.get("response_format")
    if wanted:
        text["format"] = {"type": wanted["type"], **wanted.get("json_schema", {})}
    return text


def _none(param: str, why: str) -> Refused:
    return invalid("INVALID_PARAMETER", f"{param}: {why} (upstream_api is responses)", param=param)
