"""The answer of a provider that streams, while it comes in (SVC-2; A-26; ecosystem.md 3.3).

Server-sent events are read strictly and into one message per choice. A field that nobody judges is noted and not kept. At the end the
whole goes through the same reader as an answer that came at once, so that both pass the same allow-list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.domain.errors import Kind, Refused
from interlock.sidecar.openai import completion, strictjson
from interlock.sidecar.openai.completion import AnswerAsked, Completion
from interlock.sidecar.openai.faults import malformed

_TEXTS = ("content", "refusal", "reasoning_content")
_JOINED = ("tool_calls", "function_call")
_KEPT = ("delta", "logprobs")
MOST_CALLS = 256
"""Tool calls of one choice."""


@dataclass
class _Choice:
    """What has come of one choice."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    function: dict[str, str] | None = None
    logprobs: dict[str, list[Any]] = field(default_factory=dict)
    finish: Any = None
    more: dict[str, Any] = field(default_factory=dict)
    """Fields that nobody judges, by name: the reader of the whole notes them."""

    def says(self, name: str, value: Any) -> None:
        """Add to one of its texts."""
        if not isinstance(value, str):
            raise malformed(name.upper())
        if value:
            self.texts.setdefault(name, []).append(value)

    @property
    def plain(self) -> bool:
        """Whether there is content and nothing else."""
        return not (self.calls or self.function or self.logprobs) and self.texts.keys() <= {"content"}


