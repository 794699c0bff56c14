"""The events of a Response, put together into the Response that it would have been at once.

The last event has the whole Response. What it says counts where it has an output; whether that begins with what has left already is
looked at where parts are released.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from interlock.sidecar.call.live import AnswerPart
from interlock.sidecar.openai import strictjson
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.provider.streams import failed, place, weight

MOST_ITEMS, MOST_PARTS = 1024, 1024
_LAST = ("response.completed", "response.incomplete")
_DELTAS = {
    "response.output_text.delta": ("message", "content", "output_text", "content_index"),
    "response.refusal.delta": ("message", "content", "refusal", "content_index"),
    "response.reasoning_text.delta": ("reasoning", "content", "reasoning_text", "content_index"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary", "summary_text", "summary_index"),
    "response.function_call_arguments.delta": ("function_call", "arguments", "", ""),
}
"""Type of the item, its field, the type of its part and the name of the part's place, by the type of an event."""

_Key = tuple[str, int]


@dataclass
class _Item:
    """What has come of one item."""

    kind: str
    given: dict[str, Any]
    done: bool = False
    weight: int = 0
    kinds: dict[_Key, str] = field(default_factory=dict)
    pieces: dict[_Key, list[str]] = field(default_factory=dict)
    """Pieces of its parts, by field and place."""

    def add(self, where: _Key, kind: str, piece: str) -> None:
        """Add to a part."""
        if self.done or self.kinds.setdefault(where, kind) != kind:
            raise malformed("DELTA")
        self.pieces.setdefault(where, []).append(piece)
        self.weight += weight(piece)

    def whole(self) -> dict[str, Any]:
        """Return the item as it is at its end, or as far as it has come."""
        if self.done:
            return self.given
        made = {**self.given}
        for name in {name for name, _ in self.pieces}:
            parts = [(where, "".join(pieces)) for where, pieces in sorted(self.pieces.items()) if where[0] == name]
            made[name] = parts[0][1] if name == "arguments" else [self._part(where, text) for where, text in parts]
        return made

    def _part(self, where: _Key, text: str) -> dict[str, Any]:
        kind = self.kinds[where]
        return {"type": kind, "refusal" if kind == "refusal" else "text": text}

    @property
    def texts(self) -> list[str] | None:
        """Its texts so far; ``None`` where there is a refusal in it."""
        if self.pieces:
            known = set(self.kinds.values())
            return None if "refusal" in known else ["".join(one) for _, one in sorted(self.pieces.items())]
        parts = [*_listed(self.given.get("content")), *_listed(self.given.get("summary"))]
        if any(part.get("type") == "refusal" for part in parts):
            return None
        return [text for part in parts if isinstance(text := part.get("text"), str)]


class ResponseStream:
    """The events of one Response."""

    def __init__(self) -> None:
        self.ended = self.closed = False
        self._items: dict[int, _Item] = {}
        self._last: dict[str, Any] = {}

    @property
    def said(self) -> AnswerPart | None:
        """What there is so far where it is reasoning and messages without a refusal."""
        found: dict[str, list[str]] = {"message": [], "reasoning": []}
        for item in self._items.values():
            texts = item.texts if item.kind in found else None
            if texts is None:
                return None
            joined = ("" if item.kind == "message" else "\n\n").join(texts)
            found[item.kind] += [joined] if joined else []  # as the reader of the whole puts items together
        return AnswerPart("\n\n".join(found["reasoning"]), "\n\n".join(found["message"])) if self._items else None

    def marked(self) -> None:
        """Note nothing: this API ends with an event of its own."""

    def take(self, event: dict[str, Any]) -> int:
        """Take one event. Those that are not known say nothing: their item says it again at its end."""
        kind = event.get("type")
        if not isinstance(kind, str):
            raise malformed("CHUNK")
        if kind in {"error", "response.failed"} or event.get("error"):
            raise failed()
        if kind in _LAST:
            response = event.get("response")
            if not isinstance(response, dict):
                raise malformed("OUTPUT")
            self._last = {**response, "status": kind.removeprefix("response.")}
            self.ended = self.closed = True
        elif kind == "response.output_item.added":
            return self._begin(event)
        elif kind == "response.output_item.done":
            return self._end(event)
        elif kind in _DELTAS:
            return self._add(event, *_DELTAS[kind])
        return 0

    def whole(self, *, broken_off: bool) -> bytes:
        """Return the Response. A provider whose last event repeats nothing has said it in the items."""
        items = [item.whole() for _, item in sorted(self._items.items())]
        if broken_off or not self._last:
            return strictjson.dumps({"status": "incomplete", "output": items})
        return strictjson.dumps({**self._last, "output": self._last.get("output") or items})

    def _begin(self, event: dict[str, Any]) -> int:
        item, number = _given(event), place(event.get("output_index"), MOST_ITEMS, "OUTPUT")
        if number != len(self._items):
            raise malformed("OUTPUT")
        self._items[number] = _Item(item["type"], item)
        return weight(item)

    def _add(self, event: dict[str, Any], kind: str, name: str, part: str, at: str) -> int:
        item, piece = self._item(event), event.get("delta")
        where = name, place(event.get(at, 0), MOST_PARTS, "DELTA") if at else 0
        if item.kind != kind or not isinstance(piece, str):
            raise malformed("DELTA")
        item.add(where, part, piece)
        return weight(piece)

    def _end(self, event: dict[str, Any]) -> int:
        item, given = self._item(event), _given(event)
        if given["type"] != item.kind or item.done:
            raise malformed("OUTPUT")
        item.given, item.done = given, True
        return max(0, weight(given) - item.weight)

    def _item(self, event: dict[str, Any]) -> _Item:
        item = self._items.get(place(event.get("output_index"), MOST_ITEMS, "OUTPUT"))
        if item is None:
            raise malformed("OUTPUT")
        return item


def _given(event: dict[str, Any]) -> dict[str, Any]:
    item = event.get("item")
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        raise malformed("OUTPUT")
    return item


def _listed(value: Any) -> list[dict[str, Any]]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []
