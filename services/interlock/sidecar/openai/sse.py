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
FINAL = b"event: crp\n"
"""Begins the event of the final CRP values."""


def encode(completion: Mapping[str, Any], *, include_usage: bool) -> bytes:
    """Return the stream of a checked *completion*."""
    return ChunkWriter(completion, include_usage=include_usage).end(completion) + DONE


class ChunkWriter:
    """Writes one completion in chunks, in parts or at once. What has left is not said again."""

    def __init__(self, head: Mapping[str, Any], *, include_usage: bool) -> None:
        """Prepare the chunks around an answer with the id, the time and the model of *head*."""
        frame = {name: head[name] for name in head if name not in {"choices", "usage", "object"}}
        self._frame = frame | {"object": CHUNK} | ({"usage": None} if include_usage else {})
        self._include_usage = include_usage
        self._left = {"reasoning_content": 0, "content": 0}

    def part(self, reasoning: str, text: str) -> bytes:
        """Return the next part of the only choice; the first one names the role."""
        role = {} if any(self._left.values()) else {"role": "assistant"}
        said = {"reasoning_content": reasoning, "content": text}
        deltas = [{name: piece} for name, piece in said.items() if piece]
        for name, piece in said.items():
            self._left[name] += len(piece)
        return b"".join(self._chunk(_part(0, one)) for one in [role | deltas[0], *deltas[1:]])

    def end(self, completion: Mapping[str, Any]) -> bytes:
        """Return what is left of a checked *completion*, without the mark behind it."""
        self._frame |= {name: completion[name] for name in ("service_tier",) if name in completion}
        begun = any(self._left.values())
        parts = [part for choice in completion["choices"] for part in _parts(self._rest(choice))]
        written = [self._chunk(part) for part in parts[1 if begun else 0 :]]  # the role has been named
        if self._include_usage:
            written.append(event({**self._frame, "choices": [], "usage": completion.get("usage")}))
        return b"".join(written)

    def cut(self) -> bytes:
        """Return the end of an answer of which the rest may not leave."""
        return self._chunk(_part(0, {}, finish_reason="content_filter"))

    def final(self, values: Mapping[str, str]) -> bytes:
        """Return the final CRP values as an event of its own, in the shape of a chunk without choices."""
        return FINAL + event({**self._frame, "choices": [], "crp": dict(values)})

    def _rest(self, choice: Mapping[str, Any]) -> Mapping[str, Any]:
        message = choice["message"]
        return {**choice, "message": {**message, **{n: (message.get(n) or "")[at:] for n, at in self._left.items()}}}

    def _chunk(self, part: Mapping[str, Any]) -> bytes:
        return event({**self._frame, "choices": [part]})


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
