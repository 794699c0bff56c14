"""The answer of a provider that is asked by Anthropic's Messages API, as a completion: by allow-list, like every other (I17; API-2).

Text and thinking are judged, calls are judged and get ids of ours. What nobody can judge is left out and counted: signatures of
thinking, redacted thinking, citations, blocks of tools that run at the provider, and why a model refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.domain.errors import Refused
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.calls import tool_calls
from interlock.sidecar.openai.completion import FINISHES, AnswerAsked, Completion, assembled
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.openai.fields import DroppedFields

_FRAME = ("id", "type", "role", "model", "content", "stop_reason", "usage")
_TIERS: Mapping[str, str] = {"standard": "default", "priority": "priority"}
_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_USAGE = (*_COUNTS, "output_tokens_details", "service_tier", "cache_creation", "server_tool_use")
_ENDS: Mapping[str, str] = {**FINISHES, "model_context_window_exceeded": "length"}


def read(data: bytes, asked: AnswerAsked, *, max_depth: int) -> Completion:
    """Return the answer in a provider's response body. Refused with UPSTREAM_INVALID_RESPONSE when it is no message."""
    try:
        value = strictjson.loads(data, max_depth=max_depth)
    except Refused as refused:
        raise malformed(refused.reason) from None
    blocks = value.get("content") if isinstance(value, dict) else None
    if not isinstance(blocks, list) or value.get("type", "message") != "message":
        raise malformed("CONTENT")
    if value.get("role", "assistant") != "assistant":
        raise malformed("ROLE")
    dropped = DroppedFields()
    dropped.unread(value, _FRAME)
    message = _message(blocks, dropped)
    choice = {"index": 0, "message": message, "finish_reason": _finish(value.get("stop_reason"), message, dropped)}
    given = value.get("usage")
    usage = given if isinstance(given, dict) else {}
    if given and not usage:
        dropped.note("usage")
    frame = {
        "id": "chatcmpl-unnamed",
        "object": "chat.completion",
        "created": 0,
        "model": asked.model,
        **_tier(usage, dropped),
    }
    return assembled(frame, [choice], _usage(usage, dropped), dropped=dropped.names)


def _message(blocks: list[Any], dropped: DroppedFields) -> dict[str, Any]:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    before = ""
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            # A citation cuts a text into blocks; blocks of something else between two texts do not.
            texts += [*(["\n\n"] if texts and before != "text" else []), _text(block, "text", dropped, "text")]
        elif kind == "thinking":
            thoughts.append(_text(block, "thinking", dropped, "thinking"))
        elif kind == "tool_use":
            calls.append(_call(block, dropped))
        elif isinstance(kind, str):
            dropped.note("redacted_thinking" if kind == "redacted_thinking" else "other")
        else:
            raise malformed("BLOCK")
        before = kind
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or None}
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thoughts)
    if calls:
        message["tool_calls"] = tool_calls(calls, 0, dropped)
    return message


def _text(block: Mapping[str, Any], name: str, dropped: DroppedFields, kind: str) -> str:
    dropped.unread(block, ("type", name))
    value = block.get(name)
    if not isinstance(value, str):
        raise malformed(kind.upper())
    return value


def _call(block: Mapping[str, Any], dropped: DroppedFields) -> dict[str, Any]:
    """Return a call as a chat completion has it. Who called is a word of the vendor's for calls that are not made here."""
    dropped.unread(block, ("type", "id", "name", "input"))
    if not isinstance(block.get("input"), dict):
        raise malformed("TOOL_CALL")
    arguments = strictjson.dumps(block["input"]).decode()
    return {"id": block.get("id"), "type": "function", "function": {"name": block.get("name"), "arguments": arguments}}


def _finish(value: Any, message: Mapping[str, Any], dropped: DroppedFields) -> str:
    known = _ENDS.get(value) if isinstance(value, str) else None
    if known is None and value:
        dropped.note("finish_reason")
    return known or ("tool_calls" if "tool_calls" in message else "stop")


def _tier(usage: Mapping[str, Any], dropped: DroppedFields) -> dict[str, str]:
    given = usage.get("service_tier")
    known = _TIERS.get(given) if isinstance(given, str) else None
    if given and known is None:
        dropped.note("service_tier")
    return {"service_tier": known} if known else {}


def _usage(given: Mapping[str, Any], dropped: DroppedFields) -> dict[str, Any]:
    """Return the counts as chat completions tell them: the prompt's hold what was read from a cache."""
    if any(name not in _USAGE and one not in (None, 0, "") for name, one in given.items()):
        dropped.note("usage")
    counts = {name: _count(given.get(name)) for name in _COUNTS}
    if counts["input_tokens"] is None and counts["output_tokens"] is None:
        return {}
    known = {name: count or 0 for name, count in counts.items()}
    read_, written = known["cache_read_input_tokens"], known["cache_creation_input_tokens"]
    prompt, answer = known["input_tokens"] + read_ + written, known["output_tokens"]
    usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    if read_ or written:
        usage["prompt_tokens_details"] = {"cached_tokens": read_, "cache_write_tokens": written}
    details = given.get("output_tokens_details")
    thought = _count(details.get("thinking_tokens")) if isinstance(details, dict) else None
    if thought:
        usage["completion_tokens_details"] = {"reasoning_tokens": thought}
    return usage


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
