"""A judged completion as a Response object: what a model wrote was judged, the ids are ours, the rest is the request's own or a fixed word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from interlock.sidecar.call.binding import ANSWER
from interlock.sidecar.openai.completion import Completion

_WINDOW = r"([0-9a-f]{32})"
_RESPONSE = re.compile(f"resp_{_WINDOW}", re.ASCII)
_ITEM = re.compile(f"(?:msg|rs|fc)_{_WINDOW}[0-9a-f]{{2,4}}", re.ASCII)

INCOMPLETE: Mapping[str, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why an answer is incomplete, by how the completion ended."""

_DEFAULTS: Mapping[str, Any] = {
    "background": False, "instructions": None, "max_output_tokens": None, "max_tool_calls": None, "metadata": {},
    "parallel_tool_calls": True, "previous_response_id": None, "reasoning": {"effort": None, "summary": None},
    "temperature": None, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": None,
    "truncation": "disabled",
}  # fmt: skip


def window_of(response_id: str) -> str | None:
    """Return the window whose answer has this id; ``None`` for an id that is not ours."""
    found = _RESPONSE.fullmatch(response_id)
    return f"crp_win_{found[1]}" if found else None


def response_of(item_id: str) -> str | None:
    """Return the id of the response that an item belongs to; ``None`` for an id that is not ours."""
    found = _ITEM.fullmatch(item_id)
    return f"resp_{found[1]}" if found else None


def answer_id(response_id: str) -> str:
    """Return the id of the same answer in the chat front, by which its session is found."""
    return ANSWER + response_id.removeprefix("resp_")


def response(echoed: Mapping[str, Any], completion: Completion) -> dict[str, Any]:
    """Return the Response object of a released *completion*; *echoed* is what it says again of its request."""
    choice = completion.choices[0]
    why = INCOMPLETE.get(choice["finish_reason"])
    return {
        **frame(echoed, completion),
        "status": "incomplete" if why else "completed",
        "incomplete_details": {"reason": why} if why else None,
        "output": output(completion),
        "usage": _usage(completion.usage),
    }


def frame(echoed: Mapping[str, Any], completion: Completion) -> dict[str, Any]:
    """Return what stands around the output, as it is while the answer comes."""
    given = completion.completion
    return {
        "id": "resp_" + _window(completion),
        "object": "response",
        "created_at": given["created"],
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": given["model"],
        "output": [],
        **_DEFAULTS,
        **echoed,
        **({"service_tier": given["service_tier"]} if "service_tier" in given else {}),
        "usage": None,
    }


def output(completion: Completion) -> list[dict[str, Any]]:
    """Return the items of an answer: its reasoning, its message, its calls, in this order."""
    choice = completion.choices[0]
    message = choice["message"]
    status = "incomplete" if choice["finish_reason"] in INCOMPLETE else "completed"
    items: list[dict[str, Any]] = []
    if message.get("reasoning_content"):
        content = [{"type": "reasoning_text", "text": message["reasoning_content"]}]
        items.append({"type": "reasoning", "summary": [], "content": content})
    if parts := _parts(choice):
        items.append({"type": "message", "role": "assistant", "status": status, "content": parts})
    for call in _calls(message):
        call_id = call.get("id", "call_" + _window(completion))
        items.append({"type": "function_call", "call_id": call_id, **call["function"], "status": status})
    return [{"id": _item_id(completion, item["type"], number), **item} for number, item in enumerate(items)]


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the calls of a message, also the one of an older model, which has no id."""
    older = [{"function": message["function_call"]}] if "function_call" in message else []
    return [*message.get("tool_calls", ()), *older]


def _parts(choice: Mapping[str, Any]) -> list[dict[str, Any]]:
    message, spelled = choice["message"], choice.get("logprobs") or {}
    parts: list[dict[str, Any]] = []
    if message.get("content") or not (message.get("refusal") or _calls(message)):
        said: dict[str, Any] = {"type": "output_text", "text": message["content"] or "", "annotations": []}
        parts.append({**said, "logprobs": spelled.get("content", [])})
    if message.get("refusal"):
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    return parts


def _item_id(completion: Completion, kind: str, number: int) -> str:
    prefix = {"reasoning": "rs", "message": "msg", "function_call": "fc"}[kind]
    return f"{prefix}_{_window(completion)}{number:02x}"


def _window(completion: Completion) -> str:
    return str(completion.completion["id"]).removeprefix(ANSWER)


def _usage(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the counts in the words of this API; ``None`` where the provider told none."""
    if not given:
        return None
    asked, answered = given.get("prompt_tokens_details", {}), given.get("completion_tokens_details", {})
    return {
        "input_tokens": given["prompt_tokens"],
        "input_tokens_details": {
            "cache_write_tokens": asked.get("cache_write_tokens", 0), "cached_tokens": asked.get("cached_tokens", 0),
        },
        "output_tokens": given["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": answered.get("reasoning_tokens", 0)},
        "total_tokens": given["total_tokens"],
    }  # fmt: skip
