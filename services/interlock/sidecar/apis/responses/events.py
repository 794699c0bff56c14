"""A Response as server-sent events, each with its number: the answer was released as a whole before the first one leaves.

``ResponseEvents`` knows the order of the events and nothing of where the text comes from, so that it can be fed in parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlock.sidecar.apis.responses import answer
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.openai.sse import PIECE

_TEXTS: Mapping[str, tuple[str, str]] = {
    "output_text": ("response.output_text", "text"),
    "refusal": ("response.refusal", "refusal"),
    "reasoning_text": ("response.reasoning_text", "text"),
}
"""Name of a part's events and of its text, by its type."""


class ResponseEvents:
    """Writes the events of one response, in their order."""

    def __init__(self) -> None:
        self._number = 0
        self._output, self._part = -1, -1
        self._item: Mapping[str, Any] = {}

    def begin(self, frame: Mapping[str, Any]) -> bytes:
        """Begin the stream; *frame* is the response without its output."""
        return self._event("response.created", response=frame) + self._event("response.in_progress", response=frame)

    def open_item(self, item: Mapping[str, Any]) -> bytes:
        """Begin an item, which has no text yet."""
        self._output, self._part, self._item = self._output + 1, -1, item
        return self._event("response.output_item.added", output_index=self._output, item=item)

    def open_part(self, part: Mapping[str, Any]) -> bytes:
        """Begin a part of the item, which has no text yet."""
        self._part += 1
        return self._event("response.content_part.added", **self._place(), content_index=self._part, part=part)

    def text(self, kind: str, piece: str) -> bytes:
        """Add to the text of the part."""
        more: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
        name = f"{_TEXTS[kind][0]}.delta"
        return self._event(name, **self._place(), content_index=self._part, delta=piece, **more)

    def close_part(self, part: Mapping[str, Any]) -> bytes:
        """End the part, which is now whole."""
        name, field = _TEXTS[part["type"]]
        said = {field: part[field], **({"logprobs": part["logprobs"]} if "logprobs" in part else {})}
        place = {**self._place(), "content_index": self._part}
        return self._event(f"{name}.done", **place, **said) + self._event(
            "response.content_part.done", **place, part=part
        )

    def arguments(self, piece: str) -> bytes:
        """Add to the arguments of the call."""
        return self._event("response.function_call_arguments.delta", **self._place(), delta=piece)

    def close_arguments(self, name: str, arguments: str) -> bytes:
        """End the arguments, which are now whole."""
        said = {"name": name, "arguments": arguments}
        return self._event("response.function_call_arguments.done", **self._place(), **said)

    def close_item(self, item: Mapping[str, Any]) -> bytes:
        """End the item, which is now whole."""
        return self._event("response.output_item.done", output_index=self._output, item=item)

    def end(self, response: Mapping[str, Any]) -> bytes:
        """End the stream with the whole *response*."""
        return self._event(f"response.{response['status']}", response=response)

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item["id"], "output_index": self._output}

    def _event(self, kind: str, **values: Any) -> bytes:
        data = strictjson.dumps({"type": kind, "sequence_number": self._number, **values})
        self._number += 1
        return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


def encode(echoed: Mapping[str, Any], completion: Completion) -> bytes:
    """Return the stream of a released *completion*."""
    writer = ResponseEvents()
    whole = answer.response(echoed, completion)
    written = [writer.begin(answer.frame(echoed, completion))]
    for item in whole["output"]:
        written.extend(_item(writer, item))
    return b"".join([*written, writer.end(whole)])


def _item(writer: ResponseEvents, item: Mapping[str, Any]) -> Iterator[bytes]:
    begun = {**item, **({"status": "in_progress"} if "status" in item else {})}
    if item["type"] == "function_call":
        yield writer.open_item({**begun, "arguments": ""})
        yield from (writer.arguments(piece) for piece in _pieces(item["arguments"]))
        yield writer.close_arguments(item["name"], item["arguments"])
    else:
        yield writer.open_item({**begun, "content": []})
        for part in item["content"]:
            yield from _part(writer, part)
    yield writer.close_item(item)


def _part(writer: ResponseEvents, part: Mapping[str, Any]) -> Iterator[bytes]:
    kind = part["type"]
    field = _TEXTS[kind][1]
    yield writer.open_part({**part, field: "", **({"logprobs": []} if "logprobs" in part else {})})
    yield from (writer.text(kind, piece) for piece in _pieces(part[field]))
    yield writer.close_part(part)


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))
