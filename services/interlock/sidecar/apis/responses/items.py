"""Items of a conversation as messages of a chat request.

What an item says of how it was made (its id, its status, its phase) is checked and left out: a provider could do nothing with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from interlock.sidecar.apis.responses.checks import (
    fault,
    kind_of,
    listed,
    only,
    required_object,
    text,
    unsupported,
    word,
)
from interlock.sidecar.apis.responses.places import GivenPlaces
from interlock.sidecar.openai import media

MAX_ITEMS = 4096
MAX_PARTS = 1024

_STATUS = ("in_progress", "completed", "incomplete")
_MEDIA = frozenset({"input_image", "input_file", "input_audio"})
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "message": ("type", "role", "content", "id", "status", "phase"),
    "function_call": ("type", "call_id", "name", "arguments", "id", "status"),
    "function_call_output": ("type", "call_id", "output", "id", "status"),
    "reasoning": ("type", "id", "summary", "content", "encrypted_content", "status"),
    "item_reference": ("type", "id"),
}
KINDS = frozenset(_FIELDS)
"""Types of items that are read."""

_PARTS: Mapping[str, tuple[str, ...]] = {
    "input_text": ("type", "text", "prompt_cache_breakpoint"),
    "output_text": ("type", "text", "annotations", "logprobs"),
    "refusal": ("type", "refusal"),
    "reasoning_text": ("type", "text"),
    "summary_text": ("type", "text"),
}
_ASKED = ("input_text",)
_ANSWERED = ("output_text", "refusal", "input_text")


def checked(place: str, value: Any) -> dict[str, Any]:
    """Return an item of a request: its type is known, it has the fields of that type and no other."""
    given = required_object(place, value)
    kind = kind_of(given) if given.get("type") is not None else "message" if "role" in given else _untyped(given)
    if kind not in KINDS:
        raise unsupported(f"{place}.type", _why(kind))
    item = {**only(place, given, _FIELDS[kind]), "type": kind}
    if "status" in item:
        word(f"{place}.status", item["status"], _STATUS)
    if "phase" in item:
        word(f"{place}.phase", item["phase"], ("commentary", "final_answer"))
    if "id" in item:
        text(f"{place}.id", item["id"])
    return item


def _untyped(given: Mapping[str, Any]) -> str:
    return "item_reference" if given.keys() - {"type"} == {"id"} else "?"


def _why(kind: str) -> str:
    if kind == "?":
        return "an item has a type, or is a message with a role"
    return (
        f"items of type {kind} come from tools that run at the provider, or are no text; give the agent function tools"
    )


class MessagesMaker:
    """Makes messages of items, in their order; an answer's text and its calls become one message."""

    def __init__(self, places: GivenPlaces, *, media_pass: bool = False) -> None:
        self.made: list[dict[str, Any]] = []
        self._places, self._media_pass = places, media_pass
        self._reasoning = ""
        self._open: dict[str, Any] | None = None
        """The assistant's message that a call still belongs to."""

    def instruct(self, instructions: str) -> None:
        """Begin with *instructions*, which hold for this request alone."""
        self._add({"role": "system", "content": instructions}, "instructions", content="")

    def say(self, said: str) -> None:
        """Add the input of a request that is a text."""
        self._add({"role": "user", "content": said}, "input", content="")

    def add(self, items: Iterable[Mapping[str, Any]], place: str) -> None:
        """Add checked *items*, of which number n is at ``place[n]``."""
        for number, item in enumerate(items):
            self._item(item, f"{place}[{number}]")

    def _item(self, item: Mapping[str, Any], place: str) -> None:
        kind = item["type"]
        if kind == "message":
            self._message(item, place)
        elif kind == "function_call":
            self._call(item, place)
        elif kind == "function_call_output":
            self._output(item, place)
        else:
            self._reason(item, place)

    def _message(self, item: Mapping[str, Any], place: str) -> None:
        role = word(f"{place}.role", item.get("role"), ("user", "system", "developer", "assistant"))
        if "content" not in item:
            raise fault(f"{place}.content", "is required")
        kinds = _ANSWERED if role == "assistant" else _ASKED
        shown = self._media_pass and role == "user"
        content = _content(f"{place}.content", item["content"], kinds, media_pass=shown)
        self._add({"role": role, "content": content}, place, content=".content")

    def _call(self, item: Mapping[str, Any], place: str) -> None:
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        if self._open is None:
            self._add({"role": "assistant"}, place, content=".content")
        assert self._open is not None
        calls = self._open.setdefault("tool_calls", [])
        ours = f"messages[{len(self.made) - 1}].tool_calls[{len(calls)}]"
        self._places.note(f"{ours}.function", place)
        self._places.note(f"{ours}.id", f"{place}.call_id")
        calls.append({"id": item.get("call_id"), "type": "function", "function": function})

    def _output(self, item: Mapping[str, Any], place: str) -> None:
        if "output" not in item:
            raise fault(f"{place}.output", "is required")
        content = _content(f"{place}.output", item["output"], _ASKED, of_a_tool=self._media_pass)
        self._add({"role": "tool", "tool_call_id": item.get("call_id"), "content": content}, place, content=".output")
        self._places.note(f"messages[{len(self.made) - 1}].tool_call_id", f"{place}.call_id")

    def _reason(self, item: Mapping[str, Any], place: str) -> None:
        """Keep the text of a reasoning item for the message that it led to. What is encrypted there, no one here can read."""
        for name, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
            _parts(f"{place}.{name}", item.get(name, []), (kind,))
        self._open = None
        self._reasoning += "".join(part["text"] for part in item.get("content", []))

    def _add(self, message: dict[str, Any], place: str, *, content: str) -> None:
        ours = f"messages[{len(self.made)}]"
        self._places.note(ours, place)
        self._places.note(f"{ours}.content", place + content)
        answers = message["role"] == "assistant"
        if answers and self._reasoning:
            message["reasoning_content"] = self._reasoning
        self._reasoning, self._open = "", message if answers else None
        self.made.append(message)


