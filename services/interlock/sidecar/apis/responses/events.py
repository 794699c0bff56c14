"""The order of the server-sent events of one Response, each with its number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.sidecar.openai import strictjson

TEXTS: Mapping[str, tuple[str, str]] = {
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
        name = f"{TEXTS[kind][0]}.delta"
        return self._event(name, **self._place(), content_index=self._part, delta=piece, **more)

    def close_part(self, part: Mapping[str, Any]) -> bytes:
        """End the part, which is now whole."""
        name, field = TEXTS[part["type"]]
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

    def other(self, kind: str, /, **values: Any) -> bytes:
        """Return an event that belongs to no item."""
        return self._event(kind, **values)

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item["id"], "output_index": self._output}

    def _event(self, kind: str, /, **values: Any) -> bytes:
        data = strictjson.dumps({"type": kind, "sequence_number": self._number, **values})
        self._number += 1
        return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"
