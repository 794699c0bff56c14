"""A completion as server-sent events, for clients that asked to stream (SVC-2; SPEC-008 §9): as a whole, or part by part.

An answer that is analysed whole before its first byte leaves has every header. One that leaves in parts has its final values in an
event at its end, at the client's wish.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlock.sidecar.openai import strictjson

PIECE = 512
"""Characters of one content chunk."""

CHUNK = "chat.completion.chunk"
KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"


def encode(completion: Mapping[str, Any], *, include_usage: bool) -> bytes:
    """Return the stream of a checked *completion*."""
    frame = {name: completion[name] for name in completion if name not in {"choices", "usage", "object"}}
    frame |= {"object": CHUNK} | ({"usage": None} if include_usage else {})
    chunks = [{**frame, "choices": [part]} for choice in completion["choices"] for part in _parts(choice)]
    if include_usage:
        chunks.append({**frame, "choices": [], "usage": completion.get("usage")})
    return b"".join(map(event, chunks)) + DONE


def part(frame: Mapping[str, Any], text: str, *, first: bool = False) -> bytes:
    """Return one released part of the content as a chunk; the *first* one names the role."""
    delta = {**({"role": "assistant"} if first else {}), "content": text}
    return event({**frame, "object": CHUNK, "choices": [_part(0, delta)]})


def rest(
    frame: Mapping[str, Any], completion: Mapping[str, Any], released: int, *, include_usage: bool
) -> Iterator[bytes]:
    """Yield what is left of a checked *completion* of which *released* characters of the content have left."""
    choice = completion["choices"][0]
    content = choice["message"]["content"] or ""
    left = {**choice, "message": {**choice["message"], "content": content[released:]}}
    frame = {**frame, "object": CHUNK} | ({"usage": None} if include_usage else {})
    for number, one in enumerate(_parts(left)):
        if number:  # the role has been named
            yield event({**frame, "choices": [one]})
    if include_usage:
        yield event({**frame, "choices": [], "usage": completion.get("usage")})


def cut(frame: Mapping[str, Any]) -> bytes:
    """Return the end of an answer of which the rest may not leave."""
    return event({**frame, "object": CHUNK, "choices": [_part(0, {}, finish_reason="content_filter")]})


def final(frame: Mapping[str, Any], values: Mapping[str, str]) -> bytes:
    """Return the final CRP values as an event of its own, in the shape of a chunk without choices."""
    return b"event: crp\n" + event({**frame, "object": CHUNK, "choices": [], "crp": dict(values)})


def event(value: Any) -> bytes:
    """Return a value as one event."""
    return b"data: " + strictjson.dumps(value) + b"\n\n"


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