def _content(
    place: str, value: Any, kinds: tuple[str, ...], *, media_pass: bool = False, of_a_tool: bool = False
) -> Any:
    """Return the content of a message: a text, or its parts as a chat request has them, with the user's media where they pass."""
    if isinstance(value, str):
        return value
    parts = [
        _part(f"{place}[{number}]", part, kinds, media_pass=media_pass, of_a_tool=of_a_tool)
        for number, part in enumerate(listed(place, value, MAX_PARTS))
    ]
    if not parts or (len(parts) == 1 and "text" in parts[0]):
        return parts[0]["text"] if parts else ""
    return [_chat_part(part) for part in parts]


def _chat_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "refusal":
        return {"type": "refusal", "refusal": part["refusal"]}
    return {"type": "text", "text": part["text"]} if "text" in part else dict(part)


def _parts(place: str, value: Any, kinds: tuple[str, ...]) -> list[dict[str, Any]]:
    return [_part(f"{place}[{number}]", part, kinds) for number, part in enumerate(listed(place, value, MAX_PARTS))]


def _part(
    place: str, value: Any, kinds: tuple[str, ...], *, media_pass: bool = False, of_a_tool: bool = False
) -> dict[str, Any]:
    kind = kind_of(required_object(place, value))
    if kind in _MEDIA and media_pass:
        return _shown(place, kind, value)
    if kind in _MEDIA:
        raise unsupported(f"{place}.type", media.OF_A_TOOL if of_a_tool else media.REFUSAL)
    if kind not in kinds:
        raise fault(f"{place}.type", "must be one of " + ", ".join(kinds))
    part = only(place, value, _PARTS[kind])
    said = "refusal" if kind == "refusal" else "text"
    text(f"{place}.{said}", part.get(said))
    for name in ("annotations", "logprobs"):
        listed(f"{place}.{name}", part.get(name, []), 1_000_000)
    return part


def _shown(place: str, kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an image, a sound or a file of the user as the part of a chat message that it is there; its values are checked there."""
    if kind == "input_audio":
        return only(place, value, ("type", "input_audio"))
    if kind == "input_file":
        given = only(place, value, ("type", "file_data", "filename", "file_id"))
        return {"type": "file", "file": {name: one for name, one in given.items() if name != "type"}}
    given = only(place, value, ("type", "image_url", "detail"))
    image = {"url": given.get("image_url"), **({"detail": given["detail"]} if "detail" in given else {})}
    return {"type": "image_url", "image_url": image}