class ProviderStream:
    """One answer while it comes in. It keeps at most *limit* bytes."""

    def __init__(self, asked: AnswerAsked, *, limit: int, max_depth: int) -> None:
        self.changed = asyncio.Event()
        self.done = False
        self._asked, self._limit, self._max_depth = asked, limit, max_depth
        self._choices: dict[int, _Choice] = {}
        self._usage: Any = None
        self._tier: Any = None
        self._buffer, self._data, self._size = bytearray(), bytearray(), 0
        self._whole: bytes | None = None

    def feed(self, data: bytes) -> None:
        """Take bytes as they came. Refused with UPSTREAM_INVALID_RESPONSE, or UPSTREAM_ERROR where the provider says so."""
        self._buffer += data
        while not self.done and (at := self._buffer.find(b"\n")) >= 0:
            line = bytes(self._buffer[:at]).removesuffix(b"\r")
            del self._buffer[: at + 1]
            self._line(line)
        if len(self._buffer) + len(self._data) > self._limit:
            raise malformed("TOO_LARGE")

    def answered(self, data: bytes) -> None:
        """Take the answer of a provider that does not stream."""
        self._whole, self.done = data, True

    def finished(self) -> None:
        """Note that nothing more comes. Refused with UPSTREAM_DISCONNECTED where the answer has no end."""
        if not self.done and not (self._choices and all(one.finish for one in self._choices.values())):
            message = "the model provider closed the connection mid-answer"
            raise Refused(Kind.BAD_GATEWAY, "UPSTREAM_DISCONNECTED", message, retry_after_ms=1000)
        self.done = True

    @property
    def plain_text(self) -> str | None:
        """The content so far where it is all there is of the only choice; ``None`` where it is not."""
        if self._whole is not None or set(self._choices) != {0} or not self._choices[0].plain:
            return None
        return "".join(self._choices[0].texts.get("content", ()))

    def completion(self, *, broken_off: bool = False) -> Completion:
        """Return the whole answer, or what there is of one that was *broken_off*."""
        data = self._assembled(broken_off=broken_off) if self._whole is None else self._whole
        return completion.read(data, self._asked, max_depth=self._max_depth)

    def prefix(self, text: str) -> Completion:
        """Return *text*, which the content begins with, as an answer to be judged."""
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        frame = {"id": "", "object": "chat.completion", "created": 0, "model": self._asked.model}
        return completion.assembled(frame, [choice], {})

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data += line[5:].removeprefix(b" ") + b"\n"
        elif not line and self._data:
            data, self._data = bytes(self._data).strip(), bytearray()
            self._event(data)

    def _event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.finished()
            return
        try:
            chunk = strictjson.loads(data, max_depth=self._max_depth)
        except Refused as refused:
            raise malformed(refused.reason) from None
        if not isinstance(chunk, dict):
            raise malformed("CHUNK")
        if chunk.get("error"):
            raise Refused(Kind.BAD_GATEWAY, "UPSTREAM_ERROR", "the model provider failed", retry_after_ms=1000)
        if not isinstance(chunk.get("choices"), list):
            raise malformed("CHOICES")
        self._size += _weight([item.get(name) for item in chunk["choices"] if isinstance(item, dict) for name in _KEPT])
        if self._size > self._limit:
            raise malformed("TOO_LARGE")
        self._usage = chunk.get("usage") or self._usage
        self._tier = chunk.get("service_tier") or self._tier
        for item in chunk["choices"]:
            self._take(item)
        self.changed.set()

    def _take(self, item: Any) -> None:
        delta = item.get("delta") if isinstance(item, dict) else None
        if not isinstance(delta, dict):
            raise malformed("DELTA")
        index = item.get("index", 0)
        if type(index) is not int or not 0 <= index < self._asked.choices:
            raise malformed("CHOICE_INDEX")
        choice = self._choices.setdefault(index, _Choice())
        if choice.finish and any(delta.get(name) for name in (*_TEXTS, *_JOINED)):
            raise malformed("AFTER_THE_END")
        for name, value in delta.items():
            self._field(choice, name, value)
        if isinstance(item.get("logprobs"), dict):
            for name, entries in item["logprobs"].items():
                if isinstance(entries, list):
                    choice.logprobs.setdefault(name, []).extend(entries)
        choice.finish = item.get("finish_reason") or choice.finish

    def _field(self, choice: _Choice, name: str, value: Any) -> None:
        if name == "role":
            if value not in (None, "assistant", ""):
                raise malformed("ROLE")
        elif value is None:
            return
        elif name in _TEXTS:
            choice.says(name, value)
        elif name == "tool_calls":
            for call in value if isinstance(value, list) else [None]:
                _call(choice, call)
        elif name == "function_call":
            choice.function = _joined(choice.function or {}, value)
        elif value not in ("", [], {}):
            choice.more[name] = True

    def _assembled(self, *, broken_off: bool) -> bytes:
        choices = []
        for index, one in sorted(self._choices.items()):
            message: dict[str, Any] = {"role": "assistant", "content": None, **one.more}
            message |= {name: "".join(pieces) for name, pieces in one.texts.items()}
            if one.calls:
                message["tool_calls"] = [one.calls[at] for at in sorted(one.calls)]
            if one.function:
                message["function_call"] = one.function
            finish = one.finish or ("length" if broken_off else None)
            choices.append(
                {"index": index, "message": message, "finish_reason": finish, "logprobs": one.logprobs or None}
            )
        return strictjson.dumps({"choices": choices, "usage": self._usage, "service_tier": self._tier})


def _weight(value: Any) -> int:
    """Return about what a value adds to what is kept, bytes: an endless answer ends at the limit, its frames do not count."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_weight, inside)) + (8 * len(value) if isinstance(value, list) else 0)


def _call(choice: _Choice, given: Any) -> None:
    index = given.get("index", 0) if isinstance(given, dict) else None
    if type(index) is not int or not 0 <= index < MOST_CALLS:
        raise malformed("TOOL_CALL")
    known = choice.calls.setdefault(index, {"id": None, "type": "function", "function": {}})
    known["id"] = known["id"] or given.get("id")
    if given.get("type"):
        known["type"] = given["type"]
    if given.get("function") is not None:
        known["function"] = _joined(known["function"], given["function"])


def _joined(known: Mapping[str, str], given: Any) -> dict[str, str]:
    """Return a function with one more piece: its name comes once, its arguments in pieces."""
    if not isinstance(given, dict):
        raise malformed("TOOL_CALL")
    name, arguments = given.get("name") or "", given.get("arguments") or ""
    if not isinstance(name, str) or not isinstance(arguments, str):
        raise malformed("TOOL_CALL")
    return {"name": known.get("name") or name, "arguments": known.get("arguments", "") + arguments}
