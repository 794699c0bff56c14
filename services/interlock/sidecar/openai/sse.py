"""A finished completion as server-sent events, for clients that asked to stream (SVC-2; SPEC-008 §9, buffered).

The answer is analysed whole before its first byte leaves, so that every header is there and both forms are decided alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlock.sidecar.openai import strictjson

PIECE = 512
"""Characters of one content chunk."""

DONE = b"data: [DONE]\n\n"


def encode(completion: Mapping[str, Any], *, include_usage: bool) -> bytes:
    """Return the stream of a checked *completion*."""
    frame = {name: completion[name] for name in completion if name not in {"choices", "usage", "object"}}
    frame |= {"object": "chat.completion.chunk"} | ({"usage": None} if include_usage else {})
    chunks = [{**frame, "choices": [part]} for choice in completion["choices"] for part in _parts(choice)]
    if include_usage:
        chunks.append({**frame, "choices": [], "usage": completion.get("usage")})
    return b"".join(b"data: " + strictjson.dumps(chunk) + b"\n\n" for chunk in chunks) + DONE


def _parts(choice: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    index, message, logprobs = choice["index"], choice["message"], choice.get("logprobs")
    yield _part(index, {"role": "assistant", "content": ""}, logprobs)
    for name in ("reasoning_content", "content", "refusal"):
        text = message.get(name) or ""
        for start in range(0, len(text), PIECE):
            yield _part(index, {name: text[start : start + PIECE]})
    for number, call in enumerate(message.get("tool_calls", ())):
        yield _part(index, {"tool_calls": [{"index": number, **call}]})
    if "function_call" in message:
        yield _part(index, {"function_call": message["function_call"]})
    yield _part(index, {}, finish_reason=choice["finish_reason"])


def _part(
    index: int, delta: Mapping[str, Any], logprobs: Any = None, *, finish_reason: str | None = None
) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}
