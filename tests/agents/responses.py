"""The Responses API as the suite sees it on the wire: a request as the messages that it holds, an answer as the message that it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

PATH = "/v1/responses"


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with its items as messages, one for each."""
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    said = [{"role": "system", "content": body.get("instructions") or ""}, *map(_message, items)]
    return {**body, "messages": [one for one in said if one["content"] is not None]}


def _message(item: Mapping[str, Any]) -> dict[str, Any]:
    kind = item.get("type") or "message"
    if kind == "message":
        parts = item["content"]
        text = parts if isinstance(parts, str) else "".join(part.get("text", "") for part in parts)
        return {"role": item["role"], "content": text}
    if kind == "function_call":
        return {"role": "assistant", "content": item["arguments"]}
    return {"role": "tool", "content": item.get("output")}


def message_of(body: bytes) -> dict[str, Any]:
    """Return the message of an answer, or of the last event of its stream; an empty one of a stream that ended with an error."""
    text = body.decode()
    told = json.loads(text.rstrip().rpartition("data: ")[2] if text.startswith("event: ") else text)
    output = told.get("response", told).get("output") or []
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    calls = [
        {"name": item["name"], "arguments": item["arguments"]} for item in output if item["type"] == "function_call"
    ]
    made = [{"type": "function", "function": call} for call in calls]
    return {"role": "assistant", "content": "".join(part.get("text", "") for part in parts), "tool_calls": made}
