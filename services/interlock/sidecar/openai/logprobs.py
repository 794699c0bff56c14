"""Log-probabilities of an answer: passed on where they were asked for and spell the judged text to the byte (I17; A-26).

Alternatives to a token are no part of the text and are judged by nobody. They are left out, and a request cannot ask for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.sidecar.openai.fields import DroppedFields

PARTS = ("content", "refusal")
_ENTRY = ("token", "logprob", "bytes", "top_logprobs")


def spelled(
    value: Any, message: Mapping[str, Any], dropped: DroppedFields, *, wanted: bool
) -> dict[str, list[dict[str, Any]]]:
    """Return the log-probabilities of a message's texts; empty where there are none that may be passed on."""
    if not value:
        return {}
    if not wanted or not isinstance(value, dict):
        dropped.note("logprobs")
        return {}
    dropped.unread(value, PARTS)
    found = {name: _entries(value[name], message.get(name), dropped) for name in PARTS if value.get(name)}
    return {name: entries for name, entries in found.items() if entries}


def _entries(value: Any, text: str | None, dropped: DroppedFields) -> list[dict[str, Any]]:
    listed: list[Any] = value if isinstance(value, list) else [None]
    pieces = [token for item in listed if (token := _token(item)) is not None]
    if len(pieces) != len(listed) or b"".join(pieces) != (text or "").encode():
        dropped.note("logprobs")
        return []
    for item in listed:
        dropped.unread(item, _ENTRY)
        if item.get("top_logprobs"):
            dropped.note("top_logprobs")
    return [
        {
            # A token may end within a character: the vendor writes such bytes as escapes.
            "token": piece.decode("utf-8", "backslashreplace"),
            "logprob": item["logprob"],
            "bytes": list(piece),
            "top_logprobs": [],
        }
        for piece, item in zip(pieces, listed, strict=True)
    ]


def _token(item: Any) -> bytes | None:
    """Return the bytes that an entry stands for; ``None`` where it is no entry."""
    token, number = (item.get("token"), item.get("logprob")) if isinstance(item, dict) else (None, None)
    if not isinstance(token, str) or isinstance(number, bool) or not isinstance(number, int | float):
        return None
    given = item.get("bytes")
    if given is None:
        return token.encode()
    whole = isinstance(given, list) and all(type(one) is int and 0 <= one < 256 for one in given)
    return bytes(given) if whole else None
