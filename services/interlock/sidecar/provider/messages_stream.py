"""The events of a message of Anthropic's, put together into the message that it would have been at once.

What nobody judges, signatures and citations, is noted and not kept: the reader of the whole leaves it out and counts it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from interlock.domain.errors import Refused
from interlock.sidecar.call.live import AnswerPart
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.provider.streams import failed, place, weight

MOST_BLOCKS = 1024
_DEEPEST = 64
_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""Type of the block and name of the text, by the type of a delta."""
_NOTED = {"signature_delta": "signature", "citations_delta": "citations"}
"""Fields of a block that nobody judges, by the type of a delta."""


@dataclass
class _Block:
    """What has come of one block."""

    kind: str
    given: dict[str, Any]
    pieces: list[str] = field(default_factory=list)
    closed: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class MessageStream:
    """The events of one message."""

    def __init__(self) -> None:
        self.ended = self.closed = False
        self._blocks: dict[int, _Block] = {}
        self._stop: Any = None
        self._usage: dict[str, Any] = {}

    @property
    def said(self) -> AnswerPart | None:
        """What there is so far where it is thinking and text."""
        texts: list[str] = []
        before = ""
        for block in self._blocks.values():
            if block.kind == "text":  # as the reader of the whole puts blocks together
                texts += [*(["\n\n"] if texts and before != "text" else []), block.text]
            elif block.kind not in {"thinking", "redacted_thinking"}:
                return None
            before = block.kind
        thoughts = [block.text for block in self._blocks.values() if block.kind == "thinking"]
        return AnswerPart("\n\n".join(thoughts), "".join(texts)) if self._blocks else None

    def marked(self) -> None:
        """Note nothing: this API ends with an event of its own."""

    def take(self, event: dict[str, Any]) -> int:
        """Take one event. Those that are not known say nothing: the vendor adds some without notice."""
        match event.get("type"):
            case "error":
                raise failed()
            case "message_start":
                message = event.get("message")
                if not isinstance(message, dict) or message.get("role", "assistant") != "assistant":
                    raise malformed("MESSAGE")
                self._count(message.get("usage"))
            case "content_block_start":
                return self._begin(event)
            case "content_block_delta":
                return self._add(event)
            case "content_block_stop":
                self._block(event).closed = True
            case "message_delta":
                self._end(event)
            case "message_stop":
                self.closed = True
        return 0

    def whole(self, *, broken_off: bool) -> bytes:
        """Return the message. A call that was broken off has no object for its input: what there is of it stands in one field."""
        blocks = [_content(block, broken_off=broken_off) for _, block in sorted(self._blocks.items())]
        stop = self._stop or ("max_tokens" if broken_off else None)
        return strictjson.dumps({"type": "message", "content": blocks, "stop_reason": stop, "usage": self._usage})

    def _begin(self, event: dict[str, Any]) -> int:
        given, number = event.get("content_block"), place(event.get("index"), MOST_BLOCKS, "BLOCK")
        kind = given.get("type") if isinstance(given, dict) else None
        if not isinstance(given, dict) or not isinstance(kind, str) or number != len(self._blocks) or self.ended:
            raise malformed("BLOCK")
        known = {name: value for name, value in given.items() if name != kind}
        block = self._blocks[number] = _Block(kind, known)
        first = given.get(kind) if kind in {"text", "thinking"} else ""
        if not isinstance(first, str):
            raise malformed(kind.upper())
        block.pieces += [first] if first else []
        return weight(given)

    def _add(self, event: dict[str, Any]) -> int:
        block, delta = self._block(event), event.get("delta")
        name = delta.get("type") if isinstance(delta, dict) else None
        if not isinstance(delta, dict) or not isinstance(name, str) or block.closed or self.ended:
            raise malformed("DELTA")
        if name in _DELTAS:
            kind, field_ = _DELTAS[name]
            piece = delta.get(field_)
            if kind != block.kind or not isinstance(piece, str):
                raise malformed("DELTA")
            block.pieces.append(piece)
            return weight(piece)
        block.given[_NOTED.get(name, name)] = True
        return 0

    def _end(self, event: dict[str, Any]) -> None:
        delta = event.get("delta")
        if not isinstance(delta, dict):
            raise malformed("DELTA")
        self._count(event.get("usage"))
        self._stop = delta.get("stop_reason") or self._stop
        self.ended = self._stop is not None

    def _block(self, event: dict[str, Any]) -> _Block:
        block = self._blocks.get(place(event.get("index"), MOST_BLOCKS, "BLOCK"))
        if block is None:
            raise malformed("BLOCK")
        return block

    def _count(self, usage: Any) -> None:
        """Take counts; those at the end are sums."""
        if isinstance(usage, dict):
            self._usage |= {name: value for name, value in usage.items() if value is not None}


def _content(block: _Block, *, broken_off: bool) -> dict[str, Any]:
    if block.kind in {"text", "thinking"}:
        return {**block.given, block.kind: block.text}
    if block.kind == "tool_use":
        return {**block.given, "input": _input(block, broken_off=broken_off)}
    return block.given


def _input(block: _Block, *, broken_off: bool) -> Any:
    """Return the input of a call: what came in pieces, or what stood in the block when it began."""
    written = block.text
    if not written:
        return block.given.get("input")
    try:
        return strictjson.loads(written.encode("utf-8", "surrogatepass"), max_depth=_DEEPEST)
    except Refused:
        if broken_off:
            return {"unreadable_arguments": written}
        raise malformed("TOOL_CALL") from None
