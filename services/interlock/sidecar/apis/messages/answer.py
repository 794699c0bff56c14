"""A released completion as a message of Anthropic's: its blocks, why it stopped, and what it used, in Anthropic's words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock.domain.errors import Refused
from interlock.sidecar.apis.messages.blocks import RAW_ARGUMENTS
from interlock.sidecar.openai import strictjson

STOP_REASONS: Mapping[str, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}
"""Anthropic's words for how an answer ended."""
TIERS: Mapping[str, str] = {"default": "standard", "priority": "priority"}

_DEEPEST = 64
"""Levels of a tool's input."""

SIGNATURE = ""
"""Of thinking that is released. The provider's own is text that nobody can read: it is not passed on (docs/fronts.md)."""


@dataclass(frozen=True)
class Block:
    """One block of an answer: thinking, text or tool_use."""

    kind: str
    text: str
    """What it says; of a tool_use its input as JSON."""
    tool_id: str = ""
    tool_name: str = ""


def encode(completion: Mapping[str, Any]) -> bytes:
    """Return the message of a checked *completion*, which has one choice: this API cannot ask for more."""
    message = frame(completion) | {
        "content": [content(block) for block in blocks(completion)],
        "stop_reason": stop_reason(completion),
        "usage": usage(completion),
    }
    return strictjson.dumps(message)


def frame(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands around the blocks of an answer that has not begun."""
    return {
        "id": "msg_" + completion["id"].removeprefix("chatcmpl-"),
        "type": "message",
        "role": "assistant",
        "model": completion["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage(completion), "output_tokens": 0},
    }


def blocks(completion: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of an answer, in Anthropic's order."""
    message = completion["choices"][0]["message"]
    said = [
        ("thinking", message.get("reasoning_content")),
        ("text", message["content"]),
        ("text", message.get("refusal")),
    ]
    made = [Block(kind, text) for kind, text in said if text]
    return [*made, *(_called(call) for call in message.get("tool_calls", ()))]


def content(block: Block) -> dict[str, Any]:
    """Return a whole block."""
    if block.kind == "tool_use":
        return {"type": "tool_use", "id": block.tool_id, "name": block.tool_name, "input": json.loads(block.text)}
    return opened(block) | {block.kind: block.text}


def opened(block: Block) -> dict[str, Any]:
    """Return a block that nothing has been said in."""
    if block.kind == "tool_use":
        return {"type": "tool_use", "id": block.tool_id, "name": block.tool_name, "input": {}}
    if block.kind == "thinking":
        return {"type": "thinking", "thinking": "", "signature": SIGNATURE}
    return {"type": "text", "text": "", "citations": None}


def stop_reason(completion: Mapping[str, Any]) -> str:
    """Return why the answer stopped. One that calls tools waits for them, whatever its provider calls that."""
    choice = completion["choices"][0]
    if choice["message"].get("refusal"):
        return "refusal"
    reason = STOP_REASONS[choice["finish_reason"]]
    return "tool_use" if reason == "end_turn" and choice["message"].get("tool_calls") else reason


def usage(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was counted: tokens that were read from a cache are no part of input_tokens here. 0 where nothing was counted."""
    counted = completion.get("usage", {})
    cached = counted.get("prompt_tokens_details", {})
    hit, written = cached.get("cached_tokens", 0), cached.get("cache_write_tokens", 0)
    told: dict[str, Any] = {
        "input_tokens": max(0, counted.get("prompt_tokens", 0) - hit - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": hit,
        "output_tokens": counted.get("completion_tokens", 0),
    }
    tier = TIERS.get(completion.get("service_tier", ""))
    return {**told, **({"service_tier": tier} if tier else {})}


def _called(call: Mapping[str, Any]) -> Block:
    function = call["function"]
    return Block("tool_use", _input(function["arguments"]), call["id"], function["name"])


def _input(arguments: str) -> str:
    """Return arguments as a JSON object. What is none stands in one field of an object, as it was judged."""
    written = arguments or "{}"
    try:
        value = strictjson.loads(written.encode("utf-8", "surrogatepass"), max_depth=_DEEPEST)
    except Refused:
        value = None
    return written if isinstance(value, dict) else json.dumps({RAW_ARGUMENTS: arguments}, ensure_ascii=False)
