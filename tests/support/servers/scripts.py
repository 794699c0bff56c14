"""Scripted streams of providers of every API: what stands before the text, the text piece by piece, and what stands behind it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.servers import streaming
from tests.support.servers.streaming import DONE, chunk, usage


@dataclass(frozen=True)
class Script:
    """One answer as it is streamed."""

    begins: list[bytes]
    says: list[bytes]
    ends: list[bytes]

    @property
    def whole(self) -> list[bytes]:
        return [*self.begins, *self.says, *self.ends]


def named(kind: str, **fields: Any) -> bytes:
    """One event with its name, as OpenAI's Responses and Anthropic's Messages have them."""
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode()


def chat(*texts: str, reasoning: str = "", call: str = "", cut_off: bool = False) -> Script:
    """A chat completion. *call*: arguments of a call of f. *cut_off*: it ends by its length."""
    thought = [chunk({"reasoning_content": one}) for one in (reasoning[:3], reasoning[3:]) if one]
    calls = [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": call[:4]}},
             {"index": 0, "function": {"arguments": call[4:]}}] if call else []  # fmt: skip
    called = [chunk({"tool_calls": [one]}) for one in calls]
    return Script(
        [chunk({"role": "assistant", "content": ""}), *thought],
        [chunk({"content": text}) for text in texts],
        [*called, chunk(finish="length" if cut_off else "tool_calls" if call else "stop"), usage(), DONE],
    )


def messages(*texts: str, reasoning: str = "", call: str = "", cut_off: bool = False) -> Script:
    """A message of Anthropic's."""
    begins = [
        named("message_start", message={**_MESSAGE, "usage": {"input_tokens": 10, "output_tokens": 1}}),
        named("ping"),
    ]
    number = 0
    if reasoning:
        pieces = [{"type": "thinking_delta", "thinking": one} for one in (reasoning[:3], reasoning[3:])]
        begins += _block(
            0, {"type": "thinking", "thinking": ""}, [*pieces, {"type": "signature_delta", "signature": "s"}]
        )
        number = 1
    begins.append(named("content_block_start", index=number, content_block={"type": "text", "text": ""}))
    says = [named("content_block_delta", index=number, delta={"type": "text_delta", "text": text}) for text in texts]
    ends = [named("content_block_stop", index=number)]
    if call:
        pieces = [{"type": "input_json_delta", "partial_json": one} for one in ("", call[:4], call[4:])]
        ends += _block(number + 1, {"type": "tool_use", "id": "t", "name": "f", "input": {}}, pieces)
    stop = "max_tokens" if cut_off else "tool_use" if call else "end_turn"
    told = {"stop_reason": stop, "stop_sequence": None}
    ends += [named("message_delta", delta=told, usage={"output_tokens": 5}), named("message_stop")]
    return Script(begins, says, ends)


_MESSAGE: Mapping[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "x",
    "content": [],
    "stop_reason": None,
}


def _block(index: int, block: Mapping[str, Any], deltas: list[dict[str, Any]]) -> list[bytes]:
    return [
        named("content_block_start", index=index, content_block=block),
        *(named("content_block_delta", index=index, delta=one) for one in deltas),
        named("content_block_stop", index=index),
    ]


def responses(*texts: str, reasoning: str = "", call: str = "", cut_off: bool = False, repeats: bool = True) -> Script:
    """A Response. *repeats*: whether its last event has the whole output, as the vendor's has."""
    begins = [named("response.created", response={**_RESPONSE, "status": "in_progress"})]
    output: list[dict[str, Any]] = []
    if reasoning:
        item = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": reasoning}]}
        begins.append(named("response.output_item.added", output_index=0, item={**item, "summary": []}))
        place = {"item_id": "rs", "output_index": 0, "summary_index": 0}
        begins += [
            named("response.reasoning_summary_text.delta", **place, delta=one) for one in (reasoning[:3], reasoning[3:])
        ]
        begins.append(named("response.output_item.done", output_index=0, item=item))
        output.append(item)
    at, part = len(output), {"type": "output_text", "text": "".join(texts), "annotations": []}
    said = {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [part]}
    begun = {**said, "status": "in_progress", "content": []}
    place = {"item_id": "msg", "output_index": at, "content_index": 0}
    begins += [
        named("response.output_item.added", output_index=at, item=begun),
        named("response.content_part.added", **place, part={**part, "text": ""}),
    ]
    says = [named("response.output_text.delta", **place, delta=text) for text in texts]
    ends = [
        named("response.output_text.done", **place, text=part["text"]),
        named("response.output_item.done", output_index=at, item=said),
    ]
    output.append(said)
    if call:
        item = {
            "type": "function_call",
            "id": "fc",
            "call_id": "c",
            "name": "f",
            "arguments": call,
            "status": "completed",
        }
        ends += [
            named("response.output_item.added", output_index=at + 1, item={**item, "arguments": ""}),
            named("response.function_call_arguments.delta", item_id="fc", output_index=at + 1, delta=call),
            named("response.output_item.done", output_index=at + 1, item=item),
        ]
        output.append(item)
    counts = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    status = "incomplete" if cut_off else "completed"
    why = {"incomplete_details": {"reason": "max_output_tokens"}} if cut_off else {}
    last = {**_RESPONSE, "status": status, "output": output if repeats else [], "usage": counts, **why}
    return Script(begins, says, [*ends, named(f"response.{status}", response=last)])


_RESPONSE: Mapping[str, Any] = {"id": "resp", "object": "response", "created_at": 1, "model": "x", "output": []}

SCRIPTS: Mapping[str, Callable[..., Script]] = {"chat": chat, "messages": messages, "responses": responses}
"""By the API that the provider is asked by."""

FAILS: Mapping[str, bytes] = {
    "chat": streaming.event({"error": {"message": "secret"}}),
    "messages": named("error", error={"type": "overloaded_error", "message": "secret"}),
    "responses": named(
        "response.failed",
        response={**_RESPONSE, "status": "failed", "error": {"code": "server_error", "message": "secret"}},
    ),
}
"""How a provider says in mid-stream that it failed."""
