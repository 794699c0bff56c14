"""The order of Anthropic's server-sent events of one message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.sidecar.apis.messages import answer
from interlock.sidecar.apis.messages.answer import Block
from interlock.sidecar.openai import strictjson

_DELTAS = {
    "thinking": ("thinking_delta", "thinking"),
    "text": ("text_delta", "text"),
    "tool_use": ("input_json_delta", "partial_json"),
}


class MessageEvents:
    """Writes the events of one message, in their order: a piece of another block ends the one before it."""

    def __init__(self) -> None:
        self._index = -1
        self._open: Block | None = None

    def start(self, frame: Mapping[str, Any]) -> bytes:
        """Return the first events, of a message as ``answer.frame`` gives it."""
        return event("message_start", message=frame) + event("ping")

    def piece(self, block: Block, text: str) -> bytes:
        """Return the events of a piece of *block*: the same object for each piece of one block."""
        begun = b"" if block is self._open else self._ended() + self._begun(block)
        kind, name = _DELTAS[block.kind]
        return begun + event("content_block_delta", index=self._index, delta={"type": kind, name: text})

    def end(self, stop_reason: str, usage: Mapping[str, Any]) -> bytes:
        """Return why the message ends and what it used, behind its last block."""
        delta = {"stop_reason": stop_reason, "stop_sequence": None}
        told = {name: value for name, value in usage.items() if name != "service_tier"}
        return self._ended() + event("message_delta", delta=delta, usage=told)

    def _begun(self, block: Block) -> bytes:
        self._open, self._index = block, self._index + 1
        return event("content_block_start", index=self._index, content_block=answer.opened(block))

    def _ended(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        return event("content_block_stop", index=self._index)


def event(kind: str, /, **fields: Any) -> bytes:
    """Return one event."""
    return f"event: {kind}\ndata: ".encode() + strictjson.dumps({"type": kind, **fields}) + b"\n\n"
