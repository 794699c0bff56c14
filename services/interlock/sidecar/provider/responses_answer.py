"""The answer of a provider that is asked by OpenAI's Responses API, as a completion: by allow-list, like every other (I17; API-1).

Text, refusals, reasoning and calls are judged, and calls get ids of ours. What nobody can judge is left out and counted: encrypted
reasoning, annotations, items of tools that run at the provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlock.domain.errors import Refused
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.calls import tool_calls
from interlock.sidecar.openai.completion import SERVICE_TIERS, AnswerAsked, Completion, assembled
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.openai.fields import DroppedFields
from interlock.sidecar.openai.logprobs import spelled

_FRAME = ("id", "object", "created_at", "model", "output", "status", "incomplete_details", "usage", "service_tier")
_ECHOED = (
    "background", "billing", "completed_at", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls",
    "previous_response_id", "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "store", "temperature",
    "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user", "frequency_penalty", "presence_penalty",
)  # fmt: skip
"""What an answer says again of its request: it is left out without being counted."""

_ENDS: Mapping[str, str] = {"max_output_tokens": "length", "content_filter": "content_filter"}
_COUNTS: Mapping[str, str] = {
    "input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "total_tokens": "total_tokens",
}  # fmt: skip
_DETAILS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "input_tokens_details": ("prompt_tokens_details", ("cached_tokens", "cache_write_tokens")),
    "output_tokens_details": ("completion_tokens_details", ("reasoning_tokens",)),
}


def read(data: bytes, asked: AnswerAsked, *, max_depth: int) -> Completion:
    """Return the answer in a provider's response body. Refused with UPSTREAM_INVALID_RESPONSE when it is no finished Response."""
    try:
        value = strictjson.loads(data, max_depth=max_depth)
    except Refused as refused:
        raise malformed(refused.reason) from None
    output = value.get("output") if isinstance(value, dict) else None
    if not isinstance(output, list) or not all(isinstance(item, dict) for item in output):
        raise malformed("OUTPUT")
    if value.get("status", "completed") not in ("completed", "incomplete") or value.get("error"):
        raise malformed("STATUS")
    dropped = DroppedFields()
    dropped.unread(value, (*_FRAME, *_ECHOED, "error"))
    message, logprobs = _message(output, dropped)
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": _finish(value, message)}
    if found := spelled({"content": logprobs} if logprobs else None, message, dropped, wanted=asked.logprobs):
        choice["logprobs"] = found
    frame: dict[str, Any] = {"id": "chatcmpl-unnamed", "object": "chat.completion", "created": 0, "model": asked.model}
    tier = value.get("service_tier")
    if isinstance(tier, str) and tier in SERVICE_TIERS:
        frame["service_tier"] = tier
    elif tier:
        dropped.note("service_tier")
    return assembled(frame, [choice], _usage(value.get("usage"), dropped), dropped=dropped.names)


def _finish(value: Mapping[str, Any], message: Mapping[str, Any]) -> str:
    """Return how the answer ended; one that was broken off is incomplete, whatever broke it off."""
    if value.get("status") == "incomplete":
        details = value.get("incomplete_details")
        why = details.get("reason") if isinstance(details, dict) else None
        return _ENDS.get(why, "length") if isinstance(why, str) else "length"
    return "tool_calls" if "tool_calls" in message else "stop"


def _message(output: Sequence[Mapping[str, Any]], dropped: DroppedFields) -> tuple[dict[str, Any], list[Any]]:
    """Return the message of all items, and the log-probabilities of its text."""
    texts: list[str] = []
    refusals: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    logprobs: list[Any] = []
    for item in output:
        match item.get("type"):
            case "message":
                texts.append(_said(item, refusals, logprobs, dropped))
            case "reasoning":
                thoughts.append(_thought(item, dropped))
            case "function_call":
                calls.append(_call(item, dropped))
            case "custom_tool_call":  # a request cannot declare a custom tool, so that no answer may call one
                raise malformed("CUSTOM_TOOL_CALL")
            case _:
                dropped.note("other")
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(filter(None, texts)) or None}
    if any(refusals):
        message["refusal"] = "\n\n".join(refusals)
    if any(thoughts):
        message["reasoning_content"] = "\n\n".join(filter(None, thoughts))
    if calls:
        message["tool_calls"] = tool_calls(calls, 0, dropped)
    return message, logprobs


def _said(item: Mapping[str, Any], refusals: list[str], logprobs: list[Any], dropped: DroppedFields) -> str:
    if item.get("role", "assistant") != "assistant":
        raise malformed("ROLE")
    dropped.unread(item, ("type", "id", "role", "status", "content", "phase"))
    said: list[str] = []
    for part in _parts(item.get("content")):
        if part.get("type") == "output_text":
            dropped.unread(part, ("type", "text", "logprobs"))
            said.append(_text(part.get("text")))
            given = part.get("logprobs")
            logprobs.extend(given if isinstance(given, list) else [given] if given else [])
        elif part.get("type") == "refusal":
            dropped.unread(part, ("type", "refusal"))
            refusals.append(_text(part.get("refusal")))
        else:
            dropped.note("other")
    return "".join(said)


def _thought(item: Mapping[str, Any], dropped: DroppedFields) -> str:
    """Return what a reasoning item shows: its text, or the summary where there is no text."""
    dropped.unread(item, ("type", "id", "status", "summary", "content"))
    found = [_parts(item.get("content")), _parts(item.get("summary"))]
    for parts, kind in zip(found, ("reasoning_text", "summary_text"), strict=True):
        for part in parts:
            if part.get("type") != kind:
                raise malformed("REASONING")
            dropped.unread(part, ("type", "text"))
    return "\n\n".join(_text(part.get("text")) for parts in found for part in parts)


def _call(item: Mapping[str, Any], dropped: DroppedFields) -> dict[str, Any]:
    dropped.unread(item, ("type", "id", "status", "call_id", "name", "arguments"))
    function = {"name": item.get("name"), "arguments": item.get("arguments")}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def _parts(value: Any) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
        raise malformed("CONTENT")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise malformed("CONTENT")
    return value


def _usage(value: Any, dropped: DroppedFields) -> dict[str, Any]:
    """Return the counts in the words of a completion; none where one of the three is missing."""
    if not isinstance(value, dict):
        if value:
            dropped.note("usage")
        return {}
    counts = {ours: value[given] for given, ours in _COUNTS.items() if _count(value.get(given))}
    if len(counts) < len(_COUNTS):
        dropped.note("usage")
        return {}
    usage: dict[str, Any] = dict(counts)
    for given, (ours, names) in _DETAILS.items():
        details = value.get(given)
        if isinstance(details, dict):
            usage[ours] = {name: details[name] for name in names if _count(details.get(name))}
            if any(one not in (None, 0) for name, one in details.items() if name not in usage[ours]):
                dropped.note("usage")
    dropped.unread(value, (*_COUNTS, *_DETAILS))
    return usage


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0
