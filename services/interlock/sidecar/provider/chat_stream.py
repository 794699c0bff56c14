"""The chunks of a chat completion, put together into one message per choice. A field that nobody judges is noted and not kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.sidecar.call.live import AnswerPart
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.content import content_of
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.provider.streams import failed, weight

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
        """Whether there is content, reasoning and nothing else."""
        return not (self.calls or self.function or self.logprobs) and "refusal" not in self.texts


class ChatStream:
    """The chunks of one chat completion."""

    closed = False
    """This API says its last word with [DONE]."""

    def __init__(self, choices: int) -> None:
        self._most = choices
        self._choices: dict[int, _Choice] = {}
        self._usage: Any = None
        self._tier: Any = None

    @property
    def ended(self) -> bool:
        """Whether every choice has its end."""
        return bool(self._choices) and all(one.finish for one in self._choices.values())

    @property
    def said(self) -> AnswerPart | None:
        """The content so far where it is all there is of the only choice but reasoning; ``None`` where it is not."""
        if set(self._choices) != {0} or not self._choices[0].plain:
            return None
        texts = self._choices[0].texts
        return AnswerPart("".join(texts.get("reasoning_content", ())), "".join(texts.get("content", ())))

    def marked(self) -> None:
        """Note [DONE]. A choice of texts that names no end counts as cut off: nothing says that it is whole.

        One with a call has no end without its name: a call that was cut off must not be made.
        """
        for one in self._choices.values():
            if one.texts and not (one.calls or one.function):
                one.finish = one.finish or "length"

    def take(self, chunk: dict[str, Any]) -> int:
        """Take one chunk."""
        if chunk.get("error"):
            raise failed()
        if not isinstance(chunk.get("choices"), list):
            raise malformed("CHOICES")
        self._usage = chunk.get("usage") or self._usage
        self._tier = chunk.get("service_tier") or self._tier
        for item in chunk["choices"]:
            self._take(item)
        return weight([item.get(name) for item in chunk["choices"] for name in _KEPT])

    def _take(self, item: Any) -> None:
        delta = item.get("delta") if isinstance(item, dict) else None
        if not isinstance(delta, dict):
            raise malformed("DELTA")
        index = item.get("index", 0)
        if type(index) is not int or not 0 <= index < self._most:
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
        elif name == "content":
            text, thought = content_of(value)
            choice.says("reasoning_content", thought)
            choice.says("content", text or "")
        elif name in _TEXTS:
            choice.says(name, value)
        elif name == "tool_calls":
            for call in value if isinstance(value, list) else [None]:
                _call(choice, call)
        elif name == "function_call":
            choice.function = _joined(choice.function or {}, value)
        elif value not in ("", [], {}):
            choice.more[name] = True

    def whole(self, *, broken_off: bool) -> bytes:
        """Return the completion."""
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
