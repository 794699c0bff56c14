"""A Response in server-sent events, in parts or at once (API-1, API-4).

The events between its first and its last one say piece by piece what the last one says as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlock.sidecar.apis.api import HALTED
from interlock.sidecar.apis.responses import answer
from interlock.sidecar.apis.responses.events import TEXTS, ResponseEvents
from interlock.sidecar.call.live import AnswerPart
from interlock.sidecar.openai import completion as completions
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.openai.sse import KEEP_ALIVE, PIECE


class ResponseWriter:
    """Writes one Response. What has left is not said again; one that breaks off ends with ``response.incomplete`` or ``response.failed``."""

    keep_alive = KEEP_ALIVE

    def __init__(self, echoed: Mapping[str, Any], head: Completion) -> None:
        self._echoed, self._head = echoed, head
        self._events, self._begun = ResponseEvents(), False
        self._left = AnswerPart()
        self._written = 0
        """Items that are whole."""
        self._speaking = False
        """Whether the message has begun."""

    def part(self, part: AnswerPart) -> bytes:
        """Return a part: reasoning is an item of its own, all text goes on in one message."""
        written = [self._begin(self._head)]
        self._left += part
        items = answer.output(self._so_far())
        if part.reasoning:
            written += self._item(items[0])
        if part.text:
            if not self._speaking:
                written.append(self._open_message(items[-1]))
            written += (self._events.text("output_text", piece) for piece in _pieces(part.text))
        return b"".join(written)

    def end(self, completion: Completion, final: Mapping[str, str] | None = None) -> bytes:
        """Return the rest and the end."""
        whole = answer.response(self._echoed, completion)
        return b"".join([
            self._begin(completion), *self._rest(whole["output"]), *self._final(final),
            self._events.end(whole),
        ])  # fmt: skip

    def stop(self, body: dict[str, Any], status: int, final: Mapping[str, str] | None = None) -> bytes:
        """Return the end of a Response that holds what has left: incomplete where it was cut, otherwise failed; then the error.

        Clients of the vendor act on the one or on the other.
        """
        whole = answer.response(self._echoed, self._so_far())
        rest = self._rest(whole["output"])
        error = body["error"] if isinstance(body["error"], Mapping) else {}
        told = {"message": error.get("message") or "", "param": error.get("param")}
        if status != HALTED:
            failed = {"code": "server_error", "message": told["message"]}
            whole |= {"status": "failed", "incomplete_details": None, "error": failed}
        return b"".join([
            *rest, *self._final(final), self._events.end(whole),
            self._events.other("error", code=error.get("code") or body["reason"], **told, **body),
        ])  # fmt: skip

    def _begin(self, completion: Completion) -> bytes:
        begun, self._begun = self._begun, True
        return b"" if begun else self._events.begin(answer.frame(self._echoed, completion))

    def _so_far(self) -> Completion:
        """Return what has left, under the id of the answer; there is more to it."""
        head, left = self._head.completion, self._left
        made = completions.begun(head["model"], left.text, left.reasoning, finish="content_filter")
        return completions.identified(made, head["id"], head["created"])

    def _rest(self, items: list[dict[str, Any]]) -> Iterator[bytes]:
        """Yield what is left of the items, in their order."""
        for item in items[self._written :]:
            yield from self._message(item) if self._speaking and item["type"] == "message" else self._item(item)

    def _item(self, item: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield a whole item."""
        begun = {**item, **({"status": "in_progress"} if "status" in item else {})}
        if item["type"] == "function_call":
            yield self._events.open_item({**begun, "arguments": ""})
            yield from (self._events.arguments(piece) for piece in _pieces(item["arguments"]))
            yield self._events.close_arguments(item["name"], item["arguments"])
        else:
            yield self._events.open_item({**begun, "content": []})
            for part in item["content"]:
                yield self._open(part)
                yield from self._close(part, 0)
        yield self._events.close_item(item)
        self._written += 1

    def _open_message(self, item: Mapping[str, Any]) -> bytes:
        self._speaking = True
        begun = self._events.open_item({**item, "status": "in_progress", "content": []})
        return begun + self._open(item["content"][0])

    def _message(self, item: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield the rest of the message that has begun."""
        said, *more = item["content"]
        yield from self._close(said, len(self._left.text))
        for part in more:
            yield self._open(part)
            yield from self._close(part, 0)
        yield self._events.close_item(item)
        self._speaking = False
        self._written += 1

    def _open(self, part: Mapping[str, Any]) -> bytes:
        empty = {TEXTS[part["type"]][1]: "", **({"logprobs": []} if "logprobs" in part else {})}
        return self._events.open_part({**part, **empty})

    def _close(self, part: Mapping[str, Any], left: int) -> Iterator[bytes]:
        text = part[TEXTS[part["type"]][1]]
        yield from (self._events.text(part["type"], piece) for piece in _pieces(text[left:]))
        yield self._events.close_part(part)

    def _final(self, final: Mapping[str, str] | None) -> Iterator[bytes]:
        if final is not None:
            yield self._events.other("crp", crp=dict(final))


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))
