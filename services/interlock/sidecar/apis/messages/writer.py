"""A message in Anthropic's server-sent events, in parts or at once (API-2, API-4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlock.sidecar.apis.api import HALTED
from interlock.sidecar.apis.messages import answer, errors
from interlock.sidecar.apis.messages.answer import Block
from interlock.sidecar.apis.messages.events import MessageEvents, event
from interlock.sidecar.call.live import AnswerPart
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.openai.sse import PIECE


class MessageWriter:
    """Writes one message. What has left is not said again; a message that breaks off has no message_stop."""

    keep_alive = event("ping")

    def __init__(self, head: Mapping[str, Any]) -> None:
        self._head, self._events, self._begun = head, MessageEvents(), False
        self._open: dict[str, Block] = {}
        self._left = {"thinking": 0, "text": 0}

    def part(self, part: AnswerPart) -> bytes:
        """Return a part: thinking is a block of its own, all text goes on in one."""
        written = [self._start(self._head)]
        for kind, text in (("thinking", part.reasoning), ("text", part.text)):
            if text:
                block = self._open.setdefault(kind, Block(kind, ""))
                self._left[kind] += len(text)
                written += self._pieces(block, text)
        return b"".join(written)

    def end(self, completion: Completion, final: Mapping[str, str] | None = None) -> bytes:
        """Return the rest and the end."""
        whole = completion.completion
        written = [self._start(whole)]
        for block in answer.blocks(whole):
            begun = self._open.pop(block.kind, None)
            text = block.text[self._left[block.kind] :] if begun else block.text
            written += self._pieces(begun or block, text)
        end = self._events.end(answer.stop_reason(whole), answer.usage(whole))
        return b"".join([*written, end, _final(final), event("message_stop")])

    def stop(self, body: dict[str, Any], status: int, final: Mapping[str, str] | None = None) -> bytes:
        """Return the error that ends the message; where it was cut, behind the stop reason ``refusal``."""
        cut = self._events.end("refusal", answer.usage(self._head)) if status == HALTED else b""
        error = {name: value for name, value in errors.shaped(body, status).items() if name != "type"}
        return cut + _final(final) + event("error", **error)

    def _start(self, completion: Mapping[str, Any]) -> bytes:
        begun, self._begun = self._begun, True
        return b"" if begun else self._events.start(answer.frame(completion))

    def _pieces(self, block: Block, text: str) -> Iterator[bytes]:
        return (self._events.piece(block, text[start : start + PIECE]) for start in range(0, len(text), PIECE))


def _final(final: Mapping[str, str] | None) -> bytes:
    return b"" if final is None else event("crp", crp=dict(final))
